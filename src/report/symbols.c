/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/symbols.h"

#include <ctype.h>
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/map.h"

/* ---- modules, opened once ---- */

struct opened {
	char path[SESSION_PATH];
	Dwfl *dwfl;
	Dwfl_Module *module;
	uint64_t start; /* address that libdwfl gave it, minus the address in the file */
	struct opened *next;
};
static struct opened *all;

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static struct opened *open_module(const char *path)
{
	struct opened *opened;
	GElf_Addr bias = 0;

	for (opened = all; opened; opened = opened->next)
		if (strcmp(opened->path, path) == 0)
			return opened;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		abort();
	snprintf(opened->path, sizeof(opened->path), "%s", path);
	opened->next = all;
	all = opened;
	opened->dwfl = dwfl_begin(&callbacks);
	if (!opened->dwfl)
		return opened;
	opened->module = dwfl_report_offline(opened->dwfl, path, path, -1);
	dwfl_report_end(opened->dwfl, NULL, NULL);
	if (opened->module && dwfl_module_getelf(opened->module, &bias))
		opened->start = bias;
	return opened;
}

Dwfl_Module *symbols_module(const char *path)
{
	return open_module(path)->module;
}

/* ---- names ---- */

char *symbols_demangle(const char *name)
{
	static char *(*function)(const char *, char *, size_t *, int *);
	static bool tried;
	int status = -1;
	char *text = NULL;

	if (!tried) {
		void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);

		tried = true;
		if (library)
			function = (__typeof__(function))dlsym(library, "__cxa_demangle");
	}
	if (function && strncmp(name, "_Z", 2) == 0)
		text = function(name, NULL, NULL, &status);
	return status == 0 ? text : strdup(name);
}

static char *skip_parentheses(char *p)
{
	int depth = 0;

	do
		depth += (*p == '(') - (*p == ')');
	while (*p++ && depth);
	return p;
}

/* Ends the name before its parameters: the first parenthesis that is no part of it. */
static void cut_parameters(char *text)
{
	int depth = 0; /* in template arguments */

	for (char *p = text; *p;) {
		if (strncmp(p, "operator", 8) == 0 && (p == text || !isalnum(p[-1]))) {
			p += 8;
			p += strspn(p, "<>=-!");
			p += strncmp(p, "()", 2) == 0 ? 2 : 0;
		} else if (strncmp(p, "decltype", 8) == 0) {
			p += strcspn(p, "(");
			p = skip_parentheses(p);
		} else if (strncmp(p, "(anonymous", 10) == 0 || (*p == '(' && depth)) {
			p = skip_parentheses(p);
		} else if (*p == '(') {
			*p = 0;
		} else {
			depth += (*p == '<') - (*p == '>');
			p++;
		}
	}
}

/* C++ functions by their full name without parameters; C functions as they are. */
static char *function_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *linkage =
		dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
	const char *name = dwarf_diename(die);
	char *text;

	if (!linkage)
		return strdup(name ? name : "?");
	text = symbols_demangle(linkage);
	cut_parameters(text);
	return text;
}

static char *relative_path(const char *path)
{
	static char directory[4096];
	size_t length;

	if (!directory[0] && !getcwd(directory, sizeof(directory)))
		return strdup(path);
	length = strlen(directory);
	if (strncmp(path, directory, length) == 0 && path[length] == '/')
		return strdup(path + length + 1);
	return strdup(path);
}

/* Takes "a/./b" and "a/b/../c" apart, by text only. */
static char *clean_path(const char *directory, const char *name)
{
	char *path = NULL, *out, *component, *rest;

	if (name[0] == '/' || !directory)
		path = strdup(name);
	else if (asprintf(&path, "%s/%s", directory, name) < 0)
		abort();
	if (path[0] != '/')
		return path;
	out = calloc(1, strlen(path) + 2);
	if (!out)
		abort();
	for (component = strtok_r(path, "/", &rest); component;
	     component = strtok_r(NULL, "/", &rest)) {
		if (strcmp(component, "..") == 0) {
			char *slash = strrchr(out, '/');

			if (slash)
				*slash = 0;
		} else if (strcmp(component, ".") != 0) {
			strcat(out, "/");
			strcat(out, component);
		}
	}
	free(path);
	return out;
}

static void set_file(struct frame_info *frame, Dwarf_Die *unit, const char *name)
{
	Dwarf_Attribute attribute;
	const char *directory;

	if (!name)
		return;
	directory = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
	frame->path = clean_path(directory, name);
	frame->file = relative_path(frame->path);
}

/* ---- one address: the frames inlined there, and the function around them ---- */

struct frames {
	struct frame_info *list;
	unsigned count, room;
};

static struct frame_info *add_frame(struct frames *frames, const char *module, uint64_t offset)
{
	if (frames->count == frames->room) {
		frames->room = frames->room ? frames->room * 2 : 16;
		frames->list = realloc(frames->list, frames->room * sizeof(*frames->list));
		if (!frames->list)
			abort();
	}
	frames->list[frames->count] =
		(struct frame_info){ .module = (char *)module, .offset = offset };
	return &frames->list[frames->count++];
}

/* The place where an inlined function was called. */
static void call_place(struct frame_info *frame, Dwarf_Die *unit, Dwarf_Die *inlined)
{
	Dwarf_Attribute attribute;
	Dwarf_Word file = 0, line = 0, column = 0;
	Dwarf_Files *files;
	size_t count;

	dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file);
	dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line);
	dwarf_formudata(dwarf_attr(inlined, DW_AT_call_column, &attribute), &column);
	if (dwarf_getsrcfiles(unit, &files, &count) == 0 && file < count)
		set_file(frame, unit, dwarf_filesrc(files, file, NULL, NULL));
	frame->line = line;
	frame->column = column;
}

static void line_place(struct frame_info *frame, Dwarf_Die *unit, Dwarf_Addr address)
{
	enum { BACK = 64 };
	Dwarf_Line *line = dwarf_getsrc_die(unit, address);
	int number = 0, column = 0;

	if (!line)
		return;
	dwarf_lineno(line, &number);
	/* Instructions that belong to no line stand behind some that do. */
	for (unsigned i = 1; !number && i < BACK; i++) {
		Dwarf_Line *before = dwarf_getsrc_die(unit, address - i);

		if (before && dwarf_lineno(before, &number) == 0 && number)
			line = before;
	}
	dwarf_linecol(line, &column);
	set_file(frame, unit, dwarf_linesrc(line, NULL, NULL));
	frame->line = number;
	frame->column = column;
}

/* clang writes no .debug_aranges, so the units have to be asked one by one. */
static Dwarf_Die *find_unit(struct opened *opened, Dwarf_Addr address, Dwarf_Addr *bias)
{
	Dwarf_Die *unit = dwfl_module_addrdie(opened->module, address, bias);

	if (unit)
		return unit;
	while ((unit = dwfl_module_nextcu(opened->module, unit, bias)))
		if (dwarf_haspc(unit, address - *bias) > 0)
			return unit;
	return NULL;
}

bool symbols_unit(const char *path, uint64_t offset, Dwarf_Die *unit, Dwarf_Addr *address)
{
	struct opened *opened = open_module(path);
	Dwarf_Addr bias = 0;
	Dwarf_Die *found = opened->module ? find_unit(opened, opened->start + offset, &bias) : NULL;

	if (!found)
		return false;
	*unit = *found;
	*address = opened->start + offset - bias;
	return true;
}

/* The innermost scope of an address in a function inside of another one: a method, a lambda. */
static bool find_hidden(Dwarf_Die *parent, Dwarf_Addr address, Dwarf_Die *found)
{
	Dwarf_Die child;

	if (dwarf_child(parent, &child) != 0)
		return false;
	do {
		bool here = dwarf_haspc(&child, address) > 0;

		if (find_hidden(&child, address, found))
			return true;
		if (here) {
			*found = child;
			return true;
		}
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

static bool add_from_dwarf(struct frames *frames, struct opened *opened, const char *path,
			   uint64_t offset)
{
	Dwarf_Addr bias = 0;
	Dwarf_Addr address = opened->start + offset;
	Dwarf_Die *unit = find_unit(opened, address, &bias);
	Dwarf_Die *scopes = NULL, *inner = NULL, innermost;
	struct frame_info *frame;
	int count;

	if (!unit)
		return false;
	address -= bias;
	count = dwarf_getscopes(unit, address, &scopes);
	if (count > 0)
		innermost = scopes[0];
	else if (!find_hidden(unit, address, &innermost))
		return false;
	/* The lexical nesting of the innermost concrete scope is the chain of inlined calls. */
	count = dwarf_getscopes_die(&innermost, &inner);
	free(scopes);
	frame = add_frame(frames, path, offset);
	line_place(frame, unit, address);
	for (int i = 0; i < count; i++) {
		int tag = dwarf_tag(&inner[i]);

		if (tag == DW_TAG_inlined_subroutine) {
			frame->function = function_name(&inner[i]);
			frame = add_frame(frames, path, offset);
			call_place(frame, unit, &inner[i]);
		} else if (tag == DW_TAG_subprogram) {
			frame->function = function_name(&inner[i]);
			break;
		}
	}
	free(inner);
	if (!frame->function)
		frame->function = strdup("?");
	return true;
}

static void look_up(struct frames *frames, const struct session_module *module, uint64_t offset)
{
	struct opened *opened = open_module(module->path);
	struct frame_info *frame;
	const char *symbol = NULL;
	GElf_Off inside = 0;
	GElf_Sym information;

	if (opened->module && add_from_dwarf(frames, opened, module->path, offset))
		return;
	frame = add_frame(frames, module->path, offset);
	if (opened->module)
		symbol = dwfl_module_addrinfo(opened->module, opened->start + offset, &inside,
					      &information, NULL, NULL, NULL);
	frame->function = symbol ? symbols_demangle(symbol) : strdup("?");
}

/* ---- addresses and stacks, each resolved once ---- */

static struct frames *known;
static size_t knowns;
static struct map by_address;

static void add_address(struct frames *frames, const struct session_module *module,
			uint64_t address)
{
	uint64_t offset = address - module->bias;
	const struct opened *opened = open_module(module->path);
	/* Of modules without anything to say, addresses may be equal: these are not worth it. */
	size_t at = opened->module ? map_get_or_put(&by_address, opened->start + offset + 1, knowns)
				   : knowns;
	const struct frames *found;

	if (!opened->module) {
		look_up(frames, module, offset);
		return;
	}
	if (at == knowns) {
		known = realloc(known, (knowns + 1) * sizeof(*known));
		if (!known)
			abort();
		known[knowns] = (struct frames){ 0 };
		look_up(&known[knowns++], module, offset);
	}
	found = &known[at];
	for (unsigned i = 0; i < found->count; i++)
		*add_frame(frames, module->path, offset) = found->list[i];
}

static struct site *cache;
static size_t cached, cache_room;
static struct map by_stack;

static bool is_runtime(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && strncmp(name, "/libperdure", 11) == 0;
}

/* A test that perdure-cc put into a function of its own. */
static bool is_helper(const struct frame_info *frame)
{
	return !frame->file && strncmp(frame->function, "__perdure.", 10) == 0;
}

/* What stands in for libc in symbolic builds. */
static bool is_libc(const struct frame_info *frame)
{
	return !frame->file && strncmp(frame->function, "perdure.libc.", 13) == 0;
}

static bool is_system(const char *path)
{
	return strncmp(path, "/usr/include/", 13) == 0 || strncmp(path, "/usr/lib/", 9) == 0;
}

/* libc and its like may have debug information, too. */
static bool is_system_library(const char *module)
{
	static const char *const names[] = { "libc.so",   "ld-linux",   "libpthread", "libstdc++",
					     "libgcc_s.", "libm.so",    "libperdure", "libasan",
					     "libubsan",  "linux-vdso", "librt.so" };
	const char *slash = module ? strrchr(module, '/') : NULL;
	const char *name = slash ? slash + 1 : module;

	for (size_t i = 0; name && i < sizeof(names) / sizeof(*names); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Not inside a library without source, nor in a header of the system such as <atomic>. */
static void choose_shown(struct site *site)
{
	site->shown = 0;
	for (unsigned i = 0; i < site->frames; i++)
		if (site->frame[i].path && !is_system(site->frame[i].path) &&
		    !is_system_library(site->frame[i].module)) {
			site->shown = i;
			return;
		}
	while (site->shown + 1 < site->frames && !site->frame[site->shown].path)
		site->shown++;
	if (site->frames && !site->frame[site->shown].path)
		site->shown = 0;
}

/* The start of a function that was called from a hook: only shown if it has no frame of its own. */
static bool is_repeated(const struct frames *frames, unsigned at,
			const struct session_module *module, uint64_t address)
{
	const struct frame_info *frame = &frames->list[at], *inner = frame - 1;
	struct opened *opened = open_module(module->path);
	GElf_Sym information;
	GElf_Off inside = 1;

	if (!at || !inner->function || strcmp(inner->function, frame->function) != 0 ||
	    !opened->module)
		return false;
	dwfl_module_addrinfo(opened->module, opened->start + address - module->bias, &inside,
			     &information, NULL, NULL, NULL);
	return inside == 0;
}

static void resolve(const struct session *session, uint32_t stack, struct site *site)
{
	struct frames frames = { 0 };
	uint32_t depth, image;
	const uint64_t *pc = stacks_get(&session->stacks, stack, &depth, &image);

	for (uint32_t i = 0; i < depth; i++) {
		const struct session_module *module = session_module_at(session, image, pc[i]);
		unsigned before = frames.count;

		if (!module) {
			add_frame(&frames, NULL, pc[i])->function = strdup("?");
			continue;
		}
		if (is_runtime(module->path))
			continue;
		/* A return address belongs to the call before it. */
		add_address(&frames, module, pc[i] - 1);
		if (frames.count > before && (is_helper(&frames.list[before]) ||
					      is_repeated(&frames, before, module, pc[i] - 1)))
			frames.count = before;
		if (frames.count > before && is_libc(&frames.list[before]))
			while (frames.count && !frames.list[frames.count - 1].file)
				frames.count--; /* and those that it is made of */
		if (frames.count > before &&
		    strcmp(frames.list[frames.count - 1].function, "main") == 0)
			break;
	}
	site->frame = frames.list;
	site->frames = frames.count;
	choose_shown(site);
}

void symbols_resolve(const struct session *session, uint32_t stack, struct site *site)
{
	size_t at;

	if (!stack) {
		site->frame = NULL;
		site->frames = site->shown = 0;
		return;
	}
	at = map_get_or_put(&by_stack, stack, cached);
	if (at == cached) {
		if (cached == cache_room) {
			cache_room = cache_room ? cache_room * 2 : 64;
			cache = realloc(cache, cache_room * sizeof(*cache));
			if (!cache)
				abort();
		}
		resolve(session, stack, &cache[cached++]);
	}
	site->frame = cache[at].frame;
	site->frames = cache[at].frames;
	site->shown = cache[at].shown;
}
