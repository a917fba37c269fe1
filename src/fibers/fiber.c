/* SPDX-License-Identifier: BSD-3-Clause */
#include "fibers/buffer.h"

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/execution.h"

enum {
	FIBERS = 1 << 16,
	PAGE = 4096,
	FIRST_ID = 0x30000000, /* what they have for a thread id; no process has it */
	SAVED_WORDS = 8,       /* what fiber_swap leaves on a stack */
	HAS_WRFSBASE = 2,      /* in AT_HWCAP2 */
};

bool fibers_started;
struct fiber *fiber_current;
HIDDEN bool fiber_has_wrfsbase;
HIDDEN void fiber_swap(void **from, void *to, uintptr_t tls);
HIDDEN void fiber_entry(void);
HIDDEN void fiber_main(void);

/* What pthread_cleanup_push is made of, where there are no exceptions. */
extern void __pthread_register_cancel(__pthread_unwind_buf_t *buffer);
extern void __pthread_unregister_cancel(__pthread_unwind_buf_t *buffer);

static struct fiber *table; /* FIBERS of them, most never touched */
static uint32_t count, created, live;

/* Functions of the C library that it keeps to itself. */
static void *(*allocate_tls)(void *block);
static void (*deallocate_tls)(void *block, bool block_too);
static void (*static_tls)(size_t *size, size_t *alignment);
static void (*initialise_ctype)(void);
static void (*call_tls_destructors)(void);

/*
 * The part of a thread control block that is the same in all versions, and what follows its thread
 * id, which is found by looking for it.
 */
struct control_block {
	void *self;
	void *vector;
	void *thread;
	uint64_t unused[2];
	uint64_t stack_guard, pointer_guard;
};

struct control_block_tail {
	void *list_next, *list_before; /* of threads */
	int32_t id, unused;
	void *robust_before;
	void *robust_head[3]; /* list, offset of the lock, operation in progress */
};

static size_t tail_offset;
static bool root_has_tail; /* it was found before there were paths */

static struct control_block_tail *tail_of(uintptr_t tls)
{
	return (struct control_block_tail *)(tls + tail_offset);
}

int32_t fiber_thread_id(const struct fiber *fiber)
{
	return tail_of(fiber->tls)->id;
}

static bool find_tail(uintptr_t tls)
{
	enum { FIRST = 0x200, LAST = 0x600 };
	int32_t id = REAL(gettid)();

	if (tail_offset && tail_offset < LAST && tail_of(tls)->id == id)
		return true; /* known */
	for (tail_offset = FIRST; tail_offset < LAST; tail_offset += 8) {
		const struct control_block_tail *tail = tail_of(tls);

		if (tail->id == id && tail->robust_before == tail->robust_head &&
		    tail->robust_head[0] == tail->robust_head)
			return true;
	}
	return false;
}

static const char *find_functions(void)
{
	allocate_tls = (__typeof__(allocate_tls))real_find("_dl_allocate_tls");
	deallocate_tls = (__typeof__(deallocate_tls))real_find("_dl_deallocate_tls");
	static_tls = (__typeof__(static_tls))real_find("_dl_get_tls_static_info");
	initialise_ctype = (__typeof__(initialise_ctype))real_find("__ctype_init");
	call_tls_destructors = (__typeof__(call_tls_destructors))real_find("__call_tls_dtors");
	if (!allocate_tls || !deallocate_tls || !static_tls || !initialise_ctype ||
	    !call_tls_destructors)
		return "this C library has threads of another kind";
	return NULL;
}

static const char *why_not(void)
{
	if (runtime_has_sanitizer)
		return "a sanitizer keeps track of threads itself";
	if (real_exists("GOMP_parallel") && !real_exists("__kmpc_fork_call"))
		return "libgomp's threads wait in ways of their own";
	if (!find_tail((uintptr_t)pthread_self()))
		return "this C library has threads of another kind";
	return find_functions();
}

void fibers_start(void)
{
	const char *reason = why_not();

	if (reason) {
		plain_copy(runtime_session->executions.native_threads, reason,
			   plain_length(reason) + 1);
		return;
	}
	table = (void *)syscall(SYS_mmap, NULL, FIBERS * sizeof(*table), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
	if ((void *)table == MAP_FAILED)
		return;
	fiber_has_wrfsbase = getauxval(AT_HWCAP2) & HAS_WRFSBASE;
	mallopt(M_ARENA_MAX, 1); /* there is no contention, and arenas are expensive */
	fiber_current = &table[0];
	fiber_current->tls = (uintptr_t)pthread_self();
	count = created = live = 1;
	signals_start();
	schedule_start();
	schedule_note_created(fiber_current);
	fiber_make_ready(fiber_current);
	__perdure_inline.fibers = 1;
	fibers_started = true;
}

void fibers_note_generated_code(void)
{
	static const char reason[] = "it generates code while it runs, which has no hooks";

	if (!runtime_execution)
		return;
	session_limit(runtime_session, thread_owner(),
		      "the program generates code while it runs: what that does is not seen");
	if (!fibers_on || live > 1)
		return;
	plain_copy(runtime_session->executions.native_threads, reason, sizeof(reason));
	fibers_started = false;
}

struct fiber *fiber_at(uint32_t index)
{
	return &table[index];
}

uint32_t fibers_count(void)
{
	return count;
}

bool fiber_is(const void *object)
{
	return (uintptr_t)object - (uintptr_t)table < FIBERS * sizeof(*table);
}

uint32_t fibers_live(void)
{
	return live;
}

struct fiber *fiber_find(pthread_t thread)
{
	for (uint32_t i = 0; i < count; i++)
		if (table[i].state != FIBER_FREE && table[i].tls == (uintptr_t)thread)
			return &table[i];
	return NULL;
}

/* ---- birth ---- */

/*
 * One mapping: guard, stack, thread-local variables, control block. False if there is no memory,
 * or the program's own idea of a stack cannot be met.
 */
static bool make_memory(struct fiber *fiber, const pthread_attr_t *attributes)
{
	size_t static_size, alignment, stack = 0, own_size = 0;
	void *own = NULL;
	char *top;

	if (attributes) {
		pthread_attr_getstacksize(attributes, &stack);
		pthread_attr_getguardsize(attributes, &fiber->guard);
		if (pthread_attr_getstack(attributes, &own, &own_size) != 0 || !own_size ||
		    (uintptr_t)own + own_size < own_size + PAGE)
			own = NULL;
	} else {
		pthread_attr_t defaults;

		if (pthread_getattr_default_np(&defaults) == 0) {
			pthread_attr_getstacksize(&defaults, &stack);
			pthread_attr_destroy(&defaults);
		}
		fiber->guard = PAGE;
	}
	static_tls(&static_size, &alignment);
	static_size = (static_size + alignment + 2 * PAGE - 1) & -(size_t)PAGE;
	stack = own ? 0 : (stack + PAGE - 1) & -(size_t)PAGE;
	fiber->guard = (fiber->guard + PAGE - 1) & -(size_t)PAGE;
	fiber->mapping_size = fiber->guard + stack + static_size + PAGE;
	fiber->mapping =
		(void *)syscall(SYS_mmap, NULL, fiber->mapping_size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
	if (fiber->mapping == MAP_FAILED)
		return false;
	syscall(SYS_mprotect, fiber->mapping, fiber->guard, PROT_NONE);
	top = (char *)fiber->mapping + fiber->mapping_size - PAGE;
	fiber->tls = (uintptr_t)top & -alignment;
	fiber->stack_low = own ? own : (char *)fiber->mapping + fiber->guard;
	fiber->stack_high = own ? (char *)own + own_size : (char *)fiber->stack_low + stack;
	if (allocate_tls((void *)fiber->tls))
		return true;
	syscall(SYS_munmap, fiber->mapping, fiber->mapping_size);
	return false;
}

static void fill_control_block(struct fiber *fiber)
{
	const struct control_block *main_block = (void *)table[0].tls;
	struct control_block *block = (void *)fiber->tls;
	struct control_block_tail *tail = tail_of(fiber->tls);

	block->self = block->thread = block;
	block->stack_guard = main_block->stack_guard;
	block->pointer_guard = main_block->pointer_guard;
	tail->id = FIRST_ID + fiber->number;
	tail->list_next = tail->list_before = &tail->list_next;
	tail->robust_before = tail->robust_head[0] = tail->robust_head;
	tail->robust_head[1] = tail_of(table[0].tls)->robust_head[1];
}

/* As if fiber_swap had just left it, on its way to fiber_entry. */
static void fill_stack(struct fiber *fiber)
{
	uint64_t *top = (uint64_t *)((uintptr_t)fiber->stack_high & -64ul) - 3;
	uint32_t *modes;

	*top = (uintptr_t)fiber_entry;
	top -= SAVED_WORDS - 1;
	for (unsigned i = 0; i < SAVED_WORDS - 1; i++)
		top[i] = 0;
	modes = (uint32_t *)top;
	__asm__ volatile("stmxcsr %0" : "=m"(modes[0]));
	__asm__ volatile("fnstcw %0" : "=m"(modes[1]));
	fiber->stack_pointer = top;
}

struct fiber *fiber_create(const pthread_attr_t *attributes, void *(*function)(void *),
			   void *argument)
{
	struct fiber *fiber = NULL;
	int detached = PTHREAD_CREATE_JOINABLE;

	for (uint32_t i = 0; i < count && !fiber; i++)
		if (table[i].state == FIBER_FREE)
			fiber = &table[i];
	if (!fiber && count < FIBERS)
		fiber = &table[count];
	if (!fiber)
		return NULL;
	*fiber = (struct fiber){
		.number = created,
		.function = function,
		.argument = argument,
		.mask = fiber_current->mask,
	};
	if (!make_memory(fiber, attributes))
		return NULL;
	if (attributes)
		pthread_attr_getdetachstate(attributes, &detached);
	fiber->detached = detached == PTHREAD_CREATE_DETACHED;
	fill_control_block(fiber);
	fill_stack(fiber);
	created++;
	live++;
	if (fiber == &table[count])
		count++;
	schedule_note_created(fiber);
	fiber_make_ready(fiber);
	return fiber;
}

void fiber_run_until_exit(struct fiber *fiber, void (*function)(struct fiber *fiber))
{
	__pthread_unwind_buf_t buffer;

	if (__sigsetjmp_cancel(buffer.__cancel_jmp_buf, 0) != 0)
		return; /* from pthread_exit, which has unwound everything up to here */
	__pthread_register_cancel(&buffer);
	function(fiber);
	__pthread_unregister_cancel(&buffer);
}

static void call_function(struct fiber *fiber)
{
	fiber->result = stack_call_thread(fiber->function, fiber->argument);
}

/* ---- death ---- */

/* Mutexes that it holds, if they are robust, tell their next owner. */
static void release_robust_mutexes(struct fiber *fiber)
{
	enum { OWNER_DIED = 0x40000000, WAITERS = (int)0x80000000 };
	struct control_block_tail *tail = tail_of(fiber->tls);
	void **head = tail->robust_head;
	uintptr_t node = (uintptr_t)head[0] & ~1ul;

	while (node != (uintptr_t)head) {
		int32_t *word = (int32_t *)(node + (intptr_t)head[1]);
		pthread_mutex_t *mutex =
			(pthread_mutex_t *)((char *)word -
					    offsetof(struct __pthread_mutex_s, __lock));

		node = *(uintptr_t *)node & ~1ul;
		*word = (*word & WAITERS) | OWNER_DIED;
		fiber_wake(mutex, 1);
	}
	head[0] = tail->robust_before = head;
}

static void end_thread(struct fiber *fiber)
{
	buffer_drain();
	call_tls_destructors();
	keys_run_destructors();
	release_robust_mutexes(fiber);
	thread_end();
}

void fiber_main(void)
{
	struct fiber *fiber = fiber_current;

	initialise_ctype();
	__perdure_inline.fibers = 1;
	runtime_thread.stack_low = (uintptr_t)fiber->stack_low;
	runtime_thread.stack_high = (uintptr_t)fiber->stack_high;
	causality_acquire(fiber);
	fiber_raise_signals();
	fiber_run_until_exit(fiber, call_function);
	buffer_drain();
	causality_release(&fiber->result);
	end_thread(fiber);
	fiber->state = FIBER_DONE;
	live--;
	fiber_wake(fiber, UINT32_MAX);
	fiber_wake(&table, 1);
	fiber_leave();
	__builtin_unreachable();
}

void fiber_end_main(void)
{
	end_thread(fiber_current);
	while (fibers_live() > 1)
		fiber_wait(&table, FIBER_NEVER);
	exit(0);
}

void fiber_free(struct fiber *fiber)
{
	uint32_t last;

	if (fiber->mapping) {
		deallocate_tls((void *)fiber->tls, false);
		syscall(SYS_munmap, fiber->mapping, fiber->mapping_size);
	}
	fiber->state = FIBER_FREE;
	for (last = count; last > 1 && table[last - 1].state == FIBER_FREE; last--)
		;
	count = last;
}

/* The C library does not know of this fork. */
void fibers_are_path(void)
{
	if (fibers_on)
		tail_of(table[0].tls)->id = (int32_t)syscall(SYS_getpid);
	else if (root_has_tail)
		tail_of((uintptr_t)pthread_self())->id = (int32_t)syscall(SYS_getpid);
}

void fibers_are_root(void)
{
	root_has_tail = find_tail((uintptr_t)pthread_self());
}

void fibers_after_fork(void)
{
	struct fiber *self = fiber_current;

	if (!fibers_on)
		return;
	for (uint32_t i = 0; i < count; i++)
		if (&table[i] != self)
			table[i].state = FIBER_FREE;
	live = 1;
	self->next = self->before = self;
	waits_forget();
	tail_of(table[0].tls)->id = REAL(gettid)();
	schedule_after_fork();
}
