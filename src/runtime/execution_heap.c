/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --pm-heap under check: the program's heap is an image like a file's. Recoveries find it where it
 * was, and allocate elsewhere. Root slots lie at its start.
 */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap/heap.h"
#include "perdure/perdure.h"
#include "races/races.h"
#include "runtime/execution.h"
#include "runtime/hooks.h"

static struct session_file *heap_slot(void)
{
	struct session *session = runtime_session;

	for (uint32_t i = 0; i < session->files; i++)
		if (session->file[i].heap)
			return &session->file[i];
	return NULL;
}

/* The run before the crash: the first arena is in a file of the command's. */
static void map_program_heap(void)
{
	uint32_t world = world_make_heap(HEAP_ARENA_SIZE);
	int fd = world ? world_open_backing(world - 1) : -1;
	struct session_file *slot;

	if (fd < 0 || syscall(SYS_mmap, HEAP_BASE, HEAP_ARENA_SIZE, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0L) != (long)HEAP_BASE) {
		message("cannot map the heap as persistent memory");
		_exit(125);
	}
	syscall(SYS_close, fd);
	__perdure_heap_enter(0, 1);
	slot = heap_slot();
	if (slot)
		slot->world = world;
}

void execution_use_heap(void)
{
	struct session_file *slot = heap_slot();

	if (!__perdure_heap_enter)
		return;
	if (runtime_logs) {
		map_program_heap();
		return;
	}
	if (runtime_explores) {
		__perdure_heap_enter(0, 0); /* memory of its own, as all paths have */
		return;
	}
	if (slot && slot->world && world_has(slot->world))
		recovery_map(slot, -1, HEAP_ARENA_SIZE, PROT_READ | PROT_WRITE, 0);
	__perdure_heap_enter(runtime_execution->stage < HEAP_BOOT ? runtime_execution->stage : 1,
			     0);
}

/* Shared memory is shared with children, too: they get what is there now, for themselves. */
void execution_heap_after_fork(void)
{
	const struct session_file *slot = runtime_logs ? heap_slot() : NULL;
	int fd = slot && slot->world ? world_open_backing(slot->world - 1) : -1;

	if (fd < 0)
		return;
	syscall(SYS_mmap, HEAP_BASE, HEAP_ARENA_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, fd, 0L);
	syscall(SYS_close, fd);
}

void __perdure_heap_allocated(void *p, size_t size, int zeroed, const void *frame)
{
	struct session_thread *thread;

	if (runtime_races && p)
		races_allocated(p);
	if (!runtime_logs || !size || !in_window(p))
		return;
	if (!zeroed) {
		log_alloc(p, size, runtime_session->executions.log.events, frame);
		return;
	}
	thread = thread_enter();
	if (!thread)
		return;
	log_event(HISTORY_STORE, HISTORY_LIBRARY, thread->lines.id, (uintptr_t)p, size,
		  stack_capture(frame), p);
	thread_leave();
}

/* As of the crash: its last allocation before. */
size_t __perdure_heap_old_size(const void *p)
{
	const struct event_log *log = runtime_session ? &runtime_session->executions.log : NULL;

	for (uint32_t i = runtime_recovers ? runtime_execution->crash.crash : 0; i-- > 0;)
		if (log->event[i].address == (uintptr_t)p &&
		    (log->event[i].kind == HISTORY_ALLOC || log->event[i].flags & HISTORY_LIBRARY))
			return log->event[i].size;
	return 0;
}

/* ---- root slots ---- */

static void *const *slot_of(unsigned id)
{
	const struct session_file *slot = runtime_session ? heap_slot() : NULL;

	if (id >= HEAP_ROOTS)
		return NULL;
	return slot ? (void *const *)HEAP_BASE + id : NULL;
}

PUBLIC void *__perdure_root_get(unsigned id)
{
	void *const *slot = slot_of(id);

	if (!slot)
		return NULL;
	if (runtime_recovers) /* it is stored and persisted in one step */
		recovery_load(slot, sizeof(*slot), READ_UNJUDGED, FRAME);
	else if (runtime_wants_loads)
		hook_load(slot, PERDURE_ATOMIC | sizeof(*slot), FRAME);
	return *slot;
}

PUBLIC void __perdure_root_set(unsigned id, void *p)
{
	void *const *slot = slot_of(id);

	if (!slot)
		return;
	hook_store((void *)slot, (uintptr_t)p, PERDURE_ATOMIC | sizeof(*slot), NULL, FRAME);
	event_persist(slot, sizeof(*slot), FRAME);
}
