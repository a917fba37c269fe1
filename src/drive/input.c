/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int input_start(struct input *input)
{
	struct stat status;
	int ends[2];

	*input = (struct input){ .record = -1, .out = -1, .in = -1 };
	if (fstat(STDIN_FILENO, &status) < 0 || !S_ISFIFO(status.st_mode))
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	input->record = memfd_create("perdure-input", MFD_CLOEXEC);
	input->in = ends[0];
	input->out = ends[1];
	fcntl(input->out, F_SETFL, O_NONBLOCK);
	return input->in;
}

static bool is_ready(void)
{
	struct pollfd event = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&event, 1, 0) > 0;
}

static void end_of_file(struct input *input)
{
	if (input->out >= 0)
		close(input->out);
	input->out = -1;
}

void input_tick(struct input *input)
{
	while (input->out >= 0) {
		ssize_t n;

		if (input->sent < input->used) {
			n = write(input->out, input->buffer + input->sent,
				  input->used - input->sent);
			if (n < 0)
				break;
			input->sent += n;
			continue;
		}
		if (!is_ready())
			break;
		n = read(STDIN_FILENO, input->buffer, sizeof(input->buffer));
		input->sent = 0;
		input->used = n > 0 ? n : 0;
		if (n <= 0 || write(input->record, input->buffer, n) != n)
			end_of_file(input);
	}
}

int input_end(struct input *input)
{
	struct stat status;

	end_of_file(input);
	if (input->in >= 0)
		close(input->in);
	if (input->record >= 0)
		return input->record;
	/* Files can be opened once more; a terminal has nothing to say to a recovery. */
	if (fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode))
		return STDIN_FILENO;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}
