/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of files that keep their holes. For both sides: nothing here can be interposed. */
#ifndef SESSION_SPARSE_H
#define SESSION_SPARSE_H

#include <stdbool.h>
#include <sys/types.h>

/* The first `size` bytes, into a file that is at least as long and empty. errno says why not. */
bool sparse_copy(int from, int to, off_t size);

#endif
