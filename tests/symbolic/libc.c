/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of libc that keep symbolic data, against the real ones, which are called by their
 * addresses. `libc CASE` reads a text that may be symbolic, asks the one of symbolic/libc while it
 * is, and then the real one, for which it has to be fixed. `libc random` compares all of them on
 * texts that are not symbolic. What differs aborts.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT = 64, MOST = 16 };

struct result {
	long value, end, error;
	char text[TEXT];
};

/* LLVM must not know which functions these are. */
#define REAL(function) static __typeof__(function) *volatile real_##function = function
#define CALL(function, ...) (real ? real_##function(__VA_ARGS__) : function(__VA_ARGS__))

REAL(strtol);
REAL(strtoul);
REAL(atoi);
REAL(snprintf);
REAL(sscanf);
REAL(qsort);
REAL(bsearch);
REAL(strtok);
REAL(strtok_r);
REAL(strsep);
REAL(strspn);
REAL(strcspn);
REAL(strpbrk);
REAL(strchrnul);
REAL(memrchr);
REAL(memmem);
REAL(strstr);
REAL(strcasestr);
REAL(strcasecmp);
REAL(strncasecmp);
REAL(strncat);
REAL(stpncpy);
REAL(strndup);
REAL(memccpy);
REAL(isalnum);
REAL(isalpha);
REAL(isblank);
REAL(iscntrl);
REAL(isdigit);
REAL(isgraph);
REAL(islower);
REAL(isprint);
REAL(ispunct);
REAL(isspace);
REAL(isupper);
REAL(isxdigit);
REAL(tolower);
REAL(toupper);

static long place(const char *p, const char *in)
{
	return p ? p - in : -1;
}

static void to_number(const char *in, struct result *r, bool real, int base)
{
	char *end;

	errno = 0;
	r->value = CALL(strtol, in, &end, base);
	r->end = end - in;
	r->error = errno;
}

static void decimal(char *in, struct result *r, bool real)
{
	to_number(in, r, real, 10);
}

static void any_base(char *in, struct result *r, bool real)
{
	to_number(in, r, real, 0);
}

static void hexadecimal(char *in, struct result *r, bool real)
{
	to_number(in, r, real, 16);
}

static void base_36(char *in, struct result *r, bool real)
{
	to_number(in, r, real, 36);
}

static void positive(char *in, struct result *r, bool real)
{
	char *end;

	errno = 0;
	r->value = (long)CALL(strtoul, in, &end, 10);
	r->end = end - in;
	r->error = errno;
}

static void integer(char *in, struct result *r, bool real)
{
	r->value = CALL(atoi, in);
}

static void print(char *in, struct result *r, bool real)
{
	r->value = CALL(snprintf, r->text, TEXT, "%d|%5u|%-4x|%c|%.3s", (signed char)in[0],
			(unsigned)(uint8_t)in[1], (unsigned)(uint8_t)in[2], in[0] | 1, in);
}

static void scan(char *in, struct result *r, bool real)
{
	int a = -7, n = -7;
	unsigned b = 7;

	r->value = CALL(sscanf, in, "%d,%3x%7[a-c]%n", &a, &b, r->text, &n);
	r->end = a * 1000 + (int)b;
	r->error = n;
}

static void scan_words(char *in, struct result *r, bool real)
{
	char word[TEXT] = "";
	int n = -7;

	r->value = CALL(sscanf, in, " %10s %i %c", word, &n, &r->text[32]);
	memcpy(r->text, word, 16);
	r->end = n;
}

static int by_byte(const void *a, const void *b)
{
	return *(const uint8_t *)a - *(const uint8_t *)b;
}

static void sort(char *in, struct result *r, bool real)
{
	size_t n = strnlen(in, 4);

	memcpy(r->text, in, n);
	if (real)
		real_qsort(r->text, n, 1, by_byte);
	else
		qsort(r->text, n, 1, by_byte);
}

static void search(char *in, struct result *r, bool real)
{
	static const char sorted[] = "%+,0157abcx";

	r->value = place(CALL(bsearch, in, sorted, sizeof(sorted) - 1, 1, by_byte), sorted);
}

static void tokens(char *in, struct result *r, bool real)
{
	char copy[MOST + 1], *at = NULL;

	strcpy(copy, in);
	for (char *word = copy; (word = CALL(strtok, word, " ,")); word = NULL)
		r->value = r->value * 100 + (word - copy) * 10 + (long)strlen(word);
	strcpy(copy, in);
	for (char *word = copy; (word = CALL(strtok_r, word, "x", &at)); word = NULL)
		r->end = r->end * 100 + (word - copy) * 10 + (long)strlen(word);
}

static void parts(char *in, struct result *r, bool real)
{
	char copy[MOST + 1], *next = copy, *part;

	strcpy(copy, in);
	while ((part = CALL(strsep, &next, "+,")))
		r->value = r->value * 100 + (part - copy) * 10 + (long)strlen(part);
}

static void spans(char *in, struct result *r, bool real)
{
	r->value = (long)CALL(strspn, in, "0123456789");
	r->end = (long)CALL(strcspn, in, "abc");
	r->error = place(CALL(strpbrk, in, "x,"), in);
}

static void places(char *in, struct result *r, bool real)
{
	r->value = place(CALL(strchrnul, in, 'a'), in);
	r->end = place(CALL(memrchr, in, 'a', 4), in);
}

static void finds(char *in, struct result *r, bool real)
{
	r->value = place(CALL(memmem, in, 4, "a1", 2), in);
	r->end = place(CALL(strstr, in, "0x"), in);
	r->error = place(CALL(strcasestr, in, "b"), in);
}

static int sign(int n)
{
	return n < 0 ? -1 : n > 0;
}

static void compares(char *in, struct result *r, bool real)
{
	r->value = sign(CALL(strcasecmp, in, "aB0x"));
	r->end = sign(CALL(strncasecmp, in, "X1", 2));
}

static void copies(char *in, struct result *r, bool real)
{
	char *copy = CALL(strndup, in, 2), *end;

	r->value = (long)strlen(copy);
	strcpy(r->text, "<");
	if (real) {
		real_strncat(r->text, in, 3);
		end = real_stpncpy(r->text + 8, in, 4);
		real_memccpy(r->text + 20, in, ',', 4);
	} else {
		strncat(r->text, in, 3);
		end = stpncpy(r->text + 8, in, 4);
		memccpy(r->text + 20, in, ',', 4);
	}
	r->end = end - r->text;
	r->error = copy[0];
	free(copy);
}

static void kinds(char *in, struct result *r, bool real)
{
	int c = (uint8_t)in[0];

	r->value = !!CALL(isalnum, c) | !!CALL(isalpha, c) << 1 | !!CALL(isblank, c) << 2 |
		   !!CALL(iscntrl, c) << 3 | !!CALL(isdigit, c) << 4 | !!CALL(isgraph, c) << 5 |
		   !!CALL(islower, c) << 6 | !!CALL(isprint, c) << 7 | !!CALL(ispunct, c) << 8 |
		   !!CALL(isspace, c) << 9 | !!CALL(isupper, c) << 10 | !!CALL(isxdigit, c) << 11;
	r->end = CALL(tolower, c) << 8 | CALL(toupper, c);
}

static const struct {
	const char *name;
	void (*function)(char *in, struct result *r, bool real);
} cases[] = {
	{ "decimal", decimal }, { "any_base", any_base }, { "hexadecimal", hexadecimal },
	{ "base_36", base_36 }, { "positive", positive }, { "integer", integer },
	{ "print", print },     { "scan", scan },         { "scan_words", scan_words },
	{ "sort", sort },       { "search", search },     { "tokens", tokens },
	{ "parts", parts },     { "spans", spans },       { "places", places },
	{ "finds", finds },     { "compares", compares }, { "copies", copies },
	{ "kinds", kinds },
};
enum { CASES = sizeof(cases) / sizeof(*cases) };

/* What is found out while the text may be anything must be so when it is fixed. */
static void compare(unsigned number, char *in)
{
	struct result own = { 0 }, real = { 0 };

	cases[number].function(in, &own, false);
#ifdef WRONG
	own.value ^= 1;
#endif
	cases[number].function(in, &real, true);
	if (own.value != real.value || own.end != real.end || own.error != real.error ||
	    memcmp(own.text, real.text, TEXT) != 0) {
		fprintf(stderr,
			"%s: \"%s\": %ld %ld %ld \"%.40s\", and should be %ld %ld %ld \"%.40s\"\n",
			cases[number].name, in, own.value, own.end, own.error, own.text, real.value,
			real.end, real.error, real.text);
		abort();
	}
}

/* ---- texts that are not symbolic ---- */

static uint64_t next_random(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void random_text(char *text)
{
	static const char usual[] = "0123456789abcABCxX+-, \t%17";
	unsigned n = next_random() % MOST;

	for (unsigned i = 0; i < n; i++) {
		uint64_t r = next_random();

		text[i] = r % 50 ? usual[r / 50 % (sizeof(usual) - 1)] : (char)(1 + r / 50 % 255);
	}
	text[n] = 0;
}

/* One conversion of each kind, with everything that may stand before it. */
static void compare_print(void)
{
	static const char letters[] = "diuoxXcspfgeaEGA%";
	static const char *const sizes[] = { "", "h", "hh", "l", "ll", "z", "j" };
	char letter = letters[next_random() % (sizeof(letters) - 1)], format[32], own[256],
	     real[256];
	uint64_t r = next_random(), value = next_random() >> next_random() % 64;
	bool is_integer = strchr("diuoxX", letter);
	int n, m;

	real_snprintf(format, sizeof(format), "<%%%s%s%s%s%s%.*d%s%.*d%s%c>", r & 1 ? "-" : "",
		      r & 2 ? "+" : "", r & 4 ? " " : "",
		      r & 8 && strchr("diuoxXfgeaEGA", letter) ? "0" : "",
		      r & 16 && strchr("oxXfgeaEGA", letter) ? "#" : "", r & 32 ? 1 : 0,
		      r & 32 ? (int)(r >> 8 & 15) + 1 : 0,
		      r & 64 && letter != 'c' && letter != 'p' ? "." : "",
		      r & 64 && letter != 'c' && letter != 'p' ? 1 : 0,
		      r & 64 && letter != 'c' && letter != 'p' ? (int)(r >> 12 & 7) : 0,
		      is_integer ? sizes[r >> 20 & 7 ? (r >> 20 & 7) - 1 : 0] : "", letter);
	if (strcmp(format + 1, "%%") == 0)
		return;
	if (letter == 's') {
		char text[MOST + 1];

		random_text(text);
		n = snprintf(own, sizeof(own), format, text);
		m = real_snprintf(real, sizeof(real), format, text);
	} else if (strchr("fgeaEGA", letter)) {
		double d = (double)(int64_t)value / 1024;

		n = snprintf(own, sizeof(own), format, d);
		m = real_snprintf(real, sizeof(real), format, d);
	} else {
		n = snprintf(own, r >> 32 & 1 ? 5 : sizeof(own), format, value);
		m = real_snprintf(real, r >> 32 & 1 ? 5 : sizeof(real), format, value);
	}
	if (n != m || strcmp(own, real) != 0) {
		fprintf(stderr, "\"%s\" of %#lx: %d \"%s\", and should be %d \"%s\"\n", format,
			value, n, own, m, real);
		abort();
	}
}

int main(int argc, char **argv)
{
	enum { ROUNDS = 20000 };
	char in[MOST + 1] = "";

	for (unsigned i = 0; i < CASES; i++)
		if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
			if (read(STDIN_FILENO, in, MOST) < 0)
				return 2;
			compare(i, in);
			return 0;
		}
	if (argc < 2 || strcmp(argv[1], "random") != 0) {
		for (unsigned i = 0; i < CASES; i++)
			puts(cases[i].name);
		return 0;
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < CASES; i++) {
			random_text(in);
			compare(i, in);
		}
		compare_print();
	}
	return 0;
}
