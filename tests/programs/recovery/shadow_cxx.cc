/* left-out: -O0: without knowing the order, gcc makes each atomic store a fence */
/* command: check */
/* variants: 3 */
/* A vector in PM that grows by copying, published by one atomic pointer. */
#include "../pm.h"

#include <atomic>
#include <new>

namespace pm
{
struct Block {
	alignas(64) uint64_t size;
	uint64_t item[15];
};

struct Vector {
	alignas(64) std::atomic<Block *> current;
	alignas(64) uint64_t next_free;
	alignas(64) Block block[8];

	void push(uint64_t item)
	{
		Block *old = current.load();
		Block *fresh = new (&block[(old ? old - block + 1 : 0) % 8]) Block();

		if (old)
			*fresh = *old; /* expect-1: cross-failure-race */ /* expect-2: cross-failure-race */
		fresh->item[fresh->size++] = item;
#if BUG == 1 /* published first */
		current.store(fresh, std::memory_order_release);
		PERSIST(&current);
#endif
		CLWB(fresh);
		CLWB(&fresh->item[14]);
#if BUG != 2 /* without a fence before it */
		SFENCE();
#endif
#if BUG != 1
		current.store(fresh, std::memory_order_release);
		PERSIST(&current);
#endif
#if BUG == 3 /* changed in place afterwards */
		fresh->size += 0x100;
		PERSIST(fresh);
		fresh->size -= 0x100;
		PERSIST(fresh);
#endif
	}

	uint64_t sum() const
	{
		const Block *b = current.load();
		uint64_t total = 0;

		for (uint64_t i = 0; b && i < (b->size & 15); i++) /* expect-1: cross-failure-race */ /* expect-2: cross-failure-race */ /* expect-3: cross-failure-race */
			total += b->item[i]; /* expect-1: cross-failure-race */ /* expect-2: cross-failure-race */
		return total;
	}
};
} // namespace pm

int main(int argc, char **argv)
{
	auto *vector = static_cast<pm::Vector *>(pm_map(argv));

	(void)argc;
	if (vector->sum() == 12345)
		return 1;
	vector->push(1);
	vector->push(2);
	vector->push(3);
	return 0;
}
