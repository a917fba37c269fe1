/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory always holds what symbolic bytes are under the model. So code that knows nothing of them
 * can read them, and what it writes over them is noticed: the byte is not what it should be.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "model/mix.h"
#include "symbolic/symbolic.h"

enum { PAGE = 1 << SYMBOLIC_PAGE_SHIFT, SHADOWS = 1 << 14 };

struct shadow {
	uint64_t number; /* of the page, + 1 */
	uint32_t used;
	uint32_t *byte;
};

PUBLIC uint8_t __perdure_symbolic_pages[SYMBOLIC_PAGES];
static struct shadow shadow[SHADOWS];
static uint16_t page_list[SHADOWS]; /* those in use */
static unsigned pages;

static struct shadow *find(uint64_t number, bool make)
{
	uint32_t at = spread(number);

	for (unsigned tries = 0; tries < SHADOWS; tries++, at++) {
		struct shadow *s = &shadow[at % SHADOWS];

		if (s->number == number + 1)
			return s;
		if (s->number)
			continue;
		if (!make)
			return NULL;
		s->byte = (void *)syscall(SYS_mmap, NULL, PAGE * sizeof(*s->byte),
					  PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
					  0L);
		if ((uintptr_t)s->byte > -4096ul)
			return NULL;
		s->number = number + 1;
		page_list[pages++] = (uint16_t)(s - shadow);
		return s;
	}
	return NULL;
}

static uint8_t *flag_of(uint64_t number)
{
	return &__perdure_symbolic_pages[number % SYMBOLIC_PAGES];
}

/* The expression of a byte, if it still is what it was stored as. */
static uint32_t get(uint64_t address)
{
	struct shadow *s;
	uint32_t e;

	if (!*flag_of(address / PAGE))
		return 0;
	s = find(address / PAGE, false);
	e = s ? s->byte[address % PAGE] : 0;
	if (e && *(const uint8_t *)address != expression_value(e)) {
		s->byte[address % PAGE] = 0;
		s->used--;
		return 0;
	}
	return e;
}

/* The flag stays: another page may have it, too. */
static void set(uint64_t address, uint32_t e)
{
	struct shadow *s;

	if (!e && !*flag_of(address / PAGE))
		return;
	s = find(address / PAGE, e != 0);
	if (!s)
		return;
	s->used += (e != 0) - (s->byte[address % PAGE] != 0);
	s->byte[address % PAGE] = e;
	if (!e)
		return;
	*flag_of(address / PAGE) = 1;
	if (address % PAGE < 8) /* an access that starts before it */
		*flag_of(address / PAGE - 1) = 1;
}

static bool any(uint64_t address, uint64_t size)
{
	for (uint64_t page = address / PAGE; page <= (address + size - 1) / PAGE; page++)
		if (*flag_of(page))
			return true;
	return false;
}

bool memory_is_symbolic(const void *p, size_t size)
{
	uint64_t address = (uintptr_t)p;

	if (!size || !any(address, size))
		return false;
	for (size_t i = 0; i < size; i++)
		if (get(address + i))
			return true;
	return false;
}

uint32_t memory_load(const void *p, unsigned size)
{
	uint64_t address = (uintptr_t)p;
	uint32_t result = 0;

	if (!memory_is_symbolic(p, size))
		return 0;
	for (unsigned i = size; i-- > 0;) {
		uint32_t byte = get(address + i);

		if (!byte)
			byte = expression_constant(8, *(const uint8_t *)(address + i));
		result = result ? expression_make(SYMBOLIC_CONCAT, 0, result, byte) : byte;
	}
	return result;
}

void memory_store(const void *p, unsigned size, uint32_t value)
{
	uint64_t address = (uintptr_t)p;

	if (!value) {
		memory_clear(p, size);
		return;
	}
	if (expression_at(value)->width < 8 * size)
		value = expression_extend(SYMBOLIC_ZEXT, value, 8 * size);
	for (unsigned i = 0; i < size; i++) {
		uint32_t byte = expression_extract(value, 8 * i, 8);

		set(address + i, expression_at(byte)->only ? byte : 0);
	}
}

void memory_clear(const void *p, size_t size)
{
	uint64_t address = (uintptr_t)p;

	if (!size || !any(address, size))
		return;
	for (size_t i = 0; i < size; i++)
		set(address + i, 0);
}

void memory_copy(void *to, const void *from, size_t size)
{
	uint64_t target = (uintptr_t)to, source = (uintptr_t)from;

	if (!size || target == source)
		return;
	if (!any(source, size)) {
		memory_clear(to, size);
		return;
	}
	if (target < source)
		for (size_t i = 0; i < size; i++)
			set(target + i, get(source + i));
	else
		for (size_t i = size; i-- > 0;)
			set(target + i, get(source + i));
}

/* ---- fixing ---- */

static void fix_byte(uint64_t address)
{
	uint32_t e = get(address);

	if (!e)
		return;
	path_assume(
		expression_make(SYMBOLIC_EQ, 8, e, expression_constant(8, expression_value(e))));
	set(address, 0);
}

void memory_fix(const void *p, size_t size, enum symbolic_loss why)
{
	if (!memory_is_symbolic(p, size))
		return;
	symbolic_lose(why);
	for (size_t i = 0; i < size; i++)
		fix_byte((uintptr_t)p + i);
}

void memory_fix_from(const void *p, enum symbolic_loss why)
{
	enum { GAP = 32, MOST = 1 << 16 };
	uint64_t address = (uintptr_t)p;
	unsigned gap = 0;
	bool lost = false;

	for (unsigned i = 0; i < MOST && gap < GAP; i++, gap++) {
		if (!*flag_of((address + i) / PAGE) || !get(address + i))
			continue;
		if (!lost)
			symbolic_lose(why);
		lost = true;
		fix_byte(address + i);
		gap = 0;
	}
}

/* ---- another model ---- */

/* What was unmapped meanwhile is not looked at. */
bool memory_is_mapped(uint64_t address)
{
	return syscall(SYS_msync, address & -(uint64_t)PAGE, (long)PAGE, (long)MS_ASYNC) == 0;
}

static void each_page(void (*function)(struct shadow *))
{
	for (unsigned i = 0; i < pages; i++) {
		struct shadow *s = &shadow[page_list[i]];

		if (s->used && memory_is_mapped((s->number - 1) * PAGE))
			function(s);
	}
}

/* The stack below the program's frame is in use for other things. */
static bool is_dead(uint64_t address)
{
	return address >= runtime_thread.stack_low && address < (uintptr_t)symbolic_frame;
}

static void verify(struct shadow *s)
{
	for (unsigned i = 0; i < PAGE; i++) {
		uint64_t address = (s->number - 1) * PAGE + i;

		if (!s->byte[i])
			continue;
		if (is_dead(address))
			set(address, 0);
		else
			get(address);
	}
}

static void rewrite(struct shadow *s)
{
	uint8_t *page = (uint8_t *)((s->number - 1) * PAGE);

	for (unsigned i = 0; i < PAGE; i++) {
		uint8_t value;

		if (!s->byte[i])
			continue;
		value = (uint8_t)expression_value(s->byte[i]);
		if (page[i] != value)
			page[i] = value;
	}
}

void memory_before_change(void)
{
	each_page(verify);
}

void memory_after_change(void)
{
	each_page(rewrite);
}
