/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/spin.h"

spin_wait_fn spin_wait;

bool spin_lock_taken(uint32_t *lock, uint32_t owner)
{
	for (unsigned tries = 1;; tries++) {
		uint32_t seen = 0;

		if (__atomic_compare_exchange_n(lock, &seen, owner, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return true;
		if (seen == owner)
			return false;
		__builtin_ia32_pause();
		if (tries % 256 == 0 && spin_wait && spin_wait(seen))
			__atomic_compare_exchange_n(lock, &seen, 0, false, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED);
	}
}
