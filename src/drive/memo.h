/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What recoveries did, as a tree of what they read: a recovery that reads the same does the same.
 * From the root, each node says which bytes are read next, and has a child for each value met.
 */
#ifndef DRIVE_MEMO_H
#define DRIVE_MEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "session/execution.h"

struct leaf;

/* How an execution ended. */
struct outcome {
	uint32_t symptom; /* enum symptom of drive/symptoms.h; 0: none */
	int32_t status;   /* as from wait */
	uint32_t stack;   /* where */
	uint64_t address; /* of a fault */
	uint32_t deadlocked;
	uint32_t deadlock[EXECUTION_DEADLOCKED]; /* where threads wait for each other */
	char *output;                            /* the end of what it printed; null if nothing */
	struct leaf *leaf; /* what it stored, if it may crash; null: nothing */
};

struct memo;

/* For at most so many reads; what comes then is not kept. */
struct memo *memo_new(uint32_t most);
void memo_free(struct memo *memo);

/* The first node. 0 if nothing is known yet. */
uint32_t memo_root(const struct memo *memo);
/* What is read at a node; null if it is the end of an execution. */
const struct read_record *memo_read(const struct memo *memo, uint32_t node);
/* How it ended there: true as long as the memo is. */
const struct outcome *memo_outcome(const struct memo *memo, uint32_t node);
/* Where this value leads to; 0 if that is not known. */
uint32_t memo_next(const struct memo *memo, uint32_t node, uint64_t value);

/* Adds an execution. False if it contradicts what is known: then it is no function of its reads. */
bool memo_add(struct memo *memo, const struct read_record *read, uint32_t reads,
	      const struct outcome *outcome);

#endif
