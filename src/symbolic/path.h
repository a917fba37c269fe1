/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a path has assumed of the inputs. Inputs that have to do with each other form groups; only
 * the groups that a question is about are looked at. Where one byte is all there is to decide, its
 * 256 values are simply tried; the rest is for the solver.
 */
#ifndef SYMBOLIC_PATH_H
#define SYMBOLIC_PATH_H

#include "symbolic/expression.h"

enum { PATH_CHANGES = 4096 };

enum path_answer { PATH_NO, PATH_YES, PATH_UNKNOWN };

/* How the model has to be changed. */
struct path_change {
	uint32_t count;
	struct {
		uint32_t input;
		uint8_t value;
	} to[PATH_CHANGES];
};

/* A question for the solver: may all of these be true at once? */
struct path_question {
	uint64_t key; /* the same for the same question in every process */
	uint32_t count;
	const uint32_t *condition;
};

/* Whoever answers what cannot be found out here; the change is about inputs of the question. */
typedef enum path_answer path_solver(const struct path_question *question,
				     struct path_change *change);
extern path_solver *path_ask_solver;

/* Can the condition be true on this path? If so, how is in *change. */
enum path_answer path_may(uint32_t condition, struct path_change *change);
/* It is true from now on; the model must agree. */
void path_assume(uint32_t condition);
void path_use(const struct path_change *change);
/* The values of an expression of at most 64 bits that are possible; -1: more than `most`. */
int path_values(uint32_t e, uint64_t *values, unsigned most);

#endif
