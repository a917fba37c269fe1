/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of code without frame pointers. Patched code needs unwind tables, but these say the same
 * each time: how large a frame is at this instruction, counted from the stack pointer. What the
 * unwinder has found out is kept here, one word an instruction: its address, the size in words, and
 * what kind of frame it is.
 */
#include <unwind.h>

#include "binary/binary.h"
#include "model/mix.h"
#include "runtime/library.h"
#include "runtime/walk.h"

enum frame_kind {
	FRAME_FIXED = 1,   /* of this size; rbp is anything from there on … */
	FRAME_KEEPS = 2,   /* … or the same as before */
	FRAME_POINTER = 3, /* rbp points to the caller's */
	FRAME_LAST = 4,
	FRAME_ODD = 5,     /* each time another */
	FRAME_ALIGNED = 6, /* the same, and so many words below it is where the frame ends */
};
enum { FRAMES = 1 << 15, SIZE_BITS = 13, KIND_BITS = 3, LARGEST = (1 << SIZE_BITS) - 1 };
static uint64_t frames[FRAMES];
/* FRAME_FIXED: so many words below its end is the caller's rbp; 0: that is not known. */
static uint8_t keeps_rbp[FRAMES];

static bool is_of(uint64_t word, uintptr_t pc)
{
	return word >> (SIZE_BITS + KIND_BITS) == (pc & (~0ull >> (SIZE_BITS + KIND_BITS)));
}

/* Its own, or one that is free, or somebody else's. */
static uint64_t *frame_slot(uintptr_t pc)
{
	enum { WAYS = 4 };
	uint64_t *first = &frames[spread(pc) % FRAMES & -(uint32_t)WAYS];

	for (unsigned i = 0; i < WAYS; i++) {
		uint64_t word = __atomic_load_n(&first[i], __ATOMIC_RELAXED);

		if (!word || is_of(word, pc))
			return &first[i];
	}
	return &first[pc % WAYS];
}

/* Where functions push it: the first word from the end that has it. */
static uint8_t find_rbp(uintptr_t next_sp, uint64_t words, uintptr_t next_rbp)
{
	enum { RETURN_ADDRESS = 1, PUSHED_MOST = 8 };

	for (unsigned i = RETURN_ADDRESS + 1; i <= PUSHED_MOST && i <= words; i++)
		if (((const uintptr_t *)next_sp)[-(int)i] == next_rbp)
			return (uint8_t)i;
	return 0;
}

static uint64_t frame_word(uintptr_t pc, uint64_t words, enum frame_kind kind)
{
	return (uint64_t)pc << (SIZE_BITS + KIND_BITS) | words << KIND_BITS | kind;
}

/* What is known of the frame at this address; 0: nothing. */
static uint64_t frame_known(uintptr_t pc)
{
	uint64_t word = __atomic_load_n(frame_slot(pc), __ATOMIC_RELAXED);

	return is_of(word, pc) ? word : 0;
}

/*
 * A function that aligns its stack keeps the end of its frame near rbp, one of a few words below
 * it; how many, or 0.
 */
static uint64_t find_end(uintptr_t sp, uintptr_t next_sp, uintptr_t rbp, uintptr_t next_rbp)
{
	enum { MOST = 8 };

	if (rbp < sp || rbp >= next_sp || rbp % sizeof(rbp) || *(const uintptr_t *)rbp != next_rbp)
		return 0;
	for (unsigned i = 1; i <= MOST && rbp - i * sizeof(rbp) >= sp; i++)
		if (((const uintptr_t *)rbp)[-(int)i] == next_sp)
			return i;
	return 0;
}

/* Does the frame have this size, whatever becomes of rbp? */
static bool is_size(uint64_t word, uint64_t words)
{
	unsigned kind = word & ((1 << KIND_BITS) - 1);

	return (kind == FRAME_FIXED || kind == FRAME_KEEPS) &&
	       (word >> KIND_BITS & LARGEST) == words;
}

static void frame_note(uintptr_t pc, uintptr_t sp, uintptr_t next_sp, uintptr_t rbp,
		       uintptr_t next_rbp)
{
	uint64_t words = (next_sp - sp) / sizeof(uint64_t), known = frame_known(pc), word;
	uint64_t end = find_end(sp, next_sp, rbp, next_rbp);
	enum frame_kind kind = rbp == next_rbp ? FRAME_KEEPS : FRAME_FIXED;

	if (end) {
		kind = FRAME_ALIGNED;
		words = end;
	}
	if (rbp >= sp && rbp + 2 * sizeof(rbp) == next_sp)
		kind = FRAME_POINTER;
	if (next_sp <= sp || words > LARGEST || pc == walk_signal_return)
		kind = FRAME_ODD;
	if (kind == FRAME_POINTER || kind == FRAME_ODD)
		words = 0;
	word = frame_word(pc, words, kind);
	if (kind == FRAME_FIXED) {
		uint8_t *at = &keeps_rbp[frame_slot(pc) - frames];
		uint8_t found = find_rbp(next_sp, words, next_rbp);

		*at = known != word || *at == found ? found : 0;
	}
	if (known && known != word)
		word = is_size(known, words) && is_size(word, words)
			       ? frame_word(pc, words, FRAME_FIXED)
			       : frame_word(pc, 0, FRAME_ODD);
	__atomic_store_n(frame_slot(pc), word, __ATOMIC_RELAXED);
}

/* ---- by tables ---- */

/* A signal may have stopped an exception that is just leaving its frames: nobody knows the next. */
static bool is_doubtful(uintptr_t before, uintptr_t pc)
{
	return before == walk_signal_return && modules_may_unwind(pc);
}

static bool is_library_call(uintptr_t pc)
{
	return pc - (uintptr_t)library_call_entry <
	       (uintptr_t)library_call_end - (uintptr_t)library_call_entry;
}

/* Where a hook has called a function, which may have left its frame to another one. */
static uintptr_t called_function(struct _Unwind_Context *context, uintptr_t pc)
{
	enum { RBX = 3 };
	const struct library_call *call = (const void *)_Unwind_GetGR(context, RBX);
	const void *real = call->hook->real;

	return binary_is_patched((uintptr_t)real) ? stack_entry(real) : pc;
}

struct unwinding {
	struct walk *walk;
	uintptr_t first, pc, sp, rbp;
	bool started;
};

static _Unwind_Reason_Code unwind_frame(struct _Unwind_Context *context, void *argument)
{
	enum { RBP = 6 };
	struct unwinding *state = argument;
	uintptr_t pc = _Unwind_GetIP(context), sp = _Unwind_GetCFA(context);
	uintptr_t rbp = _Unwind_GetGR(context, RBP);

	if (!state->started && pc != state->first)
		return _URC_NO_REASON;
	if (state->started && is_doubtful(state->pc, pc))
		return _URC_END_OF_STACK;
	if (state->started)
		frame_note(state->pc, state->sp, sp, state->rbp, rbp);
	state->started = true;
	state->pc = pc;
	state->sp = sp;
	state->rbp = rbp;
	if (is_library_call(pc))
		pc = called_function(context, pc);
	return pc && walk_add(state->walk, pc) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

void walk_by_tables(struct walk *walk, uintptr_t first)
{
	struct unwinding state = { .walk = walk, .first = first };

	walk->depth = 0;
	walk->complete = walk->handler = false;
	__atomic_fetch_add(&runtime_session->unwound, 1, __ATOMIC_RELAXED);
	_Unwind_Backtrace(unwind_frame, &state);
	if (!walk->depth) { /* no tables */
		walk->pc[0] = first;
		walk->depth = 1;
	} else if (!walk->complete && state.pc != walk_signal_return) {
		__atomic_store_n(frame_slot(state.pc), frame_word(state.pc, 0, FRAME_LAST),
				 __ATOMIC_RELAXED);
	}
}

/* ---- by what is known ---- */

/* The hook of a library function notes where its own frame is. */
static const struct thread_call *call_above(uintptr_t sp)
{
	const struct thread *thread = &runtime_thread;
	const struct thread_call *found = NULL;

	for (unsigned i = 0; i < thread->calls; i++)
		if ((uintptr_t)thread->call[i].frame >= sp &&
		    (!found || thread->call[i].frame < found->frame))
			found = &thread->call[i];
	return found;
}

static uintptr_t word_at(uintptr_t at)
{
	return *(const uintptr_t *)at;
}

static void note_word(struct walk *walk, uintptr_t at)
{
	if (walk->words < STACKS_WORDS_SEEN)
		walk->word[walk->words] = (const uintptr_t *)at;
	walk->words++;
}

/* A frame on the way up. */
struct step {
	uintptr_t pc, sp, rbp;
	bool has_rbp;
	uintptr_t rbp_from; /* where it was kept; 0: it is what it was at the start */
	uintptr_t high;     /* of the stack */
};

static void note_rbp(struct walk *walk, const struct step *step)
{
	if (step->rbp_from)
		note_word(walk, step->rbp_from);
	walk->by_rbp |= !step->rbp_from;
}

/* Out of a frame that rbp points into; `end`: see FRAME_ALIGNED, or 0. */
static bool step_by_rbp(struct walk *walk, struct step *step, uint64_t end)
{
	uintptr_t own = step->rbp, end_from = own - end * sizeof(own);

	if (!step->has_rbp || own < step->sp || own + 2 * sizeof(own) > step->high ||
	    own % sizeof(own))
		return false;
	note_rbp(walk, step);
	step->rbp_from = own;
	step->rbp = word_at(own);
	step->sp = own + 2 * sizeof(own);
	if (end) {
		note_word(walk, end_from);
		step->sp = word_at(end_from);
	}
	return step->sp > own;
}

/* Out of a frame as it is known; false if it is not. */
static bool step_by_size(struct walk *walk, struct step *step)
{
	const uint64_t *slot = frame_slot(step->pc);
	uint64_t word = __atomic_load_n(slot, __ATOMIC_RELAXED);
	uint64_t words = word >> KIND_BITS & LARGEST;
	uint8_t kept;

	if (!is_of(word, step->pc))
		return false;
	switch (word & ((1 << KIND_BITS) - 1)) {
	case FRAME_FIXED:
		step->sp += words * sizeof(uint64_t);
		kept = keeps_rbp[slot - frames];
		step->has_rbp = kept && step->sp <= step->high;
		step->rbp_from = step->sp - kept * sizeof(uint64_t);
		if (step->has_rbp)
			step->rbp = word_at(step->rbp_from);
		return true;
	case FRAME_KEEPS:
		step->sp += words * sizeof(uint64_t);
		return true;
	case FRAME_POINTER:
		return step_by_rbp(walk, step, 0);
	case FRAME_ALIGNED:
		return step_by_rbp(walk, step, words);
	default:
		return false;
	}
}

struct stack_place walk_return_place(uintptr_t pc)
{
	uint64_t word = frame_known(pc), words = word >> KIND_BITS & LARGEST;

	switch (word & ((1 << KIND_BITS) - 1)) {
	case FRAME_FIXED:
	case FRAME_KEEPS:
		return (struct stack_place){ (words - 1) * sizeof(word), STACK_BY_SP };
	case FRAME_POINTER:
		return (struct stack_place){ sizeof(word), STACK_BY_RBP };
	case FRAME_ALIGNED:
		return (struct stack_place){ words * sizeof(word), STACK_BY_KEPT };
	default:
		return (struct stack_place){ 0, STACK_UNKNOWN };
	}
}

static bool is_last(uintptr_t pc)
{
	return (frame_known(pc) & ((1 << KIND_BITS) - 1)) == FRAME_LAST;
}

/* A library function whose hook has noted the call: its frame is not looked at. */
static const struct thread_call *noted_call(struct walk *walk, struct step *step)
{
	const struct thread_call *call = is_library_call(step->pc) ? call_above(step->sp) : NULL;

	if (!call)
		return NULL;
	note_rbp(walk, step);
	/* Those that nobody has noted have a frame like others. */
	if (!step->has_rbp || (uintptr_t)call->frame != step->rbp)
		return NULL;
	if (call->function)
		step->pc = call->function;
	return call;
}

static void step_over_call(struct walk *walk, struct step *step, const struct thread_call *call)
{
	note_word(walk, (uintptr_t)&call->frame->caller);
	note_word(walk, (uintptr_t)&call->frame->return_address);
	if (walk->calls < STACKS_CALLS_SEEN)
		walk->call[walk->calls] = call;
	walk->calls++;
	step->rbp_from = (uintptr_t)&call->frame->caller;
	step->sp = (uintptr_t)(call->frame + 1);
	step->rbp = (uintptr_t)call->frame->caller;
	step->has_rbp = true;
	step->pc = call->frame->return_address;
}

bool walk_known(struct walk *walk, uintptr_t pc, uintptr_t sp, uintptr_t rbp)
{
	const uintptr_t low = runtime_thread.stack_low;
	struct step step = { pc, sp, rbp, .has_rbp = true, .high = runtime_thread.stack_high };
	const struct thread_call *call;

	walk->depth = walk->words = walk->calls = 0;
	walk->complete = walk->handler = walk->by_rbp = false;
	while (step.sp >= low && step.sp + 2 * sizeof(sp) <= step.high) {
		call = noted_call(walk, &step);
		if (!walk_add(walk, step.pc))
			return true;
		if (call) {
			step_over_call(walk, &step, call);
			continue;
		}
		if (is_last(step.pc))
			return true;
		if (!step_by_size(walk, &step) || step.sp > step.high || step.sp % sizeof(sp))
			return false;
		step.pc = word_at(step.sp - sizeof(sp));
		note_word(walk, step.sp - sizeof(sp));
	}
	return false;
}
