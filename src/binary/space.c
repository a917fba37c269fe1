/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Room for code. Bodies lie in arenas near the code that they replace. Jumps whose distance has
 * bytes that are given go by way of pages at just that distance, each with many such jumps.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "binary/binary.h"
#include "model/mix.h"

enum {
	PAGE = 4096,
	ARENA = 1 << 20,
	ARENAS = 4096,
	PAGES = 1 << 16,
	ENTRY = 16,
	JUMP = 5,
	CROWDED = 32
};
#define FARTHEST (1800l << 20) /* from the start of an arena, with some reserve */

void *binary_room(size_t size)
{
	/* Far from the code, where there must be room for jumps. */
	static uintptr_t far = 0x350000000000ull;
	uintptr_t hint = __atomic_fetch_add(&far, (size + 4095) & ~4095ul, __ATOMIC_RELAXED);
	long got = syscall(SYS_mmap, hint, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);

	return got < 0 ? NULL : (void *)got;
}

void *binary_dense_room(size_t size)
{
	enum { LARGE = 2 << 20 };
	uintptr_t got = (uintptr_t)binary_room(size + LARGE);

	if (!got)
		return NULL;
	got = (got + LARGE - 1) & -(uintptr_t)LARGE;
	syscall(SYS_madvise, got, size, MADV_HUGEPAGE);
	return (void *)got;
}

void binary_release(void *memory, size_t size)
{
	if (memory)
		syscall(SYS_munmap, memory, size);
}

static void *map_at(uintptr_t address, size_t size)
{
	long got = syscall(SYS_mmap, address, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0L);

	if (got > 0 && (uintptr_t)got != address) /* kernels that do not know the flag */
		syscall(SYS_munmap, got, size);
	return (uintptr_t)got == address ? (void *)address : NULL;
}

/* ---- arenas ---- */

static struct arena {
	uint8_t *start, *next;
	bool sealed;
} arena[ARENAS];
static unsigned arenas;

static bool reaches(const struct arena *a, uintptr_t near)
{
	int64_t distance = (int64_t)((uintptr_t)a->start - near);

	return distance < FARTHEST && distance > -FARTHEST;
}

static void put_way(uint8_t *at, uintptr_t entry)
{
	memcpy(at, "\xff\x25\0\0\0\0", 6); /* jmp *0(%rip) */
	memcpy(at + 6, &entry, sizeof(entry));
}

static struct arena *new_arena(uintptr_t near)
{
	enum { STEP = 1 << 20, FIRST = 4 << 20 };

	for (int64_t distance = FIRST; arenas < ARENAS && distance < FARTHEST; distance += STEP)
		for (int side = 0; side < 2; side++) {
			uintptr_t wanted =
				(near + (side ? -distance : distance)) & ~(uintptr_t)(PAGE - 1);
			uint8_t *start = wanted < PAGE * 16 ? NULL : map_at(wanted, ARENA);

			if (!start)
				continue;
			put_way(start, (uintptr_t)binary_entry);
			put_way(start + ENTRY, (uintptr_t)binary_brief);
			arena[arenas] = (struct arena){ start, start + 2 * ENTRY, false };
			return &arena[arenas++];
		}
	return NULL;
}

uint8_t *binary_allocate(uintptr_t near, size_t size)
{
	struct arena *found = NULL;
	uint8_t *result;

	for (unsigned i = arenas; i-- > 0 && !found;)
		if (!arena[i].sealed && reaches(&arena[i], near) &&
		    arena[i].next + size <= arena[i].start + ARENA)
			found = &arena[i];
	if (!found)
		found = new_arena(near);
	if (!found)
		return NULL;
	result = found->next;
	found->next += size;
	return result;
}

static struct arena *arena_of(uintptr_t address)
{
	for (unsigned i = arenas; i-- > 0;)
		if (address - (uintptr_t)arena[i].start < ARENA)
			return &arena[i];
	return NULL;
}

bool binary_is_copy(uintptr_t address)
{
	return arena_of(address) != NULL;
}

bool binary_is_way_in(uintptr_t address)
{
	const struct arena *a = arena_of(address);

	return a && (address == (uintptr_t)a->start || address == (uintptr_t)a->start + ENTRY);
}

void binary_give_back(uint8_t *code)
{
	struct arena *a = arena_of((uintptr_t)code);

	if (a)
		a->next = code;
}

uintptr_t binary_entry_near(uintptr_t code, bool brief)
{
	return (uintptr_t)arena_of(code)->start + (brief ? ENTRY : 0);
}

/* ---- pages of jumps ---- */

struct page {
	uintptr_t start;
	uint64_t used[PAGE / 64]; /* one bit a byte */
	bool sealed;
	uint8_t misses; /* searches without success, one after the other */
};
static struct page *pages;
static uint32_t page_of[2 * PAGES]; /* hash table of index + 1 */
static uint32_t page_count;
static uintptr_t refused[PAGES]; /* pages that somebody else has, as far as there is room */

static struct page *find_page(uintptr_t start, bool make)
{
	uint32_t at = spread(start / PAGE);

	if (!pages)
		pages = binary_room(PAGES * sizeof(*pages));
	if (!pages)
		return NULL;
	for (; page_of[at % (2 * PAGES)]; at++)
		if (pages[page_of[at % (2 * PAGES)] - 1].start == start)
			return &pages[page_of[at % (2 * PAGES)] - 1];
	if (!make || page_count == PAGES || refused[start / PAGE % PAGES] == start)
		return NULL;
	if (!map_at(start, PAGE)) {
		refused[start / PAGE % PAGES] = start;
		return NULL;
	}
	memset((void *)start, 0xcc, PAGE);
	pages[page_count].start = start;
	page_of[at % (2 * PAGES)] = ++page_count;
	return &pages[page_count - 1];
}

static bool is_free(const struct page *page, unsigned offset)
{
	if (offset + JUMP > PAGE)
		return false;
	for (unsigned i = offset; i < offset + JUMP; i++)
		if (page->used[i / 64] >> i % 64 & 1)
			return false;
	return true;
}

static bool write_jump(struct page *page, unsigned offset, uintptr_t goal)
{
	int64_t distance = (int64_t)(goal - (page->start + offset + JUMP));
	int32_t short_distance = (int32_t)distance;
	uint8_t *at = (uint8_t *)page->start + offset;

	if (distance != short_distance)
		return false;
	for (unsigned i = offset; i < offset + JUMP; i++)
		page->used[i / 64] |= 1ull << i % 64;
	at[0] = 0xe9;
	memcpy(at + 1, &short_distance, sizeof(short_distance));
	return true;
}

uintptr_t binary_past_jump(uintptr_t address)
{
	const struct page *page = page_count ? find_page(address & -(uintptr_t)PAGE, false) : NULL;
	int32_t distance;

	if (!page)
		return address;
	memcpy(&distance, (const uint8_t *)address + 1, sizeof(distance));
	return address + JUMP + distance;
}

static unsigned choices(const struct binary_bytes *bytes)
{
	return bytes->count ? bytes->count : 256;
}

/* Small distances first, then their negatives: 8, 248, 9, 247, … of the highest byte. */
static uint8_t choice(const struct binary_bytes *bytes, unsigned number)
{
	if (bytes->count)
		return bytes->value[number];
	return number % 2 ? (uint8_t)(248 - number / 2) : (uint8_t)(8 + number / 2);
}

static bool is_allowed(const struct binary_bytes *bytes, uint8_t byte)
{
	for (unsigned i = 0; i < bytes->count; i++)
		if (bytes->value[i] == byte)
			return true;
	return !bytes->count;
}

/* In the 256 bytes of this distance, whose lowest byte is still open: they lie in two pages at
 * most. */
static uintptr_t place_in(uintptr_t next, uint32_t distance, const struct binary_bytes *lowest,
			  uintptr_t goal, bool make)
{
	uintptr_t first = next + (int32_t)distance, last = first + 255;

	if (first < 16 * PAGE || last >= 0x7fffff000000ull - (64ull << 20))
		return 0;
	for (uintptr_t start = first & ~(uintptr_t)(PAGE - 1); start <= last; start += PAGE) {
		struct page *page = find_page(start, make);

		if (!page || page->sealed || page->misses == CROWDED)
			continue;
		for (uintptr_t at = start > first ? start : first; at <= last && at < start + PAGE;
		     at++)
			if (is_allowed(lowest, (uint8_t)(at - first)) &&
			    is_free(page, at - start) && write_jump(page, at - start, goal)) {
				page->misses = 0;
				return at;
			}
		page->misses +=
			lowest->count != 1; /* where one byte would do, there is no telling */
	}
	return 0;
}

uintptr_t binary_place_jump(uintptr_t next, const struct binary_bytes wanted[4], uintptr_t goal)
{
	enum { TRIES = 3000, TRIES_IN_OLD_PAGES = 300 };

	for (int make = 0; make < 2; make++) {
		unsigned tries = 0;

		for (unsigned a = 0; a < choices(&wanted[3]); a++)
			for (unsigned b = 0; b < choices(&wanted[2]); b++)
				for (unsigned c = 0; c < choices(&wanted[1]); c++) {
					uint32_t distance = (uint32_t)choice(&wanted[3], a) << 24 |
							    (uint32_t)choice(&wanted[2], b) << 16 |
							    (uint32_t)choice(&wanted[1], c) << 8;
					uintptr_t at;

					if (++tries > (make ? TRIES : TRIES_IN_OLD_PAGES))
						goto next_round;
					at = place_in(next, distance, &wanted[0], goal, make);
					if (at)
						return at;
				}
	next_round:;
	}
	return 0;
}

void binary_seal(void)
{
	for (unsigned i = 0; i < arenas; i++) {
		if (!arena[i].sealed)
			REAL(mprotect)(arena[i].start, ARENA, PROT_READ | PROT_EXEC);
		arena[i].sealed = true;
	}
	for (uint32_t i = 0; i < page_count; i++) {
		if (!pages[i].sealed)
			REAL(mprotect)((void *)pages[i].start, PAGE, PROT_READ | PROT_EXEC);
		pages[i].sealed = true;
	}
}
