/* SPDX-License-Identifier: BSD-3-Clause */
/* Instructions at another place, with a question before those that may touch PM. */
#include <cpuid.h>
#include <stdlib.h>
#include <string.h>

#include "binary/binary.h"
#include "races/races.h"

/* Each operand is asked about twice if there are two windows; and the thread once. */
enum { BODY_MAX = BINARY_BODY, FIXUPS_MAX = 192, RCX = 1, BODY_LONGEST = 20 };

/* ---- bytes ---- */

struct code {
	uint8_t *bytes;
	unsigned size;
	bool failed;
};

static uintptr_t here(const struct code *code)
{
	return (uintptr_t)code->bytes + code->size;
}

static void put(struct code *code, const void *bytes, unsigned size)
{
	if (code->size + size > BODY_MAX) {
		code->failed = true;
		return;
	}
	memcpy(code->bytes + code->size, bytes, size);
	code->size += size;
}

#define PUT(code, ...)                                                                             \
	do {                                                                                       \
		static const uint8_t put_bytes[] = { __VA_ARGS__ };                                \
		put(code, put_bytes, sizeof(put_bytes));                                           \
	} while (0)

static void put_byte(struct code *code, uint8_t byte)
{
	put(code, &byte, 1);
}

static void put_word(struct code *code, uint32_t word)
{
	put(code, &word, sizeof(word));
}

static void put_distance(struct code *code, uintptr_t goal)
{
	int64_t distance = (int64_t)(goal - (here(code) + 4));

	code->failed |= distance != (int32_t)distance;
	put_word(code, (uint32_t)distance);
}

static void put_jump(struct code *code, uintptr_t goal)
{
	put_byte(code, 0xe9);
	put_distance(code, goal);
}

/* ---- moved instructions ---- */

static void put_moved(struct code *code, const struct binary_text *text,
		      const struct binary_instruction *moving)
{
	const uint8_t *bytes = text->code + moving->offset;
	unsigned length = moving->length;
	uintptr_t goal = text->start + (int64_t)moving->goal;
	uintptr_t next = text->start + moving->offset + length;
	uint8_t copy[BINARY_LONGEST];
	int64_t distance;
	int32_t short_distance;

	switch (moving->how) {
	case BINARY_AS_IT_IS:
		put(code, bytes, length);
		break;
	case BINARY_RELATIVE:
		distance = (int64_t)(goal - (here(code) + length));
		short_distance = (int32_t)distance;
		code->failed |= distance != short_distance;
		memcpy(copy, bytes, length);
		memcpy(copy + moving->displacement_at, &short_distance, sizeof(short_distance));
		put(code, copy, length);
		break;
	case BINARY_CALL: /* the return address is that of the original */
		PUT(code, 0x48, 0x8d, 0x64, 0x24, 0xf8, 0xc7, 0x04, 0x24); /* lea -8(%rsp); movl */
		put_word(code, (uint32_t)next);
		PUT(code, 0xc7, 0x44, 0x24, 0x04);
		put_word(code, (uint32_t)(next >> 32));
		put_jump(code, goal);
		break;
	case BINARY_BRANCH:
		if (moving->conditional && moving->opcode >= 0xe0 && moving->opcode <= 0xe3) {
			put_byte(code, moving->opcode); /* loop, jrcxz: have short forms only */
			PUT(code, 0x02, 0xeb, 0x05);
		} else if (moving->conditional) {
			put_byte(code, 0x0f);
			put_byte(code, 0x80 | (moving->opcode & 0xf));
			put_distance(code, goal);
			break;
		}
		put_jump(code, goal);
		break;
	default:
		code->failed = true;
	}
}

/* ---- questions ---- */

static bool has_bmi2(void)
{
	static int known; /* 1: no, 2: yes */
	unsigned a, b = 0, c, d;

	if (!known)
		known = __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_BMI2 &&
					!getenv("PERDURE_NO_BMI2") /* for tests */
				? 2
				: 1;
	return known == 2;
}

/* A register from the stack; `lowered` is how far that has grown for the question. */
static void put_reload(struct code *code, unsigned to, const struct binary_operand *o, int lowered)
{
	enum { RSP = 4 };

	put_byte(code, 0x48 | (to >= 8) << 2 | (o->base >= 8));
	put_byte(code, 0x8b); /* mov */
	put_byte(code, 0x80 | (to & 7) << 3 | (o->base == RSP ? 4 : o->base & 7));
	if (o->base == RSP)
		put_byte(code, 0x24);
	put_word(code, (uint32_t)(o->slot + (o->base == RSP ? lowered : 0)));
}

/* lea of the operand's address into a register */
static void put_address(struct code *code, unsigned to, const struct binary_operand *operand,
			int lowered)
{
	struct binary_operand reloaded = *operand;
	const struct binary_operand *o = &reloaded;
	bool base = o->base != BINARY_NO_REGISTER, index = o->index != BINARY_NO_REGISTER;
	unsigned scale = o->scale == 8 ? 3 : o->scale == 4 ? 2 : o->scale == 2 ? 1 : 0;

	if (o->in_stack) {
		put_reload(code, to, o, lowered);
		reloaded.base = (uint8_t)to;
	}
	put_byte(code,
		 0x48 | (to >= 8) << 2 | (index && o->index >= 8) << 1 | (base && o->base >= 8));
	put_byte(code, 0x8d);
	put_byte(code, (base ? 0x80 : 0) | (to & 7) << 3 | 4);
	put_byte(code, scale << 6 | (index ? o->index & 7 : 4) << 3 | (base ? o->base & 7 : 5));
	put_word(code, (uint32_t)o->displacement);
}

/* A jump to the island of a site, which comes behind the body. */
struct fixup {
	unsigned at; /* where the distance is; it is the last of its instruction */
	bool short_distance;
	unsigned site;   /* of the group */
	uint32_t number; /* of all */
	unsigned back;   /* where it goes on */
	enum binary_stack stack;
	uint8_t below; /* a register whose value is only known to be below the window's end */
};

/* Where it starts, where a store is made there, and where that ends; 0: there is none. */
struct island {
	unsigned start, copy, behind;
};

struct body {
	struct code code;
	const struct binary_text *text;
	uint32_t first;
	unsigned count;
	/* Where each instruction is, ends, and is done with. */
	unsigned copy[BODY_LONGEST], after[BODY_LONGEST], behind[BODY_LONGEST];
	unsigned end; /* of the jump back, 0 if there is none */
	struct fixup fixup[FIXUPS_MAX];
	struct island island[FIXUPS_MAX]; /* of each */
	unsigned fixups;
	uint32_t asked;       /* the site that is being asked about */
	bool far[FIXUPS_MAX]; /* the island is too far for a short jump */
	struct unwatched {
		unsigned at, number;
		bool behind;
	} unwatched[FIXUPS_MAX]; /* where rcx is still on the stack */
	unsigned unwatcheds;
};

static struct fixup *note_fixup(struct body *body, unsigned at, bool is_short, unsigned site,
				enum binary_stack stack)
{
	struct fixup *fixup = &body->fixup[body->fixups];

	*fixup = (struct fixup){ at, is_short, site, body->asked, 0, stack, BINARY_NO_REGISTER };
	if (body->fixups == FIXUPS_MAX - 1)
		body->code.failed = true;
	else
		body->fixups++;
	return fixup;
}

static bool is_second_asked(void)
{
	return binary_second_window != PERDURE_WINDOW_INDEX;
}

/* jrcxz to the island, by a long way round if need be */
static void put_if_zero(struct body *body, unsigned site, enum binary_stack stack)
{
	struct code *code = &body->code;

	if (!body->far[body->fixups]) {
		PUT(code, 0xe3, 0x00);
		note_fixup(body, code->size - 1, true, site, stack);
		return;
	}
	PUT(code, 0xe3, 0x02, 0xeb, 0x05, 0xe9, 0, 0, 0, 0);
	note_fixup(body, code->size - 4, false, site, stack);
}

/* Where the window starts and ends, for code that has no register for it. */
static __thread uint64_t window[2]
	__attribute__((used, tls_model("initial-exec"))) = { SESSION_WINDOW,
							     SESSION_WINDOW + SESSION_WINDOW_SIZE };
enum bound { WINDOW_START, WINDOW_END };

/* cmp %fs:…, %register; and a jump if it is below, whose distance is still open */
static void put_if_below(struct code *code, unsigned number, enum bound bound)
{
	int32_t offset = (int32_t)((char *)&window[bound] - (char *)__builtin_thread_pointer());

	put_byte(code, 0x64);
	put_byte(code, 0x48 | (number >= 8) << 2);
	put_byte(code, 0x3b);
	put_byte(code, 0x04 | (number & 7) << 3);
	put_byte(code, 0x25);
	put_word(code, (uint32_t)offset);
	PUT(code, 0x0f, 0x82, 0, 0, 0, 0); /* jb */
}

/*
 * While nobody needs the flags. Mostly other memory lies above the window: the other half of the
 * question is asked in the island.
 */
static void ask_below(struct body *body, unsigned site, unsigned number)
{
	put_if_below(&body->code, number, WINDOW_END);
	note_fixup(body, body->code.size - 4, false, site, BINARY_AS_IT_WAS)->below =
		(uint8_t)number;
}

/* The same for any window, with a register that is free. */
static void ask_fast(struct body *body, unsigned site, const struct binary_operand *o, unsigned to)
{
	struct code *code = &body->code;

	put_address(code, to, o, 0);
	if (!is_second_asked()) {
		ask_below(body, site, to);
		return;
	}
	put_byte(code, 0x48 | (to >= 8));
	put_byte(code, 0xc1);
	put_byte(code, 0xe8 | (to & 7));
	put_byte(code, PERDURE_WINDOW_SHIFT); /* shr */
	for (unsigned i = 0; i < 2; i++) {
		put_byte(code, 0x48 | (to >= 8));
		put_byte(code, 0x83);
		put_byte(code, 0xf8 | (to & 7));
		put_byte(code, i ? binary_second_window : PERDURE_WINDOW_INDEX); /* cmp */
		PUT(code, 0x0f, 0x84, 0, 0, 0, 0);                               /* je */
		note_fixup(body, code->size - 4, false, site, BINARY_AS_IT_WAS);
	}
}

/* With rcx free, or on the stack below the red zone, and no flag changed. */
static void ask_quietly(struct body *body, unsigned site, const struct binary_operand *o,
			enum binary_stack stack)
{
	struct code *code = &body->code;

	put_address(code, RCX, o, stack == BINARY_AS_IT_WAS ? 0 : BINARY_RED_ZONE + 8);
	PUT(code, 0xc4, 0xe3, 0xfb, 0xf0, 0xc9, PERDURE_WINDOW_SHIFT, /* rorx */
	    0x0f, 0xb7, 0xc9,                                         /* movzwl %cx, %ecx */
	    0x8d, 0x49, (uint8_t)-PERDURE_WINDOW_INDEX);              /* lea */
	put_if_zero(body, site, stack);
	if (!is_second_asked())
		return;
	PUT(code, 0x8d, 0x49); /* lea */
	put_byte(code, PERDURE_WINDOW_INDEX - binary_second_window);
	put_if_zero(body, site, stack);
}

static void ask_with_flags(struct body *body, unsigned site, const struct binary_operand *o)
{
	struct code *code = &body->code;

	put_address(code, RCX, o, BINARY_RED_ZONE + 16);
	PUT(code, 0x48, 0xc1, 0xe9, PERDURE_WINDOW_SHIFT, 0x48, 0x83, 0xf9, PERDURE_WINDOW_INDEX,
	    0x0f, 0x84, 0, 0, 0, 0); /* shr; cmp; je */
	note_fixup(body, code->size - 4, false, site, BINARY_FLAGS_PUSHED);
	if (!is_second_asked())
		return;
	PUT(code, 0x48, 0x83, 0xf9);
	put_byte(code, binary_second_window);
	PUT(code, 0x0f, 0x84, 0, 0, 0, 0);
	note_fixup(body, code->size - 4, false, site, BINARY_FLAGS_PUSHED);
}

/* Has this thread something pending, or must others be let in? */
static void ask_thread(struct body *body, unsigned site)
{
	struct code *code = &body->code;
	int32_t offset =
		(int32_t)((char *)&__perdure_inline.pending - (char *)__builtin_thread_pointer());

	PUT(code, 0x64, 0x0f, 0xb7, 0x0c, 0x25); /* movzwl %fs:…, %ecx */
	put_word(code, (uint32_t)offset);
	PUT(code, 0xe3, 0x05, 0xe9, 0, 0, 0, 0); /* jrcxz over; jmp */
	note_fixup(body, code->size - 4, false, site,
		   has_bmi2() ? BINARY_RCX_PUSHED : BINARY_FLAGS_PUSHED);
}

/* mov %rdi, %fs:…; and the operand's address into rdi, with the stack lowered. */
static void put_operand(struct code *code, const struct binary_operand *operand)
{
	enum { RDI = 7 };
	int32_t offset = (int32_t)((char *)&binary_kept_rdi - (char *)__builtin_thread_pointer());

	PUT(code, 0x64, 0x48, 0x89, 0x3c, 0x25);
	put_word(code, (uint32_t)offset);
	put_address(code, RDI, operand, BINARY_RED_ZONE);
}

static void put_hit(struct code *code, uint32_t number)
{
	const struct binary_site *site = &binary_sites[number & BINARY_NUMBER];
	bool brief = runtime_races && brief_wants(site);
	uintptr_t entry = binary_entry_near((uintptr_t)code->bytes, brief);

	if (brief) {
		put_operand(code, &site->operand[0]);
		number |= BINARY_BRIEF;
	}
	put_byte(code, 0x68);
	put_word(code, number);
	put_byte(code, 0xe8);
	put_distance(code, entry);
	PUT(code, 0x48, 0x8d, 0xa4, 0x24, 0x88, 0, 0, 0); /* lea 136(%rsp), %rsp */
}

/* Races are watched for in windows: between them a site costs little. */
static bool has_windows(void)
{
	return runtime_races && runtime_session->races.windows;
}

/* With rcx on the stack: a jump, whose distance is still open, if that is 0. */
static unsigned put_if_unwatched(struct code *code, const uint8_t *watches)
{
	uint64_t flag = (uintptr_t)watches;

	PUT(code, 0x48, 0xb9); /* movabs $flag, %rcx */
	put(code, &flag, sizeof(flag));
	PUT(code, 0x0f, 0xb6, 0x09, 0xe3, 0x00); /* movzbl (%rcx), %ecx; jrcxz */
	return code->size - 1;
}

static void put_unwatched(struct body *body, unsigned distance_at, unsigned number, bool behind)
{
	struct code *code = &body->code;
	unsigned distance = code->size - (distance_at + 1);

	code->failed |= distance > 127 || body->unwatcheds == FIXUPS_MAX;
	if (code->failed)
		return;
	code->bytes[distance_at] = (uint8_t)distance;
	body->unwatched[body->unwatcheds++] = (struct unwatched){ code->size, number, behind };
	PUT(code, 0x59, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0); /* pop %rcx; lea 128(%rsp), %rsp */
}

/* What says whether a hit that is certain is wanted; null: it always is. */
static const uint8_t *watches_of(uint32_t number)
{
	if (has_windows())
		return &runtime_session->races.watching;
	if (runtime_races && runtime_session->races.discovers &&
	    !binary_sites[number & BINARY_NUMBER].locked)
		return learn_wants(number);
	return NULL;
}

/* A hit wherever the operand is, before the instruction or behind it. */
static void put_sure_hit(struct body *body, unsigned i, bool behind, uint32_t number)
{
	struct code *code = &body->code;
	const uint8_t *watches = watches_of(number);
	unsigned distance_at;

	PUT(code, 0x48, 0x8d, 0x64, 0x24, 0x80); /* lea -128(%rsp), %rsp */
	if (!watches) {
		put_hit(code, number);
		return;
	}
	put_byte(code, 0x51);
	distance_at = put_if_unwatched(code, watches);
	put_byte(code, 0x59);
	put_hit(code, number);
	PUT(code, 0xeb, 0x09); /* over what follows */
	put_unwatched(body, distance_at, i, behind);
}

static bool has_only_base(const struct binary_site *site)
{
	const struct binary_operand *o = &site->operand[0];

	return site->operands == 1 && o->base != BINARY_NO_REGISTER &&
	       o->index == BINARY_NO_REGISTER && !o->in_stack;
}

/* With a register that nobody needs, or the base alone, and no stack. */
static bool ask_cheaply(struct body *body, unsigned i, const struct binary_site *site)
{
	uint32_t dead = site->dead;
	bool flags = site->flags_dead;

	/* A displacement does not lead out of the window, or into it. */
	if (flags && has_only_base(site) && !is_second_asked()) {
		ask_below(body, i, site->operand[0].base);
		return true;
	}
	if (!dead)
		return false;
	if (flags) {
		for (unsigned k = 0; k < site->operands; k++)
			ask_fast(body, i, &site->operand[k], __builtin_ctz(dead));
		return true;
	}
	if (!(dead >> RCX & 1) || !has_bmi2())
		return false;
	for (unsigned k = 0; k < site->operands; k++)
		ask_quietly(body, i, &site->operand[k], BINARY_AS_IT_WAS);
	return true;
}

/* Where threads may talk to each other, it does not matter whether that is in PM. */
static bool always_hits(const struct binary_site *site)
{
	if (site->kind == BINARY_FENCE || site->kind == BINARY_NAMED ||
	    site->kind >= BINARY_REQUEST)
		return true;
	if (!runtime_races || site->kind >= BINARY_FLUSH)
		return false; /* BINARY_START, too */
	return runtime_session->races.discovers || site->locked ||
	       !(site->known & RACES_EXECUTED) || site->known & (RACES_ACQUIRE | RACES_RELEASE);
}

/* … and whether a locked instruction has stored is known after it. */
static bool hits_after(const struct binary_site *site)
{
	return runtime_races && site->locked;
}

static void ask(struct body *body, unsigned i, uint32_t number)
{
	const struct binary_site *site = &binary_sites[number];
	struct code *code = &body->code;

	body->asked = number;

	if (runtime_races &&
	    (site->kind == BINARY_PAUSE || (!site->operands && !always_hits(site))))
		return;
	if (always_hits(site)) {
		put_sure_hit(body, i, false, number);
		return;
	}
	if (!site->locked && site->kind != BINARY_PAUSE && ask_cheaply(body, i, site))
		return;
	PUT(code, 0x48, 0x8d, 0x64, 0x24, 0x80, 0x51); /* lea -128(%rsp), %rsp; push %rcx */
	if (!has_bmi2())
		PUT(code, 0x9c); /* pushfq */
	if (site->locked || site->kind == BINARY_PAUSE)
		ask_thread(body, i);
	for (unsigned k = 0; k < site->operands; k++) {
		if (k || site->locked) { /* rcx may be part of the address */
			static const uint8_t reload[] = { 0x48, 0x8b, 0x0c, 0x24 };
			static const uint8_t reload_above[] = { 0x48, 0x8b, 0x4c, 0x24, 0x08 };

			if (has_bmi2())
				put(code, reload, sizeof(reload));
			else
				put(code, reload_above, sizeof(reload_above));
		}
		if (has_bmi2())
			ask_quietly(body, i, &site->operand[k], BINARY_RCX_PUSHED);
		else
			ask_with_flags(body, i, &site->operand[k]);
	}
	if (!has_bmi2())
		PUT(code, 0x9d);                                /* popfq */
	PUT(code, 0x59, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0); /* pop %rcx; lea 128(%rsp), %rsp */
}

/* ---- islands ---- */

static bool stores(const struct binary_site *site)
{
	bool any = false;

	for (unsigned i = 0; i < site->operands; i++)
		any |= site->operand[i].actions & BINARY_STORES;
	return any && site->kind != BINARY_FLUSH && !runtime_session->idle && !runtime_races;
}

static void put_island(struct body *body, const struct fixup *fixup, struct island *island)
{
	const struct binary_instruction *instruction = &body->text->list[body->first + fixup->site];
	const struct binary_site *site = &binary_sites[fixup->number];
	struct code *code = &body->code;
	uintptr_t start = (uintptr_t)code->bytes;

	unsigned distance_at = 0, goal;

	*island = (struct island){ .start = code->size };
	if (fixup->below != BINARY_NO_REGISTER) {
		int32_t distance;

		put_if_below(code, fixup->below, WINDOW_START);
		distance = (int32_t)(fixup->back - code->size);
		if (!code->failed)
			memcpy(code->bytes + code->size - sizeof(distance), &distance,
			       sizeof(distance));
	}
	if (fixup->stack == BINARY_AS_IT_WAS)
		PUT(code, 0x48, 0x8d, 0x64, 0x24, 0x80);
	if (fixup->stack == BINARY_AS_IT_WAS && has_windows())
		put_byte(code, 0x51);
	if (fixup->stack == BINARY_FLAGS_PUSHED)
		PUT(code, 0x9d);
	if (has_windows())
		distance_at = put_if_unwatched(code, &runtime_session->races.watching);
	if (fixup->stack != BINARY_AS_IT_WAS || has_windows())
		PUT(code, 0x59);
	put_hit(code, fixup->number);
	if (!stores(site)) { /* a flush is only told: see hook_flush */
		goal = site->kind == BINARY_FLUSH ? body->behind[fixup->site] : fixup->back;
		put_jump(code, start + goal);
		if (!has_windows())
			return;
		put_unwatched(body, distance_at, fixup->site, false);
		put_jump(code, start + goal);
		return;
	}
	island->copy = code->size;
	put_moved(code, body->text, instruction);
	island->behind = code->size;
	PUT(code, 0x48, 0x8d, 0x64, 0x24, 0x80);
	put_hit(code, fixup->number | BINARY_AFTER);
	put_jump(code, start + body->behind[fixup->site]);
}

/* False if some island is too far: then it is noted. */
static bool put_islands(struct body *body)
{
	struct code *code = &body->code;
	bool near = true;

	for (unsigned i = 0; i < body->fixups; i++) {
		const struct fixup *fixup = &body->fixup[i];
		unsigned behind = fixup->at + (fixup->short_distance ? 1 : 4);
		int32_t distance = (int32_t)(code->size - behind);

		if (code->failed)
			return true;
		if (!fixup->short_distance) {
			memcpy(code->bytes + fixup->at, &distance, sizeof(distance));
		} else if (distance < 128) {
			code->bytes[fixup->at] = (uint8_t)distance;
		} else {
			body->far[i] = true;
			near = false;
		}
		put_island(body, fixup, &body->island[i]);
	}
	return near;
}

/* ---- what is where ---- */

static unsigned start_of(const struct body *body, unsigned i)
{
	return i ? body->behind[i - 1] : 0;
}

static void note_piece(const struct body *body, unsigned at, unsigned number, bool behind,
		       bool copy, enum binary_stack stack)
{
	const struct binary_text *text = body->text;
	const struct binary_instruction *instruction = &text->list[body->first + number];

	binary_note_piece((uintptr_t)body->code.bytes + at,
			  text->start + instruction->offset + (behind ? instruction->length : 0),
			  stack, copy);
}

/* Where each part is, for those who are stopped in it. */
static void note_pieces(const struct body *body)
{
	for (unsigned i = 0; i < body->count; i++) {
		bool moved_call = body->text->list[body->first + i].how == BINARY_CALL;

		note_piece(body, start_of(body, i), i, false, false, BINARY_AS_IT_WAS);
		note_piece(body, body->copy[i], i, false, !moved_call, BINARY_AS_IT_WAS);
		if (body->after[i] < body->behind[i])
			note_piece(body, body->after[i], i, true, false, BINARY_AS_IT_WAS);
	}
	note_piece(body, body->behind[body->count - 1], body->count - 1, true, true,
		   BINARY_AS_IT_WAS);
	for (unsigned i = 0; i < body->unwatcheds; i++)
		note_piece(body, body->unwatched[i].at, body->unwatched[i].number,
			   body->unwatched[i].behind, false, BINARY_RCX_PUSHED);
	for (unsigned i = 0; i < body->fixups; i++) {
		const struct island *island = &body->island[i];
		unsigned site = body->fixup[i].site;

		note_piece(body, island->start, site, false, false, body->fixup[i].stack);
		if (!island->copy)
			continue;
		note_piece(body, island->copy, site, false, true, BINARY_AS_IT_WAS);
		note_piece(body, island->behind, site, true, false, BINARY_AS_IT_WAS);
	}
}

/* ---- all of it ---- */

static void ask_and_go_on(struct body *body, unsigned i, uint32_t number)
{
	unsigned first = body->fixups;

	ask(body, i, number);
	for (; first < body->fixups; first++)
		body->fixup[first].back = body->code.size;
}

/* Which instruction of the body a branch leads to; `count` if to none. */
static unsigned goal_inside(const struct body *body, unsigned i, unsigned count)
{
	const struct binary_text *text = body->text;
	const struct binary_instruction *branch = &text->list[body->first + i];
	uint32_t goal = (uint32_t)branch->goal, number;

	if (branch->how != BINARY_BRANCH || goal >= text->size || !text->at[goal])
		return count;
	number = text->at[goal] - 1 - body->first;
	return number < count ? number : count;
}

/* Branches from one place of the body to another stay inside of it. */
static void lead_inside(struct body *body)
{
	for (unsigned i = 0; i < body->count && !body->code.failed; i++) {
		unsigned goal = goal_inside(body, i, body->count), end = body->after[i];
		int32_t distance = (int32_t)(start_of(body, goal) - end);

		if (goal < body->count)
			memcpy(body->code.bytes + end - sizeof(distance), &distance,
			       sizeof(distance));
	}
}

/*
 * What follows the instructions that are moved goes on in the body as long as there is more to ask
 * about, or a way back into it: that saves jumps, and loops have none.
 */
static unsigned with_what_follows(struct body *body)
{
	const struct binary_text *text = body->text;
	unsigned useful = body->count;

	for (unsigned i = body->count; i < BODY_LONGEST && body->first + i < text->count; i++) {
		const struct binary_instruction *next = &text->list[body->first + i];

		if (next[-1].leaves || next[-1].calls || next->bad || next->how == BINARY_STAYS ||
		    next->ends)
			break;
		if (next->site != BINARY_NO_SITE || next->start != BINARY_NO_SITE ||
		    goal_inside(body, i, i) < i)
			useful = i + 1;
	}
	return useful;
}

static void put_body(struct body *body)
{
	const struct binary_text *text = body->text;
	struct code *code = &body->code;
	const struct binary_instruction *last = &text->list[body->first + body->count - 1];

	code->size = body->fixups = body->unwatcheds = 0;
	for (unsigned i = 0; i < body->count; i++) {
		const struct binary_instruction *instruction = &text->list[body->first + i];

		body->behind[i] = 0;
		for (uint32_t s = instruction->start; s != BINARY_NO_SITE; s = binary_sites[s].next)
			ask_and_go_on(body, i, s);
		if (instruction->site != BINARY_NO_SITE)
			ask_and_go_on(body, i, instruction->site);
		body->copy[i] = code->size;
		put_moved(code, text, instruction);
		body->after[i] = code->size;
		if (instruction->site != BINARY_NO_SITE &&
		    hits_after(&binary_sites[instruction->site]))
			put_sure_hit(body, i, true, instruction->site | BINARY_AFTER);
		body->behind[i] = code->size;
	}
	body->end = 0;
	if (!last->leaves) {
		put_jump(code, text->start + last->offset + last->length);
		body->end = code->size;
	}
	lead_inside(body);
}

static void note_ways_out(const struct body *body)
{
	const struct binary_text *text = body->text;
	uintptr_t start = (uintptr_t)body->code.bytes;

	for (unsigned i = 0; i < body->count; i++) {
		const struct binary_instruction *in = &text->list[body->first + i];

		if (in->how == BINARY_CALL ||
		    (in->how == BINARY_BRANCH && goal_inside(body, i, body->count) == body->count))
			binary_note_way_out(start + body->after[i],
					    text->start + (int64_t)in->goal);
		if (i + 1 == body->count && body->end)
			binary_note_way_out(start + body->end,
					    text->start + in->offset + in->length);
	}
}

/* False if it cannot be done. */
static bool put_all(struct body *body)
{
	body->code.size = 0;
	body->code.failed = false;
	do {
		put_body(body);
	} while (!put_islands(body));
	return !body->code.failed;
}

uintptr_t binary_emit(const struct binary_text *text, uint32_t first, unsigned count,
		      uintptr_t inner[BINARY_GROUP])
{
	struct body body; /* large: most of it need not be cleared */

	body.text = text;
	body.first = first;
	body.count = count;
	memset(body.far, 0, sizeof(body.far));
	body.code.bytes = binary_allocate(text->start + text->list[first].offset, BODY_MAX);
	if (!body.code.bytes)
		return 0;
	body.count = with_what_follows(&body);
	if (!put_all(&body)) {
		body.count = count;
		if (!put_all(&body)) {
			binary_give_back(body.code.bytes);
			return 0;
		}
	}
	binary_give_back(body.code.bytes + body.code.size);
	note_pieces(&body);
	note_ways_out(&body);
	/* Who jumps to an instruction in the middle wants its question, too. */
	for (unsigned i = 0; i < count; i++)
		inner[i] = (uintptr_t)body.code.bytes + start_of(&body, i);
	return (uintptr_t)body.code.bytes;
}
