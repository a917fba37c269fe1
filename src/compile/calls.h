/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of libc, and of PMDK, of which it is known what they do to symbolic data. */
#ifndef COMPILE_CALLS_H
#define COMPILE_CALLS_H

#include "compile/instrument.h"

struct known_call {
	const char *name;
	/* One of these, or none: then the data is only shown to somebody, or goes to a file: `to`.
	 */
	const char *instead;   /* the runtime's function of the same type, which keeps it */
	const char *before;    /* a hook: (to, from, size) */
	const char *after;     /* a hook: (result, from, size) */
	int8_t to, from, size; /* arguments; -1: there is none */
	bool decides;          /* none, but it is not only shown */
	bool makes;            /* an object: the numbers are its size */
};

/* Null if nothing is known. */
const struct known_call *calls_find(const char *name);
void calls_before(struct instrumenter *in, LLVMValueRef call, const struct known_call *known);
void calls_after(struct instrumenter *in, LLVMValueRef call, const struct known_call *known);
/* Calls the runtime's function; returns it. */
LLVMValueRef calls_replace(struct instrumenter *in, LLVMValueRef call,
			   const struct known_call *known);

#endif
