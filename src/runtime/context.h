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

static inline const uint64_t *context_at(struct stack_place place, uint64_t sp, uint64_t rbp)
{
	if (place.base == STACK_BY_SP)
		return (const uint64_t *)(sp + place.distance);
	if (place.base == STACK_BY_RBP)
		return (const uint64_t *)(rbp + place.distance);
	return *(const uint64_t **)(rbp - place.distance) - 1;
}

/* The first of two places for it. */
static inline struct stacks_context *context_slot(struct session_thread *thread, const uint64_t *at,
						  uint64_t value)
{
	uint64_t hash = (uintptr_t)at >> 3 ^ value >> 2 ^ value >> 9;

	return &thread->context[hash % STACKS_CONTEXTS & -(uint64_t)STACKS_WAYS];
}

static inline bool context_is(const struct stacks_context *c, const uint64_t *at, uint64_t value,
			      uint64_t rbp)
{
	uint64_t different = 0;

	if (c->at != at || c->value != value || (c->by_rbp && c->rbp != rbp) ||
	    c->image != runtime_stack_image)
		return false;
	for (unsigned i = 0; i < c->words; i += 2)
		different |= (at[c->above[i]] ^ c->word[i]) | (at[c->above[i + 1]] ^ c->word[i + 1]);
	return !different;
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
