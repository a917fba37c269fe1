/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hash table of segments, after the published description of CCEH (yashme.txt, Figures 3 and 10): a slot is
 * locked by a compare-and-swap of its key; then value and key are stored, plainly, and flushed together.
 */
#include "pm.h"

#include <perdure/perdure.h>

namespace
{
using Key = uint64_t;
using Value = uint64_t;
constexpr Key EMPTY = 0, SENTINEL = ~0ull;

struct Pair {
	Key key;
	Value value;
};

struct Segment {
	static constexpr unsigned SLOTS = 64;
	Pair slot[SLOTS];

	bool insert(Key key, Value value)
	{
		for (unsigned i = 0; i < SLOTS; i++) {
			Pair &pair = slot[(key * 7 + i) % SLOTS];
			Key expected = EMPTY;

			if (!__atomic_compare_exchange_n(&pair.key, &expected, SENTINEL, false,
							 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
				continue;
			pair.value = value;
			MFENCE();
			pair.key = key;
			PERSIST(&pair);
			return true;
		}
		return false;
	}

	Value get(Key key) const
	{
		for (unsigned i = 0; i < SLOTS; i++) {
			const Pair &pair = slot[(key * 7 + i) % SLOTS];

			if (pair.key == key)
				return pair.value;
		}
		return 0;
	}
};
} // namespace

int main(int argc, char **argv)
{
	auto *segment = static_cast<Segment *>(pm_map(argv));
	uint64_t sum = 0;

	if (perdure_stage() > 0) {
		for (Key key = 1; key <= 8; key++)
			sum += segment->get(key);
		return argc > 99 ? static_cast<int>(sum) : 0;
	}
	for (Key key = 1; key <= 8; key++)
		segment->insert(key, key * 3);
	return 0;
}
