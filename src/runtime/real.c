/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The next definition of a function after this library's own: what dlsym(RTLD_NEXT) does, but
 * without allocating. dlsym can end in malloc and free, which a sanitizer or the program may have
 * replaced by functions that call back into here.
 */
#include "runtime/runtime.h"

#include <link.h>

#include "runtime/elf_tables.h"

struct search {
	const char *name;
	uintptr_t after; /* an address in the object after which the search starts */
	bool past_it;
	void *result;
};

static int visit(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct search *search = argument;
	struct elf_tables tables;

	(void)size;
	if (!search->past_it) {
		search->past_it = elf_contains(info, search->after);
		return 0;
	}
	if (!elf_read_tables(info, &tables))
		return 0;
	search->result = (void *)elf_find_function(info->dlpi_addr, &tables, search->name);
	return search->result != NULL;
}

void *real_find(const char *name)
{
	return real_find_after((uintptr_t)visit, name);
}

void *real_find_after(uintptr_t address, const char *name)
{
	struct search search = { .name = name, .after = address };

	dl_iterate_phdr(visit, &search);
	return search.result;
}

bool real_exists(const char *name)
{
	struct search search = { .name = name, .past_it = true };

	dl_iterate_phdr(visit, &search);
	return search.result != NULL;
}
