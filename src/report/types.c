/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/types.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/symbols.h"

const char *types_bare_name(const char *name)
{
	static const char *const words[] = { "struct ", "class ", "union " };

	for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strncmp(name, words[i], strlen(words[i])) == 0)
			return name + strlen(words[i]);
	return name;
}

/* ---- finding a structure ---- */

static bool is_structure(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

bool types_resolve(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(die, DW_AT_type, &attribute) &&
	       dwarf_formref_die(&attribute, type);
}

/* Behind typedefs, const and volatile. */
static bool strip_type(Dwarf_Die *type)
{
	for (int step = 0; step < 16; step++) {
		int tag = dwarf_tag(type);

		if (tag != DW_TAG_typedef && tag != DW_TAG_const_type &&
		    tag != DW_TAG_volatile_type && tag != DW_TAG_atomic_type)
			return true;
		if (!types_resolve(type, type))
			return false;
	}
	return false;
}

/* Does `name` start with the DIE's own name and, for a scope, "::"? Returns what is left. */
static const char *match_scope(const char *name, const char *scope)
{
	size_t length = scope ? strlen(scope) : 0;

	if (!length || strncmp(name, scope, length) != 0 || strncmp(name + length, "::", 2) != 0)
		return NULL;
	return name + length + 2;
}

/* The compiler names a template without its arguments. */
static bool same_type(const char *own, const char *name)
{
	size_t length = strlen(name);

	return strncmp(own, name, length) == 0 && (!own[length] || own[length] == '<');
}

/* `declared`: a structure that is described elsewhere, or nowhere, is good enough. */
static bool find_below(Dwarf_Die *parent, const char *name, bool declared, Dwarf_Die *found)
{
	Dwarf_Attribute attribute;
	Dwarf_Die child, type;

	if (dwarf_child(parent, &child) != 0)
		return false;
	do {
		const char *own = dwarf_diename(&child), *rest;
		int tag = dwarf_tag(&child);

		if (!own && tag == DW_TAG_namespace)
			own = "(anonymous namespace)";

		if (own && same_type(own, name)) {
			type = child;
			if ((is_structure(tag) || tag == DW_TAG_typedef) && strip_type(&type) &&
			    is_structure(dwarf_tag(&type)) &&
			    (declared || !dwarf_attr(&type, DW_AT_declaration, &attribute))) {
				*found = type;
				return true;
			}
		}
		rest = tag == DW_TAG_namespace || is_structure(tag) ? match_scope(name, own) : NULL;
		if (rest && find_below(&child, rest, declared, found))
			return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

static bool find_in_module(Dwfl_Module *module, const char *name, bool declared, Dwarf_Die *found)
{
	Dwarf_Die *unit = NULL;
	Dwarf_Addr bias;

	while ((unit = dwfl_module_nextcu(module, unit, &bias)))
		if (find_below(unit, name, declared, found))
			return true;
	return false;
}

/* Each name is looked for once. */
struct known {
	char *name;
	bool exists, described;
	Dwarf_Die die;
	struct known *next;
};
static struct known *all;

static bool find_in_modules(const struct session *session, const char *name, bool declared,
			    Dwarf_Die *found)
{
	for (uint32_t i = 0; i < session->modules; i++) {
		Dwfl_Module *module = session->module[i].instrumented
					      ? symbols_module(session->module[i].path)
					      : NULL;

		if (module && find_in_module(module, name, declared, found))
			return true;
	}
	return false;
}

static const struct known *find(const struct session *session, const char *name)
{
	struct known *known;

	name = types_bare_name(name);
	for (known = all; known; known = known->next)
		if (strcmp(known->name, name) == 0)
			return known;
	known = calloc(1, sizeof(*known));
	if (!known)
		abort();
	known->name = strdup(name);
	known->next = all;
	all = known;
	known->described = find_in_modules(session, name, false, &known->die);
	known->exists = known->described || find_in_modules(session, name, true, &known->die);
	return known;
}

bool types_exist(const struct session *session, const char *name)
{
	return find(session, name)->exists;
}

/* ---- fields ---- */

static uint64_t member_offset(Dwarf_Die *member)
{
	Dwarf_Attribute attribute;
	Dwarf_Word offset = 0;

	if (dwarf_attr(member, DW_AT_data_member_location, &attribute))
		dwarf_formudata(&attribute, &offset);
	return offset;
}

static uint64_t type_size(Dwarf_Die *type)
{
	Dwarf_Word size = 0;

	return dwarf_aggregate_size(type, &size) == 0 ? size : 0;
}

static void append_field(char *text, size_t size, const char *name)
{
	size_t used = strlen(text);

	if (name)
		snprintf(text + used, size - used, "%s%s", used ? "." : "", name);
}

/* Appends ".member" for the one that holds the offset, and goes on inside it. */
static void describe(Dwarf_Die *structure, uint64_t offset, char *text, size_t size)
{
	Dwarf_Die member, type;

	if (dwarf_child(structure, &member) != 0)
		return;
	do {
		uint64_t start;

		if (dwarf_tag(&member) != DW_TAG_member && dwarf_tag(&member) != DW_TAG_inheritance)
			continue;
		start = member_offset(&member);
		if (!types_resolve(&member, &type) || offset < start ||
		    offset - start >= type_size(&type))
			continue;
		append_field(text, size, dwarf_diename(&member));
		offset -= start;
		if (!strip_type(&type))
			return;
		if (dwarf_tag(&type) == DW_TAG_array_type) {
			Dwarf_Die element;
			uint64_t length;

			if (!types_resolve(&type, &element) || !strip_type(&element) ||
			    !(length = type_size(&element)))
				return;
			offset %= length;
			type = element;
		}
		if (is_structure(dwarf_tag(&type)))
			describe(&type, offset, text, size);
		return;
	} while (dwarf_siblingof(&member, &member) == 0);
}

bool types_has_member(const struct session *session, const char *name, const char *member)
{
	const struct known *known = find(session, name);
	Dwarf_Die die = known->die, child;

	if (!known->described || dwarf_child(&die, &child) != 0)
		return false;
	do {
		const char *own = dwarf_diename(&child);

		if (dwarf_tag(&child) == DW_TAG_member && own && strcmp(own, member) == 0)
			return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

const char *types_file(const struct session *session, const char *name)
{
	const struct known *known = find(session, name);
	Dwarf_Die die = known->die, unit;
	const char *file = NULL, *slash;
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word number;
	size_t count;

	/* In DWARF 5 number 0 is the file itself, for which dwarf_decl_file has no answer. */
	if (known->described && dwarf_diecu(&die, &unit, NULL, NULL) &&
	    dwarf_formudata(dwarf_attr(&die, DW_AT_decl_file, &attribute), &number) == 0 &&
	    dwarf_getsrcfiles(&unit, &files, &count) == 0 && number < count)
		file = dwarf_filesrc(files, number, NULL, NULL);
	slash = file ? strrchr(file, '/') : NULL;
	return slash ? slash + 1 : file;
}

uint64_t types_size(const struct session *session, const char *name)
{
	const struct known *known = find(session, name);
	Dwarf_Die die = known->die;

	return known->described ? type_size(&die) : 0;
}

struct field {
	const struct known *known;
	uint64_t offset;
	char *text;
	struct field *next;
};
static struct field *fields;

const char *types_field(const struct session *session, const char *name, uint64_t offset)
{
	const struct known *known = find(session, name);
	char text[256] = "";
	struct field *field;
	Dwarf_Die die;

	if (!known->described)
		return NULL;
	for (field = fields; field; field = field->next)
		if (field->known == known && field->offset == offset)
			return field->text;
	die = known->die;
	describe(&die, offset, text, sizeof(text));
	field = calloc(1, sizeof(*field));
	if (!field)
		abort();
	*field = (struct field){ known, offset, *text ? strdup(text) : NULL, fields };
	fields = field;
	return field->text;
}
