/* SPDX-License-Identifier: BSD-3-Clause */
/* Structures, as the debug information of the program's objects describes them. */
#ifndef REPORT_TYPES_H
#define REPORT_TYPES_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "session/session.h"

/* Is there a structure of this name ("node" or "struct node") in any object of the program? */
bool types_exist(const struct session *session, const char *name);

/*
 * What lies at an offset of a structure, as in "pair.left"; null if that is not known. The result
 * stays valid until the process ends.
 */
const char *types_field(const struct session *session, const char *name, uint64_t offset);

/* Has it a member of this name? */
bool types_has_member(const struct session *session, const char *name, const char *member);

/* The file that declares it, without directories; null if that is not known. */
const char *types_file(const struct session *session, const char *name);

/* The size of a structure; 0 if it is not known. */
uint64_t types_size(const struct session *session, const char *name);

/* The type of a variable, a member, or behind another type; false if there is none. */
bool types_resolve(Dwarf_Die *die, Dwarf_Die *type);

/* The name without "struct ", "class " or "union " in front. */
const char *types_bare_name(const char *name);

#endif
