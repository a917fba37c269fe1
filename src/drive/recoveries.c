/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/recoveries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drive/replaced.h"
#include "session/sparse.h"

/* What a run has left in a file takes the place of the user's. */
static bool put_image(struct replaced *replaced, const struct session *session, uint32_t index)
{
	const char *path = session->executions.file[index].path;
	int from = session->executions.execution[0].world.backing[index].fd, to;
	struct stat status;
	bool done;

	if (!replaced_put(replaced, path, "", 0) || fstat(from, &status) < 0)
		return false;
	to = open(path, O_WRONLY | O_CLOEXEC);
	done = to >= 0 && ftruncate(to, status.st_size) == 0 &&
	       sparse_copy(from, to, status.st_size);
	if (to >= 0)
		close(to);
	return done;
}

static bool put_images(struct replaced *replaced, const struct session *session)
{
	for (uint32_t i = 0; i < session->executions.files; i++)
		if (session->executions.file[i].pm && session->executions.file[i].path[0] == '/' &&
		    session->executions.execution[0].world.backing[i].fd &&
		    !put_image(replaced, session, i))
			return false;
	return true;
}

static bool explore(char **command)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		unsetenv("PERDURE_SESSION"); /* it is no part of this one */
		unsetenv("LD_PRELOAD");
		execv("/proc/self/exe", command);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) != 127;
}

static bool map_list(struct recoveries *recoveries)
{
	struct stat status;
	void *list;

	if (fstat(recoveries->fd, &status) < 0)
		return false;
	if (recoveries->list)
		munmap(recoveries->list, recoveries->count * sizeof(*recoveries->list));
	recoveries->count = (uint32_t)((size_t)status.st_size / sizeof(*recoveries->list));
	list = recoveries->count ? mmap(NULL, recoveries->count * sizeof(*recoveries->list),
					PROT_READ, MAP_PRIVATE, recoveries->fd, 0)
				 : NULL;
	recoveries->list = list == MAP_FAILED ? NULL : list;
	return list != MAP_FAILED;
}

bool recoveries_find(struct recoveries *recoveries, const struct session *session, uint32_t *first)
{
	struct replaced replaced = { 0 };
	bool done;

	*first = recoveries->count;
	done = put_images(&replaced, session) && explore(recoveries->explorer);
	replaced_restore(&replaced);
	if (!done || !map_list(recoveries)) {
		fprintf(stderr, "perdure: --sym-recover: the recovery could not be explored: %s\n",
			strerror(errno));
		return false;
	}
	return true;
}
