/* SPDX-License-Identifier: BSD-3-Clause */
/* A locked instruction is a fence, on whatever address, even if the exchange fails. */
#include "../pm.h"

#include <stdatomic.h>

static atomic_long counter;

int main(int argc, char **argv)
{
	long *p = pm_map(argv), wrong = 77;
	_Atomic long *atomic_pm = (_Atomic long *)(p + 32);

	p[0] = argc;
	CLWB(p);
	atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
	p[8] = argc;
	CLWB(p + 8);
	atomic_compare_exchange_strong(&counter, &wrong, 5);
	p[16] = argc;
	CLWB(p + 16);
	atomic_store(&counter, 3);
	p[24] = argc;
	CLWB(p + 24);
	__asm__ volatile("lock addq $1, %0" : "+m"(*(long *)&counter)::"memory");
	atomic_store(atomic_pm, 9);
	CLWB(atomic_pm);
	atomic_fetch_add(atomic_pm + 8, 1);
	CLWB(atomic_pm + 8);
	atomic_thread_fence(memory_order_seq_cst);
	p[128] = argc; /* expect: missing-fence */
	CLWB(p + 128);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&counter, 3, memory_order_release);
	WHEN_FIXED(MFENCE());
	return 0;
}
