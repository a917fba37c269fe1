/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers and flags that nobody needs any more: questions may use them, and what they got was not
 * read. */
#include "binary/binary.h"

enum { FAR = 24 };

/* The instruction that a direct jump leads to, in this text; BINARY_NO_SITE if there is none. */
static uint32_t jump_goal(const struct binary_text *text, uint32_t number)
{
	const struct binary_instruction *instruction = &text->list[number];
	uint32_t goal = (uint32_t)instruction->goal;

	if (instruction->how != BINARY_BRANCH || goal >= text->size || !text->at[goal])
		return BINARY_NO_SITE;
	return text->at[goal] - 1;
}

static bool is_request(const struct binary_instruction *instruction)
{
	return instruction->site != BINARY_NO_SITE &&
	       binary_sites[instruction->site].kind == BINARY_REQUEST;
}

static bool branches(const struct binary_instruction *instruction)
{
	return instruction->leaves || instruction->how == BINARY_BRANCH;
}

/* Are all flags overwritten from this instruction on, before anything reads them? */
static bool flags_are_dead(const struct binary_text *text, uint32_t number)
{
	uint32_t i = number;

	for (unsigned steps = 0; steps < FAR && i < text->count; steps++, i++) {
		const struct binary_instruction *instruction = &text->list[i];

		if (instruction->bad || instruction->tests_flags)
			return false;
		if (instruction->ends || instruction->sets_flags)
			return true;
		if (!branches(instruction))
			continue;
		i = jump_goal(text, i);
		if (i == BINARY_NO_SITE)
			return false;
		i--;
	}
	return false;
}

static uint32_t dead_on_all_ways(const struct binary_text *text, uint32_t number, uint32_t alive,
				 unsigned steps)
{
	uint32_t dead = 0, i = number;

	for (; steps && i < text->count; steps--, i++) {
		const struct binary_instruction *instruction = &text->list[i];
		uint32_t goal;

		if (instruction->bad || is_request(instruction))
			return dead;
		alive |= instruction->reads & ~dead;
		/* Compilers know which registers a function leaves alone, whatever the convention.
		 */
		if (instruction->ends)
			return dead;
		dead |= instruction->writes & ~alive;
		if (!branches(instruction))
			continue;
		goal = jump_goal(text, i);
		if (goal == BINARY_NO_SITE)
			return dead;
		if (instruction->conditional)
			return dead | (dead_on_all_ways(text, goal, alive | dead, steps / 2) &
				       dead_on_all_ways(text, i + 1, alive | dead, steps / 2));
		i = goal - 1;
	}
	return dead;
}

/* What the convention says of calls is good enough here: it is about what was loaded. */
static bool is_forgotten(const struct binary_text *text, uint32_t number, unsigned reg,
			 unsigned steps)
{
	enum { RESULTS = 1 << 0 | 1 << 2, ARGUMENTS = 1 << 1 | 1 << 2 | 3 << 6 | 3 << 8 };

	for (uint32_t i = number; steps && i < text->count; steps--, i++) {
		const struct binary_instruction *instruction = &text->list[i];

		if (instruction->bad || instruction->reads >> reg & 1)
			return false;
		if (instruction->calls)
			return !(ARGUMENTS >> reg & 1);
		if (instruction->ends)
			return instruction->leaves && !(RESULTS >> reg & 1);
		if (instruction->writes >> reg & 1)
			return true;
		if (!branches(instruction))
			continue;
		if (instruction->conditional && !is_forgotten(text, i + 1, reg, steps / 2))
			return false;
		i = jump_goal(text, i);
		if (i == BINARY_NO_SITE)
			return false;
		i--;
	}
	return false;
}

/* An exchange of which nobody wants to know what was there: that is how atomics are stored. */
static void find_store(const struct binary_text *text, uint32_t number, struct binary_site *site)
{
	if (site->deed != BINARY_SWAP || site->source >= 16 ||
	    !is_forgotten(text, number + 1, site->source, FAR))
		return;
	site->operand[0].actions &= ~BINARY_LOADS;
	site->descriptor |= PERDURE_STORES;
}

void binary_find_dead(const struct binary_text *text)
{
	/* What unwinders need is always alive: all but rax, rcx, rdx, rsi, rdi, r8, r9, r11. */
	const uint32_t scratch = 0xbc7;

	for (uint32_t i = 0; i < text->count; i++) {
		struct binary_site *site;

		if (text->list[i].site == BINARY_NO_SITE)
			continue;
		site = &binary_sites[text->list[i].site];
		site->dead = (uint16_t)(dead_on_all_ways(text, i, ~scratch, FAR) & scratch);
		site->flags_dead = flags_are_dead(text, i);
		find_store(text, i, site);
	}
}
