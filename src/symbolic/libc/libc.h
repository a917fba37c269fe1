/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of libc for programs built with `perdure-cc --symbolic`: they are built with it, too,
 * so that what they are given may be symbolic. Calls of `name` come to `perdure.libc.name`; see
 * compile/calls.c. They behave as glibc's do in the C locale.
 *
 *   characters.c  isdigit and its like, without a branch
 *   numbers.c     strtol and its like
 *   print.c       snprintf and its like
 *   scan.c        sscanf and its like
 *   sort.c        qsort, bsearch
 *   text.c        strtok, strstr, and others that look for something
 *   hash.c        that of libstdc++
 */
#ifndef SYMBOLIC_LIBC_LIBC_H
#define SYMBOLIC_LIBC_LIBC_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define LIBC(name) __asm__("perdure.libc." #name)

long own_strtol(const char *text, char **end, int base) LIBC(strtol);
unsigned long own_strtoul(const char *text, char **end, int base) LIBC(strtoul);
int own_vsnprintf(char *to, size_t room, const char *format, va_list list) LIBC(vsnprintf);

/* libc's, with what its arguments are: for floating point. */
int perdure_plain_snprintf(char *to, size_t room, const char *format, ...);
int perdure_plain_vsnprintf(char *to, size_t room, const char *format, va_list list);
double perdure_plain_strtod(const char *text);
long double perdure_plain_strtold(const char *text);

/* What stands before the letter of a conversion: h, H for hh, l for all of that size, L. */
static inline const char *parse_size(const char *p, char *size)
{
	for (;; p++) {
		if (*p == 'h')
			*size = *size == 'h' ? 'H' : 'h';
		else if (*p == 'l' || *p == 'q' || *p == 'j' || *p == 'z' || *p == 'Z' || *p == 't')
			*size = 'l';
		else if (*p == 'L')
			*size = 'L';
		else
			return p;
	}
}

static inline bool is_space(unsigned char c)
{
	return (c == ' ') | (c - 9u < 5);
}

/* The value of a digit of any base, or more than any has. */
static inline unsigned digit_of(unsigned char c)
{
	unsigned digit = c - '0', letter = (c | 32u) - 'a';
	unsigned is_digit = digit < 10, is_letter = letter < 26;

	return (digit & -is_digit) | ((letter + 10) & -is_letter) |
	       (99 & -(1 - is_digit - is_letter));
}

#endif
