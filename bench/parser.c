/* SPDX-License-Identifier: BSD-3-Clause */
/* A parser of single bytes, for `perdure explore`: each may be one of three, or end it. */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd = open(argc > 1 ? argv[1] : "pool", O_RDWR | O_CREAT, 0600);
	unsigned char in[64];
	uint64_t *pm, state = 0;
	ssize_t n = read(STDIN_FILENO, in, sizeof(in));

	if (fd < 0 || ftruncate(fd, 4096) < 0)
		return 2;
	pm = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pm == MAP_FAILED)
		return 2;
	for (ssize_t i = 0; i < n; i++) {
		if (in[i] == 'a')
			state = state * 3 + 1;
		else if (in[i] == 'b')
			state = state * 3 + 2;
		else if (in[i] == '\n')
			break;
		else
			state = 0;
	}
	if (state == 1093)
		pm[0] = state;
	return 0;
}
