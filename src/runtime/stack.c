/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Call stacks, cheaply: instrumented code keeps frame pointers, so a walk is a few loads a frame.
 * Where the chain breaks in code without frame pointers (a callback from a prebuilt library), the
 * unwinder takes over; that is slower by a factor of a hundred, but rare.
 */
#include "runtime/runtime.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include "binary/binary.h"
#include "runtime/library.h"

enum { WALK_MAX = 4096 };

/*
 * Where every complete stack ends: these two call main and thread functions, and note their own
 * frame. Code without frame pointers in between leaves the chain intact as long as it does not
 * use the register for something else.
 */
__attribute__((noinline)) int stack_call_main(int (*main_function)(int, char **, char **), int argc,
					      char **argv, char **envp)
{
	int status;

	runtime_thread.base = FRAME;
	status = main_function(argc, argv, envp);
	__asm__ volatile(""); /* no tail call: the frame must be there */
	return status;
}

__attribute__((noinline)) void *stack_call_thread(void *(*start)(void *), void *argument)
{
	void *result;

	runtime_thread.base = FRAME;
	result = start(argument);
	__asm__ volatile("");
	return result;
}

/* Return addresses into the two. */
static bool is_base(uintptr_t pc)
{
	return pc - (uintptr_t)stack_call_main < 128 || pc - (uintptr_t)stack_call_thread < 128;
}

/* Where signal handlers return to: behind it the frame chain misses the interrupted function. */
static uintptr_t signal_return;

static void do_nothing(int number)
{
	(void)number;
}

void stack_init(void)
{
	struct { /* as the kernel has it */
		void *handler;
		unsigned long flags;
		uintptr_t restorer;
		unsigned long mask;
	} kernel = { 0 };
	struct sigaction ours = { .sa_handler = do_nothing }, before;

	if (sigaction(SIGURG, &ours, &before) < 0)
		return;
	syscall(SYS_rt_sigaction, SIGURG, NULL, &kernel, sizeof(kernel.mask));
	signal_return = kernel.restorer;
	sigaction(SIGURG, &before, NULL);
}

/* Recursion can make stacks deep: the inner frames are kept, and the last few seen, as a ring. */
struct walk {
	uintptr_t pc[STACKS_DEPTH];
	uint32_t depth;
	bool complete; /* reached main or a thread's start function */
	bool handler;  /* went through a signal handler */
};

static bool walk_add(struct walk *walk, uintptr_t pc)
{
	uint32_t at = walk->depth;

	if (is_base(pc) || walk->depth == WALK_MAX) {
		walk->complete = true;
		return false;
	}
	walk->handler |= pc == signal_return;
	if (at >= STACKS_INNER)
		at = STACKS_INNER + (at - STACKS_INNER) % STACKS_OUTER;
	walk->pc[at] = pc;
	walk->depth++;
	return true;
}

/* Turns the ring into a list, oldest first. */
static void walk_finish(struct walk *walk)
{
	uintptr_t ring[STACKS_OUTER];

	if (walk->depth <= STACKS_DEPTH)
		return;
	for (uint32_t i = 0; i < STACKS_OUTER; i++)
		ring[i] = walk->pc[STACKS_INNER + (walk->depth - STACKS_INNER + i) % STACKS_OUTER];
	for (uint32_t i = 0; i < STACKS_OUTER; i++)
		walk->pc[STACKS_INNER + i] = ring[i];
	walk->depth = STACKS_DEPTH;
}

/*
 * A callback from a prebuilt library: the hook knows where the library was called from, so its
 * own frames, for which there may be no chain, are left out.
 */
static const struct frame *skip_library(const struct thread *thread, const struct frame *frame,
					struct walk *walk)
{
	for (unsigned i = thread->calls; i-- > 0;) {
		const struct thread_call *call = &thread->call[i];

		if (call->entry && call->frame > frame &&
		    frame->return_address - call->low < call->high - call->low) {
			walk_add(walk, call->entry);
			return call->frame;
		}
	}
	return frame;
}

/* Is this a caller's frame? The chain goes up, inside the thread's stack, until it breaks. */
static bool is_above(const struct frame *next, const struct frame *frame, uintptr_t low,
		     uintptr_t room)
{
	return next > frame && (uintptr_t)next - low <= room &&
	       (uintptr_t)next % sizeof(void *) == 0 && next->return_address >= 4096;
}

/* Runs for every event: what does not change is in local variables. */
static void walk_frames(struct walk *walk, const struct frame *frame)
{
	const struct thread *thread = &runtime_thread;
	const struct frame *const base = thread->base;
	const uintptr_t low = thread->stack_low, handler = signal_return;
	const uintptr_t room = thread->stack_high - sizeof(*frame) - low;
	bool skips = false;
	uint32_t depth = 0;

	walk->complete = walk->handler = false;
	for (unsigned i = 0; i < thread->calls; i++)
		skips |= thread->call[i].entry != 0;
	while (depth < STACKS_INNER && !skips) {
		uintptr_t pc = frame->return_address;

		walk->handler |= pc == handler;
		walk->pc[depth++] = pc;
		if (frame->caller == base) {
			walk->depth = depth;
			walk->complete = true;
			return;
		}
		if (!is_above(frame->caller, frame, low, room)) {
			walk->depth = depth;
			return;
		}
		frame = frame->caller;
	}
	walk->depth = depth;
	for (;;) { /* deep, or through a library */
		frame = skip_library(thread, frame, walk);
		if (!walk_add(walk, frame->return_address))
			return;
		if (frame->caller == base) {
			walk->complete = true;
			return;
		}
		if (!is_above(frame->caller, frame, low, room))
			return;
		frame = frame->caller;
	}
}

struct unwind_state {
	struct walk *walk;
	uintptr_t first;
	bool started;
};

/* Where a hook has called a function, which may have left its frame to another one. */
static uintptr_t called_function(struct _Unwind_Context *context, uintptr_t pc)
{
	enum { RBX = 3 };
	const struct library_call *call = (const void *)_Unwind_GetGR(context, RBX);
	const void *real = call->hook->real;

	return binary_is_patched((uintptr_t)real) ? stack_entry(real) : pc;
}

static _Unwind_Reason_Code unwind_frame(struct _Unwind_Context *context, void *argument)
{
	struct unwind_state *state = argument;
	uintptr_t pc = _Unwind_GetIP(context);

	if (pc - (uintptr_t)library_call_entry <
	    (uintptr_t)library_call_end - (uintptr_t)library_call_entry)
		pc = called_function(context, pc);
	if (!state->started && pc != state->first)
		return _URC_NO_REASON;
	state->started = true;
	return pc && walk_add(state->walk, pc) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/* The same stack by unwind tables; keeps the frame walk where the unwinder gets less far. */
static void walk_unwind(struct walk *walk)
{
	struct walk better = { .depth = 0 };
	struct unwind_state state = { .walk = &better, .first = walk->pc[0] };

	_Unwind_Backtrace(unwind_frame, &state);
	if (better.complete || better.depth > walk->depth)
		*walk = better;
}

static uint32_t keep(struct walk *walk)
{
	uint32_t number;
	bool added;

	walk_finish(walk);
	number = stacks_add(&runtime_session->stacks, &runtime_thread.shared->stacks,
			    modules_image(), walk->pc, walk->depth, &added);
	if (added)
		for (uint32_t i = 0; i < walk->depth; i++)
			if (!modules_known(walk->pc[i])) {
				modules_update();
				break;
			}
	return number;
}

/*
 * Code that was not built with perdure-cc needs the unwinder each time. But a function that is
 * still running is called from where it was: a stack is the same as the last one that was taken at
 * this instruction and this depth, if all return addresses are still there.
 */
enum { KEPT_WALKS = 256 };
struct kept_walk {
	uintptr_t pc;
	const struct frame *frame, *caller;
	uint32_t number, count;
	struct {
		const uintptr_t *place;
		uintptr_t address;
	} back[STACKS_DEPTH];
};
static __thread struct kept_walk *kept_walks __attribute__((tls_model("initial-exec")));

static struct kept_walk *find_kept(const struct frame *frame)
{
	uint64_t hash = ((uintptr_t)frame ^ frame->return_address << 16) * 0x9e3779b97f4a7c15ull;

	if (!kept_walks) {
		kept_walks = binary_room(KEPT_WALKS * sizeof(*kept_walks));
		if (!kept_walks)
			return NULL;
	}
	return &kept_walks[hash >> 56];
}

void stack_end_thread(void)
{
	binary_release(kept_walks, KEPT_WALKS * sizeof(*kept_walks));
	kept_walks = NULL;
}

static bool is_still_right(const struct kept_walk *kept, const struct frame *frame)
{
	if (!kept->number || kept->pc != frame->return_address || kept->frame != frame ||
	    kept->caller != frame->caller)
		return false;
	for (uint32_t i = 0; i < kept->count; i++)
		if (*kept->back[i].place != kept->back[i].address)
			return false;
	return true;
}

struct kept_unwind {
	struct unwind_state state;
	struct kept_walk *kept;
};

static _Unwind_Reason_Code unwind_kept(struct _Unwind_Context *context, void *argument)
{
	struct kept_unwind *unwind = argument;
	struct kept_walk *kept = unwind->kept;
	_Unwind_Reason_Code code = unwind_frame(context, &unwind->state);

	/* The next frame's address is above the arguments of this one's caller. */
	if (unwind->state.started && code == _URC_NO_REASON && kept->count < STACKS_DEPTH) {
		const uintptr_t *place = (const uintptr_t *)_Unwind_GetCFA(context) - 1;

		kept->back[kept->count].place = place;
		kept->back[kept->count++].address = *place;
	}
	return code;
}

bool stack_is_kept(const struct frame *frame)
{
	const struct kept_walk *kept = find_kept(frame);

	return kept && is_still_right(kept, frame);
}

static uint32_t capture_patched(const struct frame *frame)
{
	struct walk walk = { .depth = 0 };
	struct kept_walk *kept = find_kept(frame);
	struct kept_unwind unwind = { { &walk, frame->return_address, false }, kept };

	if (!kept)
		return 0;
	if (is_still_right(kept, frame))
		return kept->number;
	*kept = (struct kept_walk){ .pc = frame->return_address,
				    .frame = frame,
				    .caller = frame->caller };
	_Unwind_Backtrace(unwind_kept, &unwind);
	if (!walk.depth) { /* no tables */
		walk.pc[0] = frame->return_address;
		walk.depth = 1;
	}
	return kept->number = keep(&walk);
}

uint32_t stack_capture(const struct frame *frame)
{
	struct walk walk;

	if (binary_is_patched(frame->return_address))
		return capture_patched(frame);
	walk_frames(&walk, frame);
	if (!walk.complete || walk.handler)
		walk_unwind(&walk);
	return keep(&walk);
}

uint32_t stack_of_function(const void *function)
{
	struct walk walk = { .pc[0] = (uintptr_t)function + 1, .depth = 1 };

	return keep(&walk);
}

/* Frames are named by return addresses: one behind the instruction. */
uint32_t stack_capture_at(uintptr_t pc)
{
	struct walk walk = { .pc[0] = pc, .depth = 1 };

	walk_unwind(&walk);
	walk.pc[0]++;
	return keep(&walk);
}
