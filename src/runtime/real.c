/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The next definition of a function after this library's own: what dlsym(RTLD_NEXT) does, but
 * without allocating. dlsym can end in malloc and free, which a sanitizer or the program may have
 * replaced by functions that call back into here.
 */
#include "runtime/runtime.h"

#include <elf.h>
#include <link.h>

/* No libc function: they are interposed and would come back here. */
static bool same_text(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* The parts of an object's dynamic section that a look-up needs. */
struct tables {
	const uint32_t *hash;
	const ElfW(Sym) * symbol;
	const char *text;
	const ElfW(Half) * version;
};

/* ld.so has relocated the pointers of every object but the vDSO's, whose are still offsets. */
static const void *table(const struct dl_phdr_info *info, ElfW(Addr) value)
{
	return (const void *)(value < info->dlpi_addr ? value + info->dlpi_addr : value);
}

static bool read_tables(const struct dl_phdr_info *info, struct tables *tables)
{
	const ElfW(Dyn) *entry = NULL;

	*tables = (struct tables){ 0 };
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		const void *at = table(info, entry->d_un.d_ptr);

		if (entry->d_tag == DT_GNU_HASH)
			tables->hash = at;
		else if (entry->d_tag == DT_SYMTAB)
			tables->symbol = at;
		else if (entry->d_tag == DT_STRTAB)
			tables->text = at;
		else if (entry->d_tag == DT_VERSYM)
			tables->version = at;
	}
	return tables->hash && tables->symbol && tables->text;
}

/* The default version of a function; others are marked hidden. */
static const ElfW(Sym) * look_up(const struct tables *tables, const char *name)
{
	uint32_t buckets = tables->hash[0], offset = tables->hash[1], bloom = tables->hash[2];
	const uint32_t *bucket = tables->hash + 4 + bloom * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chain = bucket + buckets;
	uint32_t hash = gnu_hash(name), i;

	if (!buckets || !(i = bucket[hash % buckets]))
		return NULL;
	for (;; i++) {
		const ElfW(Sym) *symbol = &tables->symbol[i];
		uint32_t other = chain[i - offset];

		if ((hash | 1) == (other | 1) && symbol->st_shndx != SHN_UNDEF &&
		    same_text(tables->text + symbol->st_name, name) &&
		    !(tables->version && tables->version[i] & 0x8000))
			return symbol;
		if (other & 1)
			return NULL;
	}
}

struct search {
	const char *name;
	bool past_self;
	void *result;
};

static bool contains(const struct dl_phdr_info *info, uintptr_t address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD &&
		    address - (info->dlpi_addr + header->p_vaddr) < header->p_memsz)
			return true;
	}
	return false;
}

static int visit(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct search *search = argument;
	const ElfW(Sym) * symbol;
	struct tables tables;
	uintptr_t address;

	(void)size;
	if (!search->past_self) {
		search->past_self = contains(info, (uintptr_t)visit);
		return 0;
	}
	if (!read_tables(info, &tables) || !(symbol = look_up(&tables, search->name)))
		return 0;
	address = info->dlpi_addr + symbol->st_value;
	if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC) {
		uintptr_t (*choose)(void) = (__typeof__(choose))address;

		address = choose();
	}
	search->result = (void *)address;
	return 1;
}

void *real_find(const char *name)
{
	struct search search = { .name = name };

	dl_iterate_phdr(visit, &search);
	return search.result;
}
