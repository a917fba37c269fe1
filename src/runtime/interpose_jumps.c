/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start of threads, and jumps. What other thread functions order is said by library models;
 * the end of a thread orders nothing.
 */
#include "runtime/execution.h"
#include "runtime/library.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>

/* ---- jumps: out of signal handlers, and out of transactions ---- */

#define JUMPS(name)                                                                                \
	PUBLIC void name(struct __jmp_buf_tag buffer[1], int value)                                \
	{                                                                                          \
		thread_abandon();                                                                  \
		if (runtime_session)                                                               \
			library_jump(FRAME);                                                       \
		REAL(name)(buffer, value);                                                         \
		__builtin_unreachable();                                                           \
	}                                                                                          \
	struct ignore_semicolon

void __longjmp_chk(struct __jmp_buf_tag buffer[1], int value) __attribute__((noreturn));
JUMPS(longjmp);
JUMPS(_longjmp);
JUMPS(siglongjmp);
JUMPS(__longjmp_chk);
