/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lock for memory that several processes share. It needs no OS object, and a thread that holds
 * it may enter again (a signal handler that interrupts a hook must not deadlock its own thread).
 * Owner numbers are the system's thread ids; zero is free.
 */
#ifndef MODEL_SPIN_H
#define MODEL_SPIN_H

#include <stdbool.h>
#include <stdint.h>

/* Called after many failed tries; gives the processor away, and says whether the owner is dead. */
typedef bool (*spin_wait_fn)(uint32_t owner);
extern spin_wait_fn spin_wait;

static inline bool spin_try(uint32_t *lock, uint32_t owner)
{
	uint32_t seen = 0;

	return __atomic_compare_exchange_n(lock, &seen, owner, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/* The same when somebody holds it. */
bool spin_lock_taken(uint32_t *lock, uint32_t owner);

/* False: this thread held the lock already, and must not unlock it. */
static inline bool spin_lock(uint32_t *lock, uint32_t owner)
{
	return __builtin_expect(spin_try(lock, owner), 1) || spin_lock_taken(lock, owner);
}

/* Unlocks it if this owner holds it. */
static inline void spin_release(uint32_t *lock, uint32_t owner)
{
	__atomic_compare_exchange_n(lock, &owner, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static inline void spin_unlock(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif
