/* SPDX-License-Identifier: BSD-3-Clause */
#include "symbolic/libc/libc.h"

#define IS(name, condition)                                                                        \
	int own_##name(int c) LIBC(name);                                                          \
	int own_##name(int c)                                                                      \
	{                                                                                          \
		return (condition);                                                                \
	}

static inline unsigned from(int c, int first)
{
	return (unsigned)c - (unsigned)first;
}

static inline int is_letter(int c)
{
	return (from(c, 'a') < 26) | (from(c, 'A') < 26);
}

IS(isdigit, from(c, '0') < 10)
IS(islower, from(c, 'a') < 26)
IS(isupper, from(c, 'A') < 26)
IS(isalpha, is_letter(c))
IS(isalnum, is_letter(c) | (from(c, '0') < 10))
IS(isxdigit, (from(c, '0') < 10) | (from(c, 'a') < 6) | (from(c, 'A') < 6))
IS(isspace, (c == ' ') | (from(c, '\t') < 5))
IS(isblank, (c == ' ') | (c == '\t'))
IS(iscntrl, (from(c, 0) < 32) | (c == 127))
IS(isprint, from(c, ' ') < 95)
IS(isgraph, from(c, '!') < 94)
IS(ispunct, (from(c, '!') < 94) & !(is_letter(c) | (from(c, '0') < 10)))
IS(isascii, from(c, 0) < 128)
IS(toascii, c & 127)
IS(tolower, c + 32 * (from(c, 'A') < 26))
IS(toupper, c - 32 * (from(c, 'a') < 26))

uint32_t own_htonl(uint32_t n) LIBC(htonl);
uint16_t own_htons(uint16_t n) LIBC(htons);
uint32_t own_ntohl(uint32_t n) LIBC(ntohl);
uint16_t own_ntohs(uint16_t n) LIBC(ntohs);

uint32_t own_htonl(uint32_t n)
{
	return __builtin_bswap32(n);
}

uint16_t own_htons(uint16_t n)
{
	return __builtin_bswap16(n);
}

uint32_t own_ntohl(uint32_t n)
{
	return __builtin_bswap32(n);
}

uint16_t own_ntohs(uint16_t n)
{
	return __builtin_bswap16(n);
}
