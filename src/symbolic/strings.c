/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of libc that keep symbolic data. Comparisons give one expression; where a text ends is
 * decided byte by byte, since what follows depends on it.
 */
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolic/symbolic.h"

static uint32_t byte_at(const char *p)
{
	uint32_t e = memory_load(p, 1);

	return e ? e : expression_constant(8, (uint8_t)*p);
}

static uint32_t same(uint32_t a, uint32_t b)
{
	return expression_make(SYMBOLIC_EQ, 8, a, b);
}

static uint32_t difference(uint32_t a, uint32_t b)
{
	return expression_make(SYMBOLIC_SUB, 32, expression_extend(SYMBOLIC_ZEXT, a, 32),
			       expression_extend(SYMBOLIC_ZEXT, b, 32));
}

/* Does the text end here? On the way that this process takes. */
static bool ends_at(const char *p, const void *who)
{
	uint32_t e = memory_load(p, 1);

	return e ? symbolic_decide(same(e, expression_constant(8, 0)), (uintptr_t)who) : !*p;
}

/* ---- comparing ---- */

enum how { BYTES, TEXTS, FOLDED /* texts, whose capital letters are small */ };

static uint32_t fold(uint32_t byte)
{
	uint32_t letter = expression_make(SYMBOLIC_SUB, 8, byte, expression_constant(8, 'A'));

	return expression_if(
		expression_make(SYMBOLIC_ULT, 8, letter, expression_constant(8, 26)),
		expression_make(SYMBOLIC_OR, 8, byte, expression_constant(8, 'a' - 'A')), byte);
}

static unsigned char folded(unsigned char byte)
{
	return byte >= 'A' && byte <= 'Z' ? byte | ('a' - 'A') : byte;
}

/* From the last byte to the first: each that differs hides what is behind it. */
static uint32_t compare(const char *a, const char *b, size_t n, enum how how)
{
	uint32_t result = expression_constant(32, 0), zero = expression_constant(8, 0);

	for (size_t i = n; i-- > 0;) {
		uint32_t x = byte_at(a + i), y = byte_at(b + i);

		if (how == FOLDED) {
			x = fold(x);
			y = fold(y);
		}
		if (how != BYTES)
			result = expression_if(same(x, zero), expression_constant(32, 0), result);
		result = expression_if(same(x, y), result, difference(x, y));
	}
	return result;
}

/* How far two texts have to be compared: up to where one ends for sure, or they differ for sure. */
static size_t extent(const char *a, const char *b, size_t most, enum how how)
{
	for (size_t i = 0; i < most; i++) {
		bool known_a = !memory_is_symbolic(a + i, 1),
		     known_b = !memory_is_symbolic(b + i, 1);

		if ((known_a && !a[i]) || (known_b && !b[i]) ||
		    (known_a && known_b && a[i] != b[i] &&
		     (how != FOLDED || folded((unsigned char)a[i]) != folded((unsigned char)b[i]))))
			return i + 1;
	}
	return most;
}

static bool is_symbolic(const char *a, const char *b, size_t n)
{
	return symbolic_on && (memory_is_symbolic(a, n) || memory_is_symbolic(b, n));
}

static int plain_compare(const unsigned char *a, const unsigned char *b, size_t n, enum how how)
{
	for (size_t i = 0; i < n; i++) {
		int x = how == FOLDED ? folded(a[i]) : a[i],
		    y = how == FOLDED ? folded(b[i]) : b[i];

		if (x != y)
			return x - y;
		if (how != BYTES && !x)
			break;
	}
	return 0;
}

static int compare_any(const void *self, const char *a, const char *b, size_t n, enum how how)
{
	if (how != BYTES && symbolic_on)
		n = extent(a, b, n, how);
	symbolic_result(self, is_symbolic(a, b, n) ? compare(a, b, n, how) : 0);
	return plain_compare((const unsigned char *)a, (const unsigned char *)b, n, how);
}

PUBLIC int __perdure_sym_memcmp(const void *a, const void *b, size_t n);
PUBLIC int __perdure_sym_bcmp(const void *a, const void *b, size_t n);
PUBLIC int __perdure_sym_strcmp(const char *a, const char *b);
PUBLIC int __perdure_sym_strncmp(const char *a, const char *b, size_t n);

int __perdure_sym_memcmp(const void *a, const void *b, size_t n)
{
	uint64_t value[3] = { (uintptr_t)a, (uintptr_t)b, n };

	symbolic_take((const void *)__perdure_sym_memcmp, __builtin_frame_address(0), value, 3);
	if (!symbolic_on)
		return memcmp(a, b, n);
	return compare_any((const void *)__perdure_sym_memcmp, (const char *)value[0],
			   (const char *)value[1], value[2], BYTES);
}

int __perdure_sym_bcmp(const void *a, const void *b, size_t n)
{
	uint64_t value[3] = { (uintptr_t)a, (uintptr_t)b, n };

	symbolic_take((const void *)__perdure_sym_bcmp, __builtin_frame_address(0), value, 3);
	if (!symbolic_on)
		return bcmp(a, b, n);
	return compare_any((const void *)__perdure_sym_bcmp, (const char *)value[0],
			   (const char *)value[1], value[2], BYTES);
}

int __perdure_sym_strcmp(const char *a, const char *b)
{
	uint64_t value[2] = { (uintptr_t)a, (uintptr_t)b };

	symbolic_take((const void *)__perdure_sym_strcmp, __builtin_frame_address(0), value, 2);
	if (!symbolic_on)
		return strcmp(a, b);
	return compare_any((const void *)__perdure_sym_strcmp, (const char *)value[0],
			   (const char *)value[1], SIZE_MAX, TEXTS);
}

int __perdure_sym_strncmp(const char *a, const char *b, size_t n)
{
	uint64_t value[3] = { (uintptr_t)a, (uintptr_t)b, n };

	symbolic_take((const void *)__perdure_sym_strncmp, __builtin_frame_address(0), value, 3);
	if (!symbolic_on)
		return strncmp(a, b, n);
	return compare_any((const void *)__perdure_sym_strncmp, (const char *)value[0],
			   (const char *)value[1], value[2], TEXTS);
}

PUBLIC int __perdure_sym_strcasecmp(const char *a, const char *b);
PUBLIC int __perdure_sym_strncasecmp(const char *a, const char *b, size_t n);

int __perdure_sym_strcasecmp(const char *a, const char *b)
{
	uint64_t value[2] = { (uintptr_t)a, (uintptr_t)b };

	symbolic_take((const void *)__perdure_sym_strcasecmp, __builtin_frame_address(0), value, 2);
	return compare_any((const void *)__perdure_sym_strcasecmp, (const char *)value[0],
			   (const char *)value[1], SIZE_MAX, FOLDED);
}

int __perdure_sym_strncasecmp(const char *a, const char *b, size_t n)
{
	uint64_t value[3] = { (uintptr_t)a, (uintptr_t)b, n };

	symbolic_take((const void *)__perdure_sym_strncasecmp, __builtin_frame_address(0), value,
		      3);
	return compare_any((const void *)__perdure_sym_strncasecmp, (const char *)value[0],
			   (const char *)value[1], value[2], FOLDED);
}

/* ---- searching ---- */

static size_t length(const char *text, size_t most, const void *who)
{
	size_t n = 0;

	while (n < most && !ends_at(text + n, who))
		n++;
	return n;
}

PUBLIC size_t __perdure_sym_strlen(const char *text);
PUBLIC size_t __perdure_sym_strnlen(const char *text, size_t most);
PUBLIC void *__perdure_sym_memchr(const void *p, int c, size_t n);
PUBLIC char *__perdure_sym_strchr(const char *text, int c);
PUBLIC char *__perdure_sym_strrchr(const char *text, int c);

size_t __perdure_sym_strlen(const char *text)
{
	uint64_t value[1] = { (uintptr_t)text };

	symbolic_take((const void *)__perdure_sym_strlen, __builtin_frame_address(0), value, 1);
	return symbolic_on ? length((const char *)value[0], SIZE_MAX, __builtin_return_address(0))
			   : strlen(text);
}

size_t __perdure_sym_strnlen(const char *text, size_t most)
{
	uint64_t value[2] = { (uintptr_t)text, most };

	symbolic_take((const void *)__perdure_sym_strnlen, __builtin_frame_address(0), value, 2);
	return symbolic_on ? length((const char *)value[0], value[1], __builtin_return_address(0))
			   : strnlen(text, most);
}

/* Is this byte the one that is looked for? On the way that this process takes. */
static bool is_here(const char *p, int c, const void *who)
{
	uint32_t e = memory_load(p, 1);

	return e ? symbolic_decide(same(e, expression_constant(8, (uint8_t)c)), (uintptr_t)who)
		 : (uint8_t)*p == (uint8_t)c;
}

void *__perdure_sym_memchr(const void *p, int c, size_t n)
{
	uint64_t value[3] = { (uintptr_t)p, (uint32_t)c, n };
	const void *who = __builtin_return_address(0);

	symbolic_take((const void *)__perdure_sym_memchr, __builtin_frame_address(0), value, 3);
	if (!symbolic_on)
		return memchr(p, c, n);
	for (size_t i = 0; i < value[2]; i++)
		if (is_here((const char *)value[0] + i, (int)value[1], who))
			return (char *)value[0] + i;
	return NULL;
}

char *__perdure_sym_strchr(const char *text, int c)
{
	uint64_t value[2] = { (uintptr_t)text, (uint32_t)c };
	const void *who = __builtin_return_address(0);

	symbolic_take((const void *)__perdure_sym_strchr, __builtin_frame_address(0), value, 2);
	if (!symbolic_on)
		return strchr(text, c);
	for (char *at = (char *)value[0];; at++) {
		if (is_here(at, (int)value[1], who))
			return at;
		if (ends_at(at, who))
			return NULL;
	}
}

char *__perdure_sym_strrchr(const char *text, int c)
{
	uint64_t value[2] = { (uintptr_t)text, (uint32_t)c };
	const void *who = __builtin_return_address(0);
	char *found = NULL;

	symbolic_take((const void *)__perdure_sym_strrchr, __builtin_frame_address(0), value, 2);
	if (!symbolic_on)
		return strrchr(text, c);
	for (char *at = (char *)value[0];; at++) {
		if (is_here(at, (int)value[1], who))
			found = at;
		if (ends_at(at, who))
			return found;
	}
}

/* ---- copying; before, or after, libc does it ---- */

HIDDEN void symbolic_hook_copy_text(uint64_t to, uint64_t from, uint64_t unused);
HIDDEN void symbolic_hook_copy_part(uint64_t to, uint64_t from, uint64_t size);
HIDDEN void symbolic_hook_append_text(uint64_t to, uint64_t from, uint64_t unused);
HIDDEN void symbolic_hook_measure(uint64_t to, uint64_t from, uint64_t unused);
HIDDEN void symbolic_hook_moves(uint64_t to, uint64_t from, uint64_t size);
HIDDEN void symbolic_hook_moved(uint64_t to, uint64_t from, uint64_t size);
HIDDEN void symbolic_hook_freed(uint64_t p, uint64_t same, uint64_t size);
HIDDEN void symbolic_hook_freed(uint64_t p, uint64_t same, uint64_t size);
HIDDEN void symbolic_hook_made(uint64_t to, uint64_t unused, uint64_t size);

void symbolic_hook_copy_text(uint64_t to, uint64_t from, uint64_t unused)
{
	(void)unused;
	if (symbolic_on && to)
		memory_copy((void *)to, (const void *)from,
			    length((const char *)from, SIZE_MAX,
				   (const void *)symbolic_hook_copy_text) +
				    1);
}

void symbolic_hook_copy_part(uint64_t to, uint64_t from, uint64_t size)
{
	size_t n;

	if (!symbolic_on)
		return;
	n = length((const char *)from, size, (const void *)symbolic_hook_copy_part);
	memory_clear((const void *)to, size);
	memory_copy((void *)to, (const void *)from, n);
}

void symbolic_hook_append_text(uint64_t to, uint64_t from, uint64_t unused)
{
	if (symbolic_on)
		symbolic_hook_copy_text(to + length((const char *)to, SIZE_MAX,
						    (const void *)symbolic_hook_append_text),
					from, unused);
}

void symbolic_hook_measure(uint64_t to, uint64_t from, uint64_t unused)
{
	(void)to;
	(void)unused;
	if (symbolic_on)
		length((const char *)from, SIZE_MAX, (const void *)symbolic_hook_measure);
}

/* What is in an object that realloc may give away. */
static uint32_t *carried;
static size_t carried_size, carried_room;

void symbolic_hook_moves(uint64_t to, uint64_t from, uint64_t size)
{
	(void)to;
	carried_size = 0;
	if (!symbolic_on || !from)
		return;
	if (size > malloc_usable_size((void *)from))
		size = malloc_usable_size((void *)from);
	if (size > carried_room) {
		uint32_t *more = realloc(carried, size * sizeof(*carried));

		if (!more)
			return;
		carried = more;
		carried_room = size;
	}
	for (carried_size = 0; carried_size < size; carried_size++)
		carried[carried_size] = memory_load((const void *)(from + carried_size), 1);
}

void symbolic_hook_moved(uint64_t to, uint64_t from, uint64_t size)
{
	(void)from;
	(void)size;
	for (size_t i = 0; symbolic_on && to && i < carried_size; i++)
		memory_store((const void *)(to + i), 1, carried[i]);
	carried_size = 0;
}

void symbolic_hook_freed(uint64_t p, uint64_t same, uint64_t size)
{
	(void)same;
	(void)size;
	if (symbolic_on && p)
		memory_clear((const void *)p, malloc_usable_size((void *)p));
}

void symbolic_hook_made(uint64_t to, uint64_t unused, uint64_t size)
{
	(void)unused;
	(void)size;
	if (symbolic_on && to)
		memory_clear((const void *)to, malloc_usable_size((void *)to));
}

/* ---- what symbolic/libc leaves to the real one ---- */

PUBLIC int perdure_plain_vsnprintf(char *to, size_t room, const char *format, va_list list);
PUBLIC int perdure_plain_snprintf(char *to, size_t room, const char *format, ...);
PUBLIC double perdure_plain_strtod(const char *text);
PUBLIC long double perdure_plain_strtold(const char *text);

/* As the ABI lays out a va_list: registers, and what did not fit into them. */
struct arguments {
	uint32_t general, vector;
	const uint64_t *overflow, *registers;
};

/* Numbers, and texts that they may point to. */
static void fix_slots(const uint64_t *slot, unsigned count)
{
	memory_fix(slot, count * sizeof(*slot), SYMBOLIC_LOST_CALL);
	for (unsigned i = 0; i < count; i++)
		if (memory_is_mapped(slot[i]))
			memory_fix_from((const void *)slot[i], SYMBOLIC_LOST_CALL);
}

int perdure_plain_vsnprintf(char *to, size_t room, const char *format, va_list list)
{
	const struct arguments *given = (const void *)list;

	if (symbolic_on) {
		fix_slots(given->registers, 6);
		fix_slots(given->overflow, 8);
	}
	return vsnprintf(to, room, format, list);
}

int perdure_plain_snprintf(char *to, size_t room, const char *format, ...)
{
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(to, room, format, list);
	va_end(list);
	return n;
}

double perdure_plain_strtod(const char *text)
{
	return strtod(text, NULL);
}

long double perdure_plain_strtold(const char *text)
{
	return strtold(text, NULL);
}
