/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deterministic threads: under `perdure check` every thread of the target is a fiber, and all of
 * them run on one kernel thread, one at a time. Who runs is the schedule's decision, so an
 * execution can be repeated, and a fork of it has all its threads.
 *
 * A fiber has a stack and a thread control block of its own, made by the C library, to which the FS
 * register points while it runs: thread-local variables, errno, pthread_self and the owners of
 * mutexes are what they would be with threads. Functions that wait are interposed here; those that
 * only try are the C library's.
 *
 * It cannot see: threads that a program makes with clone, and waits that do not go through a
 * function (a futex system call in assembly).
 */
#ifndef FIBERS_FIBERS_H
#define FIBERS_FIBERS_H

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "runtime/runtime.h"

#define FIBER_NEVER UINT64_MAX

enum fiber_state { FIBER_FREE, FIBER_READY, FIBER_WAITING, FIBER_DONE };

struct fiber {
	void *stack_pointer; /* while it does not run */
	uintptr_t tls;       /* its thread control block, which is also its pthread_t */
	enum fiber_state state;
	uint32_t number;               /* 0 is the main thread */
	struct fiber *next, *before;   /* in the ring of those that are ready */
	struct fiber *later, *earlier; /* in the queue of those that wait */

	void *(*function)(void *);
	void *argument, *result;
	bool detached;
	void *mapping; /* stack and control block */
	size_t mapping_size;
	void *stack_low, *stack_high;
	size_t guard;
	char name[16];

	/* waiting */
	const void *object;  /* what somebody will wake it for */
	uint64_t deadline;   /* on the clock of clock_elapsed */
	struct pollfd *poll; /* descriptors that end the wait */
	nfds_t polls;
	bool interruptible, interrupted; /* a signal may end, or has ended, the wait */
	bool restarts;                   /* … unless its handler was installed with SA_RESTART */
	bool pauses;                     /* a signal that comes while all wait ends the wait */
	bool outside; /* another process may end the wait: it tries again now and then */
	bool timed_out;
	bool first_in_line; /* it has waited for this before: others wait behind it */

	/* cancellation and signals */
	bool cancelled, cancel_disabled, cancel_asynchronous;
	uint64_t signals; /* to be raised when it runs next */
	uint64_t mask;    /* signals that it blocks, as the kernel has them */

	/* schedule */
	uint32_t accesses; /* since it was given the processor */
	uint32_t loads;    /* the same for plain loads of PM */
	int32_t holds;     /* streams that it has locked: it does not give way */
	int64_t priority;
};

/* ---- fiber.c: their lives ---- */

extern HIDDEN bool fibers_started; /* threads of this process are fibers … */
/* … and this is one, not a thread that the program has made behind our back. */
#define fibers_on (fibers_started && __perdure_inline.fibers)
extern HIDDEN struct fiber *fiber_current;

/* From here on; nothing happens, and a limit says why, if that cannot be. */
HIDDEN void fibers_start(void);
/* It may wait where nobody sees it: from here on threads are real ones, if there are none yet. */
HIDDEN void fibers_note_generated_code(void);
/* Null if there is no memory. `attributes` may be null. */
HIDDEN struct fiber *fiber_create(const pthread_attr_t *attributes, void *(*function)(void *),
				  void *argument);
/* What the C library takes for its thread id. */
HIDDEN int32_t fiber_thread_id(const struct fiber *fiber);
/* Is this pointer one to a fiber? */
HIDDEN bool fiber_is(const void *object);
/* The fiber with this number for pthread functions; null if there is none. */
HIDDEN struct fiber *fiber_find(pthread_t thread);
/* Number 0 up to fibers_count; free ones among them. */
HIDDEN struct fiber *fiber_at(uint32_t index);
HIDDEN uint32_t fibers_count(void);
/* Those that are neither done nor free. */
HIDDEN uint32_t fibers_live(void);
/* Gives the memory of one that is done back. */
HIDDEN void fiber_free(struct fiber *fiber);
/* The program has forked: only the current one is there. */
HIDDEN void fibers_after_fork(void);
/* Of an exploration: before paths are forked; and all of them go on in another process. */
HIDDEN void fibers_are_root(void);
HIDDEN void fibers_are_path(void);
/* Calls main, or a thread's function, and comes back after pthread_exit, too. */
HIDDEN void fiber_run_until_exit(struct fiber *fiber, void (*function)(struct fiber *fiber));
/* The main function has called pthread_exit: waits for the others and ends the process. */
HIDDEN void fiber_end_main(void) __attribute__((noreturn));

/* ---- keys.c: thread-specific data ---- */

HIDDEN void keys_run_destructors(void);

/* ---- schedule.c: who runs ---- */

enum fiber_point {
	POINT_SYNC,   /* after a synchronisation operation */
	POINT_ACCESS, /* before an access that another thread could see */
	POINT_SPIN,   /* the program says that it waits */
};

extern HIDDEN bool fibers_preempt; /* the schedule may switch before any access */

/* Another fiber may run here. */
HIDDEN void fiber_point(enum fiber_point kind);

/* A plain load of PM: many of them in a row may be a wait. */
HIDDEN void fiber_loaded(void);
/* Another one must: this one waits or is done. */
HIDDEN void fiber_leave(void);
/* Puts it among those that are ready, as the last one. */
HIDDEN void fiber_make_ready(struct fiber *fiber);
/* It comes next: otherwise those who never wait for a lock might take it again and again. */
HIDDEN void fiber_prefer(struct fiber *fiber);
HIDDEN uint32_t fibers_ready(void); /* how many */
HIDDEN void schedule_start(void);
HIDDEN void schedule_after_fork(void);
/* A fiber has come to be. */
HIDDEN void schedule_note_created(struct fiber *fiber);

/* ---- wait.c: who does not ---- */

/* False: the time is over. */
HIDDEN bool fiber_wait(const void *object, uint64_t deadline);
/* For what another process may do as well. */
HIDDEN bool fiber_wait_outside(const void *object, uint64_t deadline);
/*
 * Around waits that end with EINTR when a signal is handled: true if that has happened. errno is
 * set then.
 */
HIDDEN void fiber_may_be_interrupted(bool restarts);
HIDDEN bool fiber_was_interrupted(void);
HIDDEN void fiber_interrupt(struct fiber *fiber, bool restarts);
/* Until a signal has been handled. */
HIDDEN void fiber_pause(void);
/* Until one of the descriptors is ready. */
HIDDEN bool fiber_wait_descriptors(struct pollfd *list, nfds_t polls, uint64_t deadline);
HIDDEN bool fiber_wait_descriptor(int fd, short events, uint64_t deadline);
/* Those whose descriptors are ready become so, too. */
HIDDEN void fibers_look_at_descriptors(void);
/* Those that wait longest first; how many there were. */
HIDDEN unsigned fiber_wake(const void *object, unsigned count);
HIDDEN void fiber_wake_one(struct fiber *fiber);
/* Nobody is ready: returns when somebody is. */
HIDDEN void fibers_idle(void);
extern HIDDEN bool fibers_idling;
/* After fork. */
HIDDEN void waits_forget(void);
/* Those whose time is over become ready. */
HIDDEN void fibers_expire(void);
extern HIDDEN uint64_t fibers_next_deadline;

/* ---- causality.c: who knows of what ---- */

extern HIDDEN bool causality_on;

/* From the second thread on, in the run before the crash. */
HIDDEN void causality_start(void);
/* What was released with this object, the running thread knows; or the other way round; or both. */
HIDDEN void causality_acquire(const void *p);
HIDDEN void causality_release(const void *p);
HIDDEN void causality_synchronise(const void *p);
/* Before an atomic or volatile access; p is null for assembly that locks something. */
HIDDEN void causality_access(const void *p, uint32_t descriptor, bool buffered);
/* A store with this descriptor is visible now. */
HIDDEN void causality_stored(uint32_t thread, const void *p, uint32_t descriptor);
HIDDEN bool causality_releases(uint32_t descriptor);
HIDDEN void causality_fence(bool acquire, bool release);
/* A locked instruction has completed what was flushed before it. */
HIDDEN void causality_fenced(void);
/* How many events of each thread this one knows of, if that has changed since it was last asked. */
HIDDEN const uint32_t *causality_news(uint32_t thread, uint32_t *count);

/* ---- threads.c ---- */

/* A place where a thread that has been cancelled ends. */
HIDDEN void fiber_test_cancel(void);

/* ---- signals.c ---- */

/* The mask that new fibers begin with is the current one's. */
HIDDEN void signals_start(void);
/* In the fiber that they are for: those that pthread_kill has left for it. */
HIDDEN void fiber_raise_signals(void);
/* Before another fiber runs. */
HIDDEN void signals_switch(const struct fiber *next);
/* Nobody runs: signals that any fiber wants are let through. */
HIDDEN void signals_idle(void);

/* ---- blocking.c ---- */

/* False, with errno: a signal came before it was ready. */
HIDDEN bool fiber_await_descriptor(int fd, short events);

/* Instead of write, which may wait half-way. */
HIDDEN ssize_t fiber_write(int fd, const void *bytes, size_t size);
/* Before a function reads from it. */
HIDDEN void fiber_await_stream(FILE *stream);

/* Before a system call that may wait for this descriptor. */
static inline bool fiber_await(int fd, short events)
{
	return !fibers_on || fiber_await_descriptor(fd, events);
}

/* ---- runtime/interpose_clock.c: one clock for all of them ---- */

HIDDEN bool clock_is_virtual(void);
HIDDEN uint64_t clock_elapsed(void);
/* Time goes on; only if it is virtual. */
HIDDEN void clock_pass(uint64_t nanoseconds);
/* On clock_elapsed; FIBER_NEVER for a null time. */
HIDDEN uint64_t clock_deadline(clockid_t clock, const struct timespec *time);
HIDDEN uint64_t clock_deadline_in(const struct timespec *time);

/* A system call that concerns threads; false if it does not. */
HIDDEN bool fiber_system_call(long number, long arguments[6], long *result);

#endif
