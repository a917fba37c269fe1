/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executes a little program of accesses to PM, given as words, and after a crash another one, that
 * reads; what it has read is told as a finding. See enumerate.py for what the words mean.
 *
 *   interpreter POOL BEFORE AFTER [AFTER-THE-SECOND-CRASH]
 */
#include "../programs/pm.h"

#include <immintrin.h>
#include <perdure/perdure.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdatomic.h>

enum { WORDS = 256 };

static unsigned char *pm;
static atomic_int turn, dram;
static char *word[WORDS];
static int words;

static void store(char *arguments, char kind)
{
	unsigned offset, size;
	unsigned long value;
	unsigned char bytes[64];
	void *p;

	sscanf(arguments, "%u,%u=%lu", &offset, &size, &value);
	p = pm + offset;
	memset(bytes, (int)value, sizeof(bytes));
	if (kind == 'n')
		_mm_stream_si64(p, (long long)(value * 0x0101010101010101ul));
	else if (size == 1)
		*(volatile uint8_t *)p = bytes[0];
	else if (size == 2)
		*(volatile uint16_t *)p = *(uint16_t *)bytes;
	else if (size == 4)
		*(volatile uint32_t *)p = *(uint32_t *)bytes;
	else if (size == 8)
		*(volatile uint64_t *)p = *(uint64_t *)bytes;
	else
		memcpy(p, bytes, size);
}

static void locked(char *arguments, char kind)
{
	unsigned long value;
	unsigned offset;
	uint64_t expected = 0xfefefefefefefefe;

	sscanf(arguments, "%u=%lu", &offset, &value);
	value *= 0x0101010101010101ul;
	if (kind == 'x')
		__atomic_exchange_n((uint64_t *)(pm + offset), value, __ATOMIC_SEQ_CST);
	else
		__atomic_compare_exchange_n((uint64_t *)(pm + offset), &expected, value, 0,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void execute(char *text)
{
	char kind = text[0], *arguments = text + 1;

	switch (kind) {
	case 'w':
	case 'n':
		store(arguments, kind);
		break;
	case 'x':
	case 'c':
		locked(arguments, kind);
		break;
	case 'f':
		CLFLUSH(pm + atoi(arguments));
		break;
	case 'o':
		CLFLUSHOPT(pm + atoi(arguments));
		break;
	case 'b':
		CLWB(pm + atoi(arguments));
		break;
	case 's':
		SFENCE();
		break;
	case 'm':
		MFENCE();
		break;
	case 'r':
		atomic_fetch_add(&dram, 1);
		break;
	}
}

/* Threads take turns as the words say: "1:…" is for the second one. Waiting is no fence. */
static void *run(void *number)
{
	for (int i = 0; i < words; i++) {
		if (word[i][0] - '0' != (int)(long)number)
			continue;
		while (atomic_load_explicit(&turn, memory_order_relaxed) != i)
			sched_yield();
		execute(word[i] + 2);
		atomic_store_explicit(&turn, i + 1, memory_order_relaxed);
	}
	return NULL;
}

static void split(char *text)
{
	for (char *p = strtok(text, " "); p && words < WORDS; p = strtok(NULL, " "))
		word[words++] = p;
}

static void before(char *program)
{
	pthread_t thread;
	bool two = false;

	split(program);
	for (int i = 0; i < words; i++)
		two |= word[i][0] == '1';
	if (two)
		pthread_create(&thread, NULL, run, (void *)1);
	run(NULL);
	if (two)
		pthread_join(thread, NULL);
}

/*
 * "8,4" reads 4 bytes; "8,1=3?2" skips the next two words unless the byte is 3. Others are executed
 * as before the crash.
 */
static void after(char *program, bool tells)
{
	char text[256] = "";
	int length = 0;

	split(program);
	for (int i = 0; i < words; i++) {
		unsigned offset, size, wanted, skipped = 0;
		unsigned char bytes[8] = { 0 };
		int fields;

		if (word[i][1] == ':') {
			execute(word[i] + 2);
			continue;
		}
		fields = sscanf(word[i], "%u,%u=%u?%u", &offset, &size, &wanted, &skipped);

		switch (size) {
		case 1:
			bytes[0] = *(volatile uint8_t *)(pm + offset);
			break;
		case 2:
			*(uint16_t *)bytes = *(volatile uint16_t *)(pm + offset);
			break;
		case 4:
			*(uint32_t *)bytes = *(volatile uint32_t *)(pm + offset);
			break;
		default:
			*(uint64_t *)bytes = *(volatile uint64_t *)(pm + offset);
		}
		for (unsigned k = 0; k < size; k++)
			length += snprintf(text + length, sizeof(text) - length, "%x", bytes[k]);
		if (fields == 4 && bytes[0] != wanted)
			i += skipped;
		length += snprintf(text + length, sizeof(text) - length, " ");
	}
	if (tells)
		perdure_found(text);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	pm = pm_map(argv);
	if (perdure_stage() == 0)
		before(argv[2]);
	else /* the last of these tells what it reads */
		after(argv[2 + perdure_stage()], argc == 3 + perdure_stage());
	return 0;
}
