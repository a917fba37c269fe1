/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread's place in the session: taken at its first event, given back when it ends. */
#include "runtime/runtime.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "binary/binary.h"
#include "fibers/fibers.h"
#include "model/spin.h"
#include "races/races.h"
#include "runtime/execution.h"
#include "runtime/hooks.h"

__thread struct perdure_inline __perdure_inline;
__thread struct thread runtime_thread;

static pthread_key_t end_key;

uint32_t thread_owner(void)
{
	if (!runtime_thread.owner)
		runtime_thread.owner = REAL(gettid)();
	return runtime_thread.owner;
}

/* Spinning for long: is the owner gone (killed in the middle of a hook)? */
static bool owner_is_dead(uint32_t owner)
{
	int saved_errno = errno;
	bool dead;

	REAL(sched_yield)(); /* to other processes, not to another thread of this one */
	dead = owner && syscall(SYS_tkill, owner, 0) < 0 && errno == ESRCH;
	errno = saved_errno;
	return dead;
}

static void end_of_thread(void *unused)
{
	(void)unused;
	thread_end();
}

void thread_init(void)
{
	spin_wait = owner_is_dead;
	stack_init();
	pthread_key_create(&end_key, end_of_thread);
}

static void find_stack(struct thread *thread)
{
	pthread_attr_t attributes;
	void *low = NULL;
	size_t size = 0;

	if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
		pthread_attr_getstack(&attributes, &low, &size);
		pthread_attr_destroy(&attributes);
	}
	thread->stack_low = (uintptr_t)low;
	thread->stack_high = (uintptr_t)low + size;
}

static struct session_thread *take_slot(struct session *session)
{
	bool locked = spin_lock(&session->lock, thread_owner());
	struct session_thread *slot = NULL;

	for (uint32_t i = 0; i < SESSION_THREADS && !slot; i++)
		if (!session->thread[i].used)
			slot = &session->thread[i];
	if (slot) {
		slot->used = true;
		slot->lines.id = ++session->next_thread;
		slot->lines.owner = thread_owner();
		slot->lines.flushes = 0;
		slot->lines.last_fence = 0;
		for (uint32_t i = 0; i < STACKS_CONTEXTS; i++)
			slot->context[i].at = NULL; /* they were on another stack */
		slot->lines.event = (uint64_t)slot->lines.id << 40;
		if (++session->threads_used > 1)
			session->lines.concurrent = 1;
	}
	if (locked)
		spin_unlock(&session->lock);
	return slot;
}

/* A recovery may be killed at any time, and there are many: their threads leave no trace. */
static struct session_thread *take_private(void)
{
	long slot = syscall(SYS_mmap, NULL, sizeof(struct session_thread), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);

	if (slot < 0 && slot > -4096)
		return NULL;
	((struct session_thread *)slot)->lines.id = fibers_on ? fiber_current->number + 1 : 1;
	((struct session_thread *)slot)->lines.owner = thread_owner();
	return (struct session_thread *)slot;
}

struct session_thread *thread_register(void)
{
	struct thread *thread = &runtime_thread;
	int saved_errno = errno;

	if (!thread->stack_high)
		find_stack(thread);
	thread->shared = runtime_recovers ? take_private() : take_slot(runtime_session);
	if (!thread->shared) {
		session_limit(runtime_session, thread_owner(),
			      "more threads at once than Perdure can follow: events were lost");
		thread->busy = false;
	} else {
		pthread_setspecific(end_key, thread);
		thread->judges = runtime_session->options.tx_only;
	}
	errno = saved_errno;
	return thread->shared;
}

/* What is in flight stays with the lines it is about; the slot can serve another thread. */
void thread_end(void)
{
	struct session_thread *slot = runtime_thread.shared;
	struct session *session = runtime_session;
	bool locked;

	if (!slot || runtime_recovers)
		return;
	if (runtime_races) {
		races_synchronise((const void *)pthread_self());
		racer_end();
	}
	runtime_thread.busy = true;
	transactions_end_thread();
	locked = spin_lock(&session->lock, thread_owner());
	session->loads += slot->loads;
	session->stores += slot->stores;
	session->flushes += slot->flushes;
	session->fences += slot->fences;
	slot->loads = slot->stores = slot->flushes = slot->fences = 0;
	slot->used = false;
	session->threads_used--;
	runtime_thread.shared = NULL;
	if (locked)
		spin_unlock(&session->lock);
	runtime_thread.busy = false;
	__perdure_inline.pending = 0;
}

void thread_abandon(void)
{
	struct thread *thread = &runtime_thread;

	binary_abandon();
	if (!thread->busy || !runtime_session || !thread->shared)
		return;
	runtime_session->skipped++; /* what the hook was about is lost */
	hook_abandon_writes();
	lines_abandon(&runtime_session->lines, &thread->shared->lines);
	spin_release(&runtime_session->raw.lock, thread->owner);
	spin_release(&runtime_session->lock, thread->owner);
	thread->busy = false;
}

void thread_is_path(void)
{
	runtime_thread.owner = 0;
	if (runtime_thread.shared)
		runtime_thread.shared->lines.owner = thread_owner();
}

void thread_after_fork(void)
{
	races_forked();
	runtime_thread.shared = NULL;
	runtime_thread.owner = 0;
	runtime_thread.busy = false;
	runtime_thread.calls = 0;
	runtime_thread.transactions = NULL; /* the parent's */
	runtime_thread.judges = runtime_session->options.tx_only;
	__perdure_inline.pending = 0;
	runtime_session->lines.concurrent = 1;
}
