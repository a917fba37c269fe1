/* SPDX-License-Identifier: BSD-3-Clause */
/* libc functions that read text, as far as they read it. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/runtime.h"

static void loaded(const char *text, size_t n, const struct frame *frame)
{
	if (in_window(text))
		event_load_text(text, n, frame);
}

static void loaded_all(const char *text, const struct frame *frame)
{
	if (in_window(text))
		event_load_string(text, SIZE_MAX, frame);
}

PUBLIC size_t strlen(const char *text)
{
	return in_window(text) ? event_load_string(text, SIZE_MAX, FRAME) : REAL(strlen)(text);
}

PUBLIC size_t strnlen(const char *text, size_t n)
{
	return in_window(text) ? event_load_string(text, n, FRAME) : REAL(strnlen)(text, n);
}

/* ---- comparing: up to the first difference ---- */

static char folded(char c, bool folds)
{
	return folds && c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

static void compared(const char *a, const char *b, size_t n, bool folds, const struct frame *frame)
{
	size_t i = 0;

	if (!in_window(a) && !in_window(b))
		return;
	for (; i < n; i++) { /* what a byte is may only be known once it has been read */
		loaded(a + i, 1, frame);
		loaded(b + i, 1, frame);
		if (folded(a[i], folds) != folded(b[i], folds) || !a[i])
			break;
	}
}

PUBLIC int strcmp(const char *a, const char *b)
{
	compared(a, b, SIZE_MAX, false, FRAME);
	return REAL(strcmp)(a, b);
}

PUBLIC int strncmp(const char *a, const char *b, size_t n)
{
	compared(a, b, n, false, FRAME);
	return REAL(strncmp)(a, b, n);
}

PUBLIC int strcasecmp(const char *a, const char *b)
{
	compared(a, b, SIZE_MAX, true, FRAME);
	return REAL(strcasecmp)(a, b);
}

PUBLIC int strncasecmp(const char *a, const char *b, size_t n)
{
	compared(a, b, n, true, FRAME);
	return REAL(strncasecmp)(a, b, n);
}

PUBLIC int strcoll(const char *a, const char *b)
{
	loaded_all(a, FRAME);
	loaded_all(b, FRAME);
	return REAL(strcoll)(a, b);
}

#undef bcmp
PUBLIC int bcmp(const void *a, const void *b, size_t n)
{
	event_load(a, n, FRAME);
	event_load(b, n, FRAME);
	return REAL(memcmp)(a, b, n);
}

/* ---- searching: up to what is found ---- */

PUBLIC void *memchr(const void *text, int byte, size_t n)
{
	void *found = REAL(memchr)(text, byte, n);

	loaded(text, found ? (size_t)((char *)found - (const char *)text) + 1 : n, FRAME);
	return found;
}

#define FINDS(name, parameters, call, read)                                                        \
	PUBLIC char *name parameters                                                               \
	{                                                                                          \
		char *found = REAL(name) call;                                                     \
		if (found)                                                                         \
			loaded(text, found - text + (read), FRAME);                                \
		else                                                                               \
			loaded_all(text, FRAME);                                                   \
		return found;                                                                      \
	}                                                                                          \
	struct ignore_semicolon

FINDS(strchr, (const char *text, int c), (text, c), 1);
FINDS(strpbrk, (const char *text, const char *set), (text, set), 1);

PUBLIC char *strrchr(const char *text, int c)
{
	loaded_all(text, FRAME);
	return REAL(strrchr)(text, c);
}

PUBLIC char *strstr(const char *text, const char *part)
{
	char *found = REAL(strstr)(text, part);

	if (found && in_window(text))
		loaded(text, found - text + plain_length(part), FRAME);
	else if (!found)
		loaded_all(text, FRAME);
	loaded_all(part, FRAME);
	return found;
}

#define SPANS(name)                                                                                \
	PUBLIC size_t name(const char *text, const char *set)                                      \
	{                                                                                          \
		size_t length = REAL(name)(text, set);                                             \
		loaded(text, length + 1, FRAME);                                                   \
		loaded_all(set, FRAME);                                                            \
		return length;                                                                     \
	}                                                                                          \
	struct ignore_semicolon

SPANS(strspn);
SPANS(strcspn);

/* ---- numbers: one byte more than they have ---- */

#define NUMBERS(type, name, parameters, call)                                                      \
	PUBLIC type name parameters                                                                \
	{                                                                                          \
		char *stop;                                                                        \
		type value = REAL(name) call;                                                      \
		loaded(text, stop - text + 1, FRAME);                                              \
		if (end) {                                                                         \
			*end = stop;                                                               \
			event_stored(end, sizeof(*end), FRAME);                                    \
		}                                                                                  \
		return value;                                                                      \
	}                                                                                          \
	struct ignore_semicolon

NUMBERS(long, strtol, (const char *restrict text, char **restrict end, int base),
	(text, &stop, base));
NUMBERS(unsigned long, strtoul, (const char *restrict text, char **restrict end, int base),
	(text, &stop, base));
NUMBERS(long long, strtoll, (const char *restrict text, char **restrict end, int base),
	(text, &stop, base));
NUMBERS(unsigned long long, strtoull, (const char *restrict text, char **restrict end, int base),
	(text, &stop, base));
NUMBERS(double, strtod, (const char *restrict text, char **restrict end), (text, &stop));
NUMBERS(float, strtof, (const char *restrict text, char **restrict end), (text, &stop));

#undef atoi
#undef atol
#undef atoll
#undef atof
#define CONVERTS(type, name, call)                                                                 \
	PUBLIC type name(const char *text)                                                         \
	{                                                                                          \
		char *stop;                                                                        \
		type value = call;                                                                 \
		loaded(text, stop - text + 1, FRAME);                                              \
		return value;                                                                      \
	}                                                                                          \
	struct ignore_semicolon

CONVERTS(int, atoi, REAL(strtol)(text, &stop, 10));
CONVERTS(long, atol, REAL(strtol)(text, &stop, 10));
CONVERTS(long long, atoll, REAL(strtoll)(text, &stop, 10));
CONVERTS(double, atof, REAL(strtod)(text, &stop));
