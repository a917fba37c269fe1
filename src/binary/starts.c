/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions that start before their accesses: for each instruction that is known to touch PM, flow.c
 * says where in its function the address is certain already. There, another question is asked.
 */
#include <stdio.h>
#include <string.h>
#include <unwind.h>

#include "binary/effects.h"
#include "binary/flow.h"
#include "model/mix.h"
#include "races/races.h"

enum {
	CALLER_SAVED = 0x0fc7, /* rax rcx rdx rsi rdi r8 … r11 */
	RSP = 4,
	STARTS = 8,
	FUNCTION_MAX = 1 << 14,
	TABLE_MAX = 1024,
	SUMMARIES = 1 << 14,
	DEEPEST = 24,
};

/* ---- functions ---- */

/* Of libgcc's, which has read the unwind tables anyway. */
struct dwarf_eh_bases {
	void *tbase, *dbase, *func;
};
extern const void *_Unwind_Find_FDE(void *pc, struct dwarf_eh_bases *bases);

/* Instructions [first, end) of the text. */
struct function {
	uint32_t first, end;
};

/* By its entry in the unwind table, whose usual form is: length, CIE, start, size. */
static bool find_function(const struct binary_text *text, uint32_t offset, struct function *f)
{
	struct dwarf_eh_bases bases = { 0 };
	const int32_t *fde = _Unwind_Find_FDE((void *)(text->start + offset + 1), &bases);
	uint64_t start = (uintptr_t)bases.func - text->start, size;

	if (!fde || (uintptr_t)&fde[2] + (intptr_t)fde[2] != (uintptr_t)bases.func)
		return false;
	size = (uint32_t)fde[3];
	if (start >= text->size || size > text->size - start || !size || !text->at[start])
		return false;
	f->first = text->at[start] - 1;
	for (f->end = f->first; f->end < text->count && text->list[f->end].offset < start + size;)
		f->end++;
	return f->end > f->first && f->end - f->first <= FUNCTION_MAX;
}

/* ---- calls ---- */

/* Functions of libraries that synchronise with nobody; and those that do not come back. */
static bool is_among(const char *name, const char *const *list)
{
	for (; *list; list++) {
		size_t length = strlen(*list);

		if ((*list)[length - 1] == '*' ? strncmp(name, *list, length - 1) == 0
					       : strcmp(name, *list) == 0)
			return true;
	}
	return false;
}

static bool is_harmless(const char *name)
{
	static const char *const list[] = {
		"mem*",    "str*",    "wcs*",    "malloc",        "calloc",         "realloc",
		"free",    "_Zn*",    "_Zd*",    "snprintf",      "__snprintf_chk", "sprintf",
		"rand",    "rand_r",  "random",  "clock_gettime", "gettimeofday",   "time",
		"__mem*",  "__str*",  "abs",     "log*",          "exp*",           "pow*",
		"qsort",   "bsearch", "toupper", "tolower",       "getpid",         "pthread_self",
		"*__once", "wmem*",   "bcmp",    "bzero",         "posix_memalign", "aligned_alloc",
		NULL,
	};

	return is_among(name, list);
}

static bool never_returns(const char *name)
{
	static const char *const list[] = { "abort",
					    "exit",
					    "_exit",
					    "__assert_fail",
					    "__stack_chk_fail",
					    "pthread_exit",
					    "_Unwind_Resume",
					    "__cxa_throw",
					    "__cxa_rethrow",
					    "longjmp",
					    "siglongjmp",
					    "_ZSt*",
					    NULL };

	return is_among(name, list);
}

struct search {
	const struct binary_text *text;
	binary_name_function *name_of;
	const void *context;
};

static const char *name_called(const struct search *search, const struct binary_effect *e)
{
	uintptr_t slot = e->slot;

	if (e->goal - search->text->start >= search->text->size && e->goal)
		slot = binary_stub_slot(e->goal);
	return slot ? search->name_of(search->context, slot) : NULL;
}

/* What is known of functions: whether they may acquire something. */
static struct summary {
	uintptr_t start;
	uint8_t answer; /* 1: being looked at, 2: no, 3: yes */
} summary[SUMMARIES];

static bool may_acquire(const struct search *search, uint32_t offset, unsigned depth);

static bool call_acquires(const struct search *search, const struct binary_effect *e,
			  unsigned depth)
{
	const char *name;

	if (e->goal && e->goal - search->text->start < search->text->size)
		return may_acquire(search, (uint32_t)(e->goal - search->text->start), depth + 1);
	name = name_called(search, e);
	return !name || (!is_harmless(name) && !never_returns(name));
}

/* What a thread writes back itself is persistent for what it loads after that: as if acquired. */
static bool instruction_acquires(const struct search *search, uint32_t number)
{
	const struct binary_instruction *instruction = &search->text->list[number];
	const struct binary_site *site =
		instruction->site == BINARY_NO_SITE ? NULL : &binary_sites[instruction->site];

	for (uint32_t s = instruction->start; s != BINARY_NO_SITE; s = binary_sites[s].next)
		if (binary_sites[s].kind == BINARY_NAMED && binary_sites[s].known & RACES_ACQUIRE)
			return true;
	return instruction->bad ||
	       (site && (site->locked || site->kind == BINARY_SYSCALL ||
			 site->kind == BINARY_FLUSH || site->known & RACES_ACQUIRE));
}

static bool look_through(const struct search *search, const struct function *f, unsigned depth)
{
	const struct binary_text *text = search->text;

	for (uint32_t i = f->first; i < f->end; i++) {
		const struct binary_instruction *instruction = &text->list[i];
		struct binary_effect e;
		bool out;

		if (instruction_acquires(search, i))
			return true;
		if (!instruction->calls && !instruction->leaves &&
		    instruction->how != BINARY_BRANCH)
			continue;
		if (!binary_effect_of(text, instruction->offset, &e))
			return true;
		out = e.goal &&
		      (e.goal - text->start < text->list[f->first].offset ||
		       f->end == text->count || e.goal - text->start >= text->list[f->end].offset);
		if ((e.calls || out) && call_acquires(search, &e, depth))
			return true;
	}
	return false;
}

static bool may_acquire(const struct search *search, uint32_t offset, unsigned depth)
{
	uintptr_t start = search->text->start + offset;
	struct summary *s = &summary[spread(start) % SUMMARIES];
	struct function f;
	bool answer;

	if (s->start == start && s->answer)
		return s->answer == 3;
	if (depth > DEEPEST || !find_function(search->text, offset, &f))
		return true;
	*s = (struct summary){ start, 1 };
	answer = look_through(search, &f, depth);
	*s = (struct summary){ start, answer ? 3 : 2 };
	return answer;
}

/* ---- one function as a graph ---- */

struct body {
	struct search search;
	struct function function;
	struct binary_effect *effect;
	struct flow flow;
	uint32_t mores;
	struct flow_place *place;
};

static uint32_t node_at(const struct body *b, uint64_t offset)
{
	const struct binary_text *text = b->search.text;
	uint32_t number = offset < text->size ? text->at[offset] : 0;

	return number && number - 1 >= b->function.first && number - 1 < b->function.end
		       ? number - 1 - b->function.first
		       : FLOW_NOWHERE;
}

/* A table of distances, as compilers make them for switch; false if there is none. */
static bool read_table(struct body *b, uint32_t node)
{
	enum { BEFORE = 12 };
	const struct binary_text *text = b->search.text;
	struct flow_node *n = &b->flow.node[node];

	for (uint32_t i = node; i-- > 0 && node - i < BEFORE;) {
		const int32_t *table = (const int32_t *)(text->start + b->effect[i].table);

		if (!b->effect[i].has_table)
			continue;
		n->more = b->mores;
		for (; n->mores < TABLE_MAX && b->mores < FUNCTION_MAX; n->mores++) {
			uint32_t goal = node_at(
				b, (uint64_t)((int64_t)b->effect[i].table + table[n->mores]));

			if (goal == FLOW_NOWHERE)
				break;
			b->flow.more[b->mores++] = goal;
		}
		return n->mores > 0;
	}
	return false;
}

static void connect(struct body *b, uint32_t node)
{
	const struct binary_text *text = b->search.text;
	const struct binary_instruction *instruction = &text->list[b->function.first + node];
	const struct binary_effect *e = &b->effect[node];
	uint32_t after = node + 1 < b->flow.nodes ? node + 1 : FLOW_NOWHERE;
	struct flow_node *n = &b->flow.node[node];
	const char *name;

	*n = (struct flow_node){ .next = { FLOW_NOWHERE, FLOW_NOWHERE } };
	n->acquires = instruction_acquires(&b->search, b->function.first + node);
	if (instruction->how == BINARY_BRANCH) {
		n->next[0] = node_at(b, (uint32_t)instruction->goal);
		n->unknown = n->next[0] == FLOW_NOWHERE;
		if (instruction->conditional)
			n->next[1] = after;
		return;
	}
	if (e->calls) {
		name = name_called(&b->search, e);
		n->acquires |= call_acquires(&b->search, e, 0);
		n->next[0] = name && never_returns(name) ? FLOW_NOWHERE : after;
		return;
	}
	if (!instruction->leaves)
		n->next[0] = after;
	else if (e->jumps_anywhere)
		n->unknown = !read_table(b, node);
}

static bool takes_address(const struct body *b, uint8_t base, int32_t slot)
{
	for (uint32_t i = 0; i < b->flow.nodes; i++)
		if (b->effect[i].takes_address && b->effect[i].from == base &&
		    b->effect[i].number <= slot + 7)
			return true; /* of it, or of something below that may reach it */
	return false;
}

static bool step_stack(const struct binary_effect *f, struct flow_expression *e)
{
	if (f->stores_in_stack &&
	    (f->stack_base != e->base ||
	     (f->stored_at < e->slot + 8 &&
	      (f->stored_size == INT32_MAX || e->slot < f->stored_at + f->stored_size))))
		return false;
	if (f->kind == BINARY_COPIES && f->to == e->base) {
		e->base = f->from;
		return f->from == RSP;
	}
	if (e->base != RSP)
		return !(f->written >> e->base & 1);
	if (f->moves_stack || (f->stack_change < 0 && e->slot < -f->stack_change && e->slot > -8))
		return false;
	e->slot += f->stack_change;
	return true;
}

static bool fits(int64_t number, int32_t *to)
{
	*to = (int32_t)number;
	return number == *to;
}

static bool step_form(const struct binary_effect *f, struct flow_expression *e)
{
	int64_t displacement = e->displacement;

	if (e->base == f->to) {
		if (f->index != BINARY_NO_REGISTER && e->index != FLOW_NONE)
			return false;
		if (f->index != BINARY_NO_REGISTER) {
			e->index = f->index;
			e->scale = f->scale;
		}
		e->base = f->from;
		return fits(displacement + f->number, &e->displacement);
	}
	if (f->index != BINARY_NO_REGISTER || f->from == BINARY_NO_REGISTER)
		return false;
	e->index = f->from;
	return fits(displacement + (int64_t)f->number * e->scale, &e->displacement);
}

static bool step_back(void *context, uint32_t node, struct flow_expression *e)
{
	const struct body *b = context;
	const struct binary_effect *f = &b->effect[node];
	uint32_t written = f->written | (f->calls ? CALLER_SAVED : 0);
	uint32_t used = (e->base == FLOW_NONE ? 0 : 1u << e->base) |
			(e->index == FLOW_NONE ? 0 : 1u << e->index);

	if (e->in_stack)
		return step_stack(f, e);
	if (!(written & used))
		return true;
	if (f->calls || (written & used) != 1u << f->to ||
	    (e->base == e->index && f->kind != BINARY_COPIES))
		return false;
	switch (f->kind) {
	case BINARY_COPIES:
		e->base = e->base == f->to ? f->from : e->base;
		e->index = e->index == f->to ? f->from : e->index;
		return e->base != RSP && e->index != RSP;
	case BINARY_ADDS:
		return fits(e->displacement +
				    (int64_t)f->number * (e->base == f->to ? 1 : e->scale),
			    &e->displacement);
	case BINARY_SHIFTS:
		if (e->index != f->to || f->number > 3 || e->scale << f->number > 8)
			return false;
		e->scale = (uint8_t)(e->scale << f->number);
		return true;
	case BINARY_FORMS:
		return step_form(f, e) && e->base != RSP;
	case BINARY_RELOADS:
		if (e->base != f->to || e->index != FLOW_NONE ||
		    takes_address(b, f->from, f->number))
			return false;
		e->in_stack = true;
		e->base = f->from;
		e->slot = f->number;
		return true;
	default:
		return false;
	}
}

/* ---- starts as sites ---- */

/*
 * Is there nothing between the start and its access but straight code? That takes no time, and a
 * hook takes longer: the region starts at the access.
 */
static bool is_at_access(const struct body *b, uint32_t access, uint32_t start)
{
	enum { LONGEST = 64 };
	const struct binary_instruction *list = &b->search.text->list[b->function.first];

	if (start > access || access - start > LONGEST)
		return false;
	for (uint32_t i = start; i < access; i++)
		if (list[i].how == BINARY_BRANCH || list[i].calls || list[i].leaves || list[i].ends)
			return false;
	return true;
}

static void add_start(struct body *b, uint32_t access, const struct flow_start *start)
{
	struct binary_text *text = (struct binary_text *)b->search.text;
	const struct binary_site *of = &binary_sites[text->list[b->function.first + access].site];
	struct binary_instruction *at = &text->list[b->function.first + start->node];
	struct binary_site *site;

	if (binary_site_count == BINARY_SITES_MAX || at->bad)
		return;
	site = &binary_sites[binary_site_count];
	*site = (struct binary_site){
		.address = text->start + at->offset,
		.length = at->length, /* of what is there: stacks are taken as if behind it */
		.kind = BINARY_START,
		.operands = 1,
		.bit = BINARY_NO_REGISTER,
		.source = BINARY_NO_REGISTER,
		.descriptor = of->descriptor,
		.access = of->address + of->length,
		.next = at->start,
		.operand[0] = { .base = start->expression.base,
				.index = start->expression.index,
				.scale = start->expression.scale,
				.actions = of->operand[0].actions,
				.displacement = start->expression.displacement,
				.size = of->operand[0].size,
				.in_stack = start->expression.in_stack,
				.slot = start->expression.slot },
	};
	/* Several accesses to one place that start together need one question. */
	for (uint32_t other = at->start; other != BINARY_NO_SITE; other = binary_sites[other].next)
		if (memcmp(&binary_sites[other].operand[0], &site->operand[0],
			   sizeof(site->operand[0])) == 0)
			return;
	at->start = binary_site_count++;
}

/* For people: [rax + 8 * rcx + 0x10]. */
static void write_expression(const struct flow_expression *e, char *text, size_t size)
{
	static const char *const names[] = {
		"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
		"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"
	};
	int n = 0;

	if (e->in_stack)
		n = snprintf(text, size, "[[%s%+d]", names[e->base & 15], e->slot);
	else
		n = snprintf(text, size, "[%s", e->base == FLOW_NONE ? "0" : names[e->base & 15]);
	if (e->index != FLOW_NONE)
		n += snprintf(text + n, size - (size_t)n, " + %u * %s", e->scale,
			      names[e->index & 15]);
	snprintf(text + n, size - (size_t)n, "%+d]", e->displacement);
}

static void dump(const struct body *b, uint32_t access, const struct flow_start *start)
{
	struct session_races *races = &runtime_session->races;
	const struct binary_text *text = b->search.text;
	const struct binary_instruction *to = &text->list[b->function.first + access],
					*from = &text->list[b->function.first + start->node];
	struct races_region *region;

	if (!races->settings.dumps || races->dumped == RACES_REGIONS)
		return;
	region = &races->region[races->dumped++];
	region->start = stack_of_function((void *)(text->start + from->offset));
	region->access = stack_of_function((void *)(text->start + to->offset));
	region->stores = binary_sites[to->site].operand[0].actions & BINARY_STORES;
	write_expression(&start->expression, region->expression, sizeof(region->expression));
}

static bool is_followed_back(const struct binary_site *site)
{
	return site->kind == BINARY_ACCESS && site->operands == 1 && !site->locked &&
	       site->bit == BINARY_NO_REGISTER && site->known & RACES_PM &&
	       !(site->known & (RACES_LOCK | RACES_ACQUIRE));
}

static void find_starts(struct body *b)
{
	const struct binary_text *text = b->search.text;

	for (uint32_t i = 0; i < b->flow.nodes; i++) {
		uint32_t number = text->list[b->function.first + i].site;
		const struct binary_operand *o;
		struct flow_start start[STARTS];
		struct flow_expression e;
		uint32_t count;

		if (number == BINARY_NO_SITE || !is_followed_back(&binary_sites[number]))
			continue;
		o = &binary_sites[number].operand[0];
		e = (struct flow_expression){ .base = o->base,
					      .index = o->index,
					      .scale = o->scale ? o->scale : 1,
					      .displacement = o->displacement };
		count = flow_find(&b->flow, i, &e, b->place, start, STARTS);
		for (uint32_t k = 0; k < count; k++) {
			dump(b, i, &start[k]);
			if (!is_at_access(b, i, start[k].node))
				add_start(b, i, &start[k]);
		}
	}
}

static void do_function(struct body *b)
{
	const struct binary_text *text = b->search.text;

	b->mores = 0;
	b->flow.nodes = b->function.end - b->function.first;
	for (uint32_t i = 0; i < b->flow.nodes; i++)
		if (!binary_effect_of(text, text->list[b->function.first + i].offset,
				      &b->effect[i]))
			return;
	for (uint32_t i = 0; i < b->flow.nodes; i++)
		connect(b, i);
	find_starts(b);
}

void binary_find_starts(struct binary_text *text, binary_name_function *name_of,
			const void *context)
{
	struct body b = {
		.search = { text, name_of, context },
		.effect = binary_room(FUNCTION_MAX * sizeof(*b.effect)),
		.place = binary_room(FUNCTION_MAX * sizeof(*b.place)),
		.flow = { .node = binary_room(FUNCTION_MAX * sizeof(*b.flow.node)),
			  .more = binary_room(FUNCTION_MAX * sizeof(*b.flow.more)),
			  .step = step_back,
			  .context = &b },
	};
	uint32_t done = 0; /* instructions below it belong to functions that are done */

	if (!b.effect || !b.place || !b.flow.node || !b.flow.more)
		return;
	for (uint32_t i = 0; i < text->count; i++) {
		uint32_t number = text->list[i].site;

		if (i < done || number == BINARY_NO_SITE ||
		    !is_followed_back(&binary_sites[number]) ||
		    !find_function(text, text->list[i].offset, &b.function))
			continue;
		do_function(&b);
		done = b.function.end;
	}
	binary_release(b.effect, FUNCTION_MAX * sizeof(*b.effect));
	binary_release(b.place, FUNCTION_MAX * sizeof(*b.place));
	binary_release(b.flow.node, FUNCTION_MAX * sizeof(*b.flow.node));
	binary_release(b.flow.more, FUNCTION_MAX * sizeof(*b.flow.more));
}

/* ---- functions that the user has named ---- */

static void add_named(struct binary_instruction *at, const struct binary_text *text, bool acquires)
{
	struct binary_site *site = &binary_sites[binary_site_count];

	if (binary_site_count == BINARY_SITES_MAX || at->bad)
		return;
	*site = (struct binary_site){
		.address = text->start + at->offset,
		.length = at->length,
		.kind = BINARY_NAMED,
		.bit = BINARY_NO_REGISTER,
		.source = BINARY_NO_REGISTER,
		.known = acquires ? RACES_ACQUIRE : RACES_RELEASE,
		.next = at->start,
	};
	at->start = binary_site_count++;
}

/* What releases does so when it is called; what acquires has done so when it returns. */
static void add_function(struct binary_text *text, uint64_t start, uint64_t size, bool acquires)
{
	if (start >= text->size || size > text->size - start || !text->at[start])
		return;
	if (!acquires) {
		add_named(&text->list[text->at[start] - 1], text, false);
		return;
	}
	for (uint32_t i = text->at[start] - 1;
	     i < text->count && text->list[i].offset < start + size; i++)
		if (text->list[i].leaves && text->list[i].ends)
			add_named(&text->list[i], text, true);
}

void binary_find_named(struct binary_text *text, uintptr_t bias, const char *path)
{
	const struct session_races *races = &runtime_session->races;

	for (uint32_t i = 0; i < races->functions; i++) {
		const struct races_function *f = &races->function[i];

		if (strcmp(f->path, path) == 0)
			add_function(text, bias + f->start - text->start, f->size, f->acquires);
	}
}
