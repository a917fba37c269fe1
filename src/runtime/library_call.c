/* SPDX-License-Identifier: BSD-3-Clause */
/* What a hooked library function does, told as events. */
#include "fibers/fibers.h"
#include "races/races.h"
#include "runtime/execution.h"
#include "runtime/library.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- values ---- */

static uint64_t call_object_function(uint32_t index, uint64_t first, uint64_t second)
{
	uint64_t (*function)(uint64_t, uint64_t) =
		(__typeof__(function))library_hooks_address(index);

	return function ? function(first, second) : 0;
}

static uint64_t ask(uint32_t index)
{
	int (*function)(void) = (__typeof__(function))library_hooks_address(index);

	return function ? (uint64_t)(int64_t)function() : 0;
}

/* The words that a term starts at: a parameter's, the result's, or what one of them points to. */
static const uint64_t *term_words(const struct library_term *term, const struct library_call *call)
{
	const uint64_t *words;

	if (term->source == LIBRARY_RESULT)
		words = call->result;
	else if (term->word < LIBRARY_REGISTERS)
		words = &call->word[term->word];
	else /* behind the return address */
		words = (const uint64_t *)(call->frame + 1) + (term->word - LIBRARY_REGISTERS);
	return term->dereferenced ? (const uint64_t *)words[0] : words;
}

static uint64_t object_value(const struct library_term *term, const uint64_t *words)
{
	const struct library_object *object = &runtime_session->library.object[term->object - 1];
	uint64_t second = object->words > 1 ? words[1] : 0;
	uint64_t address = call_object_function(object->address, words[0], second);

	if (!term->size || !address)
		return term->size ? 0 : address;
	return call_object_function(object->size, words[0], second);
}

static uint64_t term_value(const struct library_term *term, const struct library_call *call)
{
	const uint64_t *words;
	uint64_t value;

	if (term->source == LIBRARY_CONSTANT)
		return term->constant;
	if (term->source == LIBRARY_ANSWER)
		return ask(term->constant);
	words = term_words(term, call);
	if (!words)
		return 0;
	value = term->object ? object_value(term, words) : words[0];
	if (term->narrow)
		value = (uint64_t)(int64_t)(int32_t)value;
	return term->pm ? in_window((const void *)value) : value;
}

static uint64_t evaluate(const struct library_value *value, const struct library_call *call)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < value->terms; i++) {
		uint64_t term = term_value(&value->term[i], call);

		switch (value->term[i].operation) {
		case '-':
			sum -= term;
			break;
		case '*':
			sum *= term;
			break;
		default:
			sum += term;
		}
	}
	return sum;
}

static bool holds(const struct library_effect *effect, const struct library_call *call)
{
	for (unsigned i = 0; i < effect->conditions; i++) {
		const struct library_condition *condition = &effect->condition[i];
		uint64_t value = evaluate(&condition->value, call) & condition->mask;

		if ((value == (uint64_t)condition->equals) == condition->negated)
			return false;
	}
	return true;
}

/* ---- effects ---- */

/* Does the function's own code tell this, if it was built with perdure-cc? */
static bool is_memory_effect(const struct library_effect *effect)
{
	switch (effect->verb) {
	case LIBRARY_LOAD:
	case LIBRARY_STORE:
	case LIBRARY_FLUSH:
	case LIBRARY_FENCE:
	case LIBRARY_PERSIST:
	case LIBRARY_DURABLE:
	case LIBRARY_VOLATILE:
		return true;
	default:
		return false;
	}
}

static void durable(uint64_t address, uint64_t size, bool pages, const struct frame *frame)
{
	uint64_t start = pages ? address & ~4095ull : address;

	if (in_window((void *)address) && size)
		event_persist((void *)start, address + size - start, frame);
}

static void persist(void *p, uint64_t size, bool full, const struct frame *frame)
{
	if (!in_window(p))
		return;
	event_flush(p, size, PERDURE_CLWB, frame);
	event_fence(full ? PERDURE_MFENCE : PERDURE_SFENCE, frame);
}

static void memory_effect(const struct library_effect *effect, uint64_t address, uint64_t size,
			  const struct frame *frame)
{
	void *p = (void *)address;

	switch (effect->verb) {
	case LIBRARY_LOAD:
		event_load(p, size, frame);
		break;
	case LIBRARY_STORE:
		runtime_thread.own_store = effect->options & LIBRARY_OWN;
		if (effect->options & LIBRARY_NONTEMPORAL)
			event_streamed(p, size, frame);
		else
			event_stored(p, size, frame);
		runtime_thread.own_store = false;
		break;
	case LIBRARY_FLUSH:
		event_flush(p, size, PERDURE_CLWB, frame);
		break;
	case LIBRARY_FENCE:
		event_fence(effect->options & LIBRARY_FULL ? PERDURE_MFENCE : PERDURE_SFENCE,
			    frame);
		break;
	case LIBRARY_PERSIST:
		persist(p, size, effect->options & LIBRARY_FULL, frame);
		break;
	case LIBRARY_DURABLE:
		durable(address, size, effect->options & LIBRARY_PAGES, frame);
		break;
	default: /* LIBRARY_VOLATILE */
		event_volatile(p, size);
	}
}

static void semantic_effect(const struct library_effect *effect, const uint64_t *value,
			    const struct library_call *call)
{
	const struct frame *frame = call->frame;
	bool no_flush = effect->options & LIBRARY_NO_FLUSH;
	void *p = (void *)value[0];

	switch (effect->verb) {
	case LIBRARY_TX_BEGIN:
		event_tx_begin(effect->values ? p : NULL, frame);
		break;
	case LIBRARY_TX_ADD:
		event_tx_add(p, value[1],
			     (no_flush ? PERDURE_TX_NO_FLUSH : 0) |
				     (effect->options & LIBRARY_NO_SNAPSHOT ? PERDURE_TX_NO_SNAPSHOT
									    : 0),
			     frame);
		break;
	case LIBRARY_TX_COMMIT:
	case LIBRARY_TX_ABORT:
		event_tx_finish(effect->verb == LIBRARY_TX_COMMIT, !call->hook->instrumented,
				frame);
		break;
	case LIBRARY_TX_END:
		event_tx_end(!call->hook->instrumented, frame);
		break;
	case LIBRARY_ALLOC:
		event_alloc(p, value[1],
			    (no_flush ? PERDURE_TX_NO_FLUSH : 0) |
				    (effect->options & LIBRARY_ATOMIC ? PERDURE_TX_ATOMIC : 0),
			    frame);
		if (runtime_logs && !(effect->options & LIBRARY_FILLED) && in_window(p))
			log_alloc(place_in_window(p), value[1], call->logged, frame);
		if (runtime_recovers && in_window(p))
			recovery_allocated(place_in_window(p), value[1]);
		break;
	case LIBRARY_FREE:
		event_free(p, effect->values > 1 ? value[1] : 0, frame);
		break;
	case LIBRARY_RESERVE:
	case LIBRARY_DEFER_FREE:
		event_reserve(p, value[1], value[2], effect->verb == LIBRARY_DEFER_FREE, frame);
		break;
	case LIBRARY_PUBLISH:
	case LIBRARY_CANCEL:
		event_publish(value[0], value[1], value[2], effect->verb == LIBRARY_CANCEL);
		break;
	case LIBRARY_DISCARD:
		event_discard(call->started);
		break;
	case LIBRARY_LOCK:
		event_lock(p, true, frame);
		break;
	case LIBRARY_UNLOCK:
		event_lock(p, false, frame);
		break;
	case LIBRARY_VERIFY_BEGIN:
	case LIBRARY_VERIFY_END:
		if (runtime_recovers)
			recovery_verify(effect->verb == LIBRARY_VERIFY_BEGIN, frame);
		break;
	default: /* LIBRARY_ORDER */
		event_fence(PERDURE_RMW_FENCE, frame);
		if (runtime_races)
			races_synchronise((const void *)call->word[0]);
		if (causality_on)
			causality_synchronise((const void *)call->word[0]);
	}
}

static void judge_own(const struct library_effect *effect, const uint64_t *value,
		      const struct frame *frame)
{
	if (!(effect->options & LIBRARY_OWN))
		transactions_judge((void *)value[0], value[1], frame);
}

static void happen(const struct library_effect *effect, const uint64_t *value,
		   struct library_call *call)
{
	if (effect->verb == LIBRARY_GIVES)
		call->result[0] = (uint64_t)library_hooks_wrap(
			&runtime_session->library.function[effect->gives], (void *)call->result[0]);
	else if (call->hook->instrumented && effect->verb == LIBRARY_STORE)
		judge_own(effect, value, call->frame);
	else if (is_memory_effect(effect))
		memory_effect(effect, value[0], value[1], call->frame);
	else
		semantic_effect(effect, value, call);
}

static void perform(const struct library_effect *effect, struct library_call *call, bool before)
{
	uint64_t value[3] = { 0 };
	bool waits = before && effect->on_result && call->waiting < LIBRARY_WAITING;

	/* What a transaction says about a store matters also if the store itself will be told. */
	if (call->hook->instrumented && is_memory_effect(effect) && effect->verb != LIBRARY_STORE)
		return;
	if (!waits && !holds(effect, call))
		return;
	for (unsigned i = 0; i < effect->values; i++)
		value[i] = evaluate(&effect->value[i], call);
	if (waits)
		call->wait[call->waiting++] =
			(struct library_waiting){ effect - runtime_session->library.effect,
						  { value[0], value[1], value[2] } };
	else
		happen(effect, value, call);
}

/* The result is there: now it is clear whether they happen. */
static void perform_waiting(struct library_call *call)
{
	for (unsigned i = 0; i < call->waiting; i++) {
		const struct library_effect *effect =
			&runtime_session->library.effect[call->wait[i].effect];

		if (holds(effect, call))
			happen(effect, call->wait[i].value, call);
	}
}

/* ---- the call ---- */

static const struct library_effect *effect_at(const struct library_call *call, uint64_t index)
{
	return &runtime_session->library.effect[call->hook->function->effect + index];
}

/* The effect that says when, or whether, the function runs; the number of effects if none does. */
static unsigned find_call(const struct library_call *call)
{
	unsigned count = call->hook->function->effects, i;

	for (i = 0; i < count; i++)
		if (effect_at(call, i)->verb <= LIBRARY_RETURNS)
			break;
	return i;
}

/* An address that is no PM is the library's own business. */
static bool concerns_pm(const struct library_call *call, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const struct library_effect *effect = effect_at(call, i);

		if (effect->values)
			return in_window((void *)evaluate(&effect->value[0], call));
	}
	return true;
}

static bool is_skipped(struct library_call *call, unsigned at)
{
	const struct library_effect *effect = effect_at(call, at);

	if (call->hook->instrumented || !holds(effect, call))
		return false;
	if (effect->verb == LIBRARY_RETURNS) {
		call->result[0] = evaluate(&effect->value[0], call);
		return true;
	}
	call->result[0] = 0;
	return effect->verb == LIBRARY_NO_CALL && concerns_pm(call, at);
}

/* Calls that have been left, by a return or by a jump, lie below the stack as it is now. */
static void drop_left(struct thread *thread, const struct frame *frame)
{
	while (thread->calls && thread->call[thread->calls - 1].frame <= frame)
		thread->calls--;
}

static void note_call(const struct library_call *call)
{
	struct thread *thread = &runtime_thread;
	uint32_t library = call->hook->function->library;
	bool instrumented = call->hook->instrumented;

	if (!runtime_session->library.library[library].transactional && !call->hook->patched)
		return;
	if (thread->calls < THREAD_CALLS)
		thread->call[thread->calls++] = (struct thread_call){
			.frame = call->frame,
			.entry = instrumented ? 0 : stack_entry(call->hook->real),
			.function = call->hook->patched ? stack_entry(call->hook->real) : 0,
			.low = call->hook->low,
			.high = call->hook->high,
			.transactional = runtime_session->library.library[library].transactional,
		};
}

bool library_is_inside(const struct frame *frame)
{
	struct thread *thread = &runtime_thread;

	if (!thread->calls)
		return false;
	drop_left(thread, frame);
	for (unsigned i = 0; i < thread->calls; i++)
		if (thread->call[i].transactional)
			return true;
	return false;
}

void library_jump(const struct frame *frame)
{
	const struct thread *thread = &runtime_thread;
	const struct thread_call *call;

	if (!library_is_inside(frame))
		return;
	call = &thread->call[thread->calls - 1];
	if (frame->return_address - call->low < call->high - call->low)
		event_tx_finish(false, call->entry != 0, frame);
}

/* The kernel reads the signal set before it looks at what is to be done with it. */
static bool is_readable(uintptr_t address)
{
	return syscall(SYS_rt_sigprocmask, ~0, address, NULL, 8) < 0 && errno != EFAULT;
}

/*
 * Nobody knows how many arguments a variadic function has on the stack: as many words are handed on
 * as there can be, but none that cannot be read.
 */
static uint64_t readable_words(const struct frame *frame)
{
	enum { MOST = 512, PAGE = 4096 };
	const struct thread *thread = &runtime_thread;
	uintptr_t start = (uintptr_t)(frame + 1), limit = start + MOST * sizeof(uint64_t), end;

	if (start >= thread->stack_low && start < thread->stack_high)
		return ((limit < thread->stack_high ? limit : thread->stack_high) - start) /
		       sizeof(uint64_t);
	/* Another stack than the thread's own: page by page. */
	end = (start | (PAGE - 1)) + 1;
	while (end < limit && is_readable(end))
		end += PAGE;
	return ((limit < end ? limit : end) - start) / sizeof(uint64_t);
}

/* A prebuilt library with transactions has its own data in PM. */
static bool has_own_data(const struct library_call *call)
{
	return !call->hook->instrumented &&
	       runtime_session->library.library[call->hook->function->library].transactional;
}

static void watch_foreign(const struct library_call *call)
{
	if (!runtime_execution || !has_own_data(call))
		return;
	if (runtime_logs)
		foreign_compare();
	else
		execution_note_input(INPUT_FOREIGN);
}

/*
 * The end of a transaction writes back what the program stored before it lets go of its log; and
 * stores that the model tells of are no unknown ones.
 */
static bool is_told_first(const struct library_call *call)
{
	for (unsigned i = 0; i < call->hook->function->effects; i++) {
		enum library_verb verb = effect_at(call, i)->verb;

		if (verb == LIBRARY_TX_COMMIT || verb == LIBRARY_TX_END || verb == LIBRARY_STORE)
			return true;
	}
	return false;
}

static bool takes_lock(const struct library_call *call)
{
	for (unsigned i = 0; i < call->hook->function->effects; i++)
		if (effect_at(call, i)->verb == LIBRARY_LOCK)
			return true;
	return false;
}

HIDDEN void *library_before(struct library_call *call, uint32_t index, const struct frame *frame);
HIDDEN void library_after(struct library_call *call);

void *library_before(struct library_call *call, uint32_t index, const struct frame *frame)
{
	const struct library_hook *hook = library_hook(index);
	int saved_errno = errno;
	unsigned at;

	call->hook = hook;
	call->frame = frame;
	call->stack_words =
		hook->function->variadic ? readable_words(frame) : hook->function->stack_words;
	call->waiting = 0;
	call->started = runtime_thread.shared ? runtime_thread.shared->lines.event + 1 : 0;
	call->passive =
		!hook->instrumented && frame->return_address - hook->low < hook->high - hook->low;
	if (call->passive)
		return hook->real;
	if (runtime_execution)
		watch_foreign(call);
	call->logged = runtime_logs ? runtime_session->executions.log.events : 0;
	drop_left(&runtime_thread, frame);
	call->next = 0;
	at = find_call(call);
	if (at < hook->function->effects) { /* otherwise all effects are after the call */
		for (; call->next < at; call->next++)
			perform(effect_at(call, call->next), call, true);
		call->next++;
		if (is_skipped(call, at)) {
			errno = saved_errno;
			return NULL;
		}
	}
	if (runtime_races && takes_lock(call))
		races_before_lock(frame->return_address);
	note_call(call);
	errno = saved_errno;
	return hook->real;
}

void library_after(struct library_call *call)
{
	int saved_errno = errno;

	if (call->passive)
		return;
	drop_left(&runtime_thread, call->frame);
	if (runtime_execution && !is_told_first(call))
		watch_foreign(call);
	perform_waiting(call);
	for (; call->next < call->hook->function->effects; call->next++)
		perform(effect_at(call, call->next), call, false);
	if (runtime_execution && is_told_first(call))
		watch_foreign(call);
	errno = saved_errno;
}
