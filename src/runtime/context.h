/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where functions were called from, as their thread has seen it a moment ago (stacks_context):
 * inline, because code that notes loads may call nothing.
 */
#ifndef RUNTIME_CONTEXT_H
#define RUNTIME_CONTEXT_H

#include "runtime/runtime.h"

/* Where a frame has its return address: so many bytes above one of these. */
enum stack_base {
	STACK_UNKNOWN,
	STACK_BY_SP,
	STACK_BY_RBP,
	STACK_BY_KEPT, /* above what lies so many bytes below rbp */
};
struct stack_place {
	uint16_t distance, base;
};

/* Null if rbp is not what it is known to be there. */
static inline const uint64_t *context_at(struct stack_place place, uint64_t sp, uint64_t rbp)
{
	enum { LARGEST = 1 << 20 };

	if (__builtin_expect(place.base == STACK_BY_SP, 1))
		return (const uint64_t *)(sp + place.distance);
	if (rbp - sp >= LARGEST || rbp + 2 * sizeof(rbp) > runtime_thread.stack_high ||
	    rbp % sizeof(rbp))
		return NULL;
	if (place.base == STACK_BY_RBP)
		return (const uint64_t *)(rbp + place.distance);
	sp = *(const uint64_t *)(rbp - place.distance);
	return sp - rbp < LARGEST && sp <= runtime_thread.stack_high && sp % sizeof(sp) == 0
		       ? (const uint64_t *)sp - 1
		       : NULL;
}

/* Where the thread keeps which stack has this one's callers and that address innermost. */
static inline struct stacks_first *context_first(struct session_thread *thread, uint32_t stack,
						 uintptr_t pc)
{
	return &thread->first[(uint32_t)(stack * 0x9e3779b1u ^ pc) % STACKS_FIRST];
}

static inline struct stacks_telling *context_telling(struct session_thread *thread, uint64_t value)
{
	return &thread->telling[(value >> 2 ^ value >> 9) % STACKS_TELLING];
}

/*
 * The first of some places for it: what it was called from says little, because programs call what
 * searches from many places.
 */
static inline struct stacks_context *context_slot(struct session_thread *thread, const uint64_t *at,
						  uint64_t value)
{
	const struct stacks_telling *telling = context_telling(thread, value);
	uint64_t hash = (uintptr_t)at >> 3 ^ value >> 2 ^ value >> 9;

	for (unsigned i = 0; i < 2; i++) {
		const uint64_t *word = at + telling->above[i];

		if ((uintptr_t)word < runtime_thread.stack_high)
			hash ^= *word >> 1 ^ *word >> 7;
	}
	return &thread->context[hash % STACKS_CONTEXTS & -(uint64_t)STACKS_WAYS];
}

/* As far as its innermost words say: it was this one a moment ago. */
static inline bool context_is_still(const struct stacks_context *c, const uint64_t *at,
				    uint64_t value, uint64_t rbp, unsigned words)
{
	uint64_t different = 0;

	if (c->at != at || c->value != value || (c->by_rbp && c->rbp != rbp) ||
	    c->image != runtime_stack_image)
		return false;
	for (unsigned i = 0; i < words; i++)
		different |= at[(int64_t)c->word[i] >> STACKS_ABOVE_SHIFT] ^ c->word[i];
	return !(different << (64 - STACKS_ABOVE_SHIFT));
}

static inline bool context_is(const struct stacks_context *c, const uint64_t *at, uint64_t value,
			      uint64_t rbp)
{
	return context_is_still(c, at, value, rbp, c->words);
}

/* That of the frame with its return address there; null if it is new. */
static inline const struct stacks_context *context_find(struct session_thread *thread,
							const uint64_t *at, uint64_t rbp)
{
	uint64_t value = *at;
	const struct stacks_context *c = context_slot(thread, at, value);

	for (unsigned i = 0; i < STACKS_WAYS; i++)
		if (context_is(&c[i], at, value, rbp))
			return &c[i];
	return NULL;
}

#endif
