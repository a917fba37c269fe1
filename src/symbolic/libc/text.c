/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "symbolic/libc/libc.h"

size_t own_strspn(const char *text, const char *set) LIBC(strspn);
size_t own_strcspn(const char *text, const char *set) LIBC(strcspn);
char *own_strpbrk(const char *text, const char *set) LIBC(strpbrk);
char *own_strtok_r(char *text, const char *set, char **next) LIBC(strtok_r);
char *own_strtok(char *text, const char *set) LIBC(strtok);
char *own_strsep(char **next, const char *set) LIBC(strsep);
char *own_strchrnul(const char *text, int c) LIBC(strchrnul);
void *own_rawmemchr(const void *p, int c) LIBC(rawmemchr);
void *own_memrchr(const void *p, int c, size_t n) LIBC(memrchr);
void *own_memmem(const void *p, size_t n, const void *what, size_t size) LIBC(memmem);
char *own_strstr(const char *text, const char *what) LIBC(strstr);
char *own_strcasestr(const char *text, const char *what) LIBC(strcasestr);
char *own_strncat(char *to, const char *from, size_t n) LIBC(strncat);
char *own_stpncpy(char *to, const char *from, size_t n) LIBC(stpncpy);
char *own_strndup(const char *text, size_t n) LIBC(strndup);
void *own_memccpy(void *to, const void *from, int c, size_t n) LIBC(memccpy);

/* One question for the whole set. */
static bool is_in(char c, const char *set)
{
	unsigned found = 0;

	for (; *set; set++)
		found |= c == *set;
	return found;
}

size_t own_strspn(const char *text, const char *set)
{
	size_t n = 0;

	while (text[n] && is_in(text[n], set))
		n++;
	return n;
}

size_t own_strcspn(const char *text, const char *set)
{
	size_t n = 0;

	while (text[n] && !is_in(text[n], set))
		n++;
	return n;
}

char *own_strpbrk(const char *text, const char *set)
{
	text += own_strcspn(text, set);
	return *text ? (char *)text : NULL;
}

char *own_strtok_r(char *text, const char *set, char **next)
{
	char *end;

	if (!text)
		text = *next;
	text += own_strspn(text, set);
	if (!*text) {
		*next = text;
		return NULL;
	}
	end = text + own_strcspn(text, set);
	if (*end)
		*end++ = 0;
	*next = end;
	return text;
}

char *own_strtok(char *text, const char *set)
{
	static char *next = (char *)"";

	return own_strtok_r(text, set, &next);
}

char *own_strsep(char **next, const char *set)
{
	char *text = *next, *end;

	if (!text)
		return NULL;
	end = text + own_strcspn(text, set);
	*next = *end ? end + 1 : NULL;
	if (*end)
		*end = 0;
	return text;
}

char *own_strchrnul(const char *text, int c)
{
	while (*text != (char)c && *text)
		text++;
	return (char *)text;
}

void *own_rawmemchr(const void *p, int c)
{
	const char *at = p;

	while (*at != (char)c)
		at++;
	return (void *)at;
}

void *own_memrchr(const void *p, int c, size_t n)
{
	while (n-- > 0)
		if (((const char *)p)[n] == (char)c)
			return (char *)p + n;
	return NULL;
}

void *own_memmem(const void *p, size_t n, const void *what, size_t size)
{
	for (const char *at = p; size <= n; at++, n--)
		if (!memcmp(at, what, size))
			return (void *)at;
	return NULL;
}

char *own_strstr(const char *text, const char *what)
{
	return own_memmem(text, strlen(text), what, strlen(what));
}

char *own_strcasestr(const char *text, const char *what)
{
	size_t size = strlen(what);

	for (size_t n = strlen(text); size <= n; text++, n--)
		if (!strncasecmp(text, what, size))
			return (char *)text;
	return NULL;
}

char *own_strncat(char *to, const char *from, size_t n)
{
	char *end = to + strlen(to);

	for (; n && *from; n--)
		*end++ = *from++;
	*end = 0;
	return to;
}

char *own_stpncpy(char *to, const char *from, size_t n)
{
	char *end;

	for (; n && *from; n--)
		*to++ = *from++;
	for (end = to; n; n--)
		*to++ = 0;
	return end;
}

char *own_strndup(const char *text, size_t n)
{
	size_t length = strnlen(text, n);
	char *copy = malloc(length + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, length);
	copy[length] = 0;
	return copy;
}

void *own_memccpy(void *to, const void *from, int c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char byte = ((const char *)from)[i];

		((char *)to)[i] = byte;
		if (byte == (char)c)
			return (char *)to + i + 1;
	}
	return NULL;
}
