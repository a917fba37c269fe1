/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target as a family of processes: started with the session in its environment, watched until
 * the last of them is gone, ended when a budget or the user says so.
 */
#ifndef DRIVE_TARGET_H
#define DRIVE_TARGET_H

#include <stdbool.h>
#include <stddef.h>

struct target_limits {
	double max_time; /* seconds; 0: none */
	long timeout;    /* CPU seconds; 0: none */
	long max_memory; /* MiB over all processes; 0: none */
};

struct target_end {
	int exit_status;    /* -1: by a signal */
	int signal;         /* 0: by exit */
	const char *budget; /* which limit, or which signal to perdure, ended it; null: none */
};

/* Where this installation is: the directory above bin/. */
bool target_own_prefix(char *path, size_t size);

/* Which limit the process and all below it have used up; null: none. `started` as by target_now. */
const char *target_over_budget(int pid, const struct target_limits *limits, double started);
double target_now(void);

/* Running or waiting; one that has ended and is not yet reaped is not alive. */
bool target_is_alive(int pid);

/* How many processes there are below `pid`. */
unsigned target_count_below(int pid);

/* CPU seconds and MiB that a process and all below it have used. */
void target_usage(int pid, double *seconds, long *megabytes);
/* A program of Perdure's that is not for people; null with a message if it is missing. Free it. */
char *target_own_file(const char *name);

/* Sends a signal to all processes below `pid`. */
void target_signal_below(int pid, int signal);

/*
 * To be called first of all: closed standard descriptors must not become something else, and a
 * reader that goes away or a file that may not grow is an error, not the end.
 */
void target_prepare_process(void);
/* Was standard output closed when the process started? */
bool target_stdout_closed(void);

/* The full path of a program as a shell would find it; null with errno set. Allocated. */
char *target_find_program(const char *name);

/* Takes over signals and children, and tells programs of the session. False after a message. */
bool target_prepare(int session_fd, bool heap);

/* Starts a program that target_prepare was called for; -1 after a message. */
int target_start(char **command);

/* A new directory for what is needed for a while, below TMPDIR or /tmp; its path. False with errno.
 */
bool target_make_directory(char *path, size_t size);

/* Signals to perdure that ask it to end: which one, as a budget; null if none came. */
const char *target_interrupted(void);

/*
 * Runs the command to its end, with every process it leaves behind. False with a message on
 * standard error if it could not be started.
 */
bool target_run(char **command, int session_fd, bool heap, const struct target_limits *limits,
		struct target_end *end);

/* Where the standard descriptors of programs lead that are started from now on; -1: as they are. */
void target_redirect(int input, int output, int errors);

/* Who has something to do while the program runs, or other children. */
struct target_company {
	void (*tick)(void *context, int target);
	void (*ended)(void *context, int pid, int status);
	void *context;
};

/* The same after target_prepare, as often as one likes. */
bool target_run_again(char **command, const struct target_limits *limits,
		      const struct target_company *company, struct target_end *end);

/* Why the runtime may not have started in this program. */
const char *target_why_not(const char *program);

#endif
