/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/sparse.h"

#include <sys/syscall.h>
#include <unistd.h>

static bool copy_range(int from, int to, off_t start, off_t end)
{
	enum { PIECE = 1 << 16 };
	char piece[PIECE];

	while (start < end) {
		long wanted = end - start < PIECE ? end - start : PIECE;
		long got = syscall(SYS_pread64, from, piece, wanted, start);

		if (got < 0 || (got > 0 && syscall(SYS_pwrite64, to, piece, got, start) != got))
			return false;
		if (got == 0)
			break;
		start += got;
	}
	return true;
}

bool sparse_copy(int from, int to, off_t size)
{
	off_t at = 0;

	while (at < size) {
		off_t data = syscall(SYS_lseek, from, at, SEEK_DATA), hole;

		if (data < 0 || data >= size)
			break;
		hole = syscall(SYS_lseek, from, data, SEEK_HOLE);
		at = hole < 0 || hole > size ? size : hole;
		if (!copy_range(from, to, data, at))
			return false;
	}
	return true;
}
