/* SPDX-License-Identifier: BSD-3-Clause */
/* Formatted input: integers and texts may be symbolic, floating point is libc's. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "symbolic/libc/libc.h"

struct input {
	const char *text; /* or null: a file */
	FILE *file;
	size_t read;
};

struct conversion {
	bool skip, allocates;
	size_t width; /* the most that it takes */
	char size;    /* h, H for hh, l for all of that size, L; 0 */
	char letter;
	const char *set, *set_end; /* of %[ */
	bool inverted;
};

static int next(struct input *in)
{
	int c = in->text ? (unsigned char)*in->text : fgetc(in->file);

	if (in->text && !c)
		return EOF;
	if (c == EOF)
		return EOF;
	in->read++;
	if (in->text)
		in->text++;
	return c;
}

static void back(struct input *in, int c)
{
	if (c == EOF)
		return;
	in->read--;
	if (in->text)
		in->text--;
	else
		ungetc(c, in->file);
}

/* False at the end of the input. */
static bool skip_space(struct input *in)
{
	int c;

	do
		c = next(in);
	while (c != EOF && is_space((unsigned char)c));
	back(in, c);
	return c != EOF;
}

/* ---- what is asked for ---- */

static const char *parse_set(const char *p, struct conversion *c)
{
	if (*p == '^') {
		c->inverted = true;
		p++;
	}
	c->set = p;
	if (*p == ']')
		p++;
	while (*p && *p != ']')
		p++;
	c->set_end = p;
	return *p ? p + 1 : p;
}

static const char *parse(const char *p, struct conversion *c)
{
	*c = (struct conversion){ 0 };
	p++;
	for (; *p == '*' || *p == '\''; p++)
		c->skip |= *p == '*';
	while (*p >= '0' && *p <= '9')
		c->width = c->width * 10 + (size_t)(*p++ - '0');
	p = parse_size(p, &c->size);
	if (*p == 'm') {
		c->allocates = true;
		p = parse_size(p + 1, &c->size);
	}
	c->letter = *p;
	if (*p)
		p++;
	return c->letter == '[' ? parse_set(p, c) : p;
}

static bool is_in_set(const struct conversion *c, unsigned char byte)
{
	unsigned found = 0;

	for (const char *p = c->set; p < c->set_end; p++) {
		unsigned char low = (unsigned char)*p, high = low;

		if (p[1] == '-' && p + 2 < c->set_end) {
			high = (unsigned char)p[2];
			p += 2;
		}
		found |= (byte >= low) & (byte <= high);
	}
	return found != c->inverted;
}

static bool is_part(const struct conversion *c, int byte)
{
	return c->letter == '['   ? is_in_set(c, (unsigned char)byte)
	       : c->letter == 's' ? !is_space((unsigned char)byte)
				  : true;
}

/* ---- one of them ---- */

enum outcome { FITS, DIFFERS, ENDED };

static void store_integer(const struct conversion *c, unsigned long value, void *to)
{
	if (c->size == 'l' || c->size == 'L' || c->letter == 'p')
		*(unsigned long *)to = value;
	else if (c->size == 'h')
		*(unsigned short *)to = (unsigned short)value;
	else if (c->size == 'H')
		*(unsigned char *)to = (unsigned char)value;
	else
		*(unsigned *)to = (unsigned)value;
}

static unsigned base_of(char letter)
{
	return letter == 'i' ? 0 : letter == 'o' ? 8 : letter == 'd' || letter == 'u' ? 10 : 16;
}

/* The text of an integer: as much as could be one. */
static size_t take_integer(struct input *in, size_t width, unsigned *base, char *text, size_t room)
{
	size_t n = 0, digits = 0;
	int c = next(in);

	if (width > room - 1)
		width = room - 1;
	if (width && (c == '-' || c == '+')) {
		text[n++] = (char)c;
		c = next(in);
	}
	if (n < width && c == '0') {
		text[n++] = (char)c;
		digits++;
		c = next(in);
		if (n < width && (*base == 0 || *base == 16) && (c | 32) == 'x') {
			*base = 16;
			text[n++] = (char)c; /* glibc takes it even if no digit follows */
			c = next(in);
		} else if (*base == 0) {
			*base = 8;
		}
	}
	if (*base == 0)
		*base = 10;
	for (; n < width && c != EOF && digit_of((unsigned char)c) < *base; digits++) {
		text[n++] = (char)c;
		c = next(in);
	}
	back(in, c);
	text[n] = 0;
	return digits;
}

static enum outcome scan_integer(struct input *in, const struct conversion *c, va_list *list)
{
	unsigned base = base_of(c->letter);
	char text[128];
	unsigned long value;

	if (!skip_space(in))
		return ENDED;
	if (!take_integer(in, c->width ? c->width : SIZE_MAX, &base, text, sizeof(text)))
		return DIFFERS;
	if (c->skip)
		return FITS;
	value = c->letter == 'd' || c->letter == 'i' ? (unsigned long)own_strtol(text, NULL, base)
						     : own_strtoul(text, NULL, base);
	store_integer(c, value, va_arg(*list, void *));
	return FITS;
}

static enum outcome scan_text(struct input *in, const struct conversion *c, va_list *list)
{
	size_t width = c->width ? c->width : c->letter == 'c' ? 1 : SIZE_MAX, n = 0, room = 0;
	char *to = NULL, **keep = NULL;

	if (c->letter == 's' && !skip_space(in))
		return ENDED;
	if (!c->skip && c->allocates)
		keep = va_arg(*list, char **);
	else if (!c->skip)
		to = va_arg(*list, char *);
	for (; n < width; n++) {
		int byte = next(in);

		if (byte == EOF && !n)
			return ENDED;
		if (byte == EOF || !is_part(c, byte)) {
			back(in, byte);
			break;
		}
		if (keep && n + 1 >= room) {
			room = room ? 2 * room : 64;
			to = realloc(to, room);
			if (!to)
				return ENDED;
		}
		if (to)
			to[n] = (char)byte;
	}
	if (!n || (c->letter == 'c' && n < width)) {
		if (keep)
			free(to);
		return n ? ENDED : DIFFERS;
	}
	if (to && c->letter != 'c')
		to[n] = 0;
	if (keep)
		*keep = to;
	return FITS;
}

static enum outcome scan_float(struct input *in, const struct conversion *c, va_list *list)
{
	size_t width = c->width && c->width < 255 ? c->width : 255, n = 0;
	char text[256];
	int byte;

	if (!skip_space(in))
		return ENDED;
	for (; n < width; n++) {
		byte = next(in);
		if (byte == EOF || !strchr("+-.0123456789abcdefABCDEFxXpPinftyINFTY", byte)) {
			back(in, byte);
			break;
		}
		text[n] = (char)byte;
	}
	text[n] = 0;
	if (!n)
		return DIFFERS;
	if (c->skip)
		return FITS;
	if (c->size == 'L')
		*va_arg(*list, long double *) = perdure_plain_strtold(text);
	else if (c->size == 'l')
		*va_arg(*list, double *) = perdure_plain_strtod(text);
	else
		*va_arg(*list, float *) = (float)perdure_plain_strtod(text);
	return FITS;
}

static enum outcome match(struct input *in, char expected)
{
	int c = next(in);

	if (c == (unsigned char)expected)
		return FITS;
	back(in, c);
	return c == EOF ? ENDED : DIFFERS;
}

static enum outcome convert(struct input *in, const struct conversion *c, va_list *list)
{
	switch (c->letter) {
	case 'd':
	case 'i':
	case 'u':
	case 'o':
	case 'x':
	case 'X':
	case 'p':
		return scan_integer(in, c, list);
	case 's':
	case 'c':
	case '[':
		return scan_text(in, c, list);
	case 'n':
		if (!c->skip)
			store_integer(c, in->read, va_arg(*list, void *));
		return FITS;
	case '%':
		return skip_space(in) ? match(in, '%') : ENDED;
	case 0:
		return DIFFERS;
	default:
		return scan_float(in, c, list);
	}
}

static int scan(struct input *in, const char *format, va_list *list)
{
	enum outcome outcome = FITS;
	int done = 0;

	while (*format && outcome == FITS) {
		struct conversion c;

		if (is_space((unsigned char)*format)) {
			skip_space(in);
			format++;
			continue;
		}
		if (*format != '%') {
			outcome = match(in, *format++);
			continue;
		}
		format = parse(format, &c);
		outcome = convert(in, &c, list);
		done += outcome == FITS && !c.skip && c.letter != 'n' && c.letter != '%';
	}
	return outcome == ENDED && !done ? EOF : done;
}

/* ---- its names ---- */

int own_vsscanf(const char *text, const char *format, va_list list) LIBC(vsscanf);
int own_sscanf(const char *text, const char *format, ...) LIBC(sscanf);
int own_vfscanf(FILE *file, const char *format, va_list list) LIBC(vfscanf);
int own_fscanf(FILE *file, const char *format, ...) LIBC(fscanf);
int own_scanf(const char *format, ...) LIBC(scanf);

static int scan_all(struct input in, const char *format, va_list list)
{
	va_list rest;
	int done;

	va_copy(rest, list);
	done = scan(&in, format, &rest);
	va_end(rest);
	return done;
}

int own_vsscanf(const char *text, const char *format, va_list list)
{
	return scan_all((struct input){ .text = text }, format, list);
}

int own_sscanf(const char *text, const char *format, ...)
{
	va_list list;
	int done;

	va_start(list, format);
	done = own_vsscanf(text, format, list);
	va_end(list);
	return done;
}

int own_vfscanf(FILE *file, const char *format, va_list list)
{
	return scan_all((struct input){ .file = file }, format, list);
}

int own_fscanf(FILE *file, const char *format, ...)
{
	va_list list;
	int done;

	va_start(list, format);
	done = own_vfscanf(file, format, list);
	va_end(list);
	return done;
}

int own_scanf(const char *format, ...)
{
	va_list list;
	int done;

	va_start(list, format);
	done = own_vfscanf(stdin, format, list);
	va_end(list);
	return done;
}
