/* SPDX-License-Identifier: BSD-3-Clause */
/* What the front-ends say, to the first run and to the others. */
#include <stdlib.h>
#include <time.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "binary/binary.h"
#include "binary/registers.h"
#include "model/mix.h"
#include "races/races.h"
#include "runtime/hooks.h"

bool runtime_races, races_alone = true;
uint64_t races_warm_up = 1 << 14;

void races_start(void)
{
	if (getenv("PERDURE_NO_WARM_UP")) /* for tests */
		races_warm_up = 0;
	if (!runtime_session->races.on)
		return;
	runtime_races = true;
	sync_start();
	if (runtime_session->races.discovers)
		learn_start();
	else
		regions_start();
}

void races_meet(void)
{
	if (!races_alone)
		return;
	races_alone = false;
	if (runtime_session->races.discovers)
		learn_meet();
}

/* Hooks in hooks do nothing; null then, or if the thread cannot be followed. */
static struct racer *enter(void)
{
	struct session_thread *thread = thread_enter();
	struct racer *self = thread ? racer_self() : NULL;

	if (thread && !self)
		thread_leave();
	if (!self)
		return NULL;
	self->thread = thread->lines.id;
	if (runtime_session->races.windows) {
		uint32_t window = __atomic_load_n(&runtime_session->races.window, __ATOMIC_ACQUIRE);

		if (!runtime_session->races.watching) {
			thread_leave();
			return NULL;
		}
		if (self->window != window) {
			regions_forget(self);
			__atomic_store_n(&self->window, window, __ATOMIC_RELEASE);
		}
	}
	if (!binary_hit_registers) /* who knows where it has been */
		self->journal.at = NULL;
	if (self->journal.next != self->journal.settled)
		journal_settle(self);
	if (self->again) {
		const void *p = self->again;

		self->again = NULL;
		if (!sync_knows(self, p))
			sync_acquire(self, p);
	}
	return self;
}

/* For --trace: as if they were all that there is. */
static void note(enum perdure_event_kind kind, uint32_t detail, const void *p, uint64_t size,
		 uint32_t stack)
{
	if (!runtime_session->races.discovers)
		tell(runtime_thread.shared, kind, detail, p, size, stack);
}

static void open_region(struct racer *self, const struct access *a)
{
	const void *p = (const void *)a->address;

	if (a->happens && a->actions & RACES_LOADS)
		note(PERDURE_EVENT_LOAD, 0, p, a->size, a->stack);
	if (a->happens && a->actions & RACES_STORES)
		note(PERDURE_EVENT_STORE, a->flags & PERDURE_NONTEMPORAL, p, a->size, a->stack);
	regions_access(self, a);
}

/* ---- giving way ---- */

/*
 * While regions are open, others shall get on: a thread that takes a lock again and again lets
 * nobody else have it. At each place of the program only a few times, and not for long. Two that
 * wait for each other get nowhere: the second one is in more of a hurry.
 */
enum { OFTEN = 64, SOMETIMES = 8, SPOTS = 1 << 12 };

static uint32_t waiting; /* threads, for others */

static unsigned place_of(uintptr_t pc)
{
	return spread(pc) % SPOTS;
}

static uint64_t now(void)
{
	struct timespec time;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* How far others have got until then. */
static uint64_t wait_for_others(const struct racer *self, uint64_t longest)
{
	enum { ENOUGH = 8 };
	uint64_t before = sync_progress(self), start = now(), done;

	do {
		syscall(SYS_sched_yield);
		done = sync_progress(self) - before;
	} while (done < ENOUGH && now() - start < longest);
	return done;
}

static void give_way(struct racer *self, uintptr_t pc, unsigned most)
{
	enum { IN_VAIN = 14, LATER = 8, SHORT = 100000 /* ns */, SHORTER = 25000 };
	static uint8_t times[SPOTS], in_vain[SPOTS];
	unsigned place = place_of(pc), longer;
	bool hurries;

	if (!self->regions || times[place] >= most || in_vain[place] >= IN_VAIN || races_alone ||
	    runtime_session->races.discovers)
		return;
	/* Not each time: what others do here, they cannot do at the next place. */
	if (most == OFTEN && !(racer_random(self) & 3))
		return;
	times[place]++;
	/* Others may wait for a processor: then it takes longer. */
	longer = in_vain[place] < LATER ? 0 : in_vain[place] - LATER;
	hurries = __atomic_fetch_add(&waiting, 1, __ATOMIC_RELAXED);
	if (wait_for_others(self, hurries ? SHORTER : (uint64_t)SHORT << longer))
		in_vain[place] /= 2;
	else if (!hurries)
		in_vain[place]++;
	__atomic_fetch_sub(&waiting, 1, __ATOMIC_RELAXED);
}

/* --delay: less and less likely where nothing comes of it. */
static void wait_a_little(struct racer *self, uintptr_t pc)
{
	enum { CERTAIN = 100 };
	static uint8_t lost[SPOTS]; /* per cent of its probability */
	const struct session_races *races = &runtime_session->races;
	uint8_t *here = &lost[place_of(pc)];
	uint32_t found = races->found, more = *here + races->settings.decay;
	struct timespec time = { .tv_sec = races->settings.delay / 1000000,
				 .tv_nsec = races->settings.delay % 1000000 * 1000l };

	if (!races->settings.delay || races->discovers || !self->regions)
		return;
	if (racer_random(self) % CERTAIN < *here)
		return;
	syscall(SYS_nanosleep, &time, NULL);
	if (races->found == found)
		*here = (uint8_t)(more < CERTAIN ? more : CERTAIN);
}

/* ---- accesses ---- */

static __thread struct {
	bool is_value;
	uint64_t value;
	const void *from;
} source __attribute__((tls_model("initial-exec")));

void races_storing(uint64_t value)
{
	source.is_value = true;
	source.value = value;
}

void races_copying(const void *from)
{
	source.from = from;
}

static void forget_source(void)
{
	source.is_value = false;
	source.from = NULL;
}

/* What follows from a read of what was not persistent. */
static void note_effect(struct racer *self, const void *p, uint64_t size)
{
	bool fed = self->watch.finding &&
		   regions_is_fed(self, (uintptr_t)p, size, source.is_value ? &source.value : NULL,
				  source.from);

	regions_effect(self, RACES_FED_STORE | (fed ? RACES_FED_VALUE : 0));
}

/*
 * A store that others wait for ends what was done before it; a load of such a word comes before
 * what it leads to. What the first run has not executed is both, to be on the safe side.
 */
static void access_known(struct racer *self, unsigned actions, const void *p, uint64_t size,
			 uint32_t flags, uint32_t known, const struct frame *frame)
{
	bool unknown = !(known & RACES_EXECUTED);
	bool release = known & RACES_RELEASE || unknown, acquire = known & RACES_ACQUIRE || unknown;

	bool pm = in_window(p);

	if (actions & RACES_STORES && (pm ? regions_is_word(p) : sync_is_locked_word(p)))
		sync_freed(self, p);
	else if (actions & RACES_STORES && release)
		sync_release(self, p);
	if (pm && !(known & RACES_LOCK) && !regions_is_lock(p)) {
		if (actions & RACES_STORES) {
			regions_rely(self);
			note_effect(self, p, size);
		}
		if (regions_is_sampled(self)) {
			open_region(self, &(struct access){ actions, (uintptr_t)p, size, flags,
							    true, stack_capture(frame) });
		}
	}
	if (actions & RACES_LOADS && acquire) {
		sync_acquire(self, p);
		self->again = p; /* what it will see may have been stored after this */
	}
}

/* Does the thread get on? The first run sees it store to its stack, too, which means nothing. */
static void note_progress(struct racer *self, unsigned actions, uint64_t address)
{
	uint64_t *seen = &self->seen[spread(address) % RACES_SEEN];

	if (runtime_session->races.discovers)
		racer_loads(self, 1, *seen == address);
	else if (actions & RACES_STORES)
		self->idle = 0;
	else
		racer_loads(self, 1, true);
	*seen = address;
}

void races_prefetch(uint64_t address, bool releases)
{
	if (runtime_session->races.discovers)
		return;
	regions_prefetch(address);
	if (releases)
		sync_prefetch((const void *)address);
}

void races_access(unsigned actions, const void *p, uint64_t size, uint32_t flags, uintptr_t pc,
		  uint32_t known, const struct frame *frame)
{
	struct racer *self = enter();

	if (!self) {
		forget_source();
		return;
	}
	note_progress(self, actions, (uintptr_t)p);
	if (runtime_session->races.discovers) {
		learn_access(self, actions, p, size, pc);
		if (actions & RACES_STORES && sync_is_locked_word(p)) {
			sync_freed(self, p);
			learn_is(pc, RACES_RELEASE);
		}
		brief_know(pc);
	} else {
		give_way(self, pc, SOMETIMES);
		if (actions & RACES_STORES && in_window(p))
			self->stored = pc;
		access_known(self, actions, p, size, flags, known, frame);
	}
	forget_source();
	thread_leave();
}

void races_told(unsigned actions, const void *p, uint64_t size, uint32_t flags,
		const struct frame *frame)
{
	uintptr_t pc = frame->return_address;

	races_access(actions, p, size, flags, pc,
		     runtime_session->races.discovers ? 0 : learn_known(pc), frame);
}

/* The stack is that of the access, which is still to come. */
void races_open(unsigned actions, const void *p, uint64_t size, uintptr_t access,
		const struct frame *frame)
{
	struct racer *self = enter();

	if (!self)
		return;
	if (!regions_is_lock(p) && regions_is_sampled(self)) {
		uint32_t stack = stack_capture(frame);

		open_region(self, &(struct access){ actions, (uintptr_t)p, size, 0, false,
						    stack_with_first(stack, access) });
	}
	thread_leave();
}

/*
 * An atomic or volatile access of instrumented code, of which the compiler knows the order; locked
 * instructions have told the rest, if they are in PM.
 */
void races_visible(const void *p, uint64_t descriptor)
{
	bool rmw = descriptor & PERDURE_RMW, stores = descriptor & PERDURE_STORES;
	unsigned order = descriptor >> PERDURE_ORDER_SHIFT & 7;
	struct racer *self;

	if (!p || (order == PERDURE_ORDER_RELAXED && !rmw) || !(self = enter()))
		return;
	if (rmw || stores)
		sync_release(self, p);
	if (rmw || !stores)
		sync_acquire(self, p);
	thread_leave();
}

/* ---- locked instructions ---- */

static void complete_pending(struct racer *self)
{
	if (self->pendings)
		note(PERDURE_EVENT_FENCE, PERDURE_SFENCE, NULL, 0, 0);
	while (self->pendings)
		regions_complete(self, self->pending[--self->pendings]);
}

static bool will_fail(const struct binary_registers *hit, const void *p, uint64_t size)
{
	return hit && registers_will_fail(hit, &binary_sites[hit->site & BINARY_NUMBER], p, size);
}

void races_lock_begin(const void *p, uint64_t size, uintptr_t pc,
		      const struct binary_registers *hit)
{
	struct racer *self = enter();

	if (!self)
		return;
	if (!runtime_session->races.discovers) {
		complete_pending(self);
		regions_rely(self);
	}
	give_way(self, pc, OFTEN);
	wait_a_little(self, pc);
	sync_lock_begin(self, p, binary_peek(p, size), will_fail(hit, p, size));
	self->begun = p;
	thread_leave();
}

void races_lock_end(unsigned actions, const void *p, uint64_t size, uintptr_t pc, uint32_t known,
		    const struct frame *frame)
{
	bool stored = actions & RACES_STORES;
	struct racer *self = enter();

	if (!self)
		return;
	if (self->begun != p) { /* in no window */
		thread_leave();
		return;
	}
	self->begun = NULL;
	sync_lock_end(self, p, binary_peek(p, size), stored, pc, known);
	if (runtime_session->races.discovers) {
		learn_is(pc, RACES_EXECUTED | (in_window(p) ? RACES_PM : 0) |
				     (sync_is_lock(p) ? RACES_LOCK : 0));
	} else if (in_window(p) && !(known & RACES_LOCK) && !regions_is_lock(p) &&
		   regions_is_sampled(self)) {
		open_region(self, &(struct access){ actions, (uintptr_t)p, size, 0, true,
						    stack_capture(frame) });
	}
	thread_leave();
}

/* ---- persisting ---- */

void races_flush(const void *p, uint64_t size, uint32_t kind, uintptr_t pc)
{
	uint64_t line = (uintptr_t)p & -(uint64_t)PERDURE_LINE_SIZE, end = (uintptr_t)p + size;
	struct racer *self = runtime_session->races.discovers ? NULL : enter();

	if (!self)
		return;
	give_way(self, pc + self->stored, OFTEN);
	for (; line < end; line += PERDURE_LINE_SIZE) {
		note(PERDURE_EVENT_FLUSH, kind, (void *)line, PERDURE_LINE_SIZE, 0);
		regions_flush(self, line, kind == PERDURE_CLFLUSH);
	}
	thread_leave();
}

void races_fence(uintptr_t pc)
{
	enum { LOADS = 8 }; /* as much as so many of them */
	struct racer *self = enter();

	if (!self)
		return;
	racer_waits(self, LOADS);
	if (!runtime_session->races.discovers) {
		if (self->pendings)
			give_way(self, pc + self->stored, OFTEN);
		complete_pending(self);
	}
	thread_leave();
}

void races_persist(const void *p, uint64_t size)
{
	uint64_t line = (uintptr_t)p & -(uint64_t)PERDURE_LINE_SIZE, end = (uintptr_t)p + size;
	struct racer *self = runtime_session->races.discovers ? NULL : enter();

	if (!self)
		return;
	for (; line < end; line += PERDURE_LINE_SIZE) {
		regions_flush(self, line, true);
		regions_complete(self, line);
	}
	thread_leave();
}

/* ---- synchronisation by name ---- */

void races_before_lock(uintptr_t pc)
{
	struct racer *self = enter();

	if (!self)
		return;
	give_way(self, pc, OFTEN);
	thread_leave();
}

void races_acquire(const void *object)
{
	struct racer *self = enter();

	if (!self)
		return;
	sync_take(self, object);
	thread_leave();
}

void races_release(const void *object, bool fences, uintptr_t pc)
{
	struct racer *self = enter();

	if (!self)
		return;
	if (fences)
		complete_pending(self);
	regions_rely(self);
	give_way(self, pc, OFTEN);
	wait_a_little(self, pc);
	sync_give(self, object);
	thread_leave();
}

void races_thread_starts(const void *object)
{
	struct racer *self = enter(); /* it has all that it needs before it waits for others */

	if (self)
		thread_leave();
	gate_wait();
	self = enter();
	if (!self)
		return;
	sync_acquire(self, object);
	sync_is_born(self);
	thread_leave();
}

void races_synchronise(const void *object)
{
	struct racer *self = enter();

	if (!self)
		return;
	complete_pending(self);
	regions_rely(self);
	sync_release(self, object);
	sync_acquire(self, object);
	thread_leave();
}

/*
 * What both ends have in common: a pipe its number, everything else inside of the process is one
 * and the same. Null for what is not between threads.
 */
static const void *medium_of(int fd)
{
	static const char kernel;
	struct sockaddr_storage name = { 0 };
	socklen_t length = sizeof(name);
	struct stat status;

	if (fd < 0)
		return &kernel;
	if (syscall(SYS_fstat, fd, &status) < 0 || S_ISREG(status.st_mode) ||
	    S_ISDIR(status.st_mode) || S_ISCHR(status.st_mode))
		return NULL;
	if (S_ISSOCK(status.st_mode) &&
	    (syscall(SYS_getsockname, fd, &name, &length) < 0 || name.ss_family != AF_UNIX))
		return NULL;
	return S_ISFIFO(status.st_mode) ? (const void *)status.st_ino : &kernel;
}

void races_handed(int fd, bool given)
{
	const void *medium = medium_of(fd);
	struct racer *self = medium ? enter() : NULL;

	if (!self)
		return;
	if (given) {
		complete_pending(self);
		regions_rely(self);
		sync_release(self, medium);
	} else {
		sync_acquire(self, medium);
	}
	thread_leave();
}

/* ---- memory ---- */

/* With a journal, what threads know of each other says nothing about when regions are open. */
void races_freed(const void *p, uint64_t size)
{
	struct racer *self = enter();

	if (!self)
		return;
	if (runtime_session->races.discovers) {
		learn_forget(p, size);
	} else {
		if (journal_on)
			journal_give_back(self, (uintptr_t)p, size);
		else
			sync_release(self, p);
		regions_give_back(p, size);
	}
	thread_leave();
}

void races_allocated(const void *p)
{
	struct racer *self = runtime_session->races.discovers || journal_on ? NULL : enter();

	if (!self)
		return;
	sync_acquire(self, p);
	thread_leave();
}

void races_output(void)
{
	struct racer *self = runtime_session->races.discovers ? NULL : enter();

	if (!self)
		return;
	regions_rely(self);
	regions_effect(self, RACES_LEFT);
	thread_leave();
}

void races_end(void)
{
	if (runtime_races && !runtime_session->races.discovers)
		journal_finish();
}

void races_forked(void)
{
	waiting = 0;
	if (runtime_races)
		journal_fork();
}
