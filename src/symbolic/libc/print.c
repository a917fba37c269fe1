/* SPDX-License-Identifier: BSD-3-Clause */
/* Formatted text with symbolic integers and texts in it; floating point is libc's. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "symbolic/libc/libc.h"

struct output {
	char *to;
	size_t room, length; /* what does not fit is counted */
};

struct conversion {
	bool left, plus, space, zero, alternative;
	int width, precision; /* precision -1: none */
	char size;            /* h, H for hh, l, j and the like as l, L; 0 */
	char letter;
};

static void put(struct output *out, char c)
{
	if (out->length < out->room)
		out->to[out->length] = c;
	out->length++;
}

static void put_all(struct output *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put(out, text[i]);
}

static void pad(struct output *out, char c, int n)
{
	for (int i = 0; i < n; i++)
		put(out, c);
}

/* ---- what is asked for ---- */

static const char *parse_number(const char *p, int *n, va_list *list)
{
	*n = 0;
	if (*p == '*') {
		*n = va_arg(*list, int);
		return p + 1;
	}
	while (*p >= '0' && *p <= '9')
		*n = *n * 10 + *p++ - '0';
	return p;
}

static bool parse_flag(struct conversion *c, char flag)
{
	switch (flag) {
	case '-':
		return c->left = true;
	case '+':
		return c->plus = true;
	case ' ':
		return c->space = true;
	case '0':
		return c->zero = true;
	case '#':
		return c->alternative = true;
	default:
		return flag == '\'' || flag == 'I';
	}
}

static const char *parse(const char *p, struct conversion *c, va_list *list)
{
	*c = (struct conversion){ .precision = -1 };
	p++;
	while (parse_flag(c, *p))
		p++;
	p = parse_number(p, &c->width, list);
	if (c->width < 0) {
		c->left = true;
		c->width = -c->width;
	}
	if (*p == '.') {
		p = parse_number(p + 1, &c->precision, list);
		if (c->precision < 0)
			c->precision = -1;
	}
	p = parse_size(p, &c->size);
	c->letter = *p;
	if (*p)
		p++;
	return p;
}

/* ---- one of them ---- */

static void put_text(struct output *out, const struct conversion *c, const char *text, size_t n)
{
	int padding = (size_t)c->width > n ? c->width - (int)n : 0;

	if (!c->left)
		pad(out, ' ', padding);
	put_all(out, text, n);
	if (c->left)
		pad(out, ' ', padding);
}

static void put_number(struct output *out, const struct conversion *c, uint64_t value,
		       unsigned base, const char *prefix)
{
	char digits[72];
	int n = sizeof(digits), count, zeros, padding;
	int letters = c->letter == 'X' ? 'A' - 10 : 'a' - 10;

	while (value) {
		unsigned digit = (unsigned)(value % base);

		/* A letter, if it has to be, without a branch. */
		digits[--n] = (char)(digit + '0' + (digit > 9) * (unsigned)(letters - '0'));
		value /= base;
	}
	if (n == sizeof(digits) && c->precision)
		digits[--n] = '0';
	count = (int)sizeof(digits) - n;
	zeros = c->precision > count ? c->precision - count : 0;
	if (c->alternative && base == 8 && !zeros && (!count || digits[n] != '0'))
		zeros = 1;
	padding = c->width - count - zeros - (int)strlen(prefix);
	if (padding > 0 && c->zero && !c->left && c->precision < 0) {
		zeros += padding;
		padding = 0;
	}
	if (!c->left)
		pad(out, ' ', padding);
	put_all(out, prefix, strlen(prefix));
	pad(out, '0', zeros);
	put_all(out, digits + n, (size_t)count);
	if (c->left)
		pad(out, ' ', padding);
}

static void put_signed(struct output *out, const struct conversion *c, va_list *list)
{
	int64_t value = c->size == 'l' || c->size == 'L' ? va_arg(*list, long) : va_arg(*list, int);

	if (c->size == 'h')
		value = (short)value;
	else if (c->size == 'H')
		value = (signed char)value;
	if (value < 0)
		put_number(out, c, -(uint64_t)value, 10, "-");
	else
		put_number(out, c, (uint64_t)value, 10, c->plus ? "+" : c->space ? " " : "");
}

static void put_unsigned(struct output *out, const struct conversion *c, va_list *list)
{
	uint64_t value = c->size == 'l' || c->size == 'L' ? va_arg(*list, unsigned long)
							  : va_arg(*list, unsigned);
	const char *prefix = "";

	if (c->size == 'h')
		value = (unsigned short)value;
	else if (c->size == 'H')
		value = (unsigned char)value;
	if (c->alternative && (c->letter == 'x' || c->letter == 'X') && value)
		prefix = c->letter == 'x' ? "0x" : "0X";
	put_number(out, c, value, c->letter == 'o' ? 8 : c->letter == 'u' ? 10 : 16, prefix);
}

static void put_pointer(struct output *out, const struct conversion *c, const void *p)
{
	struct conversion hexadecimal = *c;

	hexadecimal.letter = 'x';
	if (p)
		put_number(out, &hexadecimal, (uintptr_t)p, 16,
			   c->plus    ? "+0x"
			   : c->space ? " 0x"
				      : "0x");
	else
		put_text(out, c, "(nil)", 5);
}

static void put_string(struct output *out, const struct conversion *c, const char *text)
{
	if (!text)
		text = c->precision >= 0 && c->precision < 6 ? "" : "(null)";
	put_text(out, c, text, c->precision < 0 ? strlen(text) : strnlen(text, c->precision));
}

/* One of the two, as the conversion says. */
static int print_float(char *to, size_t room, const char *format, const struct conversion *c,
		       double value, long double large)
{
	return c->size == 'L'
		       ? perdure_plain_snprintf(to, room, format, c->width, c->precision, large)
		       : perdure_plain_snprintf(to, room, format, c->width, c->precision, value);
}

static void put_float(struct output *out, const struct conversion *c, va_list *list)
{
	long double large = c->size == 'L' ? va_arg(*list, long double) : 0;
	double value = c->size == 'L' ? 0 : va_arg(*list, double);
	char format[32], *text;
	int n;

	perdure_plain_snprintf(format, sizeof(format), "%%%s%s%s%s%s*.*%s%c", c->left ? "-" : "",
			       c->plus ? "+" : "", c->space ? " " : "", c->zero ? "0" : "",
			       c->alternative ? "#" : "", c->size == 'L' ? "L" : "", c->letter);
	n = print_float(NULL, 0, format, c, value, large);
	text = malloc((size_t)n + 1);
	if (!text)
		return;
	print_float(text, (size_t)n + 1, format, c, value, large);
	put_all(out, text, (size_t)n);
	free(text);
}

static void put_count(const struct conversion *c, size_t length, void *to)
{
	if (c->size == 'l')
		*(long *)to = (long)length;
	else if (c->size == 'h')
		*(short *)to = (short)length;
	else if (c->size == 'H')
		*(signed char *)to = (signed char)length;
	else
		*(int *)to = (int)length;
}

static void convert(struct output *out, const struct conversion *c, va_list *list)
{
	char one;

	switch (c->letter) {
	case 'd':
	case 'i':
		put_signed(out, c, list);
		break;
	case 'u':
	case 'o':
	case 'x':
	case 'X':
		put_unsigned(out, c, list);
		break;
	case 'c':
		one = (char)va_arg(*list, int);
		put_text(out, c, &one, 1);
		break;
	case 's':
		put_string(out, c, va_arg(*list, const char *));
		break;
	case 'p':
		put_pointer(out, c, va_arg(*list, const void *));
		break;
	case 'n':
		put_count(c, out->length, va_arg(*list, void *));
		break;
	case 'm':
		put_string(out, c, strerror(errno));
		break;
	case '%':
		put(out, '%');
		break;
	case 0:
		break;
	default:
		put_float(out, c, list);
		break;
	}
}

/* Numbered arguments, wide characters, and what nobody knows are left to libc. */
static bool is_ours(const char *format)
{
	for (const char *p = format; (p = strchr(p, '%')); p++) {
		p += 1 + strspn(p + 1, "-+ #0123456789.*'IhlqjzZtL");
		if (!*p || !strchr("diuoxXcspnm%aAeEfFgG", *p) ||
		    ((*p == 'c' || *p == 's') && p[-1] == 'l'))
			return false;
	}
	return true;
}

int own_vsnprintf(char *to, size_t room, const char *format, va_list list)
{
	struct output out = { to, room ? room - 1 : 0, 0 };
	struct conversion c;
	va_list rest;

	if (!is_ours(format))
		return perdure_plain_vsnprintf(to, room, format, list);
	va_copy(rest, list);
	while (*format) {
		if (*format == '%') {
			format = parse(format, &c, &rest);
			convert(&out, &c, &rest);
		} else {
			put(&out, *format++);
		}
	}
	va_end(rest);
	if (room)
		to[out.length < out.room ? out.length : out.room] = 0;
	if (out.length > INT_MAX) {
		errno = EOVERFLOW;
		return -1;
	}
	return (int)out.length;
}

/* ---- its relatives ---- */

int own_snprintf(char *to, size_t room, const char *format, ...) LIBC(snprintf);
int own_sprintf(char *to, const char *format, ...) LIBC(sprintf);
int own_vsprintf(char *to, const char *format, va_list list) LIBC(vsprintf);
int own_asprintf(char **to, const char *format, ...) LIBC(asprintf);
int own_vasprintf(char **to, const char *format, va_list list) LIBC(vasprintf);

int own_snprintf(char *to, size_t room, const char *format, ...)
{
	va_list list;
	int n;

	va_start(list, format);
	n = own_vsnprintf(to, room, format, list);
	va_end(list);
	return n;
}

int own_vsprintf(char *to, const char *format, va_list list)
{
	return own_vsnprintf(to, INT_MAX, format, list);
}

int own_sprintf(char *to, const char *format, ...)
{
	va_list list;
	int n;

	va_start(list, format);
	n = own_vsnprintf(to, INT_MAX, format, list);
	va_end(list);
	return n;
}

int own_vasprintf(char **to, const char *format, va_list list)
{
	va_list again;
	int n;

	va_copy(again, list);
	n = own_vsnprintf(NULL, 0, format, again);
	va_end(again);
	*to = n < 0 ? NULL : malloc((size_t)n + 1);
	return *to ? own_vsnprintf(*to, (size_t)n + 1, format, list) : -1;
}

int own_asprintf(char **to, const char *format, ...)
{
	va_list list;
	int n;

	va_start(list, format);
	n = own_vasprintf(to, format, list);
	va_end(list);
	return n;
}
