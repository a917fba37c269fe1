/* perdure-cc: only a compiler knows what it may tear */
/* command: check */
/* options: --disable cross-failure-race */
/*
 * What is never atomic: a structure that is copied, memcpy, memset, a bit-field. And what is: volatile
 * stores, builtins, locked instructions. Fixed: recovery first reads a flag that follows the flush.
 */
#include "../pm.h"

struct pair {
	uint64_t key, value;
};

struct pm {
	_Alignas(64) struct pair pair;
	_Alignas(64) char text[16];
	_Alignas(64) uint64_t zeroes[4];
	_Alignas(64) struct {
		unsigned low : 3, high : 5;
	} bits;
	_Alignas(64) volatile uint64_t flag;
	_Alignas(64) uint64_t counter;
};

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);
	volatile struct pair pair = { argc, 2 };
	uint64_t sum = 0;

	if (pm->counter + pm->flag)
		sum++;
	if (WHEN_FIXED(pm->flag &&) sum) {
		sum += pm->pair.value;    /* expect: torn-store */
		sum += pm->text[2] == 3;  /* expect: torn-store */
		sum += pm->zeroes[1] & 3; /* expect: torn-store */
		sum += pm->bits.high;     /* expect: torn-store */
		return sum == 0;
	}
	if (pm->counter)
		return 0;
	__sync_fetch_and_add(&pm->counter, 1);
	PERSIST(&pm->counter);
	{
		struct pair copy = { pair.key, pair.value };

		pm->pair = copy;
	}
	memcpy(pm->text, "0123456789", 10);
	memset(pm->zeroes, argc, sizeof(pm->zeroes));
	pm->bits.high = argc;
	CLWB(&pm->pair);
	CLWB(pm->text);
	CLWB(pm->zeroes);
	CLWB(&pm->bits);
	SFENCE();
	pm->flag = 1;
	PERSIST((void *)&pm->flag);
	return 0;
}
