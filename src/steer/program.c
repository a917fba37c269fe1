/* SPDX-License-Identifier: BSD-3-Clause */
#include "steer/program.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <llvm-c/BitReader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile/order.h"
#include "symbolic/abi.h"

static void *grow(void *list, size_t count, size_t size)
{
	list = realloc(list, (count + 1) * size);
	if (!list)
		abort();
	return list;
}

static void add_module(struct program *program, const char *bytes, size_t size)
{
	LLVMMemoryBufferRef buffer =
		LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes, size, "bitcode");
	LLVMModuleRef module;

	if (LLVMParseBitcodeInContext2(program->context, buffer, &module)) {
		fprintf(stderr, "perdure-steer: bitcode of another version of LLVM is left out\n");
		return;
	}
	program->module = grow(program->module, program->modules, sizeof(*program->module));
	program->module[program->modules++] = module;
}

/* A section has the bitcode of many files, one after the other. */
static void add_section(struct program *program, const char *bytes, size_t size)
{
	size_t at = 0;

	while (at + sizeof(struct symbolic_bitcode) <= size) {
		struct symbolic_bitcode head;

		memcpy(&head, bytes + at, sizeof(head));
		at += sizeof(head);
		if (head.magic != SYMBOLIC_BITCODE_MAGIC || head.size > size - at)
			return;
		add_module(program, bytes + at, head.size);
		at = (at + head.size + 7) & ~(size_t)7;
	}
}

static void add_sections(struct program *program, const char *bytes, size_t size)
{
	const ElfW(Ehdr) *header = (const void *)bytes;
	const ElfW(Shdr) *section = (const void *)(bytes + header->e_shoff), *names;

	if (size < sizeof(*header) || memcmp(bytes, ELFMAG, SELFMAG) != 0 ||
	    header->e_shoff > size ||
	    (size - header->e_shoff) / sizeof(*section) < header->e_shnum ||
	    header->e_shstrndx >= header->e_shnum)
		return;
	names = &section[header->e_shstrndx];
	for (unsigned i = 0; i < header->e_shnum; i++)
		if (strcmp(bytes + names->sh_offset + section[i].sh_name,
			   SYMBOLIC_BITCODE_SECTION) == 0 &&
		    section[i].sh_offset <= size &&
		    section[i].sh_size <= size - section[i].sh_offset)
			add_section(program, bytes + section[i].sh_offset, section[i].sh_size);
}

bool program_add(struct program *program, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	char *bytes;

	if (fd < 0 || fstat(fd, &status) < 0)
		return false;
	bytes = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return false;
	add_sections(program, bytes, status.st_size);
	munmap(bytes, status.st_size);
	return true;
}

/* ---- functions by name, and by value ---- */

struct entry {
	const char *name; /* null: by value */
	LLVMValueRef value;
	long number;
};

static struct entry *table;
static size_t table_size;

static uint64_t hash_text(const char *text)
{
	uint64_t hash = 5381;

	for (; *text; text++)
		hash = hash * 33 + (unsigned char)*text;
	return hash;
}

static struct entry *find(const char *name, LLVMValueRef value)
{
	size_t at = (name ? hash_text(name) : (uintptr_t)value >> 4) % table_size;

	for (;; at = (at + 1) % table_size) {
		struct entry *e = &table[at];

		if (!e->value ||
		    (name ? e->name && strcmp(e->name, name) == 0 : !e->name && e->value == value))
			return e;
	}
}

static bool is_local(LLVMValueRef function)
{
	LLVMLinkage linkage = LLVMGetLinkage(function);

	return linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage;
}

void program_index(struct program *program)
{
	for (size_t m = 0; m < program->modules; m++)
		for (LLVMValueRef f = LLVMGetFirstFunction(program->module[m]); f;
		     f = LLVMGetNextFunction(f))
			if (order_is_wanted(f)) {
				program->function = grow(program->function, program->functions,
							 sizeof(*program->function));
				program->function[program->functions++] = f;
			}
	table_size = 4 * program->functions + 16;
	table = calloc(table_size, sizeof(*table));
	if (!table)
		abort();
	for (size_t i = 0; i < program->functions; i++) {
		LLVMValueRef f = program->function[i];
		struct entry *named = is_local(f) ? NULL : find(LLVMGetValueName(f), NULL);

		*find(NULL, f) = (struct entry){ NULL, f, (long)i };
		if (named && !named->value)
			*named = (struct entry){ LLVMGetValueName(f), f, (long)i };
	}
}

long program_number(const struct program *program, LLVMValueRef function)
{
	const struct entry *e = find(NULL, function);

	(void)program;
	if (!e->value && !is_local(function))
		e = find(LLVMGetValueName(function), NULL);
	return e->value ? e->number : -1;
}

LLVMValueRef program_body(const struct program *program, LLVMValueRef function)
{
	long number = program_number(program, function);

	return number < 0 ? NULL : program->function[number];
}

int main(int argc, char **argv)
{
	struct program program = { .context = LLVMContextCreate() };

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--heap") == 0)
			program.heap = true;
		else
			program_add(&program, argv[i]);
	program_index(&program);
	points_find(&program);
	weights_write(&program);
	return fflush(stdout) == 0 ? 0 : 3;
}
