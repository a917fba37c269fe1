/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/format.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "runtime/hooks.h"

enum width { WIDTH_CHAR, WIDTH_SHORT, WIDTH_INT, WIDTH_LONG, WIDTH_LONG_DOUBLE };

struct conversion {
	char letter; /* 0 at the end of the format */
	enum width width;
	bool suppressed; /* scanf's * */
	bool star_width, star_precision;
	bool allocates; /* scanf's m */
	int precision;  /* -1: none */
};

static const char *parse_number(const char *p, int *value)
{
	*value = 0;
	while (isdigit((unsigned char)*p))
		*value = *value * 10 + *p++ - '0';
	return p;
}

static const char *parse_width(const char *p, enum width *width)
{
	*width = WIDTH_INT;
	for (;; p++) {
		if (*p == 'h')
			*width = *width == WIDTH_SHORT ? WIDTH_CHAR : WIDTH_SHORT;
		else if (*p == 'l' || *p == 'j' || *p == 'z' || *p == 't' || *p == 'q')
			*width = WIDTH_LONG;
		else if (*p == 'L')
			*width = WIDTH_LONG_DOUBLE;
		else
			return p;
	}
}

/* The next conversion after p; skips text and %%. */
static const char *next(const char *p, struct conversion *c, bool scanning)
{
	int ignored;

	*c = (struct conversion){ .precision = -1 };
	for (; *p; p++) {
		if (*p != '%')
			continue;
		if (*++p != '%')
			break;
	}
	if (!*p)
		return p;
	while (*p && strchr("-+ #0'I*m", *p)) {
		c->suppressed |= scanning && *p == '*';
		c->star_width |= !scanning && *p == '*';
		c->allocates |= scanning && *p == 'm';
		p++;
	}
	p = parse_number(p, &ignored);
	if (*p == '*') {
		c->star_width = true;
		p++;
	}
	if (*p == '.') {
		p++;
		c->star_precision = *p == '*';
		p = *p == '*' ? p + 1 : parse_number(p, &c->precision);
	}
	if (scanning && *p == 'm') {
		c->allocates = true;
		p++;
	}
	p = parse_width(p, &c->width);
	c->letter = *p;
	if (scanning && *p == '[') {
		p += p[1] == '^' ? 2 : 1;
		p += *p == ']';
		while (*p && *p != ']')
			p++;
	}
	return *p ? p + 1 : p;
}

static void skip_argument(const struct conversion *c, va_list *arguments)
{
	if (strchr("aAeEfFgG", c->letter)) {
		if (c->width == WIDTH_LONG_DOUBLE)
			(void)va_arg(*arguments, long double);
		else
			(void)va_arg(*arguments, double);
	} else if (c->letter != 'm') {
		(void)va_arg(*arguments, long);
	}
}

void format_loads(const char *format, va_list original, const struct frame *frame)
{
	struct conversion c;
	va_list arguments;

	if (!runtime_wants_loads)
		return;
	va_copy(arguments, original);
	for (format = next(format, &c, false); c.letter; format = next(format, &c, false)) {
		if (c.star_width)
			(void)va_arg(arguments, int);
		if (c.star_precision)
			c.precision = va_arg(arguments, int);
		if (c.letter == 's' && c.width == WIDTH_INT) {
			const char *text = va_arg(arguments, const char *);

			if (text && in_window(text))
				event_load_string(text,
						  c.precision >= 0 ? (size_t)c.precision : SIZE_MAX,
						  frame);
		} else {
			skip_argument(&c, &arguments);
		}
	}
	va_end(arguments);
}

static size_t stored_size(const struct conversion *c, const void *target)
{
	static const size_t integer[] = { 1, sizeof(short), sizeof(int), sizeof(long),
					  sizeof(long) };

	if (c->letter == 's' || c->letter == '[')
		return c->allocates ? sizeof(char *) : plain_length(target) + 1;
	if (c->letter == 'c')
		return 1;
	if (strchr("aAeEfFgG", c->letter))
		return c->width == WIDTH_LONG_DOUBLE ? sizeof(long double)
		       : c->width == WIDTH_LONG      ? sizeof(double)
						     : sizeof(float);
	if (c->letter == 'p')
		return sizeof(void *);
	return integer[c->width];
}

void format_stores(const char *format, va_list original, int converted, const struct frame *frame)
{
	struct conversion c;
	va_list arguments;

	va_copy(arguments, original);
	for (format = next(format, &c, true); c.letter && converted > 0;
	     format = next(format, &c, true)) {
		void *target;

		if (c.suppressed)
			continue;
		target = va_arg(arguments, void *);
		if (in_window(target))
			event_stored(target, stored_size(&c, target), frame);
		if (c.letter != 'n')
			converted--;
	}
	va_end(arguments);
}
