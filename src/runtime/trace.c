/* SPDX-License-Identifier: BSD-3-Clause */
/* `--trace`: one record an event, appended to a file that all processes of the session share. */
#include "session/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/runtime.h"

/*
 * The file is opened for each record: a descriptor that stays open could be closed by the program
 * and mean another file when it is next used.
 */
void trace_write(const struct trace_record *record)
{
	int saved_errno = errno;
	int fd = syscall(SYS_openat, AT_FDCWD, runtime_session->options.trace_path,
			 O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_write, fd, record, sizeof(*record)) != sizeof(*record))
		session_limit(runtime_session, thread_owner(),
			      "the trace could not be written in full");
	if (fd >= 0)
		syscall(SYS_close, fd);
	errno = saved_errno;
}
