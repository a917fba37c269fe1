/* SPDX-License-Identifier: BSD-3-Clause */
/* `--trace`: one record an event, appended to a file that all processes of the session share. */
#include "session/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/runtime.h"

void trace_write(const struct trace_record *record)
{
	static int fd = -1;
	int saved_errno = errno;

	if (fd == -1) {
		fd = syscall(SYS_openat, AT_FDCWD, runtime_session->options.trace_path,
			     O_WRONLY | O_APPEND | O_CLOEXEC);
		if (fd < 0)
			fd = -2;
	}
	if (fd >= 0 && syscall(SYS_write, fd, record, sizeof(*record)) != sizeof(*record)) {
		session_limit(runtime_session, thread_owner(),
			      "the trace could not be written in full");
		fd = -2;
	}
	errno = saved_errno;
}
