/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/functions.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/symbols.h"

/* "ns::lock(int)" is meant by ns::lock as well. */
static bool matches(const char *pattern, const char *symbol)
{
	char *name = symbols_demangle(symbol), *parameters;
	bool good = fnmatch(pattern, symbol, 0) == 0 || fnmatch(pattern, name, 0) == 0;

	parameters = strchr(name, '(');
	if (parameters)
		*parameters = 0;
	good |= fnmatch(pattern, name, 0) == 0;
	free(name);
	return good;
}

static void add(const char *path, const GElf_Sym *symbol, bool acquires,
		struct session_races *races)
{
	struct races_function *function = &races->function[races->functions];

	if (races->functions == RACES_FUNCTIONS || strlen(path) >= sizeof(function->path))
		return;
	strcpy(function->path, path);
	for (uint32_t i = 0; i < races->functions; i++)
		if (races->function[i].start == symbol->st_value &&
		    strcmp(races->function[i].path, path) == 0)
			return;
	function->start = symbol->st_value;
	function->size = symbol->st_size;
	function->acquires = acquires;
	races->functions++;
}

static void look_in(Elf *elf, const char *path, const char *pattern, bool acquires,
		    struct session_races *races)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		Elf_Data *data;
		GElf_Sym symbol;

		if (!gelf_getshdr(section, &header) ||
		    (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) ||
		    !header.sh_entsize || !(data = elf_getdata(section, NULL)))
			continue;
		for (size_t i = 0; i < header.sh_size / header.sh_entsize; i++) {
			const char *name;

			if (!gelf_getsym(data, (int)i, &symbol) ||
			    GELF_ST_TYPE(symbol.st_info) != STT_FUNC || !symbol.st_size)
				continue;
			name = elf_strptr(elf, header.sh_link, symbol.st_name);
			if (name && matches(pattern, name))
				add(path, &symbol, acquires, races);
		}
	}
}

void functions_find(const char *program, const char *pattern, bool acquires,
		    struct session_races *races)
{
	char path[PATH_MAX];
	int fd;
	Elf *elf;

	if (!realpath(program, path))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf)
		look_in(elf, path, pattern, acquires, races);
	elf_end(elf);
	close(fd);
}
