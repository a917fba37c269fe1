/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Corners of the language, one for each value of the first byte of standard input. What the program
 * says is what it reached: "yes: …" must be said, "no: …" never.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <perdure/perdure.h>

#include "../programs/pm.h"

#define YES(text) perdure_found("yes: " text)
#define NO(text) perdure_found("no: " text)

static void overlapping_stores(unsigned char x)
{
	unsigned char buffer[8] = { 0 };
	uint32_t word = 0x04030201;

	if (x > 2)
		return;
	memcpy(buffer + x, &word, sizeof(word));
	if (buffer[x] != 1 || buffer[x + 3] != 4 || (x && buffer[0]))
		NO("stores overlap");
	if (x == 2 && buffer[5] == 4)
		YES("stores overlap");
}

struct node {
	int value;
};

static void null_in_table(unsigned char x)
{
	static struct node node = { 5 };
	struct node *table[3] = { &node, &node, NULL };
	int value;

	if (x > 2)
		return;
	value = table[x]->value; /* crashes: 2 */
	if (x == 2)
		NO("null was followed");
	if (value == 5)
		YES("a table of pointers");
}

static long __attribute__((noinline)) arguments(int count, ...)
{
	va_list list;
	long sum = 0;

	va_start(list, count);
	for (int i = 0; i < count; i++) {
		(void)va_arg(list, double);
		sum = sum * 10 + va_arg(list, long);
	}
	va_end(list);
	return sum;
}

static void variable_arguments(unsigned char x)
{
	long sum = arguments(2, 1.0, (long)x, 2.0, 3L), again = arguments(2, 1.0, 0L, 2.0, 0L);

	if (sum % 10 != 3 || again)
		NO("arguments in wrong places");
	if (sum == 73)
		YES("arguments");
}

struct large {
	long value[5];
};

static long __attribute__((noinline)) by_value(struct large large)
{
	return large.value[3];
}

static void structures(unsigned char x)
{
	struct large large = { { 1, 2, 3, x, 5 } };

	if (by_value(large) != x)
		NO("a large structure");
}

static unsigned char bytes[16];

static void filled(unsigned char x)
{
	memset(bytes, x, sizeof(bytes));
	if (bytes[7] == 'k')
		YES("memset");
	if (bytes[3] != x)
		NO("memset");
}

static int compare(const void *a, const void *b)
{
	return *(const unsigned char *)a - *(const unsigned char *)b;
}

static void sorted(unsigned char x)
{
	unsigned char list[3] = { 200, x, 10 };

	qsort(list, 3, 1, compare);
	if (list[0] > list[1] || list[1] > list[2])
		NO("qsort");
}

static void wide_assumption(unsigned char x)
{
	uint64_t wide = (uint64_t)x << 32;

	perdure_assume(wide & 0x100000000ull);
	if (!(x & 1))
		NO("assumed");
	YES("assumed");
}

static void sizes(unsigned char x)
{
	if (x > 6)
		return;
	char text[x + 1];

	memset(text, 'a', x);
	text[x] = 0;
	if (strlen(text) != x)
		NO("an array of variable length");
	if (x == 5)
		YES("an array of variable length");
}

static void mapped_again(unsigned char x)
{
	unsigned char *page =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	page[0] = x;
	munmap(page, 4096);
	page = mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0);
	if (page[0])
		NO("a new page");
	munmap(page, 4096);
	YES("a new page");
}

static void divided(unsigned char x)
{
	if (100 / (x - 9) == 50) /* crashes: 9 */
		YES("division");
}

static void files(unsigned char x)
{
	FILE *file = fopen("scratch", "w+");
	char back = 0;

	if (!file)
		return;
	fputc(x > 99 ? 'l' : 's', file);
	rewind(file);
	back = (char)fgetc(file);
	fclose(file);
	if ((back == 'l') != (x > 99))
		NO("another path's file");
	YES("files");
}

int main(int argc, char **argv)
{
	static void (*const corner[])(unsigned char) = {
		overlapping_stores, null_in_table, variable_arguments, structures, filled, sorted,
		wide_assumption,    sizes,         mapped_again,       divided,    files,
	};
	uint64_t *pm = pm_map(argv);
	unsigned char in[2];

	(void)argc;
	*pm = 1;
	PERSIST(pm);
	if (read(STDIN_FILENO, in, 2) == 2 && in[0] < sizeof(corner) / sizeof(*corner))
		corner[in[0]](in[1]);
	return 0;
}
