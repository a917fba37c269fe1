/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What was found out about an object's code, kept in a file under its build-id: the next process
 * that loads the object does not decode it again. A plan is only believed if the code is the same.
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary/binary.h"

extern const char __ehdr_start[] HIDDEN; /* of this library */

enum { ID_MAX = 32, LARGEST = 1 << 19 /* instructions */ };

struct header {
	char magic[8];
	uint64_t tool; /* who found it out: another one may find more */
	uint32_t count, sites, unknown;
	uint32_t calls_kernel; /* by itself */
	uint32_t size;         /* of the text */
	uint64_t code;         /* its hash */
};

static uint64_t hash_code(const struct binary_text *text)
{
	uint64_t hash = text->size, word;
	uint32_t i = 0;

	for (; i + sizeof(word) <= text->size; i += sizeof(word)) {
		memcpy(&word, text->code + i, sizeof(word));
		hash = (hash ^ word) * 0xff51afd7ed558ccdull;
		hash ^= hash >> 31;
	}
	for (; i < text->size; i++)
		hash = (hash ^ text->code[i]) * 0x100000001b3ull;
	return hash;
}

/* Of the build-id of this library itself. */
static uint64_t own_hash(void)
{
	const ElfW(Ehdr) *own = (const void *)__ehdr_start;
	const ElfW(Phdr) *header = (const void *)(__ehdr_start + own->e_phoff);
	uint64_t hash = sizeof(struct binary_instruction) << 16 | sizeof(struct binary_site);

	for (unsigned i = 0; i < own->e_phnum; i++)
		for (size_t at = 0; header[i].p_type == PT_NOTE && at < header[i].p_filesz; at++)
			hash = (hash ^ (uint8_t)__ehdr_start[header[i].p_vaddr + at]) *
			       0x100000001b3ull;
	return hash;
}

static struct header header_of(const struct binary_text *text)
{
	return (struct header){
		.magic = "perdure4",
		.tool = own_hash(),
		.size = text->size,
		.code = hash_code(text),
	};
}

/* ---- names ---- */

/* "…/directory", which is made if need be; false if there is no place for it. */
static bool cache_directory(char *path, size_t size)
{
	const char *own = getenv("PERDURE_CACHE"), *cache = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME");
	int length;

	if (own)
		length = snprintf(path, size, "%s", own);
	else if (cache && *cache == '/')
		length = snprintf(path, size, "%s/perdure", cache);
	else if (home && *home == '/')
		length = snprintf(path, size, "%s/.cache", home);
	else
		return false;
	if (length <= 0 || (size_t)length + sizeof("/perdure") > size)
		return false;
	REAL(mkdir)(path, 0700);
	if (!own && !(cache && *cache == '/')) {
		strcat(path, "/perdure");
		REAL(mkdir)(path, 0700);
	}
	return true;
}

/* Sections of one object differ in their addresses; and there are plans with loads, and without. */
static bool plan_path(const struct binary_object *object, uint64_t address, char *path, size_t size)
{
	int loads = runtime_session->races.on                                      ? 2
		    : runtime_session->stream.on || runtime_session->executions.on ? 1
										   : 0;
	size_t length;

	if (!object->id_size || object->id_size > ID_MAX || !cache_directory(path, size))
		return false;
	length = strlen(path);
	if (length + 2 * ID_MAX + 32 > size)
		return false;
	path[length++] = '/';
	for (unsigned i = 0; i < object->id_size; i++)
		length += sprintf(path + length, "%02x", object->id[i]);
	sprintf(path + length, "-%lx-%d.plan", address, loads);
	return true;
}

/* ---- reading ---- */

static bool read_all(int fd, void *to, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = REAL(read)(fd, (char *)to + done, size - done);

		if (got <= 0)
			return false;
		done += got;
	}
	return true;
}

/* Numbers that lead anywhere would be worse than no plan. */
static bool is_sound(const struct binary_text *text, const struct header *header)
{
	uint32_t offset = 0;

	for (uint32_t i = 0; i < header->count; i++) {
		const struct binary_instruction *instruction = &text->list[i];

		if (instruction->offset != offset || !instruction->length ||
		    instruction->start != BINARY_NO_SITE || instruction->length > BINARY_LONGEST ||
		    (instruction->site != BINARY_NO_SITE && instruction->site >= header->sites))
			return false;
		offset += instruction->length;
	}
	return offset >= text->size && offset < text->size + BINARY_LONGEST;
}

static void take_over(struct binary_text *text, const struct header *header)
{
	text->count = header->count;
	for (uint32_t i = 0; i < header->count; i++) {
		struct binary_instruction *instruction = &text->list[i];

		text->at[instruction->offset] = i + 1;
		if (instruction->site != BINARY_NO_SITE)
			instruction->site += binary_site_count;
	}
	for (uint32_t i = 0; i < header->sites; i++)
		binary_sites[binary_site_count++].address += text->start;
	binary_counts.sites += header->sites;
	binary_counts.unknown += header->unknown;
}

/* A descriptor behind the header of this code's plan; -1 if there is none. */
static int open_plan(const struct binary_object *object, const struct binary_text *text,
		     struct header *header)
{
	struct header wanted;
	char path[PATH_MAX];
	int fd;

	if (!plan_path(object, text->start - object->bias, path, sizeof(path)))
		return -1;
	fd = REAL(open)(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	wanted = header_of(text);
	if (read_all(fd, header, sizeof(*header)) && header->count <= text->size) {
		wanted.count = header->count;
		wanted.sites = header->sites;
		wanted.unknown = header->unknown;
		wanted.calls_kernel = header->calls_kernel;
		if (memcmp(&wanted, header, sizeof(wanted)) == 0)
			return fd;
	}
	REAL(close)(fd);
	return -1;
}

bool binary_plan_is_calm(const struct binary_object *object, const struct binary_text *text)
{
	struct header header;
	int fd = open_plan(object, text, &header);

	if (fd < 0)
		return false;
	REAL(close)(fd);
	return !header.calls_kernel;
}

bool binary_plan_load(const struct binary_object *object, struct binary_text *text)
{
	struct header header;
	int fd = open_plan(object, text, &header);
	bool good;

	if (fd < 0)
		return false;
	good = header.sites <= BINARY_SITES_MAX - binary_site_count &&
	       read_all(fd, text->list, header.count * sizeof(*text->list)) &&
	       read_all(fd, binary_sites + binary_site_count,
			header.sites * sizeof(*binary_sites)) &&
	       is_sound(text, &header);
	REAL(close)(fd);
	if (good)
		take_over(text, &header);
	return good;
}

/* ---- writing ---- */

static bool write_all(int fd, const void *from, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t put = REAL(write)(fd, (const char *)from + done, size - done);

		if (put <= 0)
			return false;
		done += put;
	}
	return true;
}

/* Sites and their addresses are counted from the start, meanwhile. */
static bool write_plan(int fd, const struct binary_text *text, const struct header *header,
		       uint32_t first_site)
{
	bool good = write_all(fd, header, sizeof(*header));

	for (uint32_t i = 0; i < text->count; i++)
		if (text->list[i].site != BINARY_NO_SITE)
			text->list[i].site -= first_site;
	good = good && write_all(fd, text->list, text->count * sizeof(*text->list));
	for (uint32_t i = 0; i < text->count; i++)
		if (text->list[i].site != BINARY_NO_SITE)
			text->list[i].site += first_site;
	for (uint32_t i = first_site; i < binary_site_count; i++)
		binary_sites[i].address -= text->start;
	good = good && write_all(fd, binary_sites + first_site,
				 (binary_site_count - first_site) * sizeof(*binary_sites));
	for (uint32_t i = first_site; i < binary_site_count; i++)
		binary_sites[i].address += text->start;
	return good;
}

void binary_plan_save(const struct binary_object *object, const struct binary_text *text,
		      uint32_t first_site, uint32_t unknown)
{
	struct header header = header_of(text);
	char path[PATH_MAX], temporary[PATH_MAX + 32];
	int fd;

	header.count = text->count;
	header.sites = binary_site_count - first_site;
	header.unknown = unknown;
	for (uint32_t i = first_site; i < binary_site_count; i++)
		header.calls_kernel |= binary_sites[i].kind == BINARY_SYSCALL;
	if (text->count > LARGEST ||
	    !plan_path(object, text->start - object->bias, path, sizeof(path)))
		return;
	snprintf(temporary, sizeof(temporary), "%s.%d", path, (int)getpid());
	fd = REAL(open)(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (!write_plan(fd, text, &header, first_site) || REAL(rename)(temporary, path) < 0)
		REAL(unlink)(temporary);
	REAL(close)(fd);
}
