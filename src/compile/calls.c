/* SPDX-License-Identifier: BSD-3-Clause */
#include "compile/calls.h"

#include <string.h>

#include "compile/symbolic.h"

/* name, instead, before, after, to, from, size, decides, makes: as in calls.h */
#define INSTEAD(f) #f, "__perdure_sym_" #f, NULL, NULL, -1, -1, -1, false, false
/* The one of symbolic/libc, and another name of it. */
#define OWN(f) #f, "perdure.libc." #f, NULL, NULL, -1, -1, -1, false, false
#define AS(name, f) name, "perdure.libc." #f, NULL, NULL, -1, -1, -1, false, false
#define COPIES(f, to, from, n) #f, NULL, "__perdure_sym_copy", NULL, to, from, n, false, false
#define FILLS(f, to, n) #f, NULL, "__perdure_sym_clear", NULL, to, to, n, false, false
/* Its arguments must be what they are, but nothing comes back. */
#define DECIDES(function) #function, NULL, NULL, NULL, -1, -1, -1, true, false
/* It prints, to this file. */
#define PRINTS(function, file) #function, NULL, NULL, NULL, file, -1, -1, false, false
#define SHOWS(function) #function, NULL, NULL, NULL, -1, -1, -1, false, false

static const struct known_call known[] = {
	{ INSTEAD(memcmp) },
	{ INSTEAD(bcmp) },
	{ INSTEAD(strcmp) },
	{ INSTEAD(strncmp) },
	{ INSTEAD(strlen) },
	{ INSTEAD(strnlen) },
	{ INSTEAD(memchr) },
	{ INSTEAD(strchr) },
	{ INSTEAD(strrchr) },
	{ INSTEAD(strcasecmp) },
	{ INSTEAD(strncasecmp) },
	{ INSTEAD(read) },
	{ INSTEAD(pread) },
	{ "pread64", "__perdure_sym_pread", NULL, NULL, -1, -1, -1, false, false },
	{ INSTEAD(fread) },
	{ INSTEAD(fgetc) },
	{ "getc", "__perdure_sym_fgetc", NULL, NULL, -1, -1, -1, false, false },
	{ INSTEAD(getchar) },
	{ INSTEAD(fgets) },
	{ INSTEAD(getline) },
	{ INSTEAD(feof) },
	{ INSTEAD(rewind) },
	{ INSTEAD(ungetc) },
	{ "__perdure_assume", "__perdure_sym_assume", NULL, NULL, -1, -1, -1, false, false },

	{ OWN(isalnum) },
	{ OWN(isalpha) },
	{ OWN(isascii) },
	{ OWN(isblank) },
	{ OWN(iscntrl) },
	{ OWN(isdigit) },
	{ OWN(isgraph) },
	{ OWN(islower) },
	{ OWN(isprint) },
	{ OWN(ispunct) },
	{ OWN(isspace) },
	{ OWN(isupper) },
	{ OWN(isxdigit) },
	{ OWN(toascii) },
	{ OWN(tolower) },
	{ OWN(toupper) },
	{ OWN(htonl) },
	{ OWN(htons) },
	{ OWN(ntohl) },
	{ OWN(ntohs) },
	{ OWN(atoi) },
	{ OWN(atol) },
	{ AS("atoll", atol) },
	{ OWN(strtol) },
	{ AS("strtoll", strtol) },
	{ AS("strtoimax", strtol) },
	{ AS("__isoc23_strtol", strtol) },
	{ AS("__isoc23_strtoll", strtol) },
	{ OWN(strtoul) },
	{ AS("strtoull", strtoul) },
	{ AS("strtoumax", strtoul) },
	{ AS("__isoc23_strtoul", strtoul) },
	{ AS("__isoc23_strtoull", strtoul) },
	{ OWN(snprintf) },
	{ OWN(vsnprintf) },
	{ OWN(sprintf) },
	{ OWN(vsprintf) },
	{ OWN(asprintf) },
	{ OWN(vasprintf) },
	{ OWN(sscanf) },
	{ AS("__isoc99_sscanf", sscanf) },
	{ AS("__isoc23_sscanf", sscanf) },
	{ OWN(vsscanf) },
	{ AS("__isoc99_vsscanf", vsscanf) },
	{ AS("__isoc23_vsscanf", vsscanf) },
	{ OWN(fscanf) },
	{ AS("__isoc99_fscanf", fscanf) },
	{ AS("__isoc23_fscanf", fscanf) },
	{ OWN(vfscanf) },
	{ AS("__isoc99_vfscanf", vfscanf) },
	{ AS("__isoc23_vfscanf", vfscanf) },
	{ OWN(scanf) },
	{ AS("__isoc99_scanf", scanf) },
	{ AS("__isoc23_scanf", scanf) },
	{ OWN(qsort) },
	{ OWN(qsort_r) },
	{ OWN(bsearch) },
	{ OWN(strspn) },
	{ OWN(strcspn) },
	{ OWN(strpbrk) },
	{ OWN(strtok) },
	{ OWN(strtok_r) },
	{ AS("__strtok_r", strtok_r) },
	{ OWN(strsep) },
	{ OWN(strchrnul) },
	{ OWN(rawmemchr) },
	{ OWN(memrchr) },
	{ OWN(memmem) },
	{ OWN(strstr) },
	{ OWN(strcasestr) },
	{ OWN(strncat) },
	{ OWN(stpncpy) },
	{ OWN(strndup) },
	{ OWN(memccpy) },
	{ OWN(_ZSt11_Hash_bytesPKvmm) },

	{ COPIES(memcpy, 0, 1, 2) },
	{ COPIES(memmove, 0, 1, 2) },
	{ COPIES(mempcpy, 0, 1, 2) },
	{ COPIES(pmem_memcpy, 0, 1, 2) },
	{ COPIES(pmem_memcpy_persist, 0, 1, 2) },
	{ COPIES(pmem_memcpy_nodrain, 0, 1, 2) },
	{ COPIES(pmem_memmove, 0, 1, 2) },
	{ COPIES(pmem_memmove_persist, 0, 1, 2) },
	{ COPIES(pmem_memmove_nodrain, 0, 1, 2) },
	{ COPIES(pmemobj_memcpy, 1, 2, 3) },
	{ COPIES(pmemobj_memcpy_persist, 1, 2, 3) },
	{ COPIES(pmemobj_memmove, 1, 2, 3) },
	{ FILLS(memset, 0, 2) },
	{ FILLS(bzero, 0, 1) },
	{ FILLS(pmem_memset, 0, 2) },
	{ FILLS(pmem_memset_persist, 0, 2) },
	{ FILLS(pmem_memset_nodrain, 0, 2) },
	{ FILLS(pmemobj_memset, 1, 3) },
	{ FILLS(pmemobj_memset_persist, 1, 3) },
	{ "strcpy", NULL, "__perdure_sym_copy_text", NULL, 0, 1, -1, false, false },
	{ "stpcpy", NULL, "__perdure_sym_copy_text", NULL, 0, 1, -1, false, false },
	{ "strncpy", NULL, "__perdure_sym_copy_part", NULL, 0, 1, 2, false, false },
	{ "strcat", NULL, "__perdure_sym_append_text", NULL, 0, 1, -1, false, false },
	{ "strdup", NULL, "__perdure_sym_measure", "__perdure_sym_copy_text", 0, 0, -1, false,
	  false },
	{ "realloc", NULL, "__perdure_sym_moves", "__perdure_sym_moved", 0, 0, 1, false, true },
	{ "calloc", NULL, NULL, "__perdure_sym_made", 0, 0, -1, false, true },
	{ "malloc", NULL, NULL, "__perdure_sym_made", 0, 0, -1, false, true },
	{ "aligned_alloc", NULL, NULL, "__perdure_sym_made", 0, 0, -1, false, true },

	{ SHOWS(printf) },
	{ PRINTS(fprintf, 0) },
	{ PRINTS(dprintf, 0) },
	{ SHOWS(vprintf) },
	{ PRINTS(vfprintf, 0) },
	{ SHOWS(puts) },
	{ PRINTS(fputs, 1) },
	{ SHOWS(putchar) },
	{ PRINTS(putc, 1) },
	{ PRINTS(fputc, 1) },
	{ PRINTS(fwrite, 3) },
	{ PRINTS(write, 0) },
	{ PRINTS(send, 0) },
	{ PRINTS(sendto, 0) },
	{ DECIDES(writev) },
	{ DECIDES(sendmsg) },
	{ DECIDES(readv) },
	{ DECIDES(recv) },
	{ DECIDES(recvfrom) },
	{ DECIDES(recvmsg) },
	{ DECIDES(epoll_wait) },
	{ DECIDES(poll) },
	{ DECIDES(select) },
	{ SHOWS(perror) },
	{ SHOWS(syslog) },
	{ "free", NULL, "__perdure_sym_freed", NULL, 0, 0, -1, true, false },
	{ DECIDES(msync) },
	{ FILLS(munmap, 0, 1) },
	{ DECIDES(mmap) },
	{ DECIDES(mmap64) },
	{ DECIDES(pmem_persist) },
	{ DECIDES(pmem_flush) },
	{ DECIDES(pmem_deep_persist) },
	{ DECIDES(pmem_msync) },
	{ DECIDES(pmem_unmap) },
	{ DECIDES(pmemobj_persist) },
	{ DECIDES(pmemobj_flush) },
	{ DECIDES(pmemobj_tx_add_range_direct) },
	{ DECIDES(pmemobj_tx_xadd_range_direct) },
	{ DECIDES(pmemobj_close) },
	{ DECIDES(pthread_create) },
	{ DECIDES(pthread_join) },
	{ DECIDES(epoll_ctl) },
	{ DECIDES(pthread_mutex_lock) },
	{ DECIDES(pthread_mutex_unlock) },
	{ DECIDES(pthread_rwlock_rdlock) },
	{ DECIDES(pthread_rwlock_wrlock) },
	{ DECIDES(pthread_rwlock_unlock) },
	{ SHOWS(__assert_fail) },
	{ SHOWS(__errno_location) },
};

/* C++'s new and delete have many names. */
static const struct known_call creates = { "new", NULL,  NULL, "__perdure_sym_made", 0, 0,
					   -1,    false, true };
static const struct known_call deletes = { DECIDES(delete) };

const struct known_call *calls_find(const char *name)
{
	if (strncmp(name, "_Znw", 4) == 0 || strncmp(name, "_Zna", 4) == 0)
		return &creates;
	if (strncmp(name, "_Zdl", 4) == 0 || strncmp(name, "_Zda", 4) == 0)
		return &deletes;
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
	/* Also of one that may throw. */
	LLVMSetOperand(call, (unsigned)last, function);
	return function;
}
