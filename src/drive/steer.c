/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/steer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drive/target.h"
#include "report/finding.h"
#include "report/symbols.h"

enum { ARGUMENTS = 256 };

/* ---- running it ---- */

static void become_steer(const char *program, const struct session *session, int output)
{
	char *arguments[ARGUMENTS + 3] = { (char *)"perdure-steer" };
	unsigned count = 1;

	if (session->options.heap)
		arguments[count++] = (char *)"--heap";
	for (uint32_t i = 0; i < session->modules && count < ARGUMENTS; i++)
		if (session->module[i].instrumented)
			arguments[count++] = (char *)session->module[i].path;
	dup2(output, STDOUT_FILENO);
	unsetenv("LD_PRELOAD");
	execv(program, arguments);
	_exit(127);
}

static FILE *start(const struct session *session, pid_t *pid)
{
	char *program = target_own_file("perdure-steer");
	int ends[2];

	if (!program || pipe2(ends, O_CLOEXEC) < 0)
		return NULL;
	*pid = fork();
	if (*pid == 0)
		become_steer(program, session, ends[1]);
	close(ends[1]);
	free(program);
	return fdopen(ends[0], "r");
}

/* ---- what it says ---- */

static uint32_t slots_for(uint32_t count)
{
	uint32_t slots = 16;

	while (slots < 2 * count && slots < EXPLORE_WEIGHTS)
		slots *= 2;
	return slots;
}

static void add_weight(struct explore *explore, uint64_t edge, uint32_t weight)
{
	uint32_t at = explore_weight_at(edge);

	while (explore->weight[at % explore->weights].site &&
	       explore->weight[at % explore->weights].site != edge)
		at++;
	explore->weight[at % explore->weights] = (struct explore_weight){ edge, weight };
}

static bool is_known(const struct steer *steer, const char *file, unsigned line, unsigned column)
{
	for (size_t i = 0; i < steer->coverage.places; i++)
		if (steer->coverage.place[i].line == line &&
		    steer->coverage.place[i].column == column &&
		    strcmp(steer->coverage.place[i].file, file) == 0)
			return true;
	return false;
}

/* False if it is known already. */
static bool add_place(struct steer *steer, const char *file, unsigned line, unsigned column)
{
	if (is_known(steer, file, line, column))
		return false;
	steer->coverage.place =
		realloc(steer->coverage.place,
			(steer->coverage.places + 1) * sizeof(*steer->coverage.place));
	if (!steer->coverage.place)
		abort();
	steer->coverage.place[steer->coverage.places++] =
		(struct coverage_place){ .file = strdup(file), .line = line, .column = column };
	return true;
}

static void add_guard(struct steer *steer, uint64_t edge, const struct coverage_guard *guard)
{
	struct coverage_place *place = &steer->coverage.place[steer->coverage.places - 1];

	if (place->guards == COVERAGE_GUARDS)
		return;
	place->guard[place->guards] = *guard;
	place->guard[place->guards].file = strdup(guard->file);
	place->guard[place->guards++].site = edge;
}

struct weight {
	uint64_t edge;
	uint32_t weight;
};

static void read_all(struct steer *steer, struct explore *explore, FILE *in)
{
	struct weight *list = NULL;
	uint32_t count = 0;
	char line[PATH_MAX + 64], file[PATH_MAX];
	bool is_new = false;

	while (fgets(line, sizeof(line), in)) {
		unsigned long site;
		unsigned way, weight, column, row;

		if (sscanf(line, "w %lx %u %u", &site, &way, &weight) == 3 &&
		    count < EXPLORE_WEIGHTS / 2) {
			list = realloc(list, (count + 1ul) * sizeof(*list));
			if (!list)
				abort();
			list[count++] = (struct weight){ explore_edge(site, way), weight };
		} else if (sscanf(line, "p %u %u %4095[^\n]", &way, &column, file) == 3) {
			is_new = add_place(steer, file, way, column);
		} else if (is_new && sscanf(line, "g %lx %u %u %u %4095[^\n]", &site, &way, &row,
					    &column, file) == 5) {
			add_guard(
				steer, site,
				&(struct coverage_guard){
					.file = file, .line = row, .column = column, .way = way });
		}
	}
	explore->weights = slots_for(count);
	for (uint32_t i = 0; i < count; i++)
		add_weight(explore, list[i].edge, list[i].weight);
	free(list);
}

void steer_find(struct steer *steer, struct session *session)
{
	struct explore *explore = session->explore;
	pid_t pid = 0;
	FILE *in = start(session, &pid);
	int status = 0;

	if (in) {
		read_all(steer, explore, in);
		fclose(in);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	if (!in || status || !steer->coverage.places)
		session_limit(session, UINT32_MAX,
			      "no instruction of the program is known to change PM (was all of it "
			      "built with perdure-cc --symbolic?): the search is not steered");
	explore->pm_instructions = (uint32_t)steer->coverage.places;
	explore->steered = 1;
}

/* ---- how far it got ---- */

static size_t place_of(const struct steer *steer, const struct frame_info *frame)
{
	const char *name = strrchr(frame->path ? frame->path : "", '/');

	for (size_t i = 0; i < steer->coverage.places; i++) {
		const struct coverage_place *place = &steer->coverage.place[i];
		const char *other = strrchr(place->file, '/');

		if (place->line == frame->line && place->column == frame->column &&
		    strcmp(other ? other : place->file, name && other ? name
							: name        ? name + 1
								      : "") == 0)
			return i;
	}
	return steer->coverage.places;
}

/* How often a branch was decided this way, where that depended on the input. */
static uint32_t taken(const struct explore *explore, uint64_t site, unsigned way)
{
	return explore->edge[explore_edge_at(explore_edge(site, way))];
}

static void count_decisions(struct coverage_place *place, const struct explore *explore)
{
	for (unsigned g = 0; g < place->guards; g++) {
		struct coverage_guard *guard = &place->guard[g];

		guard->taken = taken(explore, guard->site, guard->way);
		guard->not_taken = taken(explore, guard->site, !guard->way);
	}
}

size_t steer_reached(struct steer *steer, struct session *session)
{
	static struct stacks_cache cache;
	const struct explore *explore = session->explore;
	bool *reached = calloc(steer->coverage.places + 1, sizeof(*reached));
	size_t count = 0;

	if (!reached)
		abort();
	for (uint32_t i = 0; i < EXPLORE_PLACES; i++) {
		uintptr_t pc = explore->place[i];
		struct site site = { 0 };
		uint32_t stack;
		bool added;

		if (!pc)
			continue;
		stack = stacks_add(&session->stacks, &cache, explore->image, &pc, 1, &added);
		if (!stack)
			continue;
		symbols_resolve(session, stack, &site);
		if (site.frames)
			reached[place_of(steer, &site.frame[0])] = true;
	}
	for (size_t i = 0; i < steer->coverage.places; i++) {
		steer->coverage.place[i].reached = reached[i];
		count_decisions(&steer->coverage.place[i], explore);
		count += reached[i];
	}
	free(reached);
	return count;
}
