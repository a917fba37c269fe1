/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/given.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint32_t current, recovery; /* index + 1 */

static void note_input(struct raw_finding *finding)
{
	finding->input = current;
	finding->recovery = recovery;
}

bool given_load(struct given *given, int fd)
{
	struct stat status;

	*given = (struct given){ .fd = fd, .input = -1, .recovery_input = -1 };
	if (fstat(fd, &status) < 0)
		return false;
	given->count = (uint32_t)((size_t)status.st_size / sizeof(*given->list));
	if (!given->count)
		return true;
	given->list =
		mmap(NULL, given->count * sizeof(*given->list), PROT_READ, MAP_PRIVATE, fd, 0);
	return given->list != MAP_FAILED;
}

static int make_input(const uint8_t *bytes, uint32_t size)
{
	int fd = memfd_create("perdure-input", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, bytes, size) != (ssize_t)size) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool give_one(struct given *given, const struct explore_kept *kept,
		     const struct explore_source *source)
{
	const uint8_t *bytes = kept->value + source->first;

	if (source->kind == EXPLORE_FILE)
		return replaced_put(&given->replaced, source->name, bytes, source->count);
	if (source->kind != EXPLORE_STDIN)
		return true;
	given->input = make_input(bytes, source->count);
	return given->input >= 0;
}

static void end_recovery(struct given *given, struct session *session)
{
	if (given->recovery_input >= 0)
		close(given->recovery_input);
	given->recovery_input = -1;
	session->executions.given_recovery = recovery = 0;
}

bool given_use(struct given *given, struct session *session, uint32_t number)
{
	const struct explore_kept *kept = &given->list[number];

	given_end(given);
	end_recovery(given, session);
	for (uint32_t i = 0; i < kept->sources; i++)
		if (!give_one(given, kept, &kept->source[i])) {
			fprintf(stderr, "perdure: cannot prepare an input: %s\n", strerror(errno));
			return false;
		}
	current = number + 1;
	raw_on_new = note_input;
	session->executions.given = number + 1;
	session->executions.given_fd = given->fd;
	session->executions.given_to_recovery = given->to_recovery;
	return true;
}

bool given_use_recovery(struct given *given, struct session *session, uint32_t number)
{
	const struct explore_kept *kept = &given->recoveries.list[number];

	end_recovery(given, session);
	for (uint32_t i = 0; i < kept->sources; i++)
		if (kept->source[i].kind == EXPLORE_STDIN)
			given->recovery_input = make_input(kept->value + kept->source[i].first,
							   kept->source[i].count);
	session->executions.given_recovery = recovery = number + 1;
	session->executions.given_recovery_fd = given->recoveries.fd;
	return true;
}

void given_end(struct given *given)
{
	replaced_restore(&given->replaced);
	if (given->input >= 0)
		close(given->input);
	given->input = -1;
}
