/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executes the snippets of generate.c, and prints for each of them a hash of all registers, flags
 * and memory, and the signal that it got; one for all of them is appended to a file, because not
 * all that is printed is shown: execute POOL RESULTS [SNIPPET].
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { SIZE = 4096 * 2, FLAGS = 0x8d5 };

extern uint64_t snippet_count, *registers[];
extern void *snippets[];
__attribute__((aligned(64))) unsigned char static_memory[SIZE];

/* What execute.S loads and keeps. */
struct machine {
	uint64_t general[16], flags;
	__attribute__((aligned(64))) unsigned char vectors[32][64];
	uint64_t masks[8];
};
struct machine machine, result;
void *snippet_to_run;

void run_snippet(void); /* execute.S */
void snippet_end(void);

static volatile int got, where;
char has_masks;
static int vectors = 16, vector_size = 32;

/* Leaves the snippet with the registers as they are. */
static void leave(int number, siginfo_t *info, void *context)
{
	ucontext_t *c = context;

	(void)info;
	got = number;
	where = (int)((uintptr_t)c->uc_mcontext.gregs[REG_RIP] - (uintptr_t)snippet_to_run);
	c->uc_mcontext.gregs[REG_RIP] = (greg_t)snippet_end;
}

static uint64_t hash(uint64_t h, const void *bytes, size_t size)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < size; i++)
		h = (h ^ b[i]) * 0x100000001b3ull;
	return h;
}

static void prepare(unsigned char *pm, uint64_t i)
{
	for (unsigned k = 0; k < SIZE; k++)
		static_memory[k] = pm[k] = (unsigned char)(k * 7 + i);
	memset(&machine, 0, sizeof(machine));
	memcpy(machine.general, registers[i], sizeof(machine.general));
	machine.flags = 0x202 | (i * 2654435761u & FLAGS);
	for (unsigned v = 0; v < 32; v++)
		for (unsigned k = 0; k < 64; k++)
			machine.vectors[v][k] =
				k % 4 == 1 || k % 4 == 0 ? (unsigned char)(v + k + i) % 61 : 0;
	for (unsigned k = 0; k < 8; k++)
		machine.masks[k] = 0x5a5a5a5a00ff00f5ull >> k;
	snippet_to_run = snippets[i];
	got = where = 0;
	memset(&result, 0, sizeof(result));
}

static void *do_nothing(void *unused)
{
	return unused;
}

static int report(const char *path, uint64_t all)
{
	FILE *results = fopen(path, "a");

	if (!results)
		return 4;
	fprintf(results, "%016lx\n", all);
	return fclose(results) ? 4 : 0;
}

int main(int argc, char **argv)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };
	struct sigaction action = { .sa_sigaction = leave,
				    .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
	static char stack[65536];
	stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
	int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
	uint64_t all = 0;
	unsigned char *pm;
	pthread_t thread; /* with which all that there is about threads begins */

	if (argc < 3 || fd < 0 || ftruncate(fd, SIZE) < 0 ||
	    pthread_create(&thread, NULL, do_nothing, NULL) || pthread_join(thread, NULL))
		return 2;
	pm = mmap((void *)0x200000000000, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pm != (void *)0x200000000000)
		return 3;
	if (__builtin_cpu_supports("avx512bw")) {
		has_masks = 1;
		vectors = 32;
		vector_size = 64;
	}
	sigaltstack(&other, NULL);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &action, NULL);
	for (uint64_t i = argc > 3 ? strtoul(argv[3], NULL, 10) : 0; i < snippet_count; i++) {
		uint64_t h = 0xcbf29ce484222325ull;

		prepare(pm, i);
		run_snippet();
		prepare(pm,
			i); /* once more: the first hit may be told in another way than others */
		run_snippet();
		result.flags &= FLAGS;
		if (got) { /* registers that nobody needs any more may be anything then */
			static const int scratch[] = { 0, 1, 2, 6, 7, 8, 9, 10, 11 };

			for (unsigned k = 0; k < sizeof(scratch) / sizeof(*scratch); k++)
				result.general[scratch[k]] = 0;
			result.flags = 0;
		}
		h = hash(h, result.general, sizeof(result.general));
		h = hash(h, &result.flags, sizeof(result.flags));
		for (int v = 0; v < vectors; v++)
			h = hash(h, result.vectors[v], vector_size);
		h = hash(h, result.masks, sizeof(result.masks));
		h = hash(h, static_memory, SIZE);
		h = hash(h, pm, SIZE);
		printf("%lu %016lx signal %d at %d\n", i, h, got, where);
		all = hash(all, &h, sizeof(h));
		if (argc > 3) {
			for (unsigned r = 0; r < 16; r++)
				printf("r%u %016lx -> %016lx\n", r, machine.general[r],
				       result.general[r]);
			printf("flags %lx -> %lx\n", machine.flags, result.flags);
			for (unsigned k = 0; k < SIZE; k++)
				if (static_memory[k] != (unsigned char)(k * 7 + i) ||
				    pm[k] != (unsigned char)(k * 7 + i))
					printf("memory %u: %02x %02x\n", k, static_memory[k],
					       pm[k]);
			return 0;
		}
	}
	return report(argv[2], all);
}
