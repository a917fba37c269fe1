/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/atomicity.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "model/map.h"
#include "report/source.h"
#include "report/symbols.h"
#include "report/types.h"

enum atomicity { UNKNOWN, PLAIN, SINGLE };

/* Two answers about one name: they agree, or nobody knows. */
static enum atomicity both(enum atomicity a, enum atomicity b)
{
	return !a ? b : !b || a == b ? a : UNKNOWN;
}

/* ---- types ---- */

static bool is_atomic_class(Dwarf_Die *type)
{
	const char *name = dwarf_diename(type);

	return name && (strncmp(name, "atomic<", 7) == 0 || strncmp(name, "__atomic_", 9) == 0 ||
			strncmp(name, "atomic_flag", 11) == 0);
}

/* Of what has this type; `through`: of what it points to. */
static enum atomicity of_type(Dwarf_Die type, bool through)
{
	for (int step = 0; step < 16; step++) {
		switch (dwarf_tag(&type)) {
		case DW_TAG_volatile_type:
		case DW_TAG_atomic_type:
			if (!through)
				return SINGLE;
			break;
		case DW_TAG_pointer_type:
		case DW_TAG_reference_type:
			if (!through)
				return PLAIN;
			through = false;
			break;
		case DW_TAG_array_type:
			through = false;
			break;
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_restrict_type:
			break;
		default:
			return is_atomic_class(&type) ? SINGLE : PLAIN;
		}
		if (!types_resolve(&type, &type))
			return PLAIN; /* void */
	}
	return UNKNOWN;
}

static bool has_members(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
	       tag == DW_TAG_union_type || tag == DW_TAG_namespace || tag == DW_TAG_subprogram ||
	       tag == DW_TAG_lexical_block;
}

/* Of all members of this name. `elements`: of what they point to. */
static enum atomicity of_member(Dwarf_Die *parent, const char *name, bool elements)
{
	enum atomicity result = UNKNOWN;
	Dwarf_Die child, type;

	if (dwarf_child(parent, &child) != 0)
		return UNKNOWN;
	do {
		const char *own = dwarf_diename(&child);

		if (dwarf_tag(&child) == DW_TAG_member && own && strcmp(own, name) == 0 &&
		    types_resolve(&child, &type)) {
			enum atomicity found = of_type(type, elements);

			if (result && found != result)
				return UNKNOWN;
			result = found;
		} else if (has_members(dwarf_tag(&child))) {
			enum atomicity found = of_member(&child, name, elements);

			if (result && found && found != result)
				return UNKNOWN;
			result = both(result, found);
		}
	} while (dwarf_siblingof(&child, &child) == 0);
	return result;
}

static bool find_variable(Dwarf_Die *unit, Dwarf_Addr address, const char *name, Dwarf_Die *type)
{
	Dwarf_Die *scopes, variable;
	int count = dwarf_getscopes(unit, address, &scopes);
	bool found =
		count > 0 && dwarf_getscopevar(scopes, count, name, 0, NULL, 0, 0, &variable) >= 0;

	if (count > 0)
		free(scopes);
	return found && types_resolve(&variable, type);
}

/* ---- what a line says ---- */

/* Does a name in it start like one of these? */
static bool contains(const char *text, const char *const *words)
{
	for (; *words; words++)
		for (const char *at = text; (at = strstr(at, *words)); at++)
			if (at == text || !source_is_name(at[-1]) || !source_is_name(**words))
				return true;
	return false;
}

/* The C++ library's own atomics. */
static bool is_atomic_header(const char *path)
{
	static const char *const names[] = { "/atomic", "/atomic_base.h", "/atomic_wait.h",
					     "/std_atomic.h", "/stdatomic.h" };
	size_t length = strlen(path);

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t own = strlen(names[i]);

		if (strstr(path, "/include/") && length > own &&
		    strcmp(path + length - own, names[i]) == 0)
			return true;
	}
	return false;
}

/* The first name in an lvalue, and the last one, if it is a member. */
struct lvalue {
	char first[64], member[64];
	bool through;        /* the variable itself is a pointer, or an array, to what is stored */
	bool member_through; /* … and so is the member */
	bool cast;           /* what the name says is overruled */
};

static const char *copy_name(const char *at, char *name, size_t size)
{
	size_t length = 0;

	while (source_is_name(at[length]))
		length++;
	if (length < size) {
		memcpy(name, at, length);
		name[length] = 0;
	}
	return at + length;
}

static const char *skip_brackets(const char *at, char open, char close)
{
	int depth = 0;

	do {
		depth += *at == open;
		depth -= *at == close;
	} while (*at++ && depth);
	return at;
}

static void take_apart(const char *text, struct lvalue *lvalue)
{
	bool deref = false;

	*lvalue = (struct lvalue){ 0 };
	for (; *text && !source_is_name(*text); text++) {
		deref |= *text == '*';
		if (*text == '(' && text[1] != '*' && text[1] != '(') {
			const char *end = skip_brackets(text, '(', ')');

			if (source_is_name(*end) || *end == '(' || *end == '&') { /* (type *)… */
				lvalue->cast = true;
				return;
			}
		}
	}
	text = copy_name(text, lvalue->first, sizeof(lvalue->first));
	while (*text) {
		if (*text == '[') {
			text = skip_brackets(text, '[', ']');
			if (*lvalue->member)
				lvalue->member_through = true;
			else
				lvalue->through = true;
		} else if (*text == '(') {
			text = skip_brackets(text, '(', ')');
			*lvalue->first = 0; /* a call: its result has no name */
		} else if ((text[0] == '-' && text[1] == '>') || *text == '.') {
			lvalue->through |= *text == '-' && !*lvalue->member;
			lvalue->member_through = false;
			text += *text == '-' ? 2 : 1;
			while (*text == ' ')
				text++;
			text = copy_name(text, lvalue->member, sizeof(lvalue->member));
		} else {
			text++;
		}
	}
	if (*lvalue->member)
		lvalue->member_through |= deref;
	else
		lvalue->through |= deref;
}

/* Of the lvalue, as the names in it are declared. */
static enum atomicity of_lvalue(const char *text, const char *module, uint64_t offset)
{
	enum atomicity variable = UNKNOWN;
	struct lvalue lvalue;
	Dwarf_Addr address;
	Dwarf_Die unit, type;

	take_apart(text, &lvalue);
	if (lvalue.cast)
		return PLAIN; /* volatile would have been seen */
	if (!symbols_unit(module, offset, &unit, &address))
		return UNKNOWN;
	if (*lvalue.first && find_variable(&unit, address, lvalue.first, &type))
		variable = of_type(type, lvalue.through);
	if (!*lvalue.member) /* in a method, the name may be that of a member */
		return variable ? variable : of_member(&unit, lvalue.first, lvalue.through);
	if (variable == SINGLE)
		return SINGLE;
	return of_member(&unit, lvalue.member, lvalue.member_through);
}

/* The only assignment of a line. */
static char *only_assignment(const char *path, unsigned line)
{
	const char *text = source_line(path, line);
	char *found = NULL;

	for (unsigned i = 0; text && text[i]; i++) {
		bool assigns = text[i] == '=' && text[i + 1] != '=' &&
			       (!i || !strchr("=!<>+-*/%&|^", text[i - 1]));
		bool changes = (text[i] == '=' && i && text[i + 1] != '=' &&
				strchr("+-*/%&|^", text[i - 1])) ||
			       strncmp(text + i, "++", 2) == 0 || strncmp(text + i, "--", 2) == 0;
		char *target;

		if (text[i] == '/' && (text[i + 1] == '*' || text[i + 1] == '/'))
			break;
		if (!assigns && !changes)
			continue;
		target = source_target(path, line, assigns || text[i] != '=' ? i + 1 : i);
		if (found && target) {
			free(found);
			free(target);
			return NULL;
		}
		found = target ? target : found;
		i += text[i] != '=';
	}
	return found;
}

static enum atomicity of_frame(const struct frame_info *frame)
{
	static const char *const single[] = { "atomic_",  "__atomic_",   "_Atomic",    "__sync_",
					      "volatile", ".store(",     "->store(",   "WRITE_ONCE",
					      "asm",      "ACCESS_ONCE", "_mm_stream", NULL };
	static const char *const copies[] = { "memcpy(",  "memmove(", "memset(", "strcpy(",
					      "strncpy(", "bzero(",   NULL };
	const char *text = source_line(frame->path, frame->line);
	enum atomicity result;
	char *target;

	if (frame->path && is_atomic_header(frame->path))
		return SINGLE;
	if (!text)
		return UNKNOWN;
	if (contains(text, single))
		return SINGLE;
	if (contains(text, copies))
		return PLAIN;
	target = source_target(frame->path, frame->line, frame->column);
	if (!target)
		target = only_assignment(frame->path, frame->line);
	if (!target)
		return UNKNOWN;
	result = of_lvalue(target, frame->module, frame->offset);
	free(target);
	return result;
}

/* ---- stores ---- */

static enum atomicity of_stack(const struct session *session, uint32_t stack)
{
	static struct map known; /* by the address of the code, and the process */
	size_t known_before;
	uint64_t key;
	const struct session_module *module;
	uint32_t depth, image;
	const uint64_t *pc = stacks_get(&session->stacks, stack, &depth, &image);
	enum atomicity result;
	struct site site;

	module = depth ? session_module_at(session, image, pc[0]) : NULL;
	if (!module || !module->patched)
		return SINGLE; /* perdure-cc knew */
	if (module->transactional)
		return PLAIN; /* what it stores is no matter between program and recovery */
	key = pc[0] ^ (uint64_t)image << 48;
	known_before = map_get(&known, key, SINGLE + 1);
	if (known_before <= SINGLE)
		return known_before;
	symbols_resolve(session, stack, &site);
	result = site.frames ? of_frame(&site.frame[0]) : UNKNOWN;
	map_get_or_put(&known, key, result);
	return result;
}

bool atomicity_settle(const struct session *session, struct history_event *event, uint32_t events)
{
	struct map answers = { 0 }; /* by stack */
	bool all = true;

	for (uint32_t i = 0; i < events; i++) {
		size_t answer;

		if (event[i].kind != HISTORY_STORE || !(event[i].flags & HISTORY_GUESSED))
			continue;
		answer = map_get(&answers, event[i].stack, SINGLE + 1);
		if (answer > SINGLE)
			answer = map_get_or_put(&answers, event[i].stack,
						of_stack(session, event[i].stack));
		all &= answer != UNKNOWN;
		if (answer == PLAIN)
			event[i].flags &= ~(HISTORY_ATOMIC | HISTORY_RELAXED);
	}
	map_free(&answers);
	return all;
}
