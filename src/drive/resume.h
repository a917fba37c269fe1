/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Explorations that go on where an earlier one ended: --resume DIR. A file for each history says
 * which crash points are done, and which of their recoveries must run once more for what they
 * found.
 */
#ifndef DRIVE_RESUME_H
#define DRIVE_RESUME_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct worker;

/* A recovery that has found something. */
struct resume_task {
	uint32_t crash; /* number of its crash point, from 0 */
	bool latest;
	uint64_t random;
	uint32_t script_length;
	uint8_t *script;
};

struct resume {
	char *path;    /* of the file; null: nothing is kept */
	uint8_t *done; /* one bit a crash point */
	struct resume_task *task;
	uint32_t tasks, task_room;
	double saved; /* when */
	bool failed;  /* has been said */
};

/* Makes the directory. False after a message. */
bool resume_prepare(const char *directory);

/* The history is known: what is done of it? */
void resume_load(struct engine *engine);

/* Must nothing of this crash point be explored any more? Adds what must run again. */
bool resume_is_done(const struct engine *engine, uint32_t crash);
void resume_add_tasks(const struct engine *engine, struct worker *worker);

/* A recovery has found something that no witness leads to. */
void resume_note_task(struct engine *engine, const struct worker *worker);

/* A crash point is done. */
void resume_note_done(struct engine *engine, uint32_t crash);

void resume_save(struct engine *engine);

/* Forgets the history. */
void resume_end(struct engine *engine);

#endif
