/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mem* and str* functions. libc's bodies are not instrumented, so what they do to PM is told
 * here; on ordinary memory they cost one test more than libc's.
 */
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <wchar.h>

/* ---- copies and fills: each line of PM is written in one step with its event ---- */

static void *copy(void *to, const void *from, size_t n, const char *place,
		  const struct frame *frame)
{
	__perdure_inline.stored = 1;
	if (in_window(from))
		event_load(from, n, frame);
	if (in_window(to))
		event_copy(to, from, n, place, frame);
	else
		REAL(memmove)(to, from, n);
	return to;
}

static void *move(void *to, const void *from, size_t n, const char *place,
		  const struct frame *frame)
{
	__perdure_inline.stored = 1;
	if (in_window(from))
		event_load(from, n, frame);
	if (in_window(to))
		event_move(to, from, n, place, frame);
	else
		REAL(memmove)(to, from, n);
	return to;
}

static void *fill(void *to, int byte, size_t n, const char *place, const struct frame *frame)
{
	__perdure_inline.stored = 1;
	if (!in_window(to))
		return REAL(memset)(to, byte, n);
	event_fill(to, byte, n, place, frame);
	return to;
}

PUBLIC void *__perdure_memcpy(void *to, const void *from, size_t n, const char *place);
PUBLIC void *__perdure_memmove(void *to, const void *from, size_t n, const char *place);
PUBLIC void *__perdure_memset(void *to, int byte, size_t n, const char *place);

PUBLIC void *__perdure_memcpy(void *to, const void *from, size_t n, const char *place)
{
	return copy(to, from, n, place, FRAME);
}

PUBLIC void *__perdure_memmove(void *to, const void *from, size_t n, const char *place)
{
	return move(to, from, n, place, FRAME);
}

PUBLIC void *__perdure_memset(void *to, int byte, size_t n, const char *place)
{
	return fill(to, byte, n, place, FRAME);
}

/*
 * These are called before this library is relocated, and by the search for the real ones: until
 * that is done, they work by themselves.
 */
static void *(*real_memcpy)(void *, const void *, size_t);
static void *(*real_memmove)(void *, const void *, size_t);
static void *(*real_memset)(void *, int, size_t);

__attribute__((constructor(101))) static void find_real(void)
{
	real_memmove = (__typeof__(real_memmove))real_find("memmove");
	real_memset = (__typeof__(real_memset))real_find("memset");
	real_memcpy = (__typeof__(real_memcpy))real_find("memcpy");
}

static void *plain_copy(void *to, const void *from, size_t n)
{
	void *target = to;

	__asm__ volatile("rep movsb" : "+D"(target), "+S"(from), "+c"(n)::"memory");
	return to;
}

PUBLIC void *memcpy(void *to, const void *from, size_t n)
{
	if (in_window(to) || in_window(from))
		return copy(to, from, n, NULL, FRAME);
	return real_memcpy ? real_memcpy(to, from, n) : plain_copy(to, from, n);
}

PUBLIC void *memmove(void *to, const void *from, size_t n)
{
	if (in_window(to) || in_window(from))
		return move(to, from, n, NULL, FRAME);
	if (real_memmove)
		return real_memmove(to, from, n);
	if ((uintptr_t)to - (uintptr_t)from >= n)
		return plain_copy(to, from, n);
	for (size_t i = n; i-- > 0;)
		((volatile char *)to)[i] = ((const char *)from)[i];
	return to;
}

PUBLIC void *memset(void *to, int byte, size_t n)
{
	void *target = to;

	if (in_window(to))
		return fill(to, byte, n, NULL, FRAME);
	if (real_memset)
		return real_memset(to, byte, n);
	__asm__ volatile("rep stosb" : "+D"(target), "+c"(n) : "a"(byte) : "memory");
	return to;
}

PUBLIC void *mempcpy(void *to, const void *from, size_t n)
{
	return (char *)memcpy(to, from, n) + n;
}

PUBLIC void bcopy(const void *from, void *to, size_t n)
{
	memmove(to, from, n);
}

PUBLIC void bzero(void *to, size_t n)
{
	fill(to, 0, n, NULL, FRAME);
}

PUBLIC void explicit_bzero(void *to, size_t n)
{
	fill(to, 0, n, NULL, FRAME);
}

PUBLIC void *memccpy(void *to, const void *from, int byte, size_t n)
{
	const char *found = memchr(from, byte, n);
	size_t length = found ? (size_t)(found - (const char *)from) + 1 : n;

	copy(to, from, length, NULL, FRAME);
	return found ? (char *)to + length : NULL;
}

PUBLIC wchar_t *wmemcpy(wchar_t *to, const wchar_t *from, size_t n)
{
	return copy(to, from, n * sizeof(wchar_t), NULL, FRAME);
}

PUBLIC wchar_t *wmemmove(wchar_t *to, const wchar_t *from, size_t n)
{
	return move(to, from, n * sizeof(wchar_t), NULL, FRAME);
}

/* ---- strings: copies of a length that is found out first ---- */

/* A text that is read to its end. */
static size_t text_length(const char *text, const struct frame *frame)
{
	return in_window(text) ? event_load_string(text, SIZE_MAX, frame) : REAL(strlen)(text);
}

PUBLIC char *stpcpy(char *to, const char *from)
{
	size_t length = text_length(from, FRAME);

	copy(to, from, length + 1, NULL, FRAME);
	return to + length;
}

PUBLIC char *strcpy(char *to, const char *from)
{
	copy(to, from, text_length(from, FRAME) + 1, NULL, FRAME);
	return to;
}

static size_t copy_padded(char *to, const char *from, size_t n, const struct frame *frame)
{
	size_t length = strnlen(from, n);

	copy(to, from, length, NULL, frame);
	fill(to + length, 0, n - length, NULL, frame);
	return length;
}

PUBLIC char *strncpy(char *to, const char *from, size_t n)
{
	copy_padded(to, from, n, FRAME);
	return to;
}

PUBLIC char *stpncpy(char *to, const char *from, size_t n)
{
	return to + copy_padded(to, from, n, FRAME);
}

PUBLIC char *strcat(char *to, const char *from)
{
	copy(to + text_length(to, FRAME), from, text_length(from, FRAME) + 1, NULL, FRAME);
	return to;
}

PUBLIC char *strncat(char *to, const char *from, size_t n)
{
	size_t length = strnlen(from, n);
	char *end = to + text_length(to, FRAME);

	copy(end, from, length, NULL, FRAME);
	fill(end + length, 0, 1, NULL, FRAME);
	return to;
}

PUBLIC void swab(const void *from, void *to, ssize_t n)
{
	event_load(from, n > 0 ? n : 0, FRAME);
	REAL(swab)(from, to, n);
	event_stored(to, n > 1 ? n & ~(ssize_t)1 : 0, FRAME);
}

PUBLIC void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
	REAL(qsort)(base, count, size, compare);
	event_stored(base, count * size, FRAME);
}

PUBLIC wchar_t *wcscpy(wchar_t *to, const wchar_t *from)
{
	return copy(to, from, (wcslen(from) + 1) * sizeof(wchar_t), NULL, FRAME);
}

PUBLIC wchar_t *wmemset(wchar_t *to, wchar_t value, size_t n)
{
	REAL(wmemset)(to, value, n);
	event_stored(to, n * sizeof(wchar_t), FRAME);
	return to;
}

/* ---- readers ---- */

PUBLIC int memcmp(const void *a, const void *b, size_t n)
{
	event_load(a, n, FRAME);
	event_load(b, n, FRAME);
	return REAL(memcmp)(a, b, n);
}

#undef strdup
PUBLIC char *strdup(const char *text)
{
	size_t length = text_length(text, FRAME) + 1;
	char *result = malloc(length);

	return result ? copy(result, text, length, NULL, FRAME) : NULL;
}

/* ---- what _FORTIFY_SOURCE turns them into ---- */

static void check(size_t n, size_t room)
{
	if (n > room) {
		message("buffer overflow: %zu bytes written to an object of %zu", n, room);
		abort();
	}
}

#define CHECKED_COPY(name, result_expression, length)                                              \
	PUBLIC void *__##name##_chk(void *to, const void *from, size_t n, size_t room);            \
	PUBLIC void *__##name##_chk(void *to, const void *from, size_t n, size_t room)             \
	{                                                                                          \
		check(length, room);                                                               \
		move(to, from, n, NULL, FRAME);                                                    \
		return result_expression;                                                          \
	}
CHECKED_COPY(memcpy, to, n)
CHECKED_COPY(memmove, to, n)
CHECKED_COPY(mempcpy, (char *)to + n, n)

PUBLIC void *__memset_chk(void *to, int byte, size_t n, size_t room);
PUBLIC void *__memset_chk(void *to, int byte, size_t n, size_t room)
{
	check(n, room);
	return fill(to, byte, n, NULL, FRAME);
}

PUBLIC void __explicit_bzero_chk(void *to, size_t n, size_t room);
PUBLIC void __explicit_bzero_chk(void *to, size_t n, size_t room)
{
	check(n, room);
	fill(to, 0, n, NULL, FRAME);
}

PUBLIC char *__strcpy_chk(char *to, const char *from, size_t room);
PUBLIC char *__strcpy_chk(char *to, const char *from, size_t room)
{
	size_t n = text_length(from, FRAME) + 1;

	check(n, room);
	return copy(to, from, n, NULL, FRAME);
}

PUBLIC char *__stpcpy_chk(char *to, const char *from, size_t room);
PUBLIC char *__stpcpy_chk(char *to, const char *from, size_t room)
{
	size_t n = text_length(from, FRAME) + 1;

	check(n, room);
	copy(to, from, n, NULL, FRAME);
	return to + n - 1;
}

PUBLIC char *__strncpy_chk(char *to, const char *from, size_t n, size_t room);
PUBLIC char *__strncpy_chk(char *to, const char *from, size_t n, size_t room)
{
	check(n, room);
	copy_padded(to, from, n, FRAME);
	return to;
}

PUBLIC char *__strcat_chk(char *to, const char *from, size_t room);
PUBLIC char *__strcat_chk(char *to, const char *from, size_t room)
{
	size_t used = text_length(to, FRAME), n = text_length(from, FRAME) + 1;

	check(used + n, room);
	copy(to + used, from, n, NULL, FRAME);
	return to;
}

PUBLIC char *__strncat_chk(char *to, const char *from, size_t n, size_t room);
PUBLIC char *__strncat_chk(char *to, const char *from, size_t n, size_t room)
{
	size_t used = text_length(to, FRAME), length = strnlen(from, n);

	check(used + length + 1, room);
	copy(to + used, from, length, NULL, FRAME);
	fill(to + used + length, 0, 1, NULL, FRAME);
	return to;
}
