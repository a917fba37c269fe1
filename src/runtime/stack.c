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

/* ---- those of a moment ago ---- */

/* The first of some places for it. */
enum { RECENT_WAYS = 4 };

static struct stacks_recent *recent_slot(uintptr_t pc, uintptr_t sp)
{
	uint32_t at = spread(pc ^ sp << 7) % STACKS_RECENT;

	return &runtime_thread.shared->recent[at & -(uint32_t)RECENT_WAYS];
}

static bool are_calls_recent(const struct stacks_recent *r)
{
	const struct thread *thread = &runtime_thread;

	for (unsigned i = 0; i < r->calls; i++) {
		const struct thread_call *call = &thread->call[r->call[i].number];

		if (r->call[i].number >= thread->calls ||
		    (uintptr_t)call->frame != r->call[i].frame ||
		    call->function != r->call[i].function)
			return false;
	}
	return true;
}

static bool is_recent(const struct stacks_recent *r, uintptr_t pc, uintptr_t sp, uintptr_t rbp)
{
	if (r->pc != pc || r->sp != sp || (r->by_rbp && r->rbp != rbp) ||
	    r->image != modules_image())
		return false;
	for (unsigned i = 0; i < r->words; i++) {
		uint64_t above = r->word[i] >> STACKS_ABOVE_SHIFT;

		if (((const uintptr_t *)sp)[above] != (r->word[i] ^ above << STACKS_ABOVE_SHIFT))
			return false;
	}
	return are_calls_recent(r);
}

static void note_recent(struct stacks_recent *r, const struct walk *walk, uintptr_t pc,
			uintptr_t sp, uintptr_t rbp, uint32_t number)
{
	r->pc = 0;
	if (walk->words > STACKS_WORDS_SEEN || walk->calls > STACKS_CALLS_SEEN)
		return;
	for (unsigned i = 0; i < walk->words; i++) {
		uintptr_t above = ((uintptr_t)walk->word[i] - sp) / sizeof(sp);

		if (above > UINT16_MAX || *walk->word[i] >> STACKS_ABOVE_SHIFT)
			return;
		r->word[i] = *walk->word[i] | above << STACKS_ABOVE_SHIFT;
	}
	for (unsigned i = 0; i < walk->calls; i++) {
		r->call[i].number = walk->call[i] - runtime_thread.call;
		r->call[i].frame = (uintptr_t)walk->call[i]->frame;
		r->call[i].function = walk->call[i]->function;
	}
	r->calls = walk->calls;
	r->words = walk->words;
	r->sp = sp;
	r->by_rbp = walk->by_rbp;
	r->rbp = rbp;
	r->image = modules_image();
	r->number = number;
	r->pc = pc;
}

static const struct stacks_recent *find_recent(const struct binary_registers *hit)
{
	uintptr_t pc = hit->frame.return_address, sp = (uintptr_t)hit;
	const struct stacks_recent *recent = recent_slot(pc, sp);

	for (unsigned i = 0; i < RECENT_WAYS; i++)
		if (is_recent(&recent[i], pc, sp, hit->rbp))
			return &recent[i];
	return NULL;
}

uint32_t stack_find(const struct binary_registers *hit)
{
	uintptr_t pc = hit->frame.return_address, sp = (uintptr_t)hit;
	static __thread unsigned turn __attribute__((tls_model("initial-exec")));
	const struct stacks_recent *known = find_recent(hit);
	struct stacks_recent *recent = recent_slot(pc, sp);
	struct walk walk;
	uint32_t number;

	if (known)
		return known->number;
	if (!walk_known(&walk, pc, (uintptr_t)(hit + 1) + BINARY_RED_ZONE, hit->rbp))
		return 0;
	walk_finish(&walk);
	number = stacks_find(&runtime_session->stacks, &runtime_thread.shared->stacks,
			     modules_image(), walk.pc, walk.depth);
	if (number)
		note_recent(&recent[turn++ % RECENT_WAYS], &walk, pc, sp, hit->rbp, number);
	return number;
}

bool stack_context_of(const struct binary_registers *hit, uint32_t stack,
		      struct stack_context *context, struct stack_place *place)
{
	const struct stacks_recent *r = find_recent(hit);
	uintptr_t from = (uintptr_t)(hit + 1) + BINARY_RED_ZONE;

	*place = walk_return_place(hit->frame.return_address);
	from = (place->by_rbp ? hit->rbp : from) + place->above;
	if (!r || !place->known || r->calls || !r->words || r->words > STACK_WORDS)
		return false;
	context->stack = 0;
	for (unsigned i = 0; i < r->words; i++) {
		uint64_t above = r->word[i] >> STACKS_ABOVE_SHIFT;

		context->word[i].at = (const uint64_t *)r->sp + above;
		context->word[i].value = r->word[i] ^ above << STACKS_ABOVE_SHIFT;
	}
	context->words = r->words;
	context->by_rbp = r->by_rbp;
	context->rbp = r->rbp;
	if ((uintptr_t)context->word[0].at != from)
		return false;
	context->stack = stack;
	return true;
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

static uint32_t replace_first(uint32_t stack, uintptr_t pc)
{
	struct walk walk = { .depth = 0 };
	uint32_t depth, image;
	const uint64_t *all = stacks_get(&runtime_session->stacks, stack, &depth, &image);

	for (; walk.depth < depth; walk.depth++)
		walk.pc[walk.depth] = walk.depth ? all[walk.depth] : pc;
	return keep(&walk);
}

uint32_t stack_with_first(uint32_t stack, uintptr_t pc)
{
	static __thread struct {
		uint32_t from, to;
		uintptr_t pc;
	} last[64] __attribute__((tls_model("initial-exec")));
	unsigned at = (stack * 31 + pc) % 64;

	if (last[at].from != stack || last[at].pc != pc) {
		last[at].from = stack;
		last[at].pc = pc;
		last[at].to = replace_first(stack, pc);
	}
	return last[at].to;
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
