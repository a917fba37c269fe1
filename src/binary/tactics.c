/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a jump gets into the program. An instruction of five bytes has room for one. A shorter one
 * takes its successors with it (a group); where one of these started there is now some byte of the
 * jump's distance, and the distance is chosen so that this byte is no valid instruction: whoever
 * jumps there although nobody knew of it is stopped, and sent to where the instruction is now. What
 * is left is tried with a jump that reads the bytes of the following instruction as part of its
 * distance, as it is or made a jump as well.
 */
#include <string.h>

#include "binary/binary.h"
#include "model/mix.h"

enum { JUMP = 5 };

/* ---- where instructions have gone ---- */

struct moved {
	uintptr_t from, to;
};
static struct moved *moved;
static uint64_t moved_count, moved_mask;

static struct moved *find_moved(uintptr_t from)
{
	uint32_t at = spread(from);

	while (moved[at & moved_mask].from && moved[at & moved_mask].from != from)
		at++;
	return &moved[at & moved_mask];
}

static bool grow_moved(void)
{
	struct moved *old = moved;
	uint64_t count = old ? moved_mask + 1 : 0, wanted = count ? count * 2 : 1 << 16;
	void *memory = binary_room(wanted * sizeof(*moved));

	if (!memory)
		return false;
	moved = memory;
	moved_mask = wanted - 1;
	for (uint64_t i = 0; i < count; i++)
		if (old[i].from)
			*find_moved(old[i].from) = old[i];
	binary_release(old, count * sizeof(*old));
	return true;
}

static void note_moved(uintptr_t from, uintptr_t to)
{
	if (moved_count * 2 >= moved_mask && !grow_moved())
		return;
	moved_count++;
	*find_moved(from) = (struct moved){ from, to };
}

uintptr_t binary_moved_to(uintptr_t address)
{
	return moved ? find_moved(address)->to : 0;
}

/* ---- bytes of the program ---- */

static bool is_free(const struct binary_text *text, uint32_t offset, uint32_t size)
{
	if (offset + size > text->size + text->padding)
		return false;
	for (uint32_t i = offset; i < offset + size; i++)
		if (text->taken[i])
			return false;
	return true;
}

static void replace(struct binary_text *text, uint32_t offset, const uint8_t *bytes, uint32_t size)
{
	memcpy(text->result + offset, bytes, size);
	memset(text->taken + offset, 1, size);
}

static void finish(struct binary_text *text, uint32_t first, unsigned count,
		   const uintptr_t inner[BINARY_GROUP])
{
	for (unsigned i = 0; i < count; i++) {
		struct binary_instruction *instruction = &text->list[first + i];

		note_moved(text->start + instruction->offset, inner[i]);
		instruction->done = true;
		binary_counts.patched += instruction->site != BINARY_NO_SITE;
	}
}

static void put_jump(uint8_t *bytes, int32_t distance)
{
	bytes[0] = 0xe9;
	memcpy(bytes + 1, &distance, sizeof(distance));
}

/* ---- direct ---- */

static bool patch_direct(struct binary_text *text, uint32_t number)
{
	const struct binary_instruction *instruction = &text->list[number];
	uintptr_t inner[BINARY_GROUP], body;
	uint8_t bytes[BINARY_LONGEST];

	if (instruction->length < JUMP || !is_free(text, instruction->offset, instruction->length))
		return false;
	body = binary_emit(text, number, 1, inner);
	if (!body)
		return false;
	memset(bytes, 0xcc, sizeof(bytes));
	put_jump(bytes, (int32_t)(body - (text->start + instruction->offset + JUMP)));
	replace(text, instruction->offset, bytes, instruction->length);
	finish(text, number, 1, inner);
	return true;
}

/* ---- with its successors ---- */

/* Opcodes that do not exist in 64-bit mode, and int3. */
static const struct binary_bytes traps = { 20, { 0xcc, 0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e,
						 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x60, 0x61,
						 0x82, 0x9a, 0xce, 0xd4, 0xd6, 0xea } };

/* How many instructions, at least so many, have five bytes together; 0 if they must not be moved.
 */
static unsigned group_size(const struct binary_text *text, uint32_t first, unsigned least,
			   uint32_t *bytes)
{
	unsigned count = 0;

	for (*bytes = 0; *bytes < JUMP || count < least; count++) {
		const struct binary_instruction *instruction = &text->list[first + count];

		/* Behind the last function there may be some room. */
		if (first + count == text->count && count >= least && count &&
		    text->list[text->count - 1].leaves && *bytes + text->padding >= JUMP) {
			*bytes = JUMP;
			return count;
		}
		if (first + count == text->count || count == BINARY_GROUP || instruction->bad ||
		    instruction->done || (count && instruction->target))
			return 0;
		/* A call returns to where it was: behind it, nothing may be moved. */
		if (count && text->list[first + count - 1].calls)
			return 0;
		*bytes += instruction->length;
	}
	return count;
}

static bool is_open(const struct binary_instruction *instruction)
{
	return (instruction->site != BINARY_NO_SITE || instruction->start != BINARY_NO_SITE) &&
	       !instruction->done;
}

/* How many should go together: those that come next and would have no room alone go along. */
static unsigned with_the_needy(const struct binary_text *text, uint32_t first)
{
	uint32_t bytes;
	unsigned count = group_size(text, first, 1, &bytes);

	while (count && count < BINARY_GROUP && first + count < text->count) {
		const struct binary_instruction *next = &text->list[first + count];

		if (!is_open(next) || next->target || next->length >= JUMP ||
		    group_size(text, first + count, 1, &bytes))
			break;
		count++;
	}
	return count ? count : 1;
}

static bool patch_group(struct binary_text *text, uint32_t first, unsigned least)
{
	uint32_t size, offset = text->list[first].offset;
	unsigned count = group_size(text, first, least, &size);
	struct binary_bytes wanted[4] = { 0 };
	uint8_t bytes[BINARY_GROUP * BINARY_LONGEST];
	uintptr_t inner[BINARY_GROUP], body, jump, next = text->start + offset + JUMP;

	if (!count || !is_free(text, offset, size))
		return false;
	for (unsigned i = 1; i < count; i++) {
		uint32_t start = text->list[first + i].offset - offset;

		if (start < JUMP)
			wanted[start - 1] = traps;
	}
	body = binary_emit(text, first, count, inner);
	if (!body)
		return false;
	jump = count == 1 ? body : binary_place_jump(next, wanted, body);
	if (!jump) {
		binary_discard(body);
		return false;
	}
	memset(bytes, 0xcc, sizeof(bytes));
	put_jump(bytes, (int32_t)(jump - next));
	replace(text, offset, bytes, size);
	finish(text, first, count, inner);
	return true;
}

static bool patch_with_the_needy(struct binary_text *text, uint32_t first)
{
	unsigned count = with_the_needy(text, first);

	return count > 1 && patch_group(text, first, count);
}

/* Where something jumps to the successor, predecessors may do. */
static bool patch_backwards(struct binary_text *text, uint32_t number)
{
	for (unsigned back = 1; back <= 3 && back <= number; back++) {
		const struct binary_instruction *before = &text->list[number - back];

		if (before->leaves || text->list[number - back + 1].target)
			return false;
		if (patch_group(text, number - back, back + 1))
			return true;
	}
	return false;
}

/* ---- punned ---- */

/* A jump, behind so many prefixes, whose distance ends with bytes of what follows. */
static bool patch_punned(struct binary_text *text, uint32_t number)
{
	const struct binary_instruction *instruction = &text->list[number];
	uint32_t offset = instruction->offset, length = instruction->length;
	uintptr_t inner[BINARY_GROUP], body;

	if (length >= JUMP || !is_free(text, offset, length) || offset + 2 * JUMP > text->size)
		return false;
	body = binary_emit(text, number, 1, inner);
	for (uint32_t prefixes = 0; body && prefixes < length; prefixes++) {
		uintptr_t next = text->start + offset + prefixes + JUMP, jump;
		struct binary_bytes wanted[4] = { 0 };
		uint8_t bytes[2 * JUMP];

		for (unsigned i = 0; i < 4; i++)
			if (prefixes + 1 + i >= length)
				wanted[i] = (struct binary_bytes){
					1, { text->result[offset + prefixes + 1 + i] }
				};
		jump = binary_place_jump(next, wanted, body);
		if (!jump)
			continue;
		memset(bytes, 0x3e, prefixes);
		put_jump(bytes + prefixes, (int32_t)(jump - next));
		replace(text, offset, bytes, length);
		memset(text->taken + offset, 1, prefixes + JUMP);
		finish(text, number, 1, inner);
		return true;
	}
	if (body)
		binary_discard(body);
	return false;
}

/* ---- with a successor that goes, too ---- */

/*
 * The successor becomes a jump of its own, whose distance is chosen so that its bytes, read as the
 * rest of this instruction's distance, lead somewhere as well.
 */
static bool patch_evicting(struct binary_text *text, uint32_t number)
{
	static const uint8_t far[] = { 0x10, 0xf0, 0x18, 0xe8, 0x20, 0xe0, 0x28, 0xd8,
				       0x30, 0xd0, 0x40, 0xc0, 0x08, 0x50, 0xb0, 0x60 };
	const struct binary_instruction *own = &text->list[number], *next = own + 1;
	uint32_t length = own->length;
	uintptr_t own_inner[BINARY_GROUP], next_inner[BINARY_GROUP], own_body, next_body;

	if (number + 1 == text->count || length >= JUMP || next->bad || next->done || own->calls ||
	    next->length < JUMP || !is_free(text, own->offset, length + next->length))
		return false;
	own_body = binary_emit(text, number, 1, own_inner);
	next_body = own_body ? binary_emit(text, number + 1, 1, next_inner) : 0;
	for (unsigned i = 0; next_body && i < sizeof(far); i++) {
		uintptr_t behind = text->start + next->offset + JUMP, jump;
		struct binary_bytes wanted[4] = { 0 };
		uint8_t bytes[BINARY_LONGEST], own_bytes[JUMP];

		if (length < 4) /* this byte of it is the highest one of the other's */
			wanted[3 - length] = (struct binary_bytes){ 1, { far[i] } };
		jump = binary_place_jump(behind, wanted, next_body);
		if (!jump)
			continue;
		memset(bytes, 0xcc, sizeof(bytes));
		put_jump(bytes, (int32_t)(jump - behind));
		behind = text->start + own->offset + JUMP;
		memset(wanted, 0, sizeof(wanted));
		for (unsigned k = 0; k < 4; k++)
			if (1 + k >= length)
				wanted[k] = (struct binary_bytes){ 1, { bytes[1 + k - length] } };
		jump = binary_place_jump(behind, wanted, own_body);
		if (!jump)
			continue;
		put_jump(own_bytes, (int32_t)(jump - behind));
		replace(text, own->offset, own_bytes, length);
		replace(text, next->offset, bytes, next->length);
		finish(text, number, 1, own_inner);
		finish(text, number + 1, 1, next_inner);
		return true;
	}
	return false;
}

/* ---- all of them ---- */

void binary_patch(struct binary_text *text)
{
	for (uint32_t i = 0; i < text->count; i++)
		if (is_open(&text->list[i]) && !patch_with_the_needy(text, i) &&
		    !patch_direct(text, i) && !patch_group(text, i, 1))
			patch_backwards(text, i);
	for (uint32_t i = text->count; i-- > 0;)
		if (is_open(&text->list[i]) && !patch_direct(text, i) && !patch_punned(text, i) &&
		    !patch_evicting(text, i))
			binary_counts.left++;
	binary_shorten_ways();
}
