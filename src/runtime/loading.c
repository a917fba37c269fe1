/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects that come and go while the program runs. */
#include "binary/binary.h"
#include "runtime/library.h"

#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/elf_tables.h"

struct caller {
	uintptr_t address;
	const char *object; /* its file, "" for the executable */
	const char *path;   /* its RUNPATH, null if it has none */
};

static int find_caller(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct caller *caller = argument;
	struct elf_tables tables;

	(void)size;
	if (!elf_contains(info, caller->address))
		return 0;
	caller->object = info->dlpi_name;
	if (elf_read_tables(info, &tables))
		caller->path = tables.path;
	return 1;
}

/* The directory of an object, for $ORIGIN. */
static size_t origin(const char *object, char *directory, size_t size)
{
	ssize_t length;
	char *slash;

	if (*object)
		length = strlen(strncpy(directory, object, size - 1));
	else
		length = readlink("/proc/self/exe", directory, size - 1);
	directory[length > 0 ? length : 0] = 0;
	slash = strrchr(directory, '/');
	if (slash)
		*slash = 0;
	return strlen(directory);
}

static size_t append(char *path, size_t used, const char *text, size_t length)
{
	if (used + length + 1 > PATH_MAX)
		length = 0;
	memcpy(path + used, text, length);
	path[used + length] = 0;
	return used + length;
}

/* One directory of a path with the file's name, if there is one, behind it. */
static void expand(char *path, const char *entry, size_t length, const struct caller *caller,
		   const char *name)
{
	static const char *const words[] = { "$ORIGIN", "${ORIGIN}" };
	char directory[PATH_MAX] = "";
	size_t used = 0;

	for (size_t i = 0; i < length;) {
		const char *found = NULL;

		for (unsigned w = 0; w < 2 && !found; w++)
			if (strncmp(entry + i, words[w], strlen(words[w])) == 0)
				found = words[w];
		if (found) {
			used = append(path, used, directory,
				      origin(caller->object, directory, sizeof(directory)));
			i += strlen(found);
		} else {
			used = append(path, used, entry + i++, 1);
		}
	}
	if (name) {
		used = append(path, used, "/", 1);
		append(path, used, name, strlen(name));
	}
}

static bool is_loaded(const char *name)
{
	void *handle = REAL(dlopen)(name, RTLD_LAZY | RTLD_NOLOAD);

	if (handle)
		REAL(dlclose)(handle);
	return handle;
}

/* LD_LIBRARY_PATH comes before RUNPATH. */
static bool is_in_library_path(const char *name, char *path)
{
	static const struct caller nobody = { .object = "" };

	for (const char *entry = getenv("LD_LIBRARY_PATH"); entry && *entry;) {
		size_t length = strcspn(entry, ":;");

		path[0] = 0;
		expand(path, length ? entry : ".", length ? length : 1, &nobody, name);
		if (access(path, R_OK) == 0)
			return true;
		entry += length + (entry[length] != 0);
	}
	return false;
}

/*
 * The loader looks for a name without a slash in the directories that the caller's own object
 * names. It would take this library for the caller, so that part of the search is done here.
 */
static const char *find_file(const char *name, const struct frame *frame, char *path)
{
	struct caller caller = { .address = frame->return_address, .object = "" };

	if (!name || (strchr(name, '/') && !strchr(name, '$')))
		return name;
	dl_iterate_phdr(find_caller, &caller);
	if (strchr(name, '/')) {
		path[0] = 0;
		expand(path, name, strlen(name), &caller, NULL);
		return path;
	}
	if (is_loaded(name) || is_in_library_path(name, path))
		return name;
	for (const char *entry = caller.path; entry && *entry;) {
		size_t length = strcspn(entry, ":");

		path[0] = 0;
		expand(path, entry, length, &caller, name);
		if (access(path, R_OK) == 0)
			return path;
		entry += length + (entry[length] == ':');
	}
	return name;
}

static void loaded(void)
{
	if (!runtime_session)
		return;
	binary_update();
	modules_update();
	if (runtime_involved)
		library_hooks_update();
}

PUBLIC void *dlopen(const char *name, int flags)
{
	char path[PATH_MAX];
	void *handle = REAL(dlopen)(find_file(name, FRAME, path), flags);

	if (handle)
		loaded();
	return handle;
}

/* A hooked function's address is its hook's; the program means the function. */
PUBLIC int dladdr(const void *address, Dl_info *info)
{
	return REAL(dladdr)(runtime_session ? library_hooks_behind(address) : address, info);
}

PUBLIC int dlclose(void *handle)
{
	int result = REAL(dlclose)(handle);

	if (runtime_session) {
		modules_unloaded();
		library_hooks_unloaded();
		binary_unloaded();
	}
	return result;
}
