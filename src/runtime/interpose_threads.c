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

/* ---- start ---- */

struct start {
	void *(*function)(void *);
	void *argument;
};

static void *start_thread(void *argument)
{
	struct start start = *(struct start *)argument;

	free(argument);
	return stack_call_thread(start.function, start.argument);
}

PUBLIC int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
			  void *(*function)(void *), void *restrict argument)
{
	struct start *start;
	int result;

	if (!runtime_session)
		return REAL(pthread_create)(thread, attributes, function, argument);
	execution_note_input(INPUT_THREADS);
	event_fence(PERDURE_RMW_FENCE, FRAME);
	runtime_session->lines.concurrent = 1;
	start = malloc(sizeof(*start));
	if (!start)
		return REAL(pthread_create)(thread, attributes, function, argument);
	*start = (struct start){ function, argument };
	result = REAL(pthread_create)(thread, attributes, start_thread, start);
	if (result)
		free(start);
	return result;
}

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
