/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Races of threads with persistence: a thread acts on what another one has stored and not yet
 * persisted. After vardalith.txt: accesses open regions, which releases close; two of different
 * threads that are open at the same time and touch the same bytes are a race, if one of them
 * stores. The other detector asks the same of what happens before what.
 *
 *   regions.c   what is open on each line
 *   slots.c     … and where that is kept
 *   journal.c   what each thread has loaded since its last release
 *   brief.c     … noted without a hook, like what is stored again and again
 *   loads.c     what it has ever loaded, for the other detector
 *   conflicts.c which of these are races
 *   sync.c      what threads know of each other: epochs, clocks, lock words
 *   learn.c     the first run: which instructions matter, and how
 *   hooks.c     what the front-ends say
 *   gate.c      threads that start together
 *   keep.c      files as they were before the first run
 */
#ifndef RACES_RACES_H
#define RACES_RACES_H

#include "model/mix.h"
#include "runtime/runtime.h"

/* This process is watched for races, and by nobody else. */
extern HIDDEN bool runtime_races;

/* No thread was ever made: there is nobody to race with. */
extern HIDDEN bool races_alone;
HIDDEN void races_meet(void);

enum races_action { RACES_LOADS = 1, RACES_STORES = 2 }; /* as enum binary_action */

HIDDEN void races_start(void);
/* While it is new, a thread takes its time: it might be done before others have started. */
extern HIDDEN uint64_t races_warm_up; /* regions */

/* ---- hooks.c ---- */

/* An access to PM is going to be told, maybe as a release. */
HIDDEN void races_prefetch(uint64_t address, bool releases);
/* An access is about to be made by the instruction at `pc`, of which this is known. */
HIDDEN void races_access(unsigned actions, const void *p, uint64_t size, uint32_t flags,
			 uintptr_t pc, uint32_t known, const struct frame *frame);
/* The same, of code that the compiler has instrumented. */
HIDDEN void races_told(unsigned actions, const void *p, uint64_t size, uint32_t flags,
		       const struct frame *frame);
/* What the next store of this thread will be: this value, or what lies there (null: who knows). */
HIDDEN void races_storing(uint64_t value);
HIDDEN void races_copying(const void *from);
/* An access that the compiler knows to be atomic or volatile, to any memory. */
HIDDEN void races_visible(const void *p, uint64_t descriptor);

/*
 * A locked instruction: before it, and after it, when it is known what it has done. With the hit
 * (or null) it may be clear that it will change nothing.
 */
HIDDEN void races_lock_begin(const void *p, uint64_t size, uintptr_t pc,
			     const struct binary_registers *hit);
HIDDEN void races_lock_end(unsigned actions, const void *p, uint64_t size, uintptr_t pc,
			   uint32_t known, const struct frame *frame);
/* A region that starts before its access. */
HIDDEN void races_open(unsigned actions, const void *p, uint64_t size, uintptr_t access,
		       const struct frame *frame);
HIDDEN void races_flush(const void *p, uint64_t size, uint32_t kind, uintptr_t pc);
HIDDEN void races_fence(uintptr_t pc);
HIDDEN void races_persist(const void *p, uint64_t size);
/* Locks and the like, known by name: before one is taken by a call at `pc`, after that, … */
HIDDEN void races_before_lock(uintptr_t pc);
HIDDEN void races_acquire(const void *object);
HIDDEN void races_release(const void *object, bool fences, uintptr_t pc);
HIDDEN void races_synchronise(const void *object);
/* A thread that was made with this: it waits for those that are made with it. */
HIDDEN void races_thread_starts(const void *object);
/* Something is handed over through the kernel: by a pipe, an event, a signal, a file's lock. */
HIDDEN void races_handed(int fd, bool given);
/* Memory is given back, or taken anew: it is not what it was. */
HIDDEN void races_freed(const void *p, uint64_t size);
HIDDEN void races_allocated(const void *p);
/* The thread tells somebody outside of the process something. */
HIDDEN void races_output(void);
/* The process is about to end; or it is a new one. */
HIDDEN void races_end(void);
HIDDEN void races_forked(void);

/* ---- gate.c ---- */

/* A thread is made; and it is about to start. */
HIDDEN void gate_note(void);
HIDDEN void gate_wait(void);

/* ---- keep.c ---- */

/* A file of this name is about to be opened. */
HIDDEN void races_keep(const char *path);

/* ---- sync.c ---- */

enum { RACERS = 512, RACES_PENDING = 64, RACES_HELD = 8 };
#define RACES_NOT_YET UINT32_MAX
#define RACES_NEVER 0u /* no thread has this epoch */

/* The region of a load: what was loaded from a line with this stack in an epoch of the thread. */
struct racer_load {
	uint64_t bytes;
	uint32_t epoch; /* 0: none */
	uint32_t stack;
};

/* Those of a line. Only their thread writes them; who stores looks at those of all others. */
enum { RACES_LINES = 1 << 14, RACES_EACH = 6 };
struct racer_line {
	_Alignas(128) uint64_t line; /* its address; 0: there is none */
	uint64_t clear;    /* no store by anybody else is open there; those who store write 0 */
	uint64_t acquired; /* bytes that were acquired … */
	uint32_t version;  /* … after so many stores to the line */
	uint32_t epoch;    /* the last of the loads' */
	struct racer_load load[RACES_EACH];
};

/* What a thread has reported of a pair of stacks. */
struct racer_pair {
	uint64_t pair;
	uint16_t traits;
	uint16_t reads; /* of what was not persistent, so far */
	uint32_t entry; /* of the finding; 0: nobody wants it */
};

/* What a thread has changed by a locked instruction; null: that was given back. */
enum { RACES_CHANGES = 8 };
struct racer_change {
	const void *p;
	uint64_t before, after;
	uintptr_t pc;
	bool handed;     /* another thread had changed it before, and no lock is held */
	bool crossed;    /* what was changed before it was changed again since */
	uint32_t number; /* of its changes, so far */
};

/* A load, in the journal of its thread. */
enum { RACES_NOTES = 1 << 16 };
struct racer_note {
	uint64_t address;
	uint32_t site; /* of binary.h; or how many bytes, and RACES_NO_SITE: the stack is its own */
	uint32_t stack;   /* otherwise one from the same frame */
	uint32_t version; /* of the line: what was stored before */
	uint32_t epoch;
};
#define RACES_NO_SITE (1u << 31)

enum { RACES_KNOWN = 1 << 13, RACES_SEEN = 256, RACES_RESTS = 1 << 10 };
enum { RACES_OBJECTS = 1 << 14 };

struct racer {
	struct {
		/* Where it goes on, how far without a hook, and what is settled. */
		struct racer_note *next, *limit, *settled;
		/* The last load: its function's return address, what it was, where from. */
		const uint64_t *at;
		uint64_t value;
		uint32_t site, stack;
		const struct stacks_context *context;
	} journal __attribute__((aligned(64)));      /* nobody else looks at that */
	uint32_t epoch __attribute__((aligned(64))); /* releases so far; others look at it */
	uint32_t thread;                             /* as reports name it */
	uint32_t number;                             /* among the racers */
	uintptr_t stack_low, stack_high, pointer;    /* others may wait for words there */
	const void *again;            /* what it has loaded last to see whether it may go on */
	const void *hold[RACES_HELD]; /* locks that it has … */
	bool named[RACES_HELD];       /* … and which of them are known by name */
	uint32_t skipped;             /* regions since the last one that was followed */
	uint32_t random;
	uint32_t idle;             /* it has hardly done anything new for about so many loads */
	uint64_t seen[RACES_SEEN]; /* where it has loaded from a moment ago */
	uint32_t window;           /* the last one in which it was seen */
	uint64_t told;             /* regions that the session knows of */
	struct racer_change change[RACES_CHANGES];
	uint32_t changes, changed;
	uint32_t yields;   /* so far, in the hope that others change what it has changed */
	const void *begun; /* a locked instruction on this */
	uint64_t before;   /* of the word that a locked instruction is about to change … */
	bool fails;        /* … or is not: then it releases nothing */
	uint32_t pendings;
	uint64_t pending[RACES_PENDING]; /* lines that are written back, and not fenced */
	uint64_t regions;
	uintptr_t stored; /* the last instruction of which is known that it has stored to PM */
	struct {
		uint32_t finding; /* of which it has read what was not persistent; 0: none */
		uint32_t store;   /* … whose stack this was */
		uint64_t line;
		uint16_t of;
		uint64_t address, size, value; /* of what it has read */
	} watch;
	uint32_t clock[RACERS];               /* the last epoch of each that it knows to be over */
	uint32_t born[RACERS];                /* the same when it started */
	struct racer_pair known[RACES_KNOWN]; /* what need not be looked at again */
	uint32_t acquired[RACES_OBJECTS];     /* versions of what it has acquired */
	uint32_t rest[RACES_RESTS], rests;    /* slots that it has given to lines last */
	struct racer_note note[RACES_NOTES];
	struct racer_line line[RACES_LINES];
} __attribute__((aligned(2 << 20))); /* what is used most lies in one large page */
extern HIDDEN struct racer *racers;
/* This thread's; null if it has none yet. */
extern HIDDEN __thread struct racer *racer_current __attribute__((tls_model("initial-exec")));
extern HIDDEN uint32_t racers_used; /* those from here on never were */

HIDDEN void sync_start(void);
/* The current one, which is made if need be; null if there are too many. */
HIDDEN struct racer *racer_self(void);
static inline uint16_t racer_number(const struct racer *racer)
{
	return (uint16_t)racer->number;
}
HIDDEN void racer_end(void);
HIDDEN void racer_yield(void);
/* From its seed on. */
static inline uint32_t racer_random(struct racer *self)
{
	self->random = self->random * 1664525u + 1013904223u;
	return self->random >> 8;
}
/* Does it lie in the stack, or among the thread-local variables, of a thread other than this? */
HIDDEN bool racer_is_others(const struct racer *self, const void *p);
/* It does what threads do while they wait: if it does so for long, others may go on. */
enum { RACES_LONG = 256 }; /* loads */
static inline void racer_waits(struct racer *self, uint32_t loads)
{
	enum { MORE = RACES_LONG / 2 };

	self->idle += loads;
	if (__builtin_expect(self->idle >= RACES_LONG, 0)) {
		self->idle -= MORE;
		racer_yield();
	}
}
/* The same, if that can be left to whoever asks: false if others should go on. */
static inline bool racer_may_go_on(struct racer *self)
{
	return self->idle < RACES_LONG && ++self->idle < RACES_LONG;
}
/* So many loads, which it has done a moment ago, or not. */
static inline void racer_loads(struct racer *self, uint32_t loads, bool again)
{
	enum { NEWS = 4 };

	if (again)
		racer_waits(self, loads);
	else
		self->idle -= self->idle < NEWS * loads ? self->idle : NEWS * loads;
}
/* Does the thread come by what it has not seen a moment ago? If not, it waits. */
static inline bool racer_gets_on(struct racer *self, uint64_t address)
{
	uint64_t *seen = &self->seen[spread(address) % RACES_SEEN];

	if (*seen == address)
		return racer_may_go_on(self);
	*seen = address;
	racer_loads(self, 1, false);
	return true;
}
/* Changes when other threads get on. */
HIDDEN uint64_t sync_progress(const struct racer *self);
HIDDEN void sync_acquire(struct racer *self, const void *object);
/* Only what is open at the same time counts: --detector pifr, the default. */
extern HIDDEN bool journal_on;
/*
 * An object by its number. With a journal, what is known of each other decides nothing but whether
 * a race is one of data, too: a line of PM is one object then, which is in the cache more often.
 */
static inline uint32_t sync_number(const void *object)
{
	enum { WORD_SHIFT = 2, LINE_SHIFT = 6 };
	unsigned shift = journal_on && in_window(object) ? LINE_SHIFT : WORD_SHIFT;

	return spread((uintptr_t)object >> shift) % RACES_OBJECTS;
}
/* How often each was released. */
extern HIDDEN uint32_t *sync_releases;
/* Has it not been released since the thread has acquired it? */
static inline bool sync_knows(const struct racer *self, const void *object)
{
	uint32_t number = sync_number(object);

	return __atomic_load_n(&sync_releases[number], __ATOMIC_ACQUIRE) == self->acquired[number];
}
HIDDEN void sync_release(struct racer *self, const void *object);
HIDDEN void sync_prefetch(const void *object);
/* Locks that are known by name. One that another thread gives back is none. */
HIDDEN void sync_take(struct racer *self, const void *object);
HIDDEN void sync_give(struct racer *self, const void *object);
/* By its number: one thread takes it, another one gives it back. */
extern HIDDEN bool *sync_handed;
static inline bool sync_holds_any(const struct racer *self)
{
	for (unsigned i = 0; i < RACES_HELD; i++)
		if (self->hold[i] && !sync_handed[sync_number(self->hold[i])])
			return true;
	return false;
}
/* The thread starts with what it knows now. */
HIDDEN void sync_is_born(struct racer *self);
/* Word of a lock, or what looks like one. */
HIDDEN void sync_lock_begin(struct racer *self, const void *p, uint64_t value, bool fails);
HIDDEN void sync_lock_end(struct racer *self, const void *p, uint64_t value, bool stored,
			  uintptr_t pc, uint32_t known);
/* There is none here any more. */
HIDDEN void sync_forget(const void *p, uint64_t size);
/* Has a locked instruction changed it? And is it a lock? */
HIDDEN bool sync_is_locked_word(const void *p);
HIDDEN bool sync_is_lock(const void *p);
/* A plain store that may free one. */
HIDDEN void sync_freed(struct racer *self, const void *p);

/* ---- learn.c ---- */

HIDDEN void learn_start(void);
HIDDEN void learn_access(struct racer *self, unsigned actions, const void *p, uint64_t size,
			 uintptr_t pc);
HIDDEN void learn_is(uintptr_t pc, uint32_t flags);
/* A word that locked instructions change. */
HIDDEN void learn_note_word(const void *p, bool is_lock);
/* Two instructions that change a word, one after the other: by one thread alone, or not. */
HIDDEN void learn_change(uintptr_t first, uintptr_t second, bool alone);
/* Before there are threads: is the site still looked at? A byte that code can ask. */
HIDDEN const uint8_t *learn_wants(uint32_t site);
/* It was, and has touched PM, or not. */
HIDDEN void learn_settle(uint32_t site, bool pm);
/* There are threads now. */
HIDDEN void learn_meet(void);
/* Whoever takes this memory next has nothing to do with who had it. */
HIDDEN void learn_forget(const void *p, uint64_t size);
/* Is it known by now whether such an instruction takes or frees a lock? */
HIDDEN bool learn_is_settled(uintptr_t pc);
/* What is known of the instruction at this address. */
HIDDEN uint32_t learn_known(uintptr_t pc);

/* ---- regions.c ---- */

HIDDEN void regions_start(void);
HIDDEN void regions_prefetch(uint64_t address);
struct access {
	unsigned actions;
	uint64_t address, size;
	uint32_t flags; /* as of event.h */
	bool happens;   /* or it is only certain to */
	uint32_t stack; /* of the access */
};
HIDDEN void regions_access(struct racer *self, const struct access *access);
/* Words of PM that locked instructions change, and those that are locks. */
HIDDEN void regions_note_word(const void *p, bool is_lock);
/* What the program says to be volatile: as uninteresting as locks are. */
HIDDEN void regions_exclude(const void *p, uint64_t size);
HIDDEN bool regions_is_word(const void *p);
HIDDEN bool regions_is_lock(const void *p);
/* What was stored there cannot be read any more. */
HIDDEN void regions_give_back(const void *p, uint64_t size);
/* Is the next region of this thread one that is followed? */
HIDDEN bool regions_is_sampled(struct racer *self);
HIDDEN void regions_flush(struct racer *self, uint64_t line, bool complete);
HIDDEN void regions_complete(struct racer *self, uint64_t line);
/* So many more regions of this thread. */
static inline void regions_count(struct racer *self, uint64_t more)
{
	enum { COUNTED = 256 }; /* a process may end at any time */

	self->regions += more;
	if (self->regions > COUNTED && self->regions - self->told < COUNTED)
		return;
	__atomic_fetch_add(&runtime_session->races.regions, self->regions - self->told,
			   __ATOMIC_RELAXED);
	self->told = self->regions;
}
/* A new window: what was done in those before is not known to its end. */
HIDDEN void regions_forget(struct racer *self);
/* --flush-on-read: what the thread has read and not written back is a race now. */
HIDDEN void regions_rely(struct racer *self);
/* Does the thread store what it has read, or to where that points? `value` may be null. */
HIDDEN bool regions_is_fed(const struct racer *self, uint64_t address, uint64_t size,
			   const uint64_t *value, const void *from);
/* Is this thread's read of what was not persistent followed by this, before it was? */
HIDDEN void regions_effect(struct racer *self, uint32_t trait);

/* ---- brief.c ---- */

/* Will accesses by this site be noted without a hook? If all goes well. */
struct binary_site;
HIDDEN bool brief_wants(const struct binary_site *site);
/* The first run knows what it can of the instruction whose hook this is. */
HIDDEN void brief_know(uintptr_t pc);
/* The code that notes them: a signal that comes there waits. */
extern HIDDEN const char __start_races_brief[], __stop_races_brief[];

/* ---- journal.c ---- */

HIDDEN void journal_start(void);
/* As loads_briefly; the stack is that of this hit, or of its start's access. */
HIDDEN bool journal_briefly(struct racer *self, const struct access *access, bool acquires,
			    uint32_t site);
/* What was noted counts as loaded from here on. */
HIDDEN void journal_settle(struct racer *self);
/* Where the last load was: a stack from the same frame, if this site is a little further on; or 0.
 */
HIDDEN uint32_t journal_stack(const uint64_t *at, uint32_t site);
HIDDEN void journal_note_stack(const struct stacks_context *context, uint32_t site);
/* The thread is about to release something: its regions end. */
HIDDEN void journal_close(struct racer *self);
/* It will not load from there any more. */
HIDDEN void journal_give_back(struct racer *self, uint64_t address, uint64_t size);
/* They never were. */
HIDDEN void journal_drop(struct racer *self);
/* The process ends; or it is a new one. */
HIDDEN void journal_finish(void);
HIDDEN void journal_fork(void);

/* ---- loads.c ---- */

/* This thread, if its loads need no hook; null otherwise. */
HIDDEN struct racer *loads_reader(void);
/* It will load from there. */
HIDDEN void loads_prefetch(struct racer *self, uint64_t address);
/* It does; `acquires` says whether that is synchronisation. False: it needs a hook. */
HIDDEN bool loads_briefly(struct racer *self, const struct access *access, bool acquires);

#endif
