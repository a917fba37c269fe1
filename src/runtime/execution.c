/* SPDX-License-Identifier: BSD-3-Clause */
/* A process as a part of one execution of a check. */
#include "runtime/execution.h"

#include "fibers/fibers.h"
#include "runtime/hooks.h"

struct execution *runtime_execution;
uint8_t runtime_logs, runtime_recovers, runtime_relogs, runtime_explores;

void execution_join(uint32_t number)
{
	struct executions *all = &runtime_session->executions;

	if (!all->on || number >= EXECUTIONS)
		return;
	runtime_execution = &all->execution[number];
	runtime_explores = runtime_session->explore != NULL;
	runtime_logs = runtime_execution->stage == 0 && !runtime_explores;
	runtime_recovers = runtime_execution->stage > 0;
	if (runtime_logs)
		runtime_session->listening |= SESSION_LOGS;
	fibers_start();
	runtime_relogs = runtime_recovers && runtime_execution->logs;
	if (runtime_recovers) {
		runtime_wants_loads = 1;
		recovery_start();
	}
	if (runtime_recovers || fibers_preempt || runtime_explores)
		symptoms_watch();
}

void execution_note_input(enum execution_input input)
{
	if (runtime_execution)
		__atomic_fetch_or(&runtime_execution->inputs, input, __ATOMIC_RELAXED);
}
