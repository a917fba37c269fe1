/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Instructions that a hook may do in place of the processor: the same code on ordinary memory and
 * on PM, often enough that its stack is known, with the same values. Registers, flags and memory
 * are the same. locked POOL
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct state {
	uint64_t rax, source, flags;
	uint64_t memory[2];
};

#define FLAGS 0x8d5ull

#define OPERATION(name, instruction)                                                               \
	__attribute__((noinline)) static void name(struct state *s, void *p)                       \
	{                                                                                          \
		uint64_t rax = s->rax, rdx = s->source, flags = s->flags;                          \
		__asm__ volatile("push %[f]\n\tpopfq\n\t" instruction "\n\tpushfq\n\tpop %[f]"     \
				 : "+a"(rax), "+d"(rdx), [f] "+r"(flags)                           \
				 : "D"(p)                                                          \
				 : "cc", "memory");                                                \
		s->rax = rax;                                                                      \
		s->source = rdx;                                                                   \
		s->flags = flags & FLAGS;                                                          \
	}

OPERATION(swap_8, "xchgq %%rdx, 3(%%rdi)")
OPERATION(swap_4, "xchgl %%edx, 3(%%rdi)")
OPERATION(swap_2, "xchgw %%dx, 3(%%rdi)")
OPERATION(swap_1, "xchgb %%dl, 3(%%rdi)")
OPERATION(swap_high, "xchgb %%dh, 3(%%rdi)")
OPERATION(compare_8, "lock cmpxchgq %%rdx, 4(%%rdi)")
OPERATION(compare_4, "lock cmpxchgl %%edx, 4(%%rdi)")
OPERATION(compare_2, "lock cmpxchgw %%dx, 4(%%rdi)")
OPERATION(compare_1, "lock cmpxchgb %%dl, 4(%%rdi)")
OPERATION(add_8, "lock xaddq %%rdx, (%%rdi)")
OPERATION(add_4, "lock xaddl %%edx, (%%rdi)")
OPERATION(add_2, "lock xaddw %%dx, (%%rdi)")
OPERATION(add_1, "lock xaddb %%dl, (%%rdi)")
OPERATION(add_to_itself, "lock xaddq %%rax, (%%rdi)")
OPERATION(compare_itself, "lock cmpxchgl %%eax, (%%rdi)")
OPERATION(move_8, "movq %%rdx, 5(%%rdi)")
OPERATION(move_4, "movl %%edx, 5(%%rdi)")
OPERATION(move_2, "movw %%dx, 5(%%rdi)")
OPERATION(move_1, "movb %%dl, 5(%%rdi)")
OPERATION(move_high, "movb %%dh, 5(%%rdi)")
OPERATION(move_number, "movq $-77, 5(%%rdi)")

#define SIZES(name, instruction)                                                                   \
	OPERATION(name##_8, "lock " instruction "q %%rdx, 3(%%rdi)")                               \
	OPERATION(name##_4, "lock " instruction "l %%edx, 3(%%rdi)")                               \
	OPERATION(name##_2, "lock " instruction "w %%dx, 3(%%rdi)")                                \
	OPERATION(name##_1, "lock " instruction "b %%dl, 3(%%rdi)")                                \
	OPERATION(name##_number, "lock " instruction "q $-77, 3(%%rdi)")                           \
	OPERATION(name##_small, "lock " instruction "w $-77, 3(%%rdi)")
#define NAMES(name) name##_8, name##_4, name##_2, name##_1, name##_number, name##_small

SIZES(plus, "add")
SIZES(minus, "sub")
SIZES(and, "and")
SIZES(or, "or")
SIZES(xor, "xor")
OPERATION(increment_8, "lock incq 3(%%rdi)")
OPERATION(increment_1, "lock incb 3(%%rdi)")
OPERATION(decrement_4, "lock decl 3(%%rdi)")
OPERATION(decrement_2, "lock decw 3(%%rdi)")
OPERATION(plus_carry, "lock adcq %%rdx, 3(%%rdi)")
OPERATION(plus_high, "lock addb %%dh, 3(%%rdi)")

static void (*const operation[])(struct state *, void *) = {
	swap_8,         swap_4,       swap_2,     swap_1,    swap_high,  compare_8,   compare_4,
	compare_2,      compare_1,    add_8,      add_4,     add_2,      add_1,       add_to_itself,
	compare_itself, move_8,       move_4,     move_2,    move_1,     move_high,   move_number,
	NAMES(plus),    NAMES(minus), NAMES(and), NAMES(or), NAMES(xor), increment_8, increment_1,
	decrement_4,    decrement_2,  plus_carry, plus_high,
};

static uint64_t next(uint64_t *state)
{
	static const uint64_t often[] = { 0, 1, ~0ull, 1ull << 63, 0x80, 0x7fff, 0xffffffff };

	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 62 ? *state >> 7 : often[(*state >> 40) % 7];
}

int main(int argc, char **argv)
{
	enum { TIMES = 3000, OPERATIONS = sizeof(operation) / sizeof(*operation) };
	_Alignas(64) static uint64_t ordinary[2];
	int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0600);
	uint64_t *pm, random = 1;
	unsigned different = 0;

	if (fd < 0 || ftruncate(fd, 4096) < 0)
		return 2;
	pm = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (unsigned i = 0; i < TIMES * OPERATIONS; i++) {
		struct state before = { next(&random),
					next(&random),
					next(&random) & FLAGS,
					{ next(&random), next(&random) } };
		struct state one, other;

		before.flags |= 2;
		if (i & 1)
			before.memory[0] = before.rax, before.memory[1] = before.rax >> 32;
		one = other = before;
		memcpy(ordinary, before.memory, sizeof(ordinary));
		memcpy(pm, before.memory, sizeof(ordinary));
		operation[i % OPERATIONS](&one, ordinary);
		operation[i % OPERATIONS](&other, pm);
		memcpy(one.memory, ordinary, sizeof(ordinary));
		memcpy(other.memory, pm, sizeof(ordinary));
		different += memcmp(&one, &other, sizeof(one)) != 0;
	}
	printf("%u different of %u\n", different, TIMES * OPERATIONS);
	return different != 0;
}
