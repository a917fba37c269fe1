/* SPDX-License-Identifier: BSD-3-Clause */
/* Which objects are patched: the program, and libraries that are not known never to touch PM. */
#include <elf.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "binary/binary.h"
#include "heap/heap.h"
#include "races/races.h"
#include "runtime/elf_tables.h"
#include "runtime/execution.h"
#include "runtime/library.h"

enum { OBJECTS = 256 };

static struct patched {
	uintptr_t start, end;
} patched[OBJECTS];
static unsigned patched_count;

bool binary_is_patched(uintptr_t address)
{
	for (unsigned i = 0; i < patched_count; i++)
		if (address - patched[i].start < patched[i].end - patched[i].start)
			return true;
	return false;
}

/* ---- jumps that nobody knew of ---- */

bool binary_redirect(int number, void *context)
{
	greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	uintptr_t now = binary_moved_to((uintptr_t)*pc - (number == SIGTRAP));

	if (!now || (number != SIGTRAP && number != SIGILL))
		return false;
	*pc = (greg_t)now;
	__atomic_fetch_add(&runtime_session->redirected, 1, __ATOMIC_RELAXED);
	return true;
}

/* ---- one object ---- */

struct file {
	const char *bytes;
	size_t size;
};

static bool open_file(const char *path, struct file *file)
{
	int fd = REAL(open)(*path ? path : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat status;
	void *memory = MAP_FAILED;

	if (fd < 0)
		return false;
	if (fstat(fd, &status) == 0 && status.st_size > (off_t)sizeof(ElfW(Ehdr)))
		memory = REAL(mmap)(NULL, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	REAL(close)(fd);
	file->bytes = memory;
	file->size = status.st_size;
	return memory != MAP_FAILED;
}

static const ElfW(Shdr) * sections(const struct file *file, unsigned *count)
{
	const ElfW(Ehdr) *header = (const void *)file->bytes;

	*count = header->e_shnum;
	if (header->e_shoff > file->size ||
	    (file->size - header->e_shoff) / sizeof(ElfW(Shdr)) < header->e_shnum)
		*count = 0;
	return (const void *)(file->bytes + header->e_shoff);
}

/* Functions start at jump targets, whoever jumps. */
static void mark_functions(const struct file *file, uintptr_t bias, struct binary_text *text)
{
	unsigned count;
	const ElfW(Shdr) *section = sections(file, &count);

	for (unsigned i = 0; i < count; i++) {
		const ElfW(Sym) *symbol = (const void *)(file->bytes + section[i].sh_offset);

		if ((section[i].sh_type != SHT_SYMTAB && section[i].sh_type != SHT_DYNSYM) ||
		    section[i].sh_offset > file->size ||
		    file->size - section[i].sh_offset < section[i].sh_size)
			continue;
		for (size_t n = section[i].sh_size / sizeof(*symbol); n; n--, symbol++) {
			uintptr_t offset = bias + symbol->st_value - text->start;

			if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && offset < text->size &&
			    text->at[offset])
				text->list[text->at[offset] - 1].target = true;
		}
	}
}

static void put_into_place(const struct binary_text *text)
{
	uintptr_t start = text->start & ~4095ul;
	uintptr_t end = (text->start + text->size + text->padding + 4095) & ~4095ul;

	binary_seal();
	if (REAL(mprotect)((void *)start, end - start, PROT_READ | PROT_WRITE | PROT_EXEC) < 0) {
		session_limit(runtime_session, thread_owner(),
			      "this system does not let code be changed: programs that were not "
			      "built with perdure-cc cannot be followed");
		return;
	}
	plain_copy((void *)text->start, text->result, text->size + text->padding);
	REAL(mprotect)((void *)start, end - start, PROT_READ | PROT_EXEC);
}

/* Bytes up to the next section, in the same page. */
static uint32_t padding_of(const struct file *file, const ElfW(Shdr) * section)
{
	uint64_t end = section->sh_addr + section->sh_size, most = 8;
	unsigned count;
	const ElfW(Shdr) *other = sections(file, &count);

	if (most > -end % 4096)
		most = -end % 4096;
	for (unsigned i = 0; i < count; i++)
		if (other[i].sh_flags & SHF_ALLOC && other[i].sh_addr >= end &&
		    other[i].sh_addr - end < most)
			most = other[i].sh_addr - end;
	return (uint32_t)most;
}

static void understand(const struct file *file, const struct binary_object *object,
		       struct binary_text *text)
{
	uint32_t first = binary_site_count, unknown = binary_counts.unknown;

	if (binary_plan_load(object, text))
		return;
	binary_decode(text);
	mark_functions(file, object->bias, text);
	binary_plan_save(object, text, first, binary_counts.unknown - unknown);
}

/* As the command knows it. */
static const char *path_of_object(const struct binary_object *object)
{
	static char path[SESSION_PATH];
	ssize_t length;

	if (*object->path)
		return object->path;
	length = REAL(readlink)("/proc/self/exe", path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = 0;
	return path;
}

struct relocated {
	const struct file *file;
	uintptr_t bias;
};

/* By the relocation that fills it in. */
static const char *name_of_slot(const void *context, uintptr_t slot)
{
	const struct relocated *r = context;
	unsigned count;
	const ElfW(Shdr) *section = sections(r->file, &count);

	for (unsigned i = 0; i < count; i++) {
		const ElfW(Rela) *rela = (const void *)(r->file->bytes + section[i].sh_offset);
		const ElfW(Shdr) * symbols;

		if (section[i].sh_type != SHT_RELA || section[i].sh_link >= count ||
		    section[i].sh_offset > r->file->size ||
		    r->file->size - section[i].sh_offset < section[i].sh_size)
			continue;
		symbols = &section[section[i].sh_link];
		for (size_t n = section[i].sh_size / sizeof(*rela); n; n--, rela++) {
			const ElfW(Sym) *symbol =
				(const void *)(r->file->bytes + symbols->sh_offset);

			if (r->bias + rela->r_offset != slot || symbols->sh_link >= count ||
			    (ELF64_R_TYPE(rela->r_info) != R_X86_64_JUMP_SLOT &&
			     ELF64_R_TYPE(rela->r_info) != R_X86_64_GLOB_DAT))
				continue;
			symbol += ELF64_R_SYM(rela->r_info);
			return r->file->bytes + section[symbols->sh_link].sh_offset +
			       symbol->st_name;
		}
	}
	return NULL;
}

static void patch_section(const struct file *file, const struct binary_object *object,
			  const ElfW(Shdr) * section)
{
	struct binary_text text = {
		.start = object->bias + section->sh_addr,
		.size = section->sh_size,
		.padding = padding_of(file, section),
		.code = (uint8_t *)(object->bias + section->sh_addr),
		.result = binary_room(section->sh_size + 16),
		.taken = binary_room(section->sh_size + 16),
		.list = binary_room((section->sh_size + 1) * sizeof(*text.list)),
		.at = binary_room((section->sh_size + 1) * sizeof(*text.at)),
	};

	if (text.result && text.taken && text.list && text.at) {
		uint32_t first = binary_site_count;

		understand(file, object, &text);
		for (uint32_t i = first; runtime_races && i < binary_site_count; i++)
			binary_sites[i].known = learn_known(binary_sites[i].address);
		if (runtime_races && runtime_session->races.functions)
			binary_find_named(&text, object->bias, path_of_object(object));
		if (runtime_races && !runtime_session->races.discovers &&
		    !runtime_session->races.settings.minimal)
			binary_find_starts(&text, name_of_slot,
					   &(struct relocated){ file, object->bias });
		plain_copy(text.result, text.code, text.size + text.padding);
		binary_patch(&text);
		put_into_place(&text);
	}
	binary_release(text.result, text.size + 16);
	binary_release(text.taken, text.size + 16);
	binary_release(text.list, (text.size + 1ul) * sizeof(*text.list));
	binary_release(text.at, (text.size + 1ul) * sizeof(*text.at));
}

static void find_id(const struct file *file, struct binary_object *object)
{
	unsigned count;
	const ElfW(Shdr) *section = sections(file, &count);

	for (unsigned i = 0; i < count; i++) {
		const ElfW(Nhdr) *note = (const void *)(file->bytes + section[i].sh_offset);

		if (section[i].sh_type != SHT_NOTE || section[i].sh_offset > file->size ||
		    section[i].sh_size < sizeof(*note) + 8 ||
		    file->size - section[i].sh_offset < section[i].sh_size ||
		    note->n_type != NT_GNU_BUILD_ID || note->n_namesz != 4 ||
		    section[i].sh_size - sizeof(*note) - 4 < note->n_descsz)
			continue;
		object->id = (const uint8_t *)(note + 1) + 4;
		object->id_size = note->n_descsz;
	}
}

typedef void section_function(const struct file *, const struct binary_object *,
			      const ElfW(Shdr) *);

static void for_each_section(const char *path, uintptr_t bias, section_function *what)
{
	struct binary_object object = { .bias = bias, .path = path };
	const ElfW(Ehdr) * header;
	struct file file;
	unsigned count;
	const ElfW(Shdr) * section;

	if (!open_file(path, &file))
		return;
	header = (const void *)file.bytes;
	section = sections(&file, &count);
	find_id(&file, &object);
	for (unsigned i = 0; i < count; i++) {
		const char *name = header->e_shstrndx < count
					   ? file.bytes + section[header->e_shstrndx].sh_offset +
						     section[i].sh_name
					   : "";

		if (section[i].sh_type == SHT_PROGBITS && section[i].sh_flags & SHF_EXECINSTR &&
		    strncmp(name, ".text", 5) == 0)
			what(&file, &object, &section[i]);
	}
	REAL(munmap)((void *)file.bytes, file.size);
}

/* ---- all of them ---- */

/* What could not be patched may be missed. */
static void note_counts(const char *name)
{
	struct session *session = runtime_session;
	uint32_t lost = binary_counts.left + binary_counts.unknown;
	char text[SESSION_PATH];

	__atomic_fetch_add(&session->sites, binary_counts.sites + binary_counts.unknown,
			   __ATOMIC_RELAXED);
	__atomic_fetch_add(&session->sites_patched, binary_counts.patched, __ATOMIC_RELAXED);
	if (lost && strlen(name) < 200 && !session->races.discovers) {
		snprintf(text, sizeof(text),
			 "%s: %u of %u instructions that may touch PM could not be followed",
			 *name ? name : "the program", lost,
			 binary_counts.sites + binary_counts.unknown);
		session_limit(session, thread_owner(), text);
	}
	binary_counts = (struct binary_counts){ 0 };
}

static bool is_among(const char *name, const char (*globs)[SESSION_PATH], uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (fnmatch(globs[i], name, 0) == 0)
			return true;
	return false;
}

/* Libraries that are in many programs, and have nothing to do with PM; --patch adds them again. */
static bool never_touches_pm(const char *name)
{
	static const char *const starts[] = {
		"libbz2.",     "libcap.",     "libcrypto.", "libcrypt.",   "libcurl.",
		"libdaxctl.",  "libexpat.",   "libffi.",    "libgmp.",     "libkmod.",
		"liblz4.",     "liblzma.",    "libncurses", "libndctl.",   "libnuma.",
		"libpcre",     "libreadline", "libresolv.", "libselinux.", "libssl.",
		"libsystemd.", "libtinfo.",   "libudev.",   "libunwind",   "libLLVM",
		"libclang",    "libicu",      "libxml2.",   "libgnutls.",  "libkrb5",
		"libgssapi",   "libp11-kit",  "libuuid.",   "libz.",       "libzstd.",
		"libevent",    "libsqlite3.", "libnss_",
	};

	for (unsigned i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (strncmp(name, starts[i], strlen(starts[i])) == 0)
			return true;
	return modules_is_system(name);
}

/* The program itself has no name here. */
static bool is_wanted(const char *name)
{
	const struct session_options *options = &runtime_session->options;

	if (!*name)
		return true;
	if (strncmp(name, "libperdure", 10) == 0 || strncmp(name, "libZy", 5) == 0 ||
	    strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "linux-vdso", 10) == 0 ||
	    is_among(name, options->no_patch_glob, options->no_patch))
		return false;
	return is_among(name, options->patch_glob, options->patch) || !never_touches_pm(name);
}

/* There is something to patch. */
static bool get_ready(void)
{
	static enum { NOT_TRIED, READY, NEVER } state;

	if (state != NOT_TRIED)
		return state == READY;
	state = binary_decoder_start() ? READY : NEVER;
	if (state == NEVER) {
		session_limit(runtime_session, thread_owner(),
			      "libZydis.so.4.0 is not installed: programs and libraries that were "
			      "not built with perdure-cc cannot be followed");
		return false;
	}
	binary_entry_start();
	binary_signals_start();
	return true;
}

static const char *base_name(const struct dl_phdr_info *info)
{
	const char *slash = strrchr(info->dlpi_name, '/');

	return slash ? slash + 1 : info->dlpi_name;
}

static int consider(struct dl_phdr_info *info, size_t size, void *unused)
{
	const char *name = base_name(info);
	uintptr_t start = UINTPTR_MAX, end = 0;

	(void)size;
	(void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_LOAD)
			continue;
		start = from < start ? from : start;
		end = from + header->p_memsz > end ? from + header->p_memsz : end;
	}
	if (patched_count == OBJECTS || binary_is_patched(start) || !is_wanted(name) ||
	    modules_is_built(info) || !get_ready())
		return 0;
	patched[patched_count++] = (struct patched){ start, end };
	runtime_session->binary |= !*name;
	for_each_section(info->dlpi_name, info->dlpi_addr, patch_section);
	note_counts(name);
	return 0;
}

/* ---- when ---- */

/*
 * Code is patched when there is going to be PM. Until then programs run as they are: many that are
 * started along the way never have any. A second thread is the last moment, since code that runs
 * cannot be changed: unless nothing that is loaded could map anything.
 */
static enum { OFF, WAITING, ON, LEFT_ALONE } state;
static bool calm;

/* A program may map PM by a system call that nobody else sees. */
static void look_for_system_calls(const struct file *file, const struct binary_object *object,
				  const ElfW(Shdr) * section)
{
	static const uint8_t instruction[] = { 0x0f, 0x05 };
	struct binary_text text = {
		.start = object->bias + section->sh_addr,
		.size = section->sh_size,
		.code = (uint8_t *)(object->bias + section->sh_addr),
	};

	(void)file;
	if (calm && memmem(text.code, text.size, instruction, sizeof(instruction)))
		calm = binary_plan_is_calm(object, &text);
}

static int disturb(struct dl_phdr_info *info, size_t size, void *unused)
{
	const char *name = base_name(info);

	(void)size;
	(void)unused;
	/* PMDK's libraries ask whether they are watched when they are loaded. */
	if (modules_is_built(info) || strncmp(name, "libpmem", 7) == 0)
		calm = false;
	else if (is_wanted(name))
		for_each_section(info->dlpi_name, info->dlpi_addr, look_for_system_calls);
	return !calm;
}

static bool brings_pm(const struct elf_tables *tables, const ElfW(Rela) * relocation, size_t count)
{
	static const char *const names[] = { "mmap",   "mmap64",  "mremap",  "shmat",
					     "dlopen", "dlmopen", "syscall", "perdure_register" };

	for (; relocation && count; relocation++, count--) {
		const char *name =
			tables->text + tables->symbol[ELF64_R_SYM(relocation->r_info)].st_name;

		for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (strcmp(name, names[i]) == 0)
				return true;
	}
	return false;
}

static int can_map(struct dl_phdr_info *info, size_t size, void *unused)
{
	struct elf_tables tables;

	(void)size;
	(void)unused;
	if (!is_wanted(base_name(info)))
		return 0;
	return !elf_read_tables(info, &tables) ||
	       brings_pm(&tables, tables.relocation, tables.relocations) ||
	       brings_pm(&tables, tables.plt_relocation, tables.plt_relocations);
}

static bool can_wait(void)
{
	const struct session *session = runtime_session;

	calm = !session->executions.on && !session->options.patch && !__perdure_heap_used;
	if (calm)
		dl_iterate_phdr(disturb, NULL);
	return calm;
}

uint8_t binary_second_window = PERDURE_WINDOW_INDEX;

bool binary_ask_also(uintptr_t address)
{
	uintptr_t index = address >> PERDURE_WINDOW_SHIFT;

	if (state == WAITING && index < 128)
		binary_second_window = (uint8_t)index;
	binary_needed();
	return index == binary_second_window && patched_count;
}

void binary_start(void)
{
	if (runtime_session->options.second_window)
		binary_second_window = runtime_session->options.second_window - 1;
	state = can_wait() ? WAITING : ON;
	if (state == ON)
		dl_iterate_phdr(consider, NULL);
}

void binary_needed(void)
{
	if (state == LEFT_ALONE)
		session_limit(runtime_session, thread_owner(),
			      "PM appeared in a program that seemed unable to map any, when its "
			      "threads ran: use --patch '*' to follow it from the beginning");
	if (__builtin_expect(state != WAITING, 1))
		return;
	state = ON;
	dl_iterate_phdr(consider, NULL);
	runtime_involved = modules_any_instrumented();
	modules_unloaded(); /* what is known of objects is no longer true */
	modules_update();
	if (runtime_involved)
		library_hooks_update();
}

void binary_thread_starts(void)
{
	if (state == WAITING && dl_iterate_phdr(can_map, NULL))
		binary_needed();
	else if (state == WAITING)
		state = LEFT_ALONE;
}

void binary_update(void)
{
	if (state == WAITING && !can_wait())
		binary_needed();
	else if (state == ON)
		dl_iterate_phdr(consider, NULL);
}

static int still_there(struct dl_phdr_info *info, size_t size, void *object)
{
	const struct patched *p = object;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    info->dlpi_addr + info->dlpi_phdr[i].p_vaddr - p->start < p->end - p->start)
			return 1;
	return 0;
}

void binary_unloaded(void)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < patched_count; i++)
		if (dl_iterate_phdr(still_there, &patched[i]))
			patched[kept++] = patched[i];
	patched_count = kept;
}
