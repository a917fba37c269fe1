/* SPDX-License-Identifier: BSD-3-Clause */
/* Which branches decide whether an instruction is reached, for a report of what was not. */
#include <llvm-c/DebugInfo.h>
#include <stdio.h>
#include <stdlib.h>

#include "steer/program.h"

enum { MOST = 3 }; /* of one instruction: the nearest */

struct search {
	const struct guarded *blocks;
	size_t count;
	uint32_t *distance; /* of each block, + 1; 0: one does not get there from it */
};

static size_t index_of(const struct search *s, LLVMBasicBlockRef block)
{
	size_t i = 0;

	while (i < s->count && s->blocks[i].block != block)
		i++;
	return i;
}

static bool leads_on(const struct search *s, LLVMBasicBlockRef block)
{
	size_t i = index_of(s, block);

	return i < s->count && s->distance[i];
}

/* From the instruction's block backwards. */
static void measure(struct search *s, size_t to)
{
	bool more = true;

	s->distance[to] = 1;
	for (uint32_t round = 1; more; round++) {
		more = false;
		for (size_t b = 0; b < s->count; b++) {
			LLVMValueRef end = LLVMGetBasicBlockTerminator(s->blocks[b].block);

			for (unsigned i = 0;
			     end && !s->distance[b] && i < LLVMGetNumSuccessors(end); i++) {
				size_t next = index_of(s, LLVMGetSuccessor(end, i));

				if (next < s->count && s->distance[next] == round) {
					s->distance[b] = round + 1;
					more = true;
				}
			}
		}
	}
}

/* A branch of which some ways lead there, and others do not: which way it must take. */
static bool guards(const struct search *s, const struct guarded *block, unsigned *way)
{
	LLVMValueRef end = LLVMGetBasicBlockTerminator(block->block);
	unsigned ways = end ? LLVMGetNumSuccessors(end) : 0, leading = 0;

	for (unsigned i = 0; i < ways; i++)
		leading += leads_on(s, LLVMGetSuccessor(end, i));
	if (ways < 2 || leading == ways || !leading)
		return false;
	*way = LLVMGetInstructionOpcode(end) == LLVMBr && leads_on(s, LLVMGetSuccessor(end, 0));
	return true;
}

static void write_guard(const struct guarded *block, unsigned way)
{
	LLVMValueRef end = LLVMGetBasicBlockTerminator(block->block);
	unsigned line = LLVMGetDebugLocLine(end), length = 0;
	const char *file = line ? LLVMGetDebugLocFilename(end, &length) : NULL;

	if (file)
		printf("g %lx %u %u %u %.*s\n", block->site, way, line, LLVMGetDebugLocColumn(end),
		       (int)length, file);
}

void guards_write(const struct guarded *blocks, size_t count, size_t to)
{
	struct search s = { blocks, count, calloc(count + 1, sizeof(*s.distance)) };
	unsigned written = 0, way;

	if (!s.distance)
		abort();
	measure(&s, to);
	for (uint32_t distance = 1; distance <= count && written < MOST; distance++)
		for (size_t b = 0; b < count && written < MOST; b++)
			if (s.distance[b] == distance && guards(&s, &blocks[b], &way)) {
				write_guard(&blocks[b], way);
				written++;
			}
	free(s.distance);
}
