/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a recovery ends: the call stack, before a signal does its work, or of a call of exit that
 * says that something is wrong.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "binary/binary.h"
#include "races/races.h"
#include "runtime/execution.h"
#include "symbolic/symbolic.h"

enum { STACK_SIZE = 256 << 10 };

static const int watched[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS };

static void on_crash(int signal, siginfo_t *info, void *context)
{
	struct execution *execution = runtime_execution;
	ucontext_t *where = context;
	struct sigaction fatal = { .sa_handler = SIG_DFL };

	if (binary_redirect(signal, context))
		return;
	/* A copy of an instruction stands for that instruction. */
	where->uc_mcontext.gregs[REG_RIP] =
		(greg_t)binary_original((uintptr_t)where->uc_mcontext.gregs[REG_RIP]);
	if (!execution->signal) {
		execution->signal = signal;
		execution->signal_address = (uintptr_t)info->si_addr;
		runtime_thread.busy = false;
		if (thread_enter()) {
			execution->signal_stack =
				stack_capture_at(where->uc_mcontext.gregs[REG_RIP]);
			thread_leave();
		}
	}
	states_crashed((uint32_t)signal, execution->signal_stack);
	sigaction(signal, &fatal, NULL);
	if (info->si_code <= 0 && signal != SIGABRT) /* sent by somebody: it does not come again */
		raise(signal);
}

void symptoms_watch(void)
{
	struct sigaction action = { .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t stack = { .ss_size = STACK_SIZE };

	if (runtime_has_sanitizer) /* which has its own idea of that, and a better report */
		return;
	stack.ss_sp = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (stack.ss_sp == MAP_FAILED)
		return;
	sigaltstack(&stack, NULL);
	for (size_t i = 0; i < sizeof(watched) / sizeof(*watched); i++)
		sigaction(watched[i], &action, NULL);
}

/* ---- exit ---- */

void symptoms_return(int status, const void *main_function)
{
	races_end();
	if (!runtime_recovers || !status || runtime_execution->signal_stack || !thread_enter())
		return;
	runtime_execution->signal_stack = stack_of_function(main_function);
	thread_leave();
}

void symptoms_exit(int status, const struct frame *frame)
{
	struct execution *execution = runtime_execution;

	races_end();
	if (!runtime_recovers || !status || execution->signal_stack || !thread_enter())
		return;
	execution->signal_stack = stack_capture(frame);
	thread_leave();
}

#define EXITS(name)                                                                                \
	PUBLIC void name(int status)                                                               \
	{                                                                                          \
		buffer_drain();                                                                    \
		symptoms_exit(status, FRAME);                                                      \
		REAL(name)(status);                                                                \
		__builtin_unreachable();                                                           \
	}                                                                                          \
	struct ignore_semicolon

EXITS(exit);
EXITS(quick_exit);
