/* SPDX-License-Identifier: BSD-3-Clause */
/* Standard input: recorded while the program runs, and given to every recovery again. */
#ifndef DRIVE_INPUT_H
#define DRIVE_INPUT_H

#include <stdbool.h>

struct input {
	int record; /* what came through a pipe; -1: it is no pipe */
	int out;    /* to the program */
	int in;     /* its other end */
	char buffer[4096];
	unsigned used, sent;
};

/* The descriptor that the program is to read from; -1: its own. */
int input_start(struct input *input);
/* To be called again and again while it runs. */
void input_tick(struct input *input);
/* The descriptor that recoveries read from. */
int input_end(struct input *input);

#endif
