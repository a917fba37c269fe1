/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/view.h"

#include <string.h>

#include "model/mix.h"

static uint32_t hash_line(uint64_t address)
{
	return spread(address / HISTORY_LINE_SIZE);
}

void view_index(const struct view_line *line, uint32_t lines, uint32_t *index, uint32_t mask)
{
	for (uint32_t i = 0; i < lines; i++) {
		uint32_t at = hash_line(line[i].address);

		while (index[at & mask])
			at++;
		index[at & mask] = i + 1;
	}
}

const struct view_line *view_find(const struct view_crash *crash, uint64_t address)
{
	uint64_t wanted = address & ~(uint64_t)(HISTORY_LINE_SIZE - 1);

	if (!crash->lines)
		return NULL;
	for (uint32_t at = hash_line(wanted);; at++) {
		uint32_t found = crash->index[at & crash->mask];

		if (!found)
			return NULL;
		if (crash->line[found - 1].address == wanted)
			return &crash->line[found - 1];
	}
}

void view_versions(const struct history *history, const struct view_crash *crash,
		   const struct view_line *line, struct history_versions *versions)
{
	struct history_window window = { &history->line[line->line], line->from, line->to };

	if (line->contents) {
		versions->window = (struct history_window){ 0 };
		versions->count = line->contents;
		versions->cut = false;
		return;
	}
	history_versions(history, &window, crash->crash, versions);
}

void view_content(const struct view *view, const struct view_line *line, uint32_t version,
		  const unsigned char *certain, unsigned char content[HISTORY_LINE_SIZE])
{
	struct history_versions versions;

	if (line->contents) {
		memcpy(content, view->crash->content[line->content + version], HISTORY_LINE_SIZE);
		return;
	}
	view_versions(view->history, view->crash, line, &versions);
	memcpy(content, certain, HISTORY_LINE_SIZE);
	history_content(view->history, &versions, version, content);
}

/* Versions are in ascending order, see history_versions. */
uint32_t view_default(const struct history_versions *versions, bool latest)
{
	return latest ? versions->count - 1 : 0;
}

static bool is_alive(const struct view_state *state, uint32_t version)
{
	return state->alive[version / 64] >> version % 64 & 1;
}

static void start(struct view_state *state, const struct history_versions *versions, bool latest)
{
	memset(state->alive, 0, sizeof(state->alive));
	for (uint32_t v = 0; v < versions->count; v++)
		state->alive[v / 64] |= 1ull << v % 64;
	state->chosen = view_default(versions, latest);
	state->started = 1;
}

static bool in_commit_variable(const struct view *view, uint64_t address)
{
	for (uint32_t i = 0; i < view->commits; i++)
		if (address >= view->commit[i].start && address < view->commit[i].end)
			return true;
	return false;
}

static const struct history_event *event_of(const struct view *view,
					    const struct history_line *line, uint32_t part)
{
	return &view->history->event[view->history->part[line->first + part].event];
}

/*
 * What is possible for the bytes of a read. Many versions differ only elsewhere in the line: those
 * with the same stores to these bytes are one alternative, known by its first version.
 */
struct alternatives {
	uint32_t count;
	uint32_t version[HISTORY_VERSIONS];
	uint64_t stores[HISTORY_VERSIONS]; /* which of the stores to these bytes it has */
	uint8_t of_version[HISTORY_VERSIONS];
	unsigned char content[HISTORY_VERSIONS][HISTORY_LINE_SIZE];
	struct history_version common;
	uint64_t open;    /* bytes with more than one writer */
	uint64_t plain;   /* of these: some that may be missing is no commit store */
	uint64_t differs; /* bytes with more than one value */
	uint32_t store;   /* the newest plain one of the lowest byte that has one */
};

/* What all versions that are still possible have in common. */
static struct history_version common_part(const struct view_state *state,
					  const struct history_versions *versions)
{
	struct history_version common = { UINT32_MAX, UINT32_MAX };

	for (uint32_t v = 0; v < versions->count; v++) {
		if (!is_alive(state, v))
			continue;
		if (versions->version[v].stores < common.stores)
			common.stores = versions->version[v].stores;
		common.loose &= versions->version[v].loose;
	}
	return common;
}

static bool is_commit_store(const struct view *view, const struct history_line *line, uint32_t part,
			    unsigned byte)
{
	if (in_commit_variable(view, line->address + byte))
		return true;
	return !view->strict && event_of(view, line, part)->flags & HISTORY_ATOMIC;
}

static void note_writer(const struct view *view, const struct view_read *read,
			struct alternatives *a, const uint32_t *first, const uint32_t *writer,
			uint64_t bytes)
{
	const struct history_line *line = read->versions.window.line;

	for (uint64_t rest = bytes; rest; rest &= rest - 1) {
		unsigned byte = __builtin_ctzll(rest);

		if (writer[byte] == first[byte])
			continue;
		a->open |= 1ull << byte;
		for (int i = 0; i < 2; i++) {
			uint32_t part = i ? writer[byte] : first[byte];

			if (part == HISTORY_NEVER || is_commit_store(view, line, part, byte) ||
			    history_has(view->history, &read->versions, &a->common, part))
				continue;
			if (!(a->plain & ((2ull << byte) - 1)) ||
			    (!(a->plain & ((1ull << byte) - 1)) &&
			     (a->store == HISTORY_NEVER || part > a->store)))
				a->store = part;
			a->plain |= 1ull << byte;
		}
	}
}

static uint64_t difference(const unsigned char *a, const unsigned char *b, uint64_t bytes)
{
	uint64_t result = 0;

	for (uint64_t rest = bytes; rest; rest &= rest - 1) {
		unsigned byte = __builtin_ctzll(rest);

		if (a[byte] != b[byte])
			result |= 1ull << byte;
	}
	return result;
}

/* The uncertain stores to some bytes of a line. */
struct relevant {
	uint32_t count;
	uint32_t ordinal[64]; /* among the ordinary or the loose ones */
	uint64_t loose;       /* which of them are */
};

/* False if there are too many. */
static bool find_relevant(const struct view *view, const struct history_versions *versions,
			  uint64_t bytes, struct relevant *relevant)
{
	const struct history *history = view->history;
	uint32_t ordinary = 0, loose = 0;

	relevant->count = 0;
	relevant->loose = 0;
	for (uint32_t i = versions->window.from; i < versions->window.to; i++) {
		const struct history_part *part = &history->part[versions->window.line->first + i];
		bool is_loose = history->event[part->event].flags & HISTORY_NONTEMPORAL;

		if (part->settled < versions->crash)
			continue;
		if (part->bytes & bytes) {
			if (relevant->count == 64)
				return false;
			relevant->loose |= (uint64_t)is_loose << relevant->count;
			relevant->ordinal[relevant->count++] = is_loose ? loose : ordinary;
		}
		loose += is_loose;
		ordinary += !is_loose;
	}
	return true;
}

static uint64_t stores_in(const struct history_version *version, const struct relevant *relevant)
{
	uint64_t stores = 0;

	for (uint32_t i = 0; i < relevant->count; i++) {
		uint32_t ordinal = relevant->ordinal[i];
		bool there;

		if (relevant->loose >> i & 1)
			there = ordinal < 32 ? version->loose >> ordinal & 1 : version->loose != 0;
		else
			there = ordinal < version->stores;
		stores |= (uint64_t)there << i;
	}
	return stores;
}

static void find_alternatives(const struct view *view, const struct view_state *state,
			      const struct view_read *read, uint64_t bytes, struct alternatives *a)
{
	struct relevant relevant;
	bool few = find_relevant(view, &read->versions, bytes, &relevant);

	a->count = 0;
	for (uint32_t v = 0; v < read->versions.count; v++) {
		uint64_t stores;
		uint32_t i = few ? 0 : a->count;

		if (!is_alive(state, v))
			continue;
		stores = few ? stores_in(&read->versions.version[v], &relevant) : v;
		while (i < a->count && a->stores[i] != stores)
			i++;
		if (i == a->count) {
			a->version[i] = v;
			a->stores[i] = stores;
			a->count++;
		}
		a->of_version[v] = i;
	}
}

/* Of lists only the values are known. */
static void compare_contents(const struct view *view, const struct view_state *state,
			     const struct view_read *read, uint64_t bytes, struct alternatives *a)
{
	*a = (struct alternatives){ .store = HISTORY_NEVER };
	for (uint32_t v = 0; v < read->line->contents; v++) {
		if (!is_alive(state, v))
			continue;
		a->version[a->count] = v;
		a->of_version[v] = a->count;
		memcpy(a->content[a->count], view->crash->content[read->line->content + v],
		       HISTORY_LINE_SIZE);
		a->differs |= difference(a->content[0], a->content[a->count], bytes);
		a->count++;
	}
}

static void compare(const struct view *view, const struct view_state *state,
		    const struct view_read *read, uint64_t bytes, const unsigned char *certain,
		    struct alternatives *a)
{
	uint32_t first[HISTORY_LINE_SIZE], writer[HISTORY_LINE_SIZE];

	find_alternatives(view, state, read, bytes, a);
	a->common = common_part(state, &read->versions);
	a->open = a->plain = a->differs = 0;
	a->store = HISTORY_NEVER;
	for (uint32_t i = 0; i < a->count; i++) {
		memcpy(a->content[i], certain, HISTORY_LINE_SIZE);
		history_content(view->history, &read->versions, a->version[i], a->content[i]);
		history_writers(view->history, &read->versions, a->version[i], writer);
		if (i == 0) {
			memcpy(first, writer, sizeof(first));
			continue;
		}
		note_writer(view, read, a, first, writer, bytes);
		a->differs |= difference(a->content[0], a->content[i], bytes);
	}
}

/* The first alternative with each value, that of the chosen version first. */
static uint32_t list_options(const struct view_state *state, const struct alternatives *a,
			     uint64_t bytes, uint32_t option[VIEW_OPTIONS])
{
	uint32_t count = 0;

	option[count++] = a->of_version[state->chosen];
	for (uint32_t k = 0; k < a->count && count < VIEW_OPTIONS; k++) {
		uint32_t i = 0;

		while (i < count && difference(a->content[option[i]], a->content[k], bytes))
			i++;
		if (i == count)
			option[count++] = k;
	}
	return count;
}

/* What the script takes at this choice. */
static uint32_t take(struct view *view, const uint32_t *option, uint32_t count)
{
	uint32_t number = view->choices++, which = 0;

	if (number < view->script_length && view->script[number] < count) {
		which = view->script[number];
	} else if (view->random) {
		view->random = view->random * 6364136223846793005ull + 1442695040888963407ull;
		which = (view->random >> 33) % count;
	}
	if (number < VIEW_CHOICES) {
		view->options[number] = count;
		view->taken[number] = which;
	}
	return option[which];
}

/* The checksum range that the bytes are in; -1 if they are in none. */
static int range_of(const struct view *view, uint64_t address, uint64_t bytes)
{
	uint64_t first = address + __builtin_ctzll(bytes);

	for (uint32_t i = 0; i < view->checksums && i < VIEW_CHECKSUMS; i++)
		if (first >= view->checksum[i].start && first < view->checksum[i].end)
			return i;
	return -1;
}

/* Which of the uncertain lines of the range is this? How many are there? */
static uint32_t lines_of_range(const struct view *view, int range, const struct view_line *line,
			       uint32_t *count)
{
	uint32_t before = 0;

	*count = 0;
	for (uint32_t i = 0; i < view->crash->lines; i++) {
		uint64_t address = view->crash->line[i].address;

		if (address + HISTORY_LINE_SIZE <= view->checksum[range].start ||
		    address >= view->checksum[range].end)
			continue;
		before += address < line->address;
		++*count;
	}
	return before;
}

/* Representatives: the first line, the last one, one in the middle, and the second. */
static uint32_t torn_line(uint32_t which, uint32_t count)
{
	const uint32_t line[VIEW_TORN_LINES] = { 0, count - 1, count / 2, 1 };

	return line[which];
}

/* The version that such a line gets: as the whole range is found. */
static uint32_t take_whole(struct view *view, const struct view_state *state,
			   const struct view_read *read, int range)
{
	uint32_t count, number = lines_of_range(view, range, read->line, &count),
			oldest = UINT32_MAX;
	uint32_t newest = state->chosen, whole;

	if (!view->whole[range]) {
		uint32_t option[VIEW_TORN + VIEW_TORN_LINES];
		uint32_t torn = count < 2 ? 0 : count < VIEW_TORN_LINES ? count : VIEW_TORN_LINES;

		for (uint32_t i = 0; i < VIEW_TORN + torn; i++)
			option[i] = i;
		view->whole[range] = take(view, option, VIEW_TORN + torn) + 1;
	}
	whole = view->whole[range] - 1;
	for (uint32_t v = 0; v < read->versions.count; v++)
		if (is_alive(state, v)) {
			oldest = v < oldest ? v : oldest;
			newest = v;
		}
	return whole == VIEW_ALL_OLD ||
			       (whole >= VIEW_TORN && torn_line(whole - VIEW_TORN, count) == number)
		       ? oldest
		       : newest;
}

/* The version that stands for all of a line that is verified: new, old, or torn in itself. */
static uint32_t whole_version(const struct view_state *state, uint32_t versions,
			      enum view_whole whole)
{
	uint32_t alive = 0, wanted = 0;

	for (uint32_t v = 0; v < versions; v++)
		alive += is_alive(state, v);
	if (whole == VIEW_TORN)
		wanted = alive / 2;
	else if (whole == VIEW_ALL_NEW)
		wanted = alive - 1;
	for (uint32_t v = 0; v < versions; v++)
		if (is_alive(state, v) && wanted-- == 0)
			return v;
	return state->chosen;
}

/* Nobody knows how much a verifier will read: from which line on may it be old? */
static bool may_turn(uint32_t lines)
{
	enum { ALL = 16 };

	return lines <= ALL || !(lines & (lines - 1));
}

/*
 * All that one call of a verifier reads is new or old; or new up to some line, and old from there;
 * or its first line is old or torn, and the others are new.
 */
static uint32_t take_verified(struct view *view, const struct view_state *state,
			      const struct view_read *read)
{
	static const uint32_t option[] = { VIEW_ALL_NEW, VIEW_ALL_OLD, VIEW_TORN };
	static const uint32_t other[] = { VIEW_ALL_OLD, VIEW_ALL_NEW };
	struct view_verified *verified = &view->verified;

	if (verified->verification != view->verification)
		*verified = (struct view_verified){ .verification = view->verification };
	if (verified->lines && verified->last == read->line->address)
		return whole_version(state, read->versions.count, verified->whole);
	verified->last = read->line->address;
	verified->lines++;
	if (verified->lines == 1)
		verified->whole = take(view, option, VIEW_TORN + (read->versions.count > 2));
	else if (verified->whole == VIEW_TORN)
		verified->whole = VIEW_ALL_NEW, verified->turned = true;
	else if (!verified->turned && verified->whole == VIEW_ALL_OLD && verified->lines == 2)
		verified->whole = take(view, other, 2), verified->turned = true;
	else if (!verified->turned && may_turn(verified->lines))
		verified->whole = take(view, option, 2), verified->turned = verified->whole;
	return whole_version(state, read->versions.count, verified->whole);
}

/* Only versions with these bytes are left; of them the policy's is chosen. */
static void narrow(struct view_state *state, const struct view_read *read,
		   const struct alternatives *a, uint32_t like, uint64_t bytes, bool latest)
{
	bool same[HISTORY_VERSIONS], any = false;

	for (uint32_t k = 0; k < a->count; k++)
		same[k] = !difference(a->content[like], a->content[k], bytes);
	for (uint32_t v = 0; v < read->versions.count; v++) {
		if (!is_alive(state, v))
			continue;
		if (!same[a->of_version[v]]) {
			state->alive[v / 64] &= ~(1ull << v % 64);
		} else if (latest || !any) {
			state->chosen = v;
			any = true;
		}
	}
}

void view_read(struct view *view, uint64_t address, uint64_t bytes, const unsigned char *certain,
	       struct view_read *read)
{
	struct alternatives a;
	struct view_state *state;
	uint32_t like;

	read->line = view_find(view->crash, address);
	if (!read->line)
		return;
	state = &view->state[read->line - view->crash->line];
	view_versions(view->history, view->crash, read->line, &read->versions);
	if (!state->started)
		start(state, &read->versions, view->latest);
	view->cut |= read->versions.cut;
	if (read->line->contents)
		compare_contents(view, state, read, bytes, &a);
	else
		compare(view, state, read, bytes, certain, &a);
	read->open = a.open;
	read->commit = a.open & ~a.plain;
	read->varies = a.differs;
	read->differs = a.differs & a.plain;
	read->store = a.store;
	read->before = state->chosen;
	like = a.of_version[state->chosen];
	if (view->exhaustive && a.differs && range_of(view, address, bytes) >= 0) {
		like = a.of_version[take_whole(view, state, read, range_of(view, address, bytes))];
	} else if (view->exhaustive && a.differs && view->verification) {
		like = a.of_version[take_verified(view, state, read)];
	} else if (view->exhaustive ? a.differs : a.differs & read->commit) {
		uint32_t option[VIEW_OPTIONS];
		uint32_t count = list_options(state, &a, bytes, option);

		like = take(view, option, count);
	}
	if (a.differs)
		narrow(state, read, &a, like, bytes, view->latest);
	read->version = state->chosen;
	read->chosen = state->chosen != read->before;
}

static void add_writer(struct view_writers *writers, uint32_t part)
{
	for (uint32_t i = 0; i < writers->count; i++)
		if (writers->part[i] == part)
			return;
	if (writers->count == VIEW_WRITERS)
		writers->more = true;
	else
		writers->part[writers->count++] = part;
}

/* The last ones before part `end` of the line. */
static void add_last_writers(const struct history *history, const struct history_line *line,
			     uint32_t end, uint64_t bytes, struct view_writers *writers)
{
	while (bytes && end-- > 0) {
		const struct history_part *part = &history->part[line->first + end];

		if (part->bytes & bytes)
			add_writer(writers, line->first + end);
		bytes &= ~part->bytes;
	}
}

/* The first part of the line that comes after the crash. */
static uint32_t parts_before(const struct history *history, const struct history_line *line,
			     uint32_t crash)
{
	uint32_t low = 0, high = line->parts;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (history->part[line->first + middle].event < crash)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void add_version_writers(const struct view *view, const struct history_versions *versions,
				uint32_t version, uint64_t bytes, struct view_writers *writers)
{
	const struct history_line *line = versions->window.line;
	uint32_t writer[HISTORY_LINE_SIZE];
	uint64_t older = 0;

	history_writers(view->history, versions, version, writer);
	for (uint64_t rest = bytes; rest; rest &= rest - 1) {
		unsigned byte = __builtin_ctzll(rest);

		if (writer[byte] != HISTORY_NEVER)
			add_writer(writers, line->first + writer[byte]);
		else
			older |= 1ull << byte;
	}
	add_last_writers(view->history, line, versions->window.from, older, writers);
}

/* The writers of some bytes, as the stores of a line are made one after the other. */
struct layers {
	uint32_t count;
	struct {
		uint32_t part;
		uint64_t bytes;
	} layer[HISTORY_LINE_SIZE];
};

static void put_layer(struct layers *layers, uint32_t part, uint64_t bytes)
{
	uint32_t kept = 0;

	if (!bytes)
		return;
	for (uint32_t i = 0; i < layers->count; i++) {
		layers->layer[i].bytes &= ~bytes;
		if (layers->layer[i].bytes)
			layers->layer[kept++] = layers->layer[i];
	}
	layers->layer[kept].part = part;
	layers->layer[kept].bytes = bytes;
	layers->count = kept + 1;
}

static void put_older(const struct history *history, const struct history_line *line, uint32_t end,
		      uint64_t bytes, struct layers *layers)
{
	while (bytes && end-- > 0) {
		const struct history_part *part = &history->part[line->first + end];

		put_layer(layers, line->first + end, part->bytes & bytes);
		bytes &= ~part->bytes;
	}
}

/* Where nothing overtakes anything, a version is how many of the stores are there. */
static void add_ordered_writers(const struct view *view, const struct view_line *uncertain,
				uint64_t bytes, bool chosen, struct view_writers *writers)
{
	const struct view_state *state = &view->state[uncertain - view->crash->line];
	const struct history_line *line = &view->history->line[uncertain->line];
	struct layers layers = { 0 };
	bool news = true;

	put_older(view->history, line, uncertain->from, bytes, &layers);
	for (uint32_t v = 0; v <= uncertain->to - uncertain->from; v++) {
		if (v) {
			uint32_t number = line->first + uncertain->from + v - 1;
			uint64_t own = view->history->part[number].bytes & bytes;

			put_layer(&layers, number, own);
			news |= own != 0;
		}
		if (!news || !(chosen ? v == state->chosen : !state->started || is_alive(state, v)))
			continue;
		for (uint32_t i = 0; i < layers.count; i++)
			add_writer(writers, layers.layer[i].part);
		news = false;
	}
}

void view_writers(const struct view *view, uint64_t address, uint64_t bytes, bool chosen,
		  struct view_writers *writers)
{
	const struct view_line *uncertain = view_find(view->crash, address);
	const struct history *history = view->history;
	struct history_versions versions;
	const struct view_state *state;

	writers->count = 0;
	writers->more = false;
	if (!uncertain) {
		const struct history_line *line = history_find(history, address);

		if (line)
			add_last_writers(history, line,
					 parts_before(history, line, view->crash->crash), bytes,
					 writers);
		return;
	}
	if (uncertain->contents)
		return;
	state = &view->state[uncertain - view->crash->line];
	if (!history->line[uncertain->line].special &&
	    uncertain->to - uncertain->from < HISTORY_VERSIONS) {
		add_ordered_writers(view, uncertain, bytes, chosen, writers);
		return;
	}
	view_versions(history, view->crash, uncertain, &versions);
	for (uint32_t v = 0; v < versions.count; v++)
		if (chosen ? v == state->chosen : !state->started || is_alive(state, v))
			add_version_writers(view, &versions, v, bytes, writers);
}
