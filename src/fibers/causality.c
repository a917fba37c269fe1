/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each thread knows to have happened: vector clocks, in numbers of events of the log. A thread
 * that takes a lock, joins a thread, or loads what another one has released knows all that the
 * other one knew then. Written into the log where it changes.
 *
 * All threads are fibers on one kernel thread: nothing needs a lock.
 */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fibers/fibers.h"
#include "model/mix.h"
#include "runtime/execution.h"

enum { THREADS_MAX = 4096, CHUNK = 1 << 20 };
enum { ANY_ORDER = PERDURE_ATOMIC | PERDURE_VOLATILE | PERDURE_RMW | PERDURE_ASM };

bool causality_on;

/* How many events of each thread are known; by the number of the thread. */
struct knowledge {
	uint32_t *of;
	uint32_t count;
};

/* A locked instruction whose fence is still to come. */
struct deferred {
	const void *p;
	uint32_t descriptor;
};

struct knower {
	struct knowledge known;
	struct knowledge relaxed; /* from relaxed loads, until an acquire fence */
	struct deferred deferred;
	bool changed; /* since the log has it */
	bool fenced;  /* by a release fence: relaxed stores release, too */
};
static struct knower *knower; /* by number */

struct object {
	uintptr_t address; /* 0: free */
	struct knowledge released;
};
static struct object *object;
static uint32_t objects, mask;

/* ---- memory that is never given back ---- */

/* Without memory, who knows what is not followed any more. */
static void give_up(void)
{
	causality_on = false;
	runtime_session->executions.causality_lost = 1;
	session_limit(
		runtime_session, thread_owner(),
		"out of memory: what threads knew of each other was not followed, and torn stores "
		"were not looked for");
}

/* Zeroed; null if there is none, and then it is over. */
static void *allocate(size_t size)
{
	static char *chunk;
	static size_t left;
	void *result;

	size = (size + 15) & ~(size_t)15;
	if (size > left) {
		size_t wanted = size > CHUNK ? size : CHUNK;
		void *fresh = (void *)syscall(SYS_mmap, NULL, wanted, PROT_READ | PROT_WRITE,
					      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);

		if (fresh == MAP_FAILED) {
			give_up();
			return NULL;
		}
		chunk = fresh;
		left = wanted;
	}
	result = chunk;
	chunk += size;
	left -= size;
	return result;
}

/* ---- knowledge ---- */

static void make_room(struct knowledge *k, uint32_t count)
{
	uint32_t *of;

	if (count <= k->count)
		return;
	count = (count + 7) & ~7u;
	of = allocate(count * sizeof(*of));
	if (!of)
		return;
	for (uint32_t i = 0; i < k->count; i++)
		of[i] = k->of[i];
	k->of = of;
	k->count = count;
}

static bool learn(struct knowledge *k, const struct knowledge *other)
{
	bool changed = false;

	make_room(k, other->count);
	for (uint32_t i = 0; i < other->count && i < k->count; i++)
		if (other->of[i] > k->of[i]) {
			k->of[i] = other->of[i];
			changed = true;
		}
	return changed;
}

static void know(struct knowledge *k, uint32_t thread, uint32_t events)
{
	make_room(k, thread + 1);
	if (thread < k->count)
		k->of[thread] = events;
}

/* ---- objects ---- */

static struct object *find(uintptr_t address)
{
	uint32_t at = spread(address);

	for (;; at++) {
		struct object *o = &object[at & mask];

		if (!o->address || o->address == address)
			return o;
	}
}

static struct object *find_or_add(uintptr_t address)
{
	struct object *o;

	if (objects * 2 >= mask) {
		struct object *old = object, *larger;
		uint32_t count = object ? mask + 1 : 0, room = count ? count * 2 : 1024;

		larger = allocate(room * sizeof(*object));
		if (!larger)
			return NULL;
		object = larger;
		mask = room - 1;
		for (uint32_t i = 0; i < count; i++)
			if (old[i].address)
				*find(old[i].address) = old[i];
	}
	o = find(address);
	if (!o->address) {
		o->address = address;
		objects++;
	}
	return o;
}

/* ---- threads ---- */

void causality_start(void)
{
	if (causality_on || !runtime_logs)
		return;
	knower = allocate(THREADS_MAX * sizeof(*knower));
	causality_on = knower;
}

/* The number of the running thread; 0 if it has none. */
static uint32_t self(void)
{
	struct session_thread *thread = thread_enter_waiting();
	uint32_t id = thread ? thread->lines.id : 0;

	if (thread)
		thread_leave();
	if (id >= THREADS_MAX) {
		session_limit(runtime_session, thread_owner(),
			      "more than 4096 threads: what they knew of each other was not "
			      "followed, and torn stores were not looked for");
		runtime_session->executions.causality_lost = 1;
		return 0;
	}
	return id;
}

static void acquire_as(uint32_t thread, const void *p)
{
	struct object *o = object ? find((uintptr_t)p) : NULL;

	if (o && o->address && learn(&knower[thread].known, &o->released))
		knower[thread].changed = true;
}

static void forget(struct knowledge *k)
{
	for (uint32_t i = 0; i < k->count; i++)
		k->of[i] = 0;
}

/* What it has done itself is known to it, too. */
static void release_as(uint32_t thread, const void *p)
{
	struct object *o = find_or_add((uintptr_t)p);

	if (!o)
		return;
	learn(&o->released, &knower[thread].known);
	know(&o->released, thread, runtime_session->executions.log.events);
}

void causality_acquire(const void *p)
{
	uint32_t thread = causality_on ? self() : 0;

	if (thread)
		acquire_as(thread, p);
}

void causality_release(const void *p)
{
	uint32_t thread = causality_on ? self() : 0;

	if (thread)
		release_as(thread, p);
}

void causality_synchronise(const void *p)
{
	causality_acquire(p);
	causality_release(p);
}

/* A store replaces what was released before; a locked instruction has read it, and hands it on. */
void causality_stored(uint32_t thread, const void *p, uint32_t descriptor)
{
	struct object *o = object ? find((uintptr_t)p) : NULL;

	if (thread >= THREADS_MAX || !(descriptor & ANY_ORDER))
		return;
	if (o && o->address && (!(descriptor & PERDURE_RMW) || descriptor & PERDURE_STORES))
		forget(&o->released);
	if (causality_releases(descriptor) ||
	    (descriptor & PERDURE_ATOMIC && knower[thread].fenced))
		release_as(thread, p);
}

/* ---- atomic accesses ---- */

static uint32_t order_of(uint32_t descriptor)
{
	return descriptor >> PERDURE_ORDER_SHIFT & 7;
}

static bool is_ordering_volatile(uint32_t descriptor)
{
	return descriptor & PERDURE_VOLATILE && !runtime_session->executions.volatile_is_plain;
}

bool causality_releases(uint32_t descriptor)
{
	uint32_t order = order_of(descriptor);

	return order == PERDURE_ORDER_RELEASE || order == PERDURE_ORDER_ACQ_REL ||
	       order == PERDURE_ORDER_SEQ_CST || is_ordering_volatile(descriptor) ||
	       (descriptor & PERDURE_RMW && !order) || descriptor & PERDURE_ASM;
}

static bool acquires(uint32_t descriptor)
{
	uint32_t order = order_of(descriptor);

	return order == PERDURE_ORDER_ACQUIRE || order == PERDURE_ORDER_ACQ_REL ||
	       order == PERDURE_ORDER_SEQ_CST || is_ordering_volatile(descriptor) ||
	       (descriptor & PERDURE_RMW && !order) || descriptor & PERDURE_ASM;
}

void causality_access(const void *p, uint32_t descriptor, bool buffered)
{
	static const char somewhere; /* assembly does not say where it locks */
	bool stores = descriptor & (PERDURE_STORES | PERDURE_RMW);
	bool loads = !(descriptor & PERDURE_STORES);
	uint32_t thread = self();

	if (!thread)
		return;
	if (!p) {
		acquire_as(thread, &somewhere);
		release_as(thread, &somewhere);
		return;
	}
	if (loads && acquires(descriptor))
		acquire_as(thread, p);
	else if (loads && object && find((uintptr_t)p)->address)
		learn(&knower[thread].relaxed, &find((uintptr_t)p)->released);
	/* Of PM, or one that waits in a buffer: when it is made. */
	if (!stores || in_window(p) || (buffered && !(descriptor & PERDURE_RMW)))
		return;
	/* It completes what was flushed before it, and releases that, too. */
	if (descriptor & PERDURE_RMW && __perdure_inline.pending)
		knower[thread].deferred = (struct deferred){ p, descriptor };
	else
		causality_stored(thread, p, descriptor);
}

void causality_fenced(void)
{
	uint32_t thread = self();
	struct deferred *deferred = &knower[thread].deferred;

	if (thread && deferred->p)
		causality_stored(thread, deferred->p, deferred->descriptor);
	deferred->p = NULL;
}

void causality_fence(bool acquire, bool release)
{
	uint32_t thread = self();

	if (!thread)
		return;
	if (acquire && learn(&knower[thread].known, &knower[thread].relaxed))
		knower[thread].changed = true;
	knower[thread].fenced |= release;
}

/* ---- the log ---- */

const uint32_t *causality_news(uint32_t thread, uint32_t *count)
{
	if (thread >= THREADS_MAX || !knower[thread].changed)
		return NULL;
	knower[thread].changed = false;
	*count = knower[thread].known.count;
	return knower[thread].known.of;
}
