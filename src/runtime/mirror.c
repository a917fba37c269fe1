/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PM at addresses that the program insists on, outside the window. Its file has its place in the
 * window as well, and everything is told about that one: the mirror.
 */
#include "runtime/runtime.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "binary/binary.h"

static struct mirrored {
	uintptr_t start, end; /* as the program knows it */
	uintptr_t mirror;
	int protection;
} mirrored[MIRRORS];
unsigned runtime_mirrors;

static const struct mirrored *find(const void *p)
{
	for (unsigned i = 0; i < runtime_mirrors; i++)
		if ((uintptr_t)p >= mirrored[i].start && (uintptr_t)p < mirrored[i].end)
			return &mirrored[i];
	return NULL;
}

bool mirror_has(const void *p)
{
	return find(p) != NULL;
}

void *mirror_find(const void *p)
{
	const struct mirrored *range = find(p);

	return range ? (void *)((uintptr_t)p - range->start + range->mirror) : (void *)p;
}

static void add(const struct mirrored *range)
{
	if (range->start < range->end && runtime_mirrors < MIRRORS) {
		mirrored[runtime_mirrors] = *range;
		__atomic_store_n(&runtime_mirrors, runtime_mirrors + 1, __ATOMIC_RELEASE);
	}
}

bool mirror_add(void *start, uint64_t size, const void *mirror, int protection)
{
	add(&(struct mirrored){ (uintptr_t)start, (uintptr_t)start + size, (uintptr_t)mirror,
				protection });
	return mirror_has(start);
}

bool mirror_take(uintptr_t start, uintptr_t end, struct mirror_part *part)
{
	for (unsigned i = 0; i < runtime_mirrors; i++) {
		struct mirrored old = mirrored[i];

		if (start >= old.end || old.start >= end)
			continue;
		part->start = start > old.start ? start : old.start;
		part->size = (end < old.end ? end : old.end) - part->start;
		part->mirror = old.mirror + (part->start - old.start);
		mirrored[i] = mirrored[--runtime_mirrors];
		add(&(struct mirrored){ old.start, part->start, old.mirror, old.protection });
		add(&(struct mirrored){ part->start + part->size, old.end,
					part->mirror + part->size, old.protection });
		return true;
	}
	return false;
}

void mirror_follow(uint64_t base, uint64_t size, int fd)
{
	for (unsigned i = 0; i < runtime_mirrors; i++) {
		const struct mirrored *range = &mirrored[i];

		if (range->mirror - base < size)
			syscall(SYS_mmap, range->start, range->end - range->start,
				range->protection, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
				range->mirror - base);
	}
}
