/* command: check */
/* variants: 3 */
/*
 * Operational log: what is to be done is logged, then done; recovery does it again. The operation
 * overwrites all it touches, so it can be repeated.
 */
#include "../pm.h"

struct pm {
	_Alignas(64) uint64_t operand;
	_Alignas(64) _Atomic uint64_t operation; /* 0: none */
	_Alignas(64) uint64_t a;
	uint64_t b;
	_Alignas(64) uint64_t result;
};

static void perform(struct pm *pm, uint64_t operand)
{
#if BUG == 1 /* the operation reads what it has written: it cannot be repeated */
	pm->result += operand; /* expect-1: cross-failure-race */
#else
	pm->a = operand;
	pm->b = operand * 2;
	CLWB(&pm->a);
	pm->result = operand * 3;
#endif
	PERSIST(&pm->result);
}

static void submit(struct pm *pm, uint64_t operand)
{
	pm->operand = operand;
#if BUG != 2 /* the operand is not persistent when the operation is */
	PERSIST(&pm->operand);
#endif
	pm->operation = 1;
	PERSIST(&pm->operation);
	perform(pm, operand);
	pm->operation = 0;
	PERSIST(&pm->operation);
#if BUG == 2
	PERSIST(&pm->operand);
#endif
}

static void recover(struct pm *pm)
{
	if (!pm->operation)
		return;
#if BUG != 3 /* the operation is forgotten */
	perform(pm, pm->operand); /* expect-2: cross-failure-race */
#endif
	pm->operation = 0;
	PERSIST(&pm->operation);
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	recover(pm);
	if (pm->a + pm->result == 12345) /* expect-3: cross-failure-race */
		return 1;
	submit(pm, 7);
	submit(pm, 8);
	return 0;
}
