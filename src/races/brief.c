/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A load is noted in a few nanoseconds, between the instructions of the program: only the entry in
 * entry.S has kept anything. Whatever is not as usual is left to a hook. This code keeps all
 * registers but rax, and so calls nothing: see CMakeLists.txt.
 */
#include "races/brief.h"

#include "binary/binary.h"

struct brief_site *brief_sites;

void brief_start(void)
{
#ifdef __GNUC__
	brief_sites = binary_dense_room(BINARY_SITES_MAX * sizeof(*brief_sites));
#endif
}

bool brief_wants(const struct binary_site *site)
{
	struct brief_site *known = brief_sites ? &brief_sites[site - binary_sites] : NULL;

	if (!known || runtime_session->races.discovers || !binary_only_loads(site) ||
	    (site->kind != BINARY_START && !(site->known & RACES_PM)))
		return false;
	known->size = (uint8_t)site->operand[0].size;
	known->acquires = site->known & RACES_ACQUIRE;
	return site->operand[0].size <= LINE;
}

static inline bool is_judged(const struct racer *self, struct racer_judged wanted)
{
	const struct racer_judged *judged = &self->judged[brief_mark(wanted)];

	return judged->key == wanted.key && judged->stack == wanted.stack &&
	       judged->version == wanted.version;
}

/* In a section of its own: a signal that comes while it runs must know that. */
__attribute__((section("races_brief"), no_caller_saved_registers, used)) bool
brief_load(uint64_t address, const struct binary_brief *kept)
{
	uint32_t number = (uint32_t)kept->site & BINARY_NUMBER, version;
	struct racer *self = racer_current;
	struct brief_site site = brief_sites[number];
	const struct stacks_context *context;
	const struct line *l;
	const uint64_t *at;

	if (!self || self->next == self->limit || !site.place.base ||
	    address >> PERDURE_WINDOW_SHIFT != PERDURE_WINDOW_INDEX ||
	    address % LINE + site.size > LINE)
		return false;
	at = context_at(site.place, (uintptr_t)(kept + 1) + BINARY_RED_ZONE, kept->rbp);
	context = context_find(runtime_thread.shared, at, kept->rbp);
	if (!context || context->calls)
		return false;
	l = line_at(address);
	version = __atomic_load_n(&l->version, __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&l->open, __ATOMIC_RELAXED) & brief_bytes(address, site.size) &&
	    __atomic_load_n(&l->opener, __ATOMIC_RELAXED) != self->number + 1 &&
	    !is_judged(self, brief_judged(address, number, context->stack, version)))
		return false;
	brief_note(self, address, site.size, number, context->stack, version);
	return true;
}
