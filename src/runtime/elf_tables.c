/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/elf_tables.h"

#include <elf.h>
#include <stddef.h>

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

/* ld.so has relocated the pointers of every object but the vDSO's, whose are still offsets. */
static const void *table(const struct dl_phdr_info *info, ElfW(Addr) value)
{
	return (const void *)(value < info->dlpi_addr ? value + info->dlpi_addr : value);
}

bool elf_read_tables(const struct dl_phdr_info *info, struct elf_tables *tables)
{
	const ElfW(Dyn) *entry = NULL;
	size_t path = 0;

	*tables = (struct elf_tables){ 0 };
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
		else if (entry->d_tag == DT_RELA)
			tables->relocation = at;
		else if (entry->d_tag == DT_RELASZ)
			tables->relocations = entry->d_un.d_val / sizeof(ElfW(Rela));
		else if (entry->d_tag == DT_JMPREL)
			tables->plt_relocation = at;
		else if (entry->d_tag == DT_PLTRELSZ)
			tables->plt_relocations = entry->d_un.d_val / sizeof(ElfW(Rela));
		else if (entry->d_tag == DT_RUNPATH || entry->d_tag == DT_RPATH)
			path = entry->d_un.d_val;
	}
	if (path && tables->text)
		tables->path = tables->text + path;
	return tables->hash && tables->symbol && tables->text;
}

/* The default version of a function; others are marked hidden. */
static const ElfW(Sym) * look_up(const struct elf_tables *tables, const char *name)
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

uintptr_t elf_find_function(uintptr_t bias, const struct elf_tables *tables, const char *name)
{
	const ElfW(Sym) *symbol = look_up(tables, name);
	uintptr_t address;

	if (!symbol)
		return 0;
	address = bias + symbol->st_value;
	if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC) {
		uintptr_t (*choose)(void) = (__typeof__(choose))address;

		address = choose();
	}
	return address;
}

bool elf_contains(const struct dl_phdr_info *info, uintptr_t address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD &&
		    address - (info->dlpi_addr + header->p_vaddr) < header->p_memsz)
			return true;
	}
	return false;
}
