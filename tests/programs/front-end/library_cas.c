/* SPDX-License-Identifier: BSD-3-Clause */
/* A compare-and-swap by libatomic stores only if it succeeds. */
/* flags: -latomic -Wno-atomic-alignment */
#include "../pm.h"

struct big {
	long a, b, c;
};

int main(int argc, char **argv)
{
	struct big *p = pm_map(argv), wrong = { 9, 9, 9 }, none = { 0, 0, 0 }, value = { argc, 2, 3 };

	__atomic_compare_exchange(p, &wrong, &value, 0, 5, 5);
	__atomic_compare_exchange(p + 8, &none, &value, 0, 5, 5); /* expect: missing-flush */
	WHEN_FIXED(CLFLUSH(p + 8));
	return 0;
}
