/* SPDX-License-Identifier: BSD-3-Clause */
/* Moved code: what each piece of it stands for in the program, and the ways out of it. */
#include <string.h>

#include "binary/binary.h"
#include "model/mix.h"

/* ---- pieces ---- */

/* From this address on it is this instruction; in no order. */
struct piece {
	uintptr_t at, original;
	enum binary_stack stack; /* there */
	bool copy; /* of the instruction itself: what follows are the program's bytes */
};

/* Those that start in a page lie between these two. */
struct page {
	uintptr_t number;
	uint32_t first, last;
};

enum { PIECES = 1 << 24, PAGES = 1 << 18, PAGE = 4096 };
static struct piece *pieces;
static uint32_t piece_count;
static struct page *pages;

static struct page *find_page(uintptr_t number)
{
	uint32_t at = spread(number);

	while (pages[at % PAGES].number && pages[at % PAGES].number != number)
		at++;
	return &pages[at % PAGES];
}

void binary_note_piece(uintptr_t at, uintptr_t original, enum binary_stack stack, bool copy)
{
	struct page *page;

	if (!pieces) {
		pieces = binary_room(PIECES * sizeof(*pieces));
		pages = binary_room(PAGES * sizeof(*pages));
	}
	if (!pieces || !pages || piece_count == PIECES)
		return;
	page = find_page(at / PAGE);
	if (!page->number || page->first > piece_count)
		*page = (struct page){ at / PAGE, piece_count, piece_count };
	page->last = piece_count;
	pieces[piece_count++] = (struct piece){ at, original, stack, copy };
}

/* The last one at or before the address, of those that start in this page. */
static const struct piece *find_in_page(uintptr_t number, uintptr_t address)
{
	const struct page *page = find_page(number);
	const struct piece *best = NULL;

	for (uint32_t i = page->first; page->number && i <= page->last && i < piece_count; i++)
		if (pieces[i].at / PAGE == number && pieces[i].at <= address &&
		    (!best || pieces[i].at >= best->at))
			best = &pieces[i];
	return best;
}

static const struct piece *find_piece(uintptr_t address)
{
	const struct piece *piece = NULL;

	address = binary_past_jump(address);
	if (!pieces || !pages || !binary_is_copy(address))
		return NULL;
	for (unsigned back = 0; back <= BINARY_BODY / PAGE && !piece; back++)
		piece = find_in_page(address / PAGE - back, address);
	return piece;
}

uintptr_t binary_original(uintptr_t address)
{
	const struct piece *piece = find_piece(address);

	return piece ? piece->original : address;
}

/* What the code that is written here does to the stack. */
static enum binary_stack after_step(const uint8_t *code, enum binary_stack stack)
{
	static const uint8_t lower[] = { 0x48, 0x8d, 0x64, 0x24, 0x80 };
	static const uint8_t make_room[] = { 0x48, 0x8d, 0x64, 0x24, 0xf8 };
	static const uint8_t raise[] = { 0x48, 0x8d, 0xa4, 0x24 };
	static const uint8_t keep_rdi[] = { 0x64, 0x48, 0x89, 0x3c, 0x25 };

	if (memcmp(code, lower, sizeof(lower)) == 0)
		return BINARY_LOWERED;
	if (memcmp(code, make_room, sizeof(make_room)) == 0)
		return BINARY_RETURN_PUSHED;
	if (memcmp(code, raise, sizeof(raise)) == 0)
		return BINARY_AS_IT_WAS;
	if (memcmp(code, keep_rdi, sizeof(keep_rdi)) == 0)
		return BINARY_RDI_KEPT;
	switch (*code) {
	case 0x51:
		return BINARY_RCX_PUSHED;
	case 0x9c:
		return BINARY_FLAGS_PUSHED;
	case 0x9d:
		return BINARY_RCX_PUSHED;
	case 0x59:
		return BINARY_LOWERED;
	case 0x68:
		return stack == BINARY_RDI_KEPT ? BINARY_SITE_PUSHED_RDI_KEPT : BINARY_SITE_PUSHED;
	case 0xe8: /* the entry has restored all */
		return BINARY_SITE_PUSHED;
	default:
		return stack;
	}
}

bool binary_look_up(uintptr_t address, uintptr_t *original, enum binary_stack *stack)
{
	const struct piece *piece = find_piece(address);
	unsigned length;

	if (!piece)
		return false;
	*original = piece->original;
	*stack = piece->stack;
	address = binary_past_jump(address);
	for (uintptr_t at = piece->at; !piece->copy && at < address; at += length) {
		length = binary_length(at);
		if (!length)
			break;
		*stack = after_step((const uint8_t *)at, *stack);
	}
	return true;
}

/* ---- ways out ---- */

/* A distance, where it ends, and where it leads to in the program. */
struct way_out {
	uintptr_t end, goal;
};
enum { WAYS_OUT = 1 << 22 };
static struct way_out *ways_out;
static uint32_t way_count;

void binary_note_way_out(uintptr_t end, uintptr_t goal)
{
	if (!ways_out)
		ways_out = binary_room(WAYS_OUT * sizeof(*ways_out));
	if (ways_out && way_count < WAYS_OUT)
		ways_out[way_count++] = (struct way_out){ end, goal };
}

void binary_shorten_ways(void)
{
	for (; way_count; way_count--) {
		const struct way_out *way = &ways_out[way_count - 1];
		uintptr_t to = binary_moved_to(way->goal);
		int64_t distance = (int64_t)(to - way->end);
		int32_t written = (int32_t)distance;

		if (to && distance == written)
			memcpy((void *)(way->end - sizeof(written)), &written, sizeof(written));
	}
}

/* ---- */

void binary_discard(uintptr_t body)
{
	while (way_count && ways_out[way_count - 1].end - body <= BINARY_BODY)
		way_count--;
	while (piece_count && pieces[piece_count - 1].at - body < BINARY_BODY)
		piece_count--;
	binary_give_back((uint8_t *)body);
}
