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
	bool starts = site->kind == BINARY_START;

	if (!known || runtime_session->races.discovers || !binary_only_loads(site) ||
	    (!starts && !(site->known & RACES_PM)))
		return false;
	known->pc = starts ? site->access : site->address + site->length;
	known->size = (uint8_t)site->operand[0].size;
	known->acquires = site->known & RACES_ACQUIRE;
	return site->operand[0].size <= LINE;
}

/* In a section of its own: a signal that comes while it runs must know that. */
__attribute__((section("races_brief"), no_caller_saved_registers, used)) bool
brief_load(uint64_t address, const struct binary_brief *kept)
{
	struct racer *self = racer_current;
	uint32_t site = (uint32_t)kept->site & BINARY_NUMBER, version;
	struct brief_site known = brief_sites[site];
	const struct stack_context *context;
	uint64_t bytes;
	struct line *l;

	if (!self || self->notes >= self->notes_limit || !known.place.known ||
	    address - SESSION_WINDOW >= SESSION_WINDOW_SIZE || address % LINE + known.size > LINE ||
	    self->window != runtime_session->races.window || runtime_thread.busy)
		return false;
	context = brief_context(self, known.place, (uintptr_t)(kept + 1) + BINARY_RED_ZONE,
				kept->rbp);
	if (!context)
		return false;
	l = line_at(address);
	version = __atomic_load_n(&l->version, __ATOMIC_ACQUIRE);
	bytes = (known.size == LINE ? ~0ull : (1ull << known.size) - 1) << address % LINE;
	if (__atomic_load_n(&l->open, __ATOMIC_RELAXED) & bytes) {
		struct racer_judged wanted = brief_judged(address, site, context->stack, version);
		const struct racer_judged *judged = brief_judged_at(self, wanted);

		if (judged->key != wanted.key || judged->stack != wanted.stack ||
		    judged->version != version)
			return false;
	}
	brief_note(self, address, known.size, site, context->stack, version);
	return true;
}
