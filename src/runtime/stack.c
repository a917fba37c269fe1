/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Call stacks, cheaply: instrumented code keeps frame pointers, so a walk is a few loads a frame.
 * Where the chain breaks in code without frame pointers (a callback from a prebuilt library), the
 * unwinder takes over; that is slower by a factor of a hundred, but rare.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "binary/binary.h"
#include "model/mix.h"
#include "races/races.h"
#include "runtime/context.h"
#include "runtime/walk.h"

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

uintptr_t walk_signal_return;

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
	walk_signal_return = kernel.restorer;
	sigaction(SIGURG, &before, NULL);
}

bool walk_add(struct walk *walk, uintptr_t pc)
{
	uint32_t at = walk->depth;

	if (is_base(pc) || walk->depth == WALK_MAX) {
		walk->complete = true;
		return false;
	}
	walk->handler |= pc == walk_signal_return;
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
	const uintptr_t low = thread->stack_low, handler = walk_signal_return;
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

/* The same stack by unwind tables; keeps the frame walk where the unwinder gets less far. */
static void walk_unwind(struct walk *walk)
{
	struct walk better;

	walk_by_tables(&better, walk->pc[0]);
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

/* A hit knows all registers; a function that stands in for libc's has a frame. */
static bool walk_patched(struct walk *walk, const struct frame *frame)
{
	const struct binary_registers *r = (const struct binary_registers *)frame;

	if (binary_hit_registers == r)
		return walk_known(walk, frame->return_address, (uintptr_t)(r + 1) + BINARY_RED_ZONE,
				  r->rbp);
	return walk_known(walk, frame->return_address, (uintptr_t)(frame + 1),
			  (uintptr_t)frame->caller);
}

/* The last one, if the same is asked for again. */
static __thread struct {
	const struct frame *frame;
	uint32_t number;
} last_patched __attribute__((tls_model("initial-exec")));

/* ---- with another innermost frame ---- */

typedef uint32_t number_function(struct walk *);

static uint32_t replace_first(uint32_t stack, uintptr_t pc, number_function *number)
{
	struct walk walk = { .depth = 0 };
	uint32_t depth, image;
	const uint64_t *all = stacks_get(&runtime_session->stacks, stack, &depth, &image);

	for (; walk.depth < depth; walk.depth++)
		walk.pc[walk.depth] = walk.depth ? all[walk.depth] : pc;
	return number(&walk);
}

static uint32_t with_first(uint32_t stack, uintptr_t pc, number_function *number)
{
	struct stacks_first *first = context_first(runtime_thread.shared, stack, pc);
	uint32_t to;

	if (first->from == stack && first->pc == pc)
		return first->to;
	to = replace_first(stack, pc, number);
	if (to)
		*first = (struct stacks_first){ pc, stack, to };
	return to;
}

/* ---- those of a moment ago ---- */

struct stack_place *stack_places;

static bool are_calls_recent(const struct stacks_context *c)
{
	const struct thread *thread = &runtime_thread;

	for (unsigned i = 0; i < c->calls; i++) {
		const struct thread_call *call = &thread->call[c->call[i].number];

		if (c->call[i].number >= thread->calls ||
		    (uintptr_t)call->frame != c->call[i].frame ||
		    call->function != c->call[i].function)
			return false;
	}
	return true;
}

static inline const uint64_t *return_address_of(const struct binary_registers *hit)
{
	uintptr_t sp = (uintptr_t)(hit + 1) + BINARY_RED_ZONE;
	struct stack_place *place = &stack_places[hit->site & BINARY_NUMBER];

	if (__builtin_expect(!place->base, 0))
		*place = walk_return_place(hit->frame.return_address);
	return place->base ? context_at(*place, sp, hit->rbp) : NULL;
}

/* What it was called from, if that is known; or null. */
static const struct stacks_context *context_of(const struct binary_registers *hit)
{
	const uint64_t *at = return_address_of(hit);
	const struct stacks_context *context =
		at ? context_find(runtime_thread.shared, at, hit->rbp) : NULL;

	return context && (!context->calls || are_calls_recent(context)) ? context : NULL;
}

/* This one is about to give way to another one, maybe from the same place. */
static void tell_apart(const struct stacks_context *c, const uint64_t *at)
{
	struct stacks_telling *telling = context_telling(runtime_thread.shared, *at);

	for (unsigned i = 0; c->at == at && c->value == *at && i < c->words; i++) {
		int16_t above = (int64_t)c->word[i] >> STACKS_ABOVE_SHIFT;

		if (!((at[above] ^ c->word[i]) << (64 - STACKS_ABOVE_SHIFT)))
			continue;
		if (above != telling->above[0]) {
			telling->above[1] = telling->above[0];
			telling->above[0] = above;
		}
		return;
	}
}

static void note_context(const struct binary_registers *hit, const struct walk *walk,
			 uint32_t number)
{
	static __thread unsigned turn __attribute__((tls_model("initial-exec")));
	const uint64_t *at = return_address_of(hit);
	struct stacks_context *c;

	if (!at || walk->words > STACKS_WORDS_SEEN || walk->calls > STACKS_CALLS_SEEN)
		return;
	c = context_slot(runtime_thread.shared, at, *at) + turn++ % STACKS_WAYS;
	tell_apart(c, at);
	c->at = NULL;
	for (unsigned i = 0; i < walk->words; i++) {
		int64_t above = walk->word[i] - at;

		if (above != (int16_t)above || *walk->word[i] >> STACKS_ABOVE_SHIFT)
			return;
		c->word[i] = *walk->word[i] | (uint64_t)above << STACKS_ABOVE_SHIFT;
	}
	for (unsigned i = 0; i < walk->calls; i++) {
		c->call[i].number = walk->call[i] - runtime_thread.call;
		c->call[i].frame = (uintptr_t)walk->call[i]->frame;
		c->call[i].function = walk->call[i]->function;
	}
	c->calls = walk->calls;
	c->words = walk->words;
	c->value = *at;
	c->by_rbp = walk->by_rbp;
	c->rbp = hit->rbp;
	c->image = modules_image();
	c->stack = number;
	c->at = at;
}

static uint32_t find_walked(struct walk *walk)
{
	return stacks_find(&runtime_session->stacks, &runtime_thread.shared->stacks,
			   modules_image(), walk->pc, walk->depth);
}

static uint32_t find_by_walk(const struct binary_registers *hit)
{
	struct walk walk;
	uint32_t number;

	if (!walk_known(&walk, hit->frame.return_address, (uintptr_t)(hit + 1) + BINARY_RED_ZONE,
			hit->rbp))
		return 0;
	walk_finish(&walk);
	number = find_walked(&walk);
	if (number)
		note_context(hit, &walk, number);
	return number;
}

uint32_t stack_find(const struct binary_registers *hit)
{
	uintptr_t pc = hit->frame.return_address;
	uint32_t site = hit->site & BINARY_NUMBER, number = 0;
	const struct stacks_context *context;

	if (journal_on)
		number = journal_stack(return_address_of(hit), site);
	if (number)
		return with_first(number, pc, find_walked);
	context = context_of(hit);
	if (!context)
		return find_by_walk(hit);
	if (journal_on && !context->calls)
		journal_note_stack(context, site);
	return with_first(context->stack, pc, find_walked);
}

bool stack_is_kept(const struct binary_registers *hit)
{
	last_patched.number = stack_find(hit);
	last_patched.frame = last_patched.number ? &hit->frame : NULL;
	return last_patched.number;
}

static uint32_t capture_patched(const struct frame *frame)
{
	struct walk walk;

	if (last_patched.frame == frame) {
		last_patched.frame = NULL;
		return last_patched.number;
	}
	if (!walk_patched(&walk, frame))
		walk_by_tables(&walk, frame->return_address);
	return keep(&walk);
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

uint32_t stack_with_first(uint32_t stack, uintptr_t pc)
{
	return with_first(stack, pc, keep);
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
