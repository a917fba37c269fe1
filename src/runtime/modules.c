/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects loaded into this process, written to the session so that the report can name code. */
#include "runtime/runtime.h"

#include <elf.h>
#include <fnmatch.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "binary/binary.h"
#include "model/spin.h"

struct object {
	uint64_t start, end, bias;
	bool instrumented;
	const char *path;
};

static size_t align_note(size_t size)
{
	return (size + 3) & ~(size_t)3;
}

static bool has_perdure_note(const char *note, size_t size)
{
	while (size > sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *header = (const void *)note;
		const char *name = note + sizeof(*header);
		size_t length = sizeof(*header) + align_note(header->n_namesz) +
				align_note(header->n_descsz);

		if (length > size)
			return false;
		if (header->n_type == PERDURE_NOTE_TYPE &&
		    header->n_namesz == sizeof(PERDURE_NOTE_NAME) &&
		    memcmp(name, PERDURE_NOTE_NAME, sizeof(PERDURE_NOTE_NAME)) == 0)
			return true;
		note += length;
		size -= length;
	}
	return false;
}

bool modules_is_built(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_NOTE &&
		    has_perdure_note((const void *)(info->dlpi_addr + header->p_vaddr),
				     header->p_memsz))
			return true;
	}
	return false;
}

static void describe(const struct dl_phdr_info *info, struct object *object)
{
	*object = (struct object){ .start = UINT64_MAX, .bias = info->dlpi_addr };
	object->path = info->dlpi_name;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_LOAD)
			continue;
		if (start < object->start)
			object->start = start;
		if (start + header->p_memsz > object->end)
			object->end = start + header->p_memsz;
	}
	object->instrumented = modules_is_built(info) || binary_is_patched(object->start);
}

static void store_path(char *target, const char *path)
{
	char link[PATH_MAX];
	ssize_t length;

	if (!path || !*path) { /* the executable has no name here */
		length = readlink("/proc/self/exe", link, sizeof(link) - 1);
		link[length > 0 ? length : 0] = 0;
		path = link;
	}
	strncpy(target, path, SESSION_PATH - 1);
}

static uint32_t generation;
bool runtime_trusts_instrumented;
static bool stale; /* objects went away: addresses may mean something else now */

uint32_t runtime_stack_image = MODULES_IMAGE_UNKNOWN;

uint32_t modules_find_image(void)
{
	if (stale) {
		stale = false;
		generation++;
		modules_update();
	}
	runtime_stack_image =
		session_stack_image(runtime_session->image[runtime_image].modules_of, generation);
	return runtime_stack_image;
}

/*
 * Pages of code by their module, in one word each (page number and index), so that threads can
 * share it without a lock. Emptied when objects go away.
 */
enum { CACHED_PAGES = 1024, INDEX_BITS = 16 };
static uint64_t page_cache[CACHED_PAGES];

static const struct session_module *find(uintptr_t address)
{
	uint64_t page = address >> 12, *entry = &page_cache[page % CACHED_PAGES];
	uint64_t cached = __atomic_load_n(entry, __ATOMIC_RELAXED);
	const struct session_module *module;

	if (cached >> INDEX_BITS == page && !stale)
		return &runtime_session->module[cached & ((1 << INDEX_BITS) - 1)];
	module = session_module_at(runtime_session, modules_image(), address);
	/* Only whole pages: an object may end where another one starts. */
	if (module && page << 12 >= module->start && (page + 1) << 12 <= module->end)
		__atomic_store_n(entry, page << INDEX_BITS | (module - runtime_session->module),
				 __ATOMIC_RELAXED);
	return module;
}

static bool same_object(const struct session_module *module, const struct object *object)
{
	return module && module->start == object->start && module->end == object->end &&
	       (!*object->path || strncmp(module->path, object->path, SESSION_PATH - 1) == 0);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * Prebuilt libraries that have a model are trusted by default; any library if the user says so. In
 * an object that is program and library at once, stores are the program's.
 */
static void set_trust(struct session_module *module, bool executable)
{
	const struct library_table *table = &runtime_session->library;
	const struct session_options *options = &runtime_session->options;
	const char *name = base_name(module->path);

	for (uint32_t i = 0; i < table->libraries && !executable; i++) {
		const char *glob = library_text(table, table->library[i].glob);

		if (strcmp(glob, "*") == 0 || fnmatch(glob, name, 0) != 0)
			continue;
		module->transactional |=
			(table->library[i].transactional || table->library[i].trusted) &&
			module->instrumented;
		module->trusted |= table->library[i].trusted && !module->instrumented;
		module->discreet |=
			table->library[i].trusted && !options->trusts_none && module->patched;
	}
	for (uint32_t i = 0; i < options->trusted; i++)
		if (fnmatch(options->trusted_glob[i], name, 0) == 0 ||
		    fnmatch(options->trusted_glob[i], module->path, 0) == 0)
			module->trusted = true;
	runtime_trusts_instrumented |= module->trusted && module->instrumented;
}

static int note_object(struct dl_phdr_info *info, size_t size, void *unused)
{
	struct session *session = runtime_session;
	const struct session_module *known;
	struct object object;

	(void)size;
	(void)unused;
	describe(info, &object);
	known = object.end ? find(object.start) : NULL;
	if (same_object(known, &object) && known->instrumented == object.instrumented)
		return 0;
	if (!object.end || session->modules == SESSION_MODULES)
		return 0;
	session->module[session->modules] = (struct session_module){
		.start = object.start,
		.end = object.end,
		.bias = object.bias,
		.image = session->image[runtime_image].modules_of,
		.generation = generation,
		.instrumented = object.instrumented,
		.patched = binary_is_patched(object.start),
	};
	store_path(session->module[session->modules].path, object.path);
	set_trust(&session->module[session->modules], !*object.path);
	session->modules++;
	if (object.instrumented) {
		session->instrumented++;
		runtime_involved = true;
	}
	return 0;
}

static int find_instrumented(struct dl_phdr_info *info, size_t size, void *unused)
{
	struct object object;

	(void)size;
	(void)unused;
	describe(info, &object);
	return object.instrumented;
}

bool modules_any_instrumented(void)
{
	return dl_iterate_phdr(find_instrumented, NULL) != 0;
}

void modules_update(void)
{
	bool locked = spin_lock(&runtime_session->lock, thread_owner());

	dl_iterate_phdr(note_object, NULL);
	if (locked)
		spin_unlock(&runtime_session->lock);
}

static const struct session_module *need(uintptr_t address)
{
	const struct session_module *module = find(address);

	if (!module) {
		modules_update();
		module = find(address);
	}
	return module;
}

uint64_t modules_key(uintptr_t address)
{
	return races_key(need(address), address);
}

bool modules_known(uintptr_t address)
{
	return find(address) != NULL;
}

bool modules_instrumented(const void *address)
{
	const struct session_module *module = need((uintptr_t)address);

	return module && module->instrumented;
}

bool modules_may_unwind(uintptr_t address)
{
	const struct session_module *module = find(address);

	return !module || strncmp(base_name(module->path), "libgcc_s", 8) == 0;
}

bool modules_trusted(uintptr_t address)
{
	const struct session_module *module = need(address);

	return module && module->trusted;
}

/* For hits whose vector registers nobody has kept: from the cache or not at all. */
__attribute__((target("general-regs-only"))) bool modules_known_transactional(uintptr_t address)
{
	uint64_t page = address >> 12;
	uint64_t cached = __atomic_load_n(&page_cache[page % CACHED_PAGES], __ATOMIC_RELAXED);

	return cached >> INDEX_BITS == page && !stale &&
	       runtime_session->module[cached & ((1 << INDEX_BITS) - 1)].transactional;
}

bool modules_transactional(uintptr_t address)
{
	const struct session_module *module = find(address);

	return module && module->transactional;
}

/* libc and its like only do what their callers ask for. */
bool modules_is_system(const char *name)
{
	static const char *const starts[] = {
		"libc.",    "libc-",  "libstdc++",  "libm.",  "libgcc_s", "libpthread",
		"ld-linux", "libc++", "libperdure", "libdl.", "librt.",   "linux-vdso"
	};

	for (unsigned i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (strncmp(name, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

bool modules_describe_foreign(uintptr_t address, char *text, size_t size)
{
	const struct session_module *module = need(address);
	const char *name = module ? base_name(module->path) : NULL;

	if (!module || module->instrumented || module->trusted || modules_is_system(name) ||
	    size < 256 || strlen(name) > 128)
		return false;
	strcpy(text, name);
	strcat(text,
	       " wrote to PM and was not built with perdure-cc: what else it does to PM, flushes "
	       "included, is not seen; build it so, or describe it with --lib-model");
	return true;
}

bool modules_is_libpmem(const struct frame *frame)
{
	const struct session_module *module = need(frame->return_address);

	return module && strncmp(base_name(module->path), "libpmem", 7) == 0;
}

void modules_unloaded(void)
{
	for (unsigned i = 0; i < CACHED_PAGES; i++)
		__atomic_store_n(&page_cache[i], 0, __ATOMIC_RELAXED);
	stale = true;
	runtime_stack_image = MODULES_IMAGE_UNKNOWN;
}
