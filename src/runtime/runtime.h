/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The runtime, libperdure.so: what runs inside the target. It sees events, keeps PM in the
 * window, and writes everything it learns to the session. Without a session all of it is idle.
 *
 * It runs in someone else's process: no stdio, no malloc on the event path, no libc function that
 * it interposes itself except through REAL().
 */
#ifndef RUNTIME_RUNTIME_H
#define RUNTIME_RUNTIME_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "heap/heap.h"
#include "perdure/event.h"
#include "session/session.h"

#define PUBLIC __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))

/* ---- real.c ---- */

/* The next definition of a function after this library's; null if there is none. */
HIDDEN void *real_find(const char *name);
/* The next definition after the object that this address is in: what RTLD_NEXT means for it. */
HIDDEN void *real_find_after(uintptr_t address, const char *name);
/* Does any object define it? */
HIDDEN bool real_exists(const char *name);

/* The next definition of a libc function that this library interposes. */
#define REAL(name)                                                                                 \
	({                                                                                         \
		static __typeof__(&name) real_;                                                    \
		if (__builtin_expect(!real_, 0))                                                   \
			real_ = (__typeof__(&name))real_find(#name);                               \
		real_;                                                                             \
	})

/* A frame as every function prologue leaves it: the caller's frame and the return address. */
struct frame {
	const struct frame *caller;
	uintptr_t return_address;
};
#define FRAME ((const struct frame *)__builtin_frame_address(0))

/* ---- init.c, thread.c ---- */

extern HIDDEN struct session *runtime_session; /* null: idle */
extern HIDDEN uint32_t runtime_image;          /* index of this process's image */
extern HIDDEN bool runtime_involved;           /* some code here was built with perdure-cc */
extern HIDDEN bool runtime_has_sanitizer;      /* its interceptors stand before ours */
extern HIDDEN bool runtime_is_zygote;          /* forks executions, and is none */

extern __thread struct perdure_inline __perdure_inline
	__attribute__((tls_model("initial-exec"), visibility("default")));

/* A call of a library that has transactions, and where that library's code is. */
struct thread_call {
	const struct frame *frame;
	uintptr_t entry;    /* an address in the function that was called; 0 if it has hooks */
	uintptr_t function; /* the same as it stands in stacks; 0 if that has a frame of its own */
	uintptr_t low, high;
	bool transactional;
};
enum { THREAD_CALLS = 8 };

struct thread {
	struct session_thread *shared; /* null until the thread's first event */
	uintptr_t stack_low, stack_high;
	const struct frame *base; /* of the runtime's function that called main or the thread's */
	uint32_t owner;           /* lock owner number: the thread's id; 0 until it is asked for */
	bool busy;                /* inside a hook: a signal handler's events are not recorded */
	bool judges;              /* stores are to be shown to judge_store */
	bool own_store;           /* but not this one, which a library makes for its caller */
	bool releases;            /* the ranges of a transaction that is over are still protected */
	bool buffered;            /* stores wait in its buffer, see fibers/buffer.h */
	bool fenced;              /* by a release fence: relaxed stores release from then on */
	bool changed_files;       /* inside of a prebuilt library, whose calls are one step */
	unsigned calls;
	struct thread_call call[THREAD_CALLS];
	struct transactions *transactions; /* null until the first one */
};
/* Nothing but the checkers of patterns looks at accesses. */
extern HIDDEN bool runtime_plain;
extern HIDDEN __thread struct thread runtime_thread __attribute__((tls_model("initial-exec")));

/*
 * Every hook starts with thread_enter: null when idle, or when a signal handler interrupted a
 * hook of the same thread; then the hook does only what the program asked. Otherwise
 * thread_leave ends it.
 */
HIDDEN struct session_thread *thread_register(void);
HIDDEN void thread_after_fork(void);
/* The same thread goes on in another process. */
HIDDEN void thread_is_path(void);
HIDDEN void thread_end(void);
HIDDEN void thread_init(void);
/* A handler jumps out of a hook that it interrupted: gives back what the hook holds. */
HIDDEN void thread_abandon(void);

HIDDEN void buffer_drain(void);

/* For hooks whose event may wait, too: without draining the buffer. */
static inline struct session_thread *thread_enter_waiting(void)
{
	struct thread *thread = &runtime_thread;

	if (!runtime_session || thread->busy)
		return NULL;
	thread->busy = true;
	__asm__ volatile("" ::: "memory");
	return thread->shared ? thread->shared : thread_register();
}

static inline struct session_thread *thread_enter(void)
{
	/* Inside of a hook (whose unwinder takes a lock) this is no event. */
	if (__builtin_expect(runtime_thread.buffered && !runtime_thread.busy, 0))
		buffer_drain();
	return thread_enter_waiting();
}

static inline void thread_leave(void)
{
	__asm__ volatile("" ::: "memory");
	runtime_thread.busy = false;
}

/* The number under which this thread holds locks, see spin.h. */
HIDDEN uint32_t thread_owner(void);

/* ---- mirror.c: PM outside the window ---- */

enum { MIRRORS = 8 };
extern HIDDEN unsigned runtime_mirrors;
HIDDEN bool mirror_has(const void *p);
/* Where it is in the window; itself, if it is no such PM. */
HIDDEN void *mirror_find(const void *p);
/* False if there are too many. */
HIDDEN bool mirror_add(void *start, uint64_t size, const void *mirror, int protection);
struct mirror_part {
	uint64_t start, size, mirror;
};
/* Forgets some of [start, end), until there is no more. */
HIDDEN bool mirror_take(uintptr_t start, uintptr_t end, struct mirror_part *part);
/* What is in the window from `base` on is this file now. */
HIDDEN void mirror_follow(uint64_t base, uint64_t size, int fd);

static inline bool in_window(const void *p)
{
	return (uintptr_t)p >> PERDURE_WINDOW_SHIFT == PERDURE_WINDOW_INDEX ||
	       (__builtin_expect(runtime_mirrors, 0) && mirror_has(p));
}

static inline void *place_in_window(const void *p)
{
	return __builtin_expect(runtime_mirrors, 0) ? mirror_find(p) : (void *)p;
}

/* After fork the child's heap is a copy of its own, and not the PM that the parent has. */
extern HIDDEN uintptr_t runtime_pm_end;

static inline bool is_followed(const void *p)
{
	return (uintptr_t)p < runtime_pm_end;
}

/* ---- stack.c ---- */

HIDDEN void stack_init(void);
/* The stack of a hit in patched code, if it can be told without a look at unwind tables; or 0. */
struct binary_registers;
HIDDEN uint32_t stack_find(const struct binary_registers *hit);
/* The same, and keeps it for stack_capture. */
HIDDEN bool stack_is_kept(const struct binary_registers *hit);
/* Where the frames of sites are, by their numbers: see context.h. Threads share that: it is written
 * once. */
extern HIDDEN struct stack_place *stack_places;
/* How a function that a hook has called stands in stacks. */
static inline uintptr_t stack_entry(const void *function)
{
	return (uintptr_t)function + 1;
}
/* The number of the call stack whose innermost frame is `frame`'s return address. */
HIDDEN uint32_t stack_capture(const struct frame *frame);
/* The same stack with another innermost frame. */
HIDDEN uint32_t stack_with_first(uint32_t stack, uintptr_t pc);
/* A stack of this function alone: where it is, not what it does. */
HIDDEN uint32_t stack_of_function(const void *function);
/* The call stack of what a signal interrupted at this instruction. */
HIDDEN uint32_t stack_capture_at(uintptr_t pc);

/* main and thread start functions are called from here, which tells stack_capture where to end. */
HIDDEN int stack_call_main(int (*main_function)(int, char **, char **), int argc, char **argv,
			   char **envp);
HIDDEN void *stack_call_thread(void *(*start)(void *), void *argument);

/* ---- modules.c ---- */

/* Notes newly loaded objects, so that addresses can be named later. */
HIDDEN void modules_update(void);
/* Is this name one of libc or its like, which only do what their callers ask for? */
HIDDEN bool modules_is_system(const char *name);
/* True if any object in this process was built with perdure-cc. */
HIDDEN bool modules_any_instrumented(void);
/* Was this object built with perdure-cc? */
struct dl_phdr_info;
HIDDEN bool modules_is_built(const struct dl_phdr_info *info);
/* True if the code at this address was built with perdure-cc. */
HIDDEN bool modules_instrumented(const void *address);
HIDDEN bool modules_known(uintptr_t address);
/* A number for the instruction that is the same in every run. */
HIDDEN uint64_t modules_key(uintptr_t address);
/* What stacks_add wants as the image of this process's addresses. */
#define MODULES_IMAGE_UNKNOWN UINT32_MAX
extern HIDDEN uint32_t runtime_stack_image;
HIDDEN uint32_t modules_find_image(void);

static inline uint32_t modules_image(void)
{
	return runtime_stack_image != MODULES_IMAGE_UNKNOWN ? runtime_stack_image
							    : modules_find_image();
}
/* May the code be the unwinder's, or nobody's? */
HIDDEN bool modules_may_unwind(uintptr_t address);
/* True if what this code does to PM is not to be judged. */
HIDDEN bool modules_trusted(uintptr_t address);
extern HIDDEN bool runtime_trusts_instrumented; /* some of it has hooks */
/* True if the code belongs to a library that has transactions: its stores are its own. */
HIDDEN bool modules_transactional(uintptr_t address);
/* The same without vectors, false if it is not known. */
HIDDEN bool modules_known_transactional(uintptr_t address);
/* If the code is of a prebuilt library that is not known to any model: says so. */
HIDDEN bool modules_describe_foreign(uintptr_t address, char *text, size_t size);
/* Objects went away: addresses may mean something else now. */
HIDDEN void modules_unloaded(void);

static inline bool is_trusted(const struct frame *frame)
{
	return __builtin_expect(runtime_trusts_instrumented, 0) &&
	       modules_trusted(frame->return_address);
}

/* True if the caller's code is in one of PMDK's libraries. */
HIDDEN bool modules_is_libpmem(const struct frame *frame);

/* ---- events.c: what interposers say; all are no-ops outside PM ---- */

HIDDEN void event_load(const void *p, size_t size, const struct frame *frame);
/* The same for text: how far it is read depends on what it says. `n` counts the last byte read. */
HIDDEN void event_load_text(const char *text, size_t n, const struct frame *frame);
/* A string of at most so many bytes, whose length it returns. */
HIDDEN size_t event_load_string(const char *text, size_t most, const struct frame *frame);
/* Without any event. */
HIDDEN size_t plain_length(const char *text);
/* The bytes are already there: a system call or libc wrote them. */
/*
 * For processes of an exploration, which wait for each other with all their threads; syscall()
 * would let another thread run.
 */
struct timespec;
HIDDEN long kernel_futex(uint32_t *word, int operation, uint32_t value,
			 const struct timespec *time);

HIDDEN void event_stored(void *p, size_t size, const struct frame *frame);
/* The same of bytes that may be symbolic: what the client of an exploration sends. */
HIDDEN void event_received(void *p, size_t size, const struct frame *frame);
/* The same by non-temporal stores. */
HIDDEN void event_streamed(void *p, size_t size, const struct frame *frame);
/* Bytes that the program, or its library, calls volatile though they lie in PM. */
HIDDEN void event_volatile(void *p, size_t size);
HIDDEN void event_flush(const void *p, size_t size, enum perdure_flush kind,
			const struct frame *frame);
HIDDEN void event_fence(enum perdure_fence kind, const struct frame *frame);
/*
 * Copies or fills line by line, each line one step with its event. n may be 0. `place` is the
 * target's type as perdure-cc knows it, or null.
 */
HIDDEN void event_copy(void *to, const void *from, size_t n, const char *place,
		       const struct frame *frame);
/* The same for ranges that may overlap. */
HIDDEN void event_move(void *to, const void *from, size_t n, const char *place,
		       const struct frame *frame);
HIDDEN void event_fill(void *to, int byte, size_t n, const char *place, const struct frame *frame);
HIDDEN void event_persist(const void *p, size_t size, const struct frame *frame);
/* A lock is taken or given back: orders what a locked instruction orders. */
HIDDEN void event_lock(const void *p, bool taken, const struct frame *frame);

/* ---- transactions.c ---- */

HIDDEN void event_tx_begin(const void *pool, const struct frame *frame);
/* `flags` as in oracle.h: PERDURE_TX_NO_FLUSH, …NO_SNAPSHOT. */
HIDDEN void event_tx_add(const void *p, size_t size, uint32_t flags, const struct frame *frame);
/* `prebuilt`: what the library flushes meanwhile is not seen, so it is assumed. */
HIDDEN void event_tx_finish(bool commit, bool prebuilt, const struct frame *frame);
HIDDEN void event_tx_end(bool prebuilt, const struct frame *frame);
HIDDEN void event_alloc(const void *p, size_t size, uint32_t flags, const struct frame *frame);
HIDDEN void event_free(const void *p, size_t size, const struct frame *frame);
/* Actions, known by the address of the program's record: prepared, published or cancelled. */
HIDDEN void event_reserve(const void *p, size_t size, uint64_t key, bool frees,
			  const struct frame *frame);
HIDDEN void event_publish(uint64_t key, uint64_t count, uint64_t stride, bool cancel);
/* What this thread stored from an event on was for nothing. */
HIDDEN void event_discard(uint64_t since);
/* A store that the library makes for its caller, told by its own code otherwise. */
HIDDEN void transactions_judge(const void *p, uint64_t size, const struct frame *frame);
HIDDEN void transactions_end_thread(void);
/* Is the store allowed where the thread is? Only if runtime_thread.judges. `place` may be null. */
HIDDEN void judge_store(struct session_thread *thread, const void *p, uint64_t size,
			const char *place, uint32_t stack, const struct frame *frame);

/* What perdure-cc knows of a store's target: see event.h. */
HIDDEN uint32_t places_add(const char *place);

/* ---- window.c, files.c ---- */

/* What was mapped last, while nothing has been unmapped: is certainly there. */
extern HIDDEN uintptr_t window_low, window_high;
/* The same of the heap: so many bytes from its start. */
extern HIDDEN uint64_t window_heap;

static inline bool window_has(const void *p, uint64_t size)
{
	uintptr_t high = window_high, low = window_low;
	uint64_t in_heap = (uintptr_t)p - HEAP_BASE;

	return ((uintptr_t)p >= low && (uintptr_t)p < high && size <= high - (uintptr_t)p) ||
	       (in_heap < window_heap && size <= window_heap - in_heap);
}

/* How much of it is mapped, from the start on. */
HIDDEN uint64_t window_mapped(uint64_t start, uint64_t size);

/* Fork: the child has all mappings of the parent. The session's lock is held. */
HIDDEN void window_copy_ranges(uint32_t from_image, uint32_t to_image);
/* A process that is gone without having said so: judges what it left. */
HIDDEN void window_end_dead_images(void);
HIDDEN bool files_is_pm(int fd, int map_flags);
/* Does --pm name this path? */
HIDDEN bool files_is_named(const char *path);
HIDDEN void files_note_open(int fd, const char *path);
/* The entry of the PM file behind fd, made if `size` is not 0; null if there is none. */
HIDDEN struct session_file *files_find(int fd, uint64_t size);
HIDDEN void files_note_unmatched(int fd);
/* The file will be mapped at a place the program chose, if it is not mapped yet. */
HIDDEN void files_place(int fd, uint64_t base, uint64_t size);
/* A second place for a part of a file whose own is taken by another file; null if there is none. */
HIDDEN struct session_file *files_second_place(const struct session_file *file, uint64_t offset,
					       uint64_t size);
/* A part of the window for the program to map files into; 0 if there is none left. */
HIDDEN uint64_t files_reserve(uint64_t size);
/* Gives an unused reservation back if it was the last one. The session's lock is held. */
HIDDEN void files_release(uint64_t start, uint64_t end);
/* --pm-heap: what the heap used before the runtime started. */
HIDDEN void files_note_heap(void);

/* ---- watch.c ---- */

/* Executes the program again with its heap in PM; returns only if that is impossible. */
HIDDEN void watch_restart_with_heap(char **argv);
HIDDEN bool watch_start(const char *options, char *session_path, size_t size);

/* ---- message.c ---- */

/* One line on standard error, "perdure: …". */
HIDDEN void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
