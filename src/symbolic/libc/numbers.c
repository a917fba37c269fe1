/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>

#include "symbolic/libc/libc.h"

struct number {
	unsigned long value; /* without the sign; ULONG_MAX if it does not fit */
	bool negative, overflow;
};

static const char *skip_prefix(const char *p, int *base)
{
	if ((*base == 0 || *base == 16) && *p == '0' && (p[1] | 32) == 'x' && digit_of(p[2]) < 16) {
		*base = 16;
		return p + 2;
	}
	if (*base == 0)
		*base = *p == '0' ? 8 : 10;
	return p;
}

static struct number parse(const char *text, char **end, int base)
{
	struct number number = { 0 };
	const char *p = text, *digits;
	unsigned digit;

	if (end)
		*end = (char *)text;
	if (base < 0 || base == 1 || base > 36) {
		errno = EINVAL;
		return number;
	}
	while (is_space(*p))
		p++;
	if (*p == '-') {
		number.negative = true;
		p++;
	} else if (*p == '+') {
		p++;
	}
	p = digits = skip_prefix(p, &base);
	for (; (digit = digit_of(*p)) < (unsigned)base; p++) {
		/* Twelve digits fit in any base: then nobody has to ask. */
		if (p - digits >= 12 && number.value > (ULONG_MAX - digit) / (unsigned)base)
			number.overflow = true;
		number.value = number.value * (unsigned)base + digit;
	}
	if (number.overflow)
		number.value = ULONG_MAX;
	if (end && p != digits)
		*end = (char *)p;
	return number;
}

long own_strtol(const char *text, char **end, int base)
{
	struct number number = parse(text, end, base);

	/* Without this nobody has to ask about short ones. */
	if (number.value > (unsigned long)LONG_MAX + number.negative || number.overflow) {
		errno = ERANGE;
		return number.negative ? LONG_MIN : LONG_MAX;
	}
	return number.negative ? (long)-number.value : (long)number.value;
}

unsigned long own_strtoul(const char *text, char **end, int base)
{
	struct number number = parse(text, end, base);

	if (number.overflow) {
		errno = ERANGE;
		return ULONG_MAX;
	}
	return number.negative ? -number.value : number.value;
}

int own_atoi(const char *text) LIBC(atoi);
long own_atol(const char *text) LIBC(atol);

int own_atoi(const char *text)
{
	return (int)own_strtol(text, NULL, 10);
}

long own_atol(const char *text)
{
	return own_strtol(text, NULL, 10);
}
