/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts hooks on the functions that library models describe. A function of a prebuilt library is
 * hooked where it is called from: in the tables through which other objects reach it. A function
 * that was built with perdure-cc starts with a 5-byte nop, and is hooked right there, so that calls
 * inside its own object are seen, too.
 *
 * Cannot see: calls inside a prebuilt object, and functions that were inlined.
 */
#include "runtime/library.h"

#include <elf.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary/binary.h"
#include "model/spin.h"
#include "runtime/elf_tables.h"
#include "runtime/hooks.h"

enum { HOOKS = 8192, NAMES = 8192, OBJECTS = 1024, STUB = 64, STUBS = 4096 / STUB };

/* ---- functions by name ---- */

/* What is known of each function of the models, in this process. */
struct target {
	void *first;   /* the first definition of the name, whoever's */
	void *real;    /* the one that the model is about; null: not there yet */
	void *stub;    /* what callers are to call instead; null: no hook wanted */
	bool at_entry; /* the hook is in the function itself */
};
static struct target target[LIBRARY_FUNCTIONS];
static uint16_t by_name[NAMES]; /* index + 1 */
static bool indexed;

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static void index_names(void)
{
	const struct library_table *table = &runtime_session->library;

	indexed = true;
	for (uint32_t i = 0; i < table->functions; i++) {
		uint32_t at = hash_name(library_text(table, table->function[i].name));

		while (by_name[at % NAMES])
			at++;
		by_name[at % NAMES] = i + 1;
	}
}

/* Index + 1 of the function of this name; 0 if no model describes it. */
static uint32_t find_name(const char *name)
{
	const struct library_table *table = &runtime_session->library;

	for (uint32_t at = hash_name(name);; at++) {
		uint32_t index = by_name[at % NAMES];

		if (!index ||
		    strcmp(library_text(table, table->function[index - 1].name), name) == 0)
			return index;
	}
}

/* ---- hooks and their stubs ---- */

static struct library_hook hooks[HOOKS];
static void *stub_of[HOOKS];
static uint32_t hook_count;

/* Stubs are written to fresh pages, which become executable when they are complete. */
static struct {
	unsigned char *page;
	unsigned used;
} stubs;

const struct library_hook *library_hook(uint32_t index)
{
	return &hooks[index];
}

static void seal_stubs(void)
{
	if (stubs.page)
		mprotect(stubs.page, 4096, PROT_READ | PROT_EXEC);
	stubs.page = NULL;
}

/* A page within reach of a jump from `near`; anywhere if that is null. */
static unsigned char *map_near(uintptr_t near)
{
	enum { STEP = 1 << 20, TRIES = 1024 };
	void *page;

	for (unsigned i = 1; near && i < TRIES; i++) {
		page = REAL(mmap)((void *)((near & ~4095ull) - i * (uintptr_t)STEP), 4096,
				  PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (page != MAP_FAILED)
			return page;
	}
	page = near ? MAP_FAILED
		    : REAL(mmap)(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);
	return page == MAP_FAILED ? NULL : page;
}

static bool is_near(const void *a, uintptr_t b)
{
	intptr_t distance = (intptr_t)a - (intptr_t)b;

	return distance < 1l << 30 && distance > -(1l << 30);
}

static unsigned char *new_stub(uintptr_t near)
{
	if (stubs.page && (stubs.used == STUBS || (near && !is_near(stubs.page, near))))
		seal_stubs();
	if (!stubs.page) {
		stubs.page = map_near(near);
		stubs.used = 0;
	}
	return stubs.page ? stubs.page + STUB * stubs.used++ : NULL;
}

struct writer {
	unsigned char *at;
};

static void put(struct writer *w, const void *bytes, size_t count)
{
	memcpy(w->at, bytes, count);
	w->at += count;
}

static void put32(struct writer *w, uint32_t value)
{
	put(w, &value, sizeof(value));
}

/* jmp *place(%rip) */
static void put_jump(struct writer *w, const void *place)
{
	put(w, "\xff\x25", 2);
	put32(w, (const unsigned char *)place - (w->at + 4));
}

static uint32_t thread_offset(const void *variable)
{
	return (uintptr_t)variable - (uintptr_t)__builtin_thread_pointer();
}

/* If nothing is pending, a fence has only to be remembered as a store. */
static void put_fast_path(struct writer *w, const void *real)
{
	put(w, "\x64\x80\x3c\x25", 4); /* cmpb $0, %fs:pending */
	put32(w, thread_offset(&__perdure_inline.pending));
	put(w, "\x00\x75\x0f", 3);     /* jne past the jump */
	put(w, "\x64\xc6\x04\x25", 4); /* movb $1, %fs:stored */
	put32(w, thread_offset(&__perdure_inline.stored));
	put(w, "\x01", 1);
	put_jump(w, real);
}

/* The stub: put the hook's number into r11 and go to the common code. */
static void *write_stub(const struct library_hook *hook, uintptr_t near)
{
	unsigned char *stub = new_stub(near);
	void *entry = (void *)library_call_entry;
	struct writer w = { stub };

	if (!stub)
		return NULL;
	memcpy(stub + STUB - 8, &entry, sizeof(entry));
	memcpy(stub + STUB - 16, &hook->real, sizeof(hook->real));
	if (hook->fence_only)
		put_fast_path(&w, stub + STUB - 16);
	put(&w, "\x41\xbb", 2); /* mov $number, %r11d */
	put32(&w, hook - hooks);
	put_jump(&w, stub + STUB - 8);
	return stub;
}

/* Which effects are left if the function's own code tells what it does to memory. */
static bool is_told(const struct library_effect *effect, bool instrumented)
{
	if (effect->verb <= LIBRARY_RETURNS)
		return false;
	if (effect->verb == LIBRARY_GIVES)
		return !instrumented;
	return !instrumented || effect->verb == LIBRARY_STORE || effect->verb > LIBRARY_VOLATILE;
}

static void note_servant(uint64_t pc)
{
	struct session *session = runtime_session;

	for (uint32_t i = 0; i < session->servants; i++)
		if (session->servant[i] == pc)
			return;
	if (session->servants < SESSION_SERVANTS)
		session->servant[session->servants++] = pc;
}

/* Fills in the hook of a function; false if there would be nothing for it to do. */
static bool describe_hook(struct library_hook *hook, const struct library_function *function,
			  void *real, bool instrumented)
{
	const struct library_table *table = &runtime_session->library;
	/* Under check, what a prebuilt library with transactions changes is looked for. */
	bool has_own_data = !instrumented && runtime_session->executions.on &&
			    table->library[function->library].transactional;
	/* … and who knows of what: locks are more than fences. */
	bool wanted = has_own_data,
	     fence_only = !runtime_wants_loads && !has_own_data && !runtime_session->executions.on;
	bool patched = binary_is_patched((uintptr_t)real), serves = false;

	for (unsigned i = 0; i < function->effects; i++) {
		const struct library_effect *effect = &table->effect[function->effect + i];

		if (effect->verb == LIBRARY_NO_CALL || effect->verb == LIBRARY_RETURNS)
			wanted |= !instrumented;
		/* Who asks for a flush is to blame for it: stacks shall have this function. */
		if (patched && effect->verb <= LIBRARY_VOLATILE && effect->verb > LIBRARY_RETURNS) {
			wanted = serves = true;
			fence_only = false;
		}
		wanted |= patched && effect->verb == LIBRARY_GIVES;
		if (!is_told(effect, instrumented))
			continue;
		wanted = true;
		fence_only &= effect->verb >= LIBRARY_LOCK && effect->verb <= LIBRARY_ORDER;
	}
	*hook = (struct library_hook){
		.function = function,
		.real = real,
		.instrumented = instrumented,
		.patched = patched,
		.fence_only = fence_only && wanted,
	};
	if (serves)
		note_servant(stack_entry(real));
	return wanted;
}

static void *add_hook(const struct library_hook *hook, uintptr_t near)
{
	void *stub;

	if (hook_count == HOOKS) {
		session_limit(runtime_session, thread_owner(),
			      "libraries were loaded too often: their functions are not followed");
		return NULL;
	}
	hooks[hook_count] = *hook;
	stub = write_stub(&hooks[hook_count], near);
	if (stub)
		stub_of[hook_count++] = stub;
	return stub;
}

/* ---- objects ---- */

struct object {
	uintptr_t bias, low, high;
	const char *path; /* "" for the executable */
	const ElfW(Phdr) * header;
	int headers;
	struct elf_tables tables;
	bool instrumented, trusted, own;
};

static struct object objects[OBJECTS]; /* of the update that is under way */
static unsigned object_count;
static struct object runtime_object; /* this library */
static struct known_object {
	uintptr_t bias;
	uint32_t name;
} known[OBJECTS]; /* has been looked at before */
static unsigned known_count;

static int note_object(struct dl_phdr_info *info, size_t size, void *unused)
{
	struct object *object = &objects[object_count];

	(void)size;
	(void)unused;
	if (object_count == OBJECTS)
		return 1;
	*object = (struct object){
		.bias = info->dlpi_addr,
		.low = UINTPTR_MAX,
		.path = info->dlpi_name,
		.header = info->dlpi_phdr,
		.headers = info->dlpi_phnum,
	};
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		if (start < object->low)
			object->low = start;
		if (start + info->dlpi_phdr[i].p_memsz > object->high)
			object->high = start + info->dlpi_phdr[i].p_memsz;
	}
	if ((uintptr_t)note_object - object->low < object->high - object->low) {
		runtime_object = *object;
		elf_read_tables(info, &runtime_object.tables);
		return 0;
	}
	object->own =
		strstr(object->path, "/libperdure-heap") || strstr(object->path, "linux-vdso");
	if (!object->own && elf_read_tables(info, &object->tables))
		object_count++;
	return 0;
}

static void note_objects(void)
{
	object_count = 0;
	dl_iterate_phdr(note_object, NULL);
	for (unsigned i = 0; i < object_count; i++) {
		struct object *object = &objects[i];

		object->instrumented = modules_instrumented((void *)object->low);
		object->trusted = modules_trusted(object->low);
	}
}

/* Adds it to the objects that need no second look; true if it was there. */
static bool is_known(const struct object *object)
{
	uint32_t name = hash_name(object->path);

	for (unsigned i = 0; i < known_count; i++)
		if (known[i].bias == object->bias && known[i].name == name)
			return true;
	if (known_count < OBJECTS)
		known[known_count++] = (struct known_object){ object->bias, name };
	return false;
}

/* ---- where functions are ---- */

/* Is this object where the model expects its functions? */
static bool belongs(const struct library *library, const struct object *object)
{
	const char *glob = library_text(&runtime_session->library, library->glob);
	const char *slash = strrchr(object->path, '/');

	return fnmatch(glob, slash ? slash + 1 : object->path, 0) == 0;
}

/* Room for a jump at the start of the function, behind an endbr64; null if there is none. */
static unsigned char *entry_nop(uintptr_t address)
{
	static const unsigned char endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const unsigned char nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x08 };
	unsigned char *code = (unsigned char *)address;

	if (memcmp(code, endbr, sizeof(endbr)) == 0)
		code += sizeof(endbr);
	return memcmp(code, nop, sizeof(nop)) == 0 ? code : NULL;
}

static bool patch_entry(unsigned char *code, const void *stub)
{
	uintptr_t start = (uintptr_t)code & ~4095ull;
	uintptr_t end = ((uintptr_t)code + 5 + 4095) & ~4095ull;
	int32_t distance = (const unsigned char *)stub - (code + 5);

	if (REAL(mprotect)((void *)start, end - start, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
		return false;
	memcpy(code + 1, &distance, sizeof(distance));
	code[0] = 0xe9;
	REAL(mprotect)((void *)start, end - start, PROT_READ | PROT_EXEC);
	return true;
}

static void note_unseen(const char *library)
{
	char text[SESSION_PATH];
	size_t length = strlen(library);

	if (length > 128)
		return;
	memcpy(text, library, length);
	strcpy(text + length, ": linked statically and not built with perdure-cc, so what its "
			      "functions do is not seen; link the shared library instead");
	session_limit(runtime_session, thread_owner(), text);
}

static void note_unhookable(const char *name)
{
	static const char end[] =
		": it does not start with perdure-cc's nop, so calls of it inside its "
		"own object are not seen";
	char text[SESSION_PATH];
	size_t length = strlen(name);

	if (length > 256)
		return;
	memcpy(text, name, length);
	memcpy(text + length, end, sizeof(end));
	session_limit(runtime_session, thread_owner(), text);
}

/* A definition of a modelled function has been found. */
static void define(uint32_t index, uintptr_t address, const struct object *object)
{
	const struct library_table *table = &runtime_session->library;
	const struct library_function *function = &table->function[index];
	const struct library *library = &table->library[function->library];
	bool fits = belongs(library, object), instrumented = object->instrumented;
	unsigned char *nop = instrumented ? entry_nop(address) : NULL;
	struct library_hook hook;

	if (target[index].real || (!fits && !(library->anywhere && instrumented)))
		return;
	target[index].real = (void *)address;
	runtime_session->library.function[index].found = true;
	if (instrumented && !nop && !fits) {
		note_unseen(library_text(table, library->glob));
		return;
	}
	if (instrumented && !nop && function->effects && !binary_is_patched(address))
		note_unhookable(library_text(table, function->name));
	if (!describe_hook(&hook, function, (void *)address,
			   instrumented && !object->trusted && (nop || fits)))
		return;
	/* Calls inside the library are its own; inside a program they are the program's. */
	if (fits && *object->path && strcmp(library_text(table, library->glob), "*") != 0) {
		hook.low = object->low;
		hook.high = object->high;
	}
	if (nop) {
		hook.real = nop + 5;
		target[index].stub = add_hook(&hook, (uintptr_t)nop);
		target[index].at_entry = target[index].stub && patch_entry(nop, target[index].stub);
		if (target[index].at_entry)
			return;
		hook.real = (void *)address;
	}
	target[index].stub = add_hook(&hook, 0);
}

static void find_in_tables(const struct object *object)
{
	const struct library_table *table = &runtime_session->library;

	for (uint32_t i = 0; i < table->functions; i++) {
		uintptr_t address, own;

		if (target[i].real)
			continue;
		address = elf_find_function(object->bias, &object->tables,
					    library_text(table, table->function[i].name));
		if (!address)
			continue;
		own = elf_find_function(runtime_object.bias, &runtime_object.tables,
					library_text(table, table->function[i].name));
		if (own && belongs(&table->library[table->function[i].library], object))
			address = own; /* threads: what callers get is the runtime's */
		if (!target[i].first)
			target[i].first = (void *)address;
		define(i, address, object);
	}
}

/* The optimiser may have changed what a static function is passed: does a model need to know? */
static bool may_be_static(const struct library_function *function)
{
	for (unsigned i = 0; i < function->effects; i++) {
		const struct library_effect *effect =
			&runtime_session->library.effect[function->effect + i];

		if (effect->verb != LIBRARY_CALL && effect->verb != LIBRARY_VERIFY_BEGIN &&
		    effect->verb != LIBRARY_VERIFY_END)
			return false;
	}
	return function->effects != 0;
}

/* An executable's own functions are only in the file's symbol table. */
static void find_in_symbols(const struct object *object, const char *file, size_t size)
{
	const ElfW(Ehdr) *header = (const void *)file;
	const ElfW(Shdr) *section = (const void *)(file + header->e_shoff);

	if (size < sizeof(*header) || header->e_shoff > size ||
	    (size - header->e_shoff) / sizeof(*section) < header->e_shnum)
		return;
	for (unsigned i = 0; i < header->e_shnum; i++) {
		const ElfW(Shdr) *text = &section[section[i].sh_link];
		const ElfW(Sym) *symbol = (const void *)(file + section[i].sh_offset);

		if (section[i].sh_type != SHT_SYMTAB || section[i].sh_link >= header->e_shnum ||
		    section[i].sh_offset > size ||
		    size - section[i].sh_offset < section[i].sh_size || text->sh_offset > size ||
		    size - text->sh_offset < text->sh_size)
			continue;
		for (size_t n = section[i].sh_size / sizeof(*symbol); n; n--, symbol++) {
			uint32_t index;

			if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !symbol->st_shndx ||
			    symbol->st_name >= text->sh_size)
				continue;
			index = find_name(file + text->sh_offset + symbol->st_name);
			if (index && (ELF64_ST_BIND(symbol->st_info) != STB_LOCAL ||
				      may_be_static(&runtime_session->library.function[index - 1])))
				define(index - 1, object->bias + symbol->st_value, object);
		}
	}
}

static void find_in_file(const struct object *object)
{
	int fd = REAL(open)(*object->path ? object->path : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat status;
	void *file;

	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && status.st_size > 0) {
		file = REAL(mmap)(NULL, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (file != MAP_FAILED) {
			find_in_symbols(object, file, status.st_size);
			REAL(munmap)(file, status.st_size);
		}
	}
	REAL(close)(fd);
}

/* ---- where they are called from ---- */

static int relro_protection(const struct object *object, uintptr_t slot)
{
	for (int i = 0; i < object->headers; i++) {
		const ElfW(Phdr) *header = &object->header[i];
		uintptr_t start = object->bias + header->p_vaddr;

		if (header->p_type == PT_GNU_RELRO && slot - start < header->p_memsz)
			return PROT_READ;
	}
	return PROT_READ | PROT_WRITE;
}

static void patch_slot(const struct object *object, uintptr_t slot, void *stub)
{
	void *page = (void *)(slot & ~4095ull);
	int before = relro_protection(object, slot);

	if (!(before & PROT_WRITE) && REAL(mprotect)(page, 4096, PROT_READ | PROT_WRITE) < 0) {
		session_limit(runtime_session, thread_owner(),
			      "this system does not let tables of functions be changed: library "
			      "models are not used everywhere");
		return;
	}
	*(void **)slot = stub;
	if (!(before & PROT_WRITE))
		REAL(mprotect)(page, 4096, before);
}

/*
 * Does a call through this slot reach the function? The slot may lead to a function of the same
 * name that somebody put in front, or to the executable's entry for it, which is patched itself; or
 * it is not bound yet, and still points into its own object.
 */
static bool leads_to(const struct object *object, const void *value, const struct target *to,
		     bool may_be_unbound)
{
	bool unbound = (uintptr_t)value - object->low < object->high - object->low;

	if (!to->stub || to->at_entry)
		return false;
	return value == to->real || (may_be_unbound && unbound && to->first == to->real);
}

static void patch_relocations(const struct object *object, const ElfW(Rela) * entry, size_t count)
{
	for (; count; count--, entry++) {
		uint32_t type = ELF64_R_TYPE(entry->r_info), index;
		const ElfW(Sym) *symbol = &object->tables.symbol[ELF64_R_SYM(entry->r_info)];

		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT &&
		    !(type == R_X86_64_64 && !entry->r_addend))
			continue;
		index = find_name(object->tables.text + symbol->st_name);
		if (index &&
		    leads_to(object, *(void **)(object->bias + entry->r_offset), &target[index - 1],
			     type == R_X86_64_JUMP_SLOT && !symbol->st_shndx))
			patch_slot(object, object->bias + entry->r_offset, target[index - 1].stub);
	}
}

static void patch_callers(const struct object *object)
{
	patch_relocations(object, object->tables.plt_relocation, object->tables.plt_relocations);
	patch_relocations(object, object->tables.relocation, object->tables.relocations);
}

/* ---- all of it ---- */

static uint32_t update_lock;

static bool is_loaded(uintptr_t address)
{
	for (unsigned i = 0; i < object_count; i++)
		if (address - objects[i].low < objects[i].high - objects[i].low)
			return true;
	return address - runtime_object.low < runtime_object.high - runtime_object.low;
}

static void forget_unloaded(void)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < known_count; i++)
		for (unsigned j = 0; j < object_count; j++)
			if (objects[j].bias == known[i].bias &&
			    hash_name(objects[j].path) == known[i].name) {
				known[kept++] = known[i];
				break;
			}
	known_count = kept;
	for (unsigned i = 0; i < LIBRARY_FUNCTIONS; i++)
		if ((target[i].real && !is_loaded((uintptr_t)target[i].real)) ||
		    (target[i].first && !is_loaded((uintptr_t)target[i].first)))
			target[i] = (struct target){ 0 };
}

void library_hooks_update(void)
{
	bool locked = spin_lock(&update_lock, thread_owner()), fresh[OBJECTS];

	if (!indexed)
		index_names();
	note_objects();
	for (unsigned i = 0; i < object_count; i++)
		fresh[i] = !is_known(&objects[i]);
	for (unsigned i = 0; i < object_count; i++) {
		if (!fresh[i])
			continue;
		find_in_tables(&objects[i]);
		if (objects[i].instrumented)
			find_in_file(&objects[i]);
	}
	seal_stubs();
	for (unsigned i = 0; i < object_count; i++)
		if (fresh[i] && !objects[i].trusted)
			patch_callers(&objects[i]);
	if (locked)
		spin_unlock(&update_lock);
}

/* At once: what comes next may be loaded at the same place. */
void library_hooks_unloaded(void)
{
	bool locked = spin_lock(&update_lock, thread_owner());

	note_objects();
	forget_unloaded();
	if (locked)
		spin_unlock(&update_lock);
}

void *library_hooks_wrap(const struct library_function *function, void *real)
{
	bool locked = spin_lock(&update_lock, thread_owner());
	struct library_hook hook;
	void *stub = NULL;

	for (uint32_t i = 0; i < hook_count && !stub; i++)
		if (hooks[i].function == function && hooks[i].real == real)
			stub = stub_of[i];
	if (!stub && real && describe_hook(&hook, function, real, modules_instrumented(real))) {
		stub = add_hook(&hook, 0);
		seal_stubs();
	}
	if (locked)
		spin_unlock(&update_lock);
	return stub ? stub : real;
}

const void *library_hooks_behind(const void *address)
{
	for (uint32_t i = 0; i < hook_count; i++)
		if (stub_of[i] == address)
			return hooks[i].real;
	return address;
}

void *library_hooks_address(uint32_t index)
{
	return target[index].real;
}

/* What dlsym is to answer, or where it is to go. */
struct dlsym_answer {
	void *address;
	uint64_t is_answer;
};
HIDDEN struct dlsym_answer library_dlsym(void *handle, const char *name, uintptr_t caller);

struct dlsym_answer library_dlsym(void *handle, const char *name, uintptr_t caller)
{
	uint32_t index = runtime_session && indexed && name ? find_name(name) : 0;
	const struct target *found = index ? &target[index - 1] : NULL;
	void *address;

	if (!found || !found->stub || found->at_entry)
		return (struct dlsym_answer){ (void *)REAL(dlsym), 0 };
	/* The loader would take this library for the caller. */
	address = handle == RTLD_NEXT ? real_find_after(caller, name) : REAL(dlsym)(handle, name);
	if (!address)
		return (struct dlsym_answer){ (void *)REAL(dlsym), 0 };
	return (struct dlsym_answer){ address == found->real ? found->stub : address, 1 };
}
