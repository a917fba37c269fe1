/* SPDX-License-Identifier: BSD-3-Clause */
/* What the dynamic section of a loaded object says. Uses no libc function: they are interposed. */
#ifndef RUNTIME_ELF_TABLES_H
#define RUNTIME_ELF_TABLES_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct elf_tables {
	const uint32_t *hash;
	const Elf64_Sym *symbol;
	const char *text;
	const Elf64_Half *version;
	const Elf64_Rela *relocation, *plt_relocation;
	size_t relocations, plt_relocations;
	const char *path; /* RUNPATH or RPATH; null if it has none */
};

/* False if the object has no symbols to look up. */
bool elf_read_tables(const struct dl_phdr_info *info, struct elf_tables *tables)
	__attribute__((visibility("hidden")));

/* Does the address lie in the loaded object? */
bool elf_contains(const struct dl_phdr_info *info, uintptr_t address)
	__attribute__((visibility("hidden")));

/* The address of a function that the object defines, in its default version; 0 if it does not. */
uintptr_t elf_find_function(uintptr_t bias, const struct elf_tables *tables, const char *name)
	__attribute__((visibility("hidden")));

#endif
