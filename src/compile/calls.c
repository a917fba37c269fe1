/* SPDX-License-Identifier: BSD-3-Clause */
#include "compile/calls.h"

#include <string.h>

#include "compile/symbolic.h"

#define INSTEAD(function) { #function, "__perdure_sym_" #function, NULL, NULL, -1, -1, -1 }
#define COPIES(function, to, from, size)                                                           \
	{ #function, NULL, "__perdure_sym_copy", NULL, to, from, size }
#define FILLS(function, to, size) { #function, NULL, "__perdure_sym_clear", NULL, to, to, size }
#define SHOWS(function) { #function, NULL, NULL, NULL, -1, -1, -1 }

static const struct known_call known[] = {
	INSTEAD(memcmp),
	INSTEAD(bcmp),
	INSTEAD(strcmp),
	INSTEAD(strncmp),
	INSTEAD(strlen),
	INSTEAD(strnlen),
	INSTEAD(memchr),
	INSTEAD(strchr),
	INSTEAD(strrchr),
	INSTEAD(read),
	INSTEAD(pread),
	{ "pread64", "__perdure_sym_pread", NULL, NULL, -1, -1, -1 },
	INSTEAD(fread),
	INSTEAD(fgetc),
	{ "getc", "__perdure_sym_fgetc", NULL, NULL, -1, -1, -1 },
	INSTEAD(getchar),
	INSTEAD(fgets),
	INSTEAD(getline),
	INSTEAD(feof),
	{ "__perdure_assume", "__perdure_sym_assume", NULL, NULL, -1, -1, -1 },

	COPIES(memcpy, 0, 1, 2),
	COPIES(memmove, 0, 1, 2),
	COPIES(mempcpy, 0, 1, 2),
	COPIES(pmem_memcpy, 0, 1, 2),
	COPIES(pmem_memcpy_persist, 0, 1, 2),
	COPIES(pmem_memcpy_nodrain, 0, 1, 2),
	COPIES(pmem_memmove, 0, 1, 2),
	COPIES(pmem_memmove_persist, 0, 1, 2),
	COPIES(pmem_memmove_nodrain, 0, 1, 2),
	COPIES(pmemobj_memcpy, 1, 2, 3),
	COPIES(pmemobj_memcpy_persist, 1, 2, 3),
	COPIES(pmemobj_memmove, 1, 2, 3),
	FILLS(memset, 0, 2),
	FILLS(bzero, 0, 1),
	FILLS(pmem_memset, 0, 2),
	FILLS(pmem_memset_persist, 0, 2),
	FILLS(pmem_memset_nodrain, 0, 2),
	FILLS(pmemobj_memset, 1, 3),
	FILLS(pmemobj_memset_persist, 1, 3),
	{ "strcpy", NULL, "__perdure_sym_copy_text", NULL, 0, 1, -1 },
	{ "stpcpy", NULL, "__perdure_sym_copy_text", NULL, 0, 1, -1 },
	{ "strncpy", NULL, "__perdure_sym_copy_part", NULL, 0, 1, 2 },
	{ "strcat", NULL, "__perdure_sym_append_text", NULL, 0, 1, -1 },
	{ "strdup", NULL, "__perdure_sym_measure", "__perdure_sym_copy_text", 0, 0, -1 },
	{ "realloc", NULL, "__perdure_sym_moves", "__perdure_sym_moved", 0, 0, 1 },
	{ "calloc", NULL, NULL, "__perdure_sym_made", 0, 0, -1 },
	{ "malloc", NULL, NULL, "__perdure_sym_made", 0, 0, -1 },
	{ "aligned_alloc", NULL, NULL, "__perdure_sym_made", 0, 0, -1 },
	{ "_Znwm", NULL, NULL, "__perdure_sym_made", 0, 0, -1 },
	{ "_Znam", NULL, NULL, "__perdure_sym_made", 0, 0, -1 },

	SHOWS(printf),
	SHOWS(fprintf),
	SHOWS(dprintf),
	SHOWS(vprintf),
	SHOWS(vfprintf),
	SHOWS(puts),
	SHOWS(fputs),
	SHOWS(putchar),
	SHOWS(putc),
	SHOWS(fputc),
	SHOWS(fwrite),
	SHOWS(write),
	SHOWS(perror),
	SHOWS(syslog),
	SHOWS(free),
	SHOWS(msync),
	SHOWS(munmap),
	SHOWS(pmem_persist),
	SHOWS(pmem_flush),
	SHOWS(pmem_deep_persist),
	SHOWS(pmem_msync),
	SHOWS(pmem_unmap),
	SHOWS(pmemobj_persist),
	SHOWS(pmemobj_flush),
	SHOWS(pmemobj_tx_add_range_direct),
	SHOWS(pmemobj_tx_xadd_range_direct),
	SHOWS(pmemobj_close),
	SHOWS(pthread_mutex_lock),
	SHOWS(pthread_mutex_unlock),
	SHOWS(pthread_rwlock_rdlock),
	SHOWS(pthread_rwlock_wrlock),
	SHOWS(pthread_rwlock_unlock),
	SHOWS(__assert_fail),
	SHOWS(__errno_location),
};

const struct known_call *calls_find(const char *name)
{
	for (unsigned i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(known[i].name, name) == 0)
			return &known[i];
	return NULL;
}

static LLVMValueRef argument(struct instrumenter *in, LLVMValueRef call, int number)
{
	if (number < 0 || (unsigned)number >= LLVMGetNumArgOperands(call))
		return LLVMConstInt(in->i64, 0, false);
	return symbolic_word(in, LLVMGetOperand(call, (unsigned)number));
}

void calls_before(struct instrumenter *in, LLVMValueRef call, const struct known_call *special)
{
	instrument_before(in, call);
	symbolic_if_touched(in, special->before, argument(in, call, special->to),
			    argument(in, call, special->from), argument(in, call, special->size));
}

void calls_after(struct instrumenter *in, LLVMValueRef call, const struct known_call *special)
{
	symbolic_if_touched(in, special->after, symbolic_word(in, call),
			    argument(in, call, special->from), argument(in, call, special->size));
}

LLVMValueRef calls_replace(struct instrumenter *in, LLVMValueRef call,
			   const struct known_call *special)
{
	LLVMTypeRef type = LLVMGetCalledFunctionType(call);
	LLVMValueRef function = LLVMGetNamedFunction(in->module, special->instead);
	int last = LLVMGetNumOperands(call) - 1;

	if (!function)
		function = LLVMAddFunction(in->module, special->instead, type);
	/* Of a call the callee is the last operand, of an invoke there are two blocks behind it. */
	LLVMSetOperand(call, (unsigned)last, function);
	return function;
}
