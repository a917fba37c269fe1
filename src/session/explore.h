/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `perdure explore` in shared memory: what the command asks for, the states that wait to go on, the
 * inputs that lead to findings, and the desks of solvers. Everything else of a path is its own.
 */
#ifndef SESSION_EXPLORE_H
#define SESSION_EXPLORE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/mix.h"
#include "symbolic/abi.h"

enum {
	EXPLORE_STATES = 1 << 16,
	EXPLORE_INPUTS = 1 << 14, /* bytes of one path */
	EXPLORE_SOURCES = 64,     /* what they are given as */
	EXPLORE_NAME = 256,
	EXPLORE_KEPT = 1 << 16, /* inputs of states, and of findings */
	EXPLORE_SOLVERS = 64,
	EXPLORE_EDGES = 1 << 16,
	EXPLORE_WEIGHTS = 1 << 20,
	EXPLORE_PLACES = 1 << 16,
	EXPLORE_KNOWN = 1 << 15, /* answers */
	EXPLORE_ANSWER = 64,     /* bytes of one */
	EXPLORE_CRASHES = 64,
	EXPLORE_HISTORIES = 1 << 14,
	EXPLORE_CHOICES = 2048, /* between threads, of one path */
	EXPLORE_CORES = 256,
	EXPLORE_CORE = 8, /* conditions of one */
};

enum explore_search {
	EXPLORE_PM, /* where most of PM can still be changed */
	EXPLORE_COVERAGE,
	EXPLORE_DFS,
	EXPLORE_BFS,
	EXPLORE_RANDOM,
};

enum explore_source_kind {
	EXPLORE_ARGUMENT,
	EXPLORE_STDIN,
	EXPLORE_FILE,
	EXPLORE_VARIABLE, /* of the environment */
	EXPLORE_NAMED,    /* perdure_symbolic */
	EXPLORE_PACKET,   /* what a client sends at once; the name says where */
	EXPLORE_SCHEDULE, /* which thread goes on */
};

/* Some bytes of the inputs, in a row. */
struct explore_source {
	uint32_t kind;
	uint32_t first, count;
	char name[EXPLORE_NAME]; /* a path, a variable's name, or what the program says */
};

/* What a path was given: enough to run it again. */
struct explore_kept {
	bool used;
	bool ran;        /* it was run once more, to see whether its findings are there */
	bool crashes;    /* no other path does the same to PM: crashes in it are tried */
	uint32_t events; /* a state: so many decisions are taken already */
	uint32_t sources, inputs;
	struct explore_source source[EXPLORE_SOURCES];
	uint8_t value[EXPLORE_INPUTS];
};

enum explore_status {
	EXPLORE_FREE,
	EXPLORE_NEW, /* about to be something */
	EXPLORE_WAITING,
	EXPLORE_RUNNING,
	EXPLORE_AS_INPUT,
};

struct explore_state {
	uint32_t status;
	int32_t pid;
	uint32_t go;     /* futex: may go on */
	uint32_t path;   /* its number */
	uint32_t killed; /* it took too long, or too much */
	uint32_t depth;
	uint32_t kept;   /* EXPLORE_AS_INPUT: index */
	uint64_t weight; /* by the searcher: the greatest goes on first */
	uint64_t edge;
	uint64_t born;
};

struct explore_settings {
	uint32_t search;
	uint32_t jobs;
	uint32_t live;       /* processes that may wait */
	uint32_t max_states; /* that wait in any form; 0: as many as there is room for */
	uint32_t solver_ms;  /* for one question */
	uint32_t timeout;    /* of a path, in seconds of the processor */
	bool shows;          /* what paths print */
	bool crash;          /* inputs of paths are kept that differ in what they do to PM … */
	bool every;          /* … or all of them */
	uint32_t sources;
	struct explore_source source[EXPLORE_SOURCES];
	uint8_t given[EXPLORE_INPUTS]; /* packets: bytes that are no question, from `first` on */
	bool is_given[EXPLORE_INPUTS];
	uint64_t seed;
};

/* ---- the solver's desk ---- */

enum { EXPLORE_NODES = 1 << 18, EXPLORE_CONDITIONS = 1 << 16 };

struct explore_node {
	uint8_t op, width;
	uint32_t a, b, c;
	uint64_t constant, hash;
};

enum explore_answer { EXPLORE_UNSAT, EXPLORE_SAT, EXPLORE_UNKNOWN };

struct explore_desk {
	_Alignas(4096) uint32_t lock; /* mapped by itself */
	uint32_t asked;               /* futex; the number of the question */
	uint32_t answered;
	uint32_t milliseconds;
	uint32_t nodes, conditions;
	uint32_t answer, values;
	uint32_t cores; /* EXPLORE_UNSAT: so many of the conditions are to blame; 0: not known */
	uint32_t core[EXPLORE_CORE];
	struct explore_node node[EXPLORE_NODES]; /* number 0 is none; operands come first */
	uint32_t condition[EXPLORE_CONDITIONS];
	uint16_t input[EXPLORE_INPUTS];
	uint8_t value[EXPLORE_INPUTS];
};

/* An answer that any path may need again. */
struct explore_known {
	uint64_t key;
	uint8_t answer;
	uint8_t count;
	uint16_t input[EXPLORE_ANSWER];
	uint8_t value[EXPLORE_ANSWER];
};

/* Conditions, by their hashes, that cannot all be true. */
struct explore_core {
	uint64_t bits; /* of the hashes: most that do not fit are seen at once */
	uint32_t count;
	uint64_t hash[EXPLORE_CORE];
};

/* From the static analysis: what lies behind a branch. */
struct explore_weight {
	uint64_t site; /* and which way: site + way */
	uint32_t weight;
};

/* A path that was ended by a signal; one for each place. */
struct explore_crash {
	uint32_t signal, stack, input; /* index + 1 */
	uint32_t count;
};

/* One way of a branch, as the tables know it. */
static inline uint64_t explore_edge(uint64_t site, unsigned way)
{
	return site * 2 + way;
}

static inline uint64_t explore_mix(uint64_t a)
{
	a ^= a >> 31;
	a *= 0xbf58476d1ce4e5b9ull;
	return a ^ a >> 29;
}

/* Where it is counted how often it was taken. */
static inline uint32_t explore_edge_at(uint64_t edge)
{
	return spread(edge) % EXPLORE_EDGES;
}

/* Where its weight is looked for first, and then behind it; the table's size is a power of two. */
static inline uint32_t explore_weight_at(uint64_t edge)
{
	return spread(edge);
}

/* What a plug-in asks about a path that tells what it has done. */
struct explore_query {
	uint32_t asked, answered; /* numbers of questions */
	uint32_t symbol;          /* an expression of the path */
	uint32_t relation;        /* enum perdure_relation; negated: the opposite of it */
	bool negated, answer;
	uint64_t number;
	uint32_t input; /* one with which it is so, index + 1; 0: the path's own */
	uint32_t heard; /* so many paths were heard to their end */
};

struct explore_counts {
	uint64_t paths;     /* that have come to their end */
	uint64_t crashed;   /* … by a signal */
	uint64_t timed_out; /* … or not at all */
	uint64_t too_large; /* … or took too much memory */
	uint64_t states;    /* that were made */
	uint64_t reexecuted;
	uint64_t branches; /* decisions about symbolic conditions */
	uint64_t queries;  /* that no cache and no table could answer */
	uint64_t query_ns;
	uint64_t known;    /* that another path had asked */
	uint64_t dropped;  /* states for which there was no room */
	uint64_t silenced; /* paths that perdure_assume ended */
	uint64_t lost[SYMBOLIC_LOSSES];
	uint32_t live, most_live;
	uint32_t waiting, running;
};

struct explore {
	bool on;
	struct explore_settings settings;
	uint32_t lock;
	uint32_t telling; /* lock: a path tells what it has done */
	struct explore_query query;
	int32_t root;  /* the process that all paths come from */
	uint32_t turn; /* futex: the root has to decide who goes on */
	uint32_t next_path;
	uint64_t clock;
	uint32_t stopped; /* no more states: the time is over */
	struct explore_counts counts;
	uint32_t crashes;
	struct explore_crash crash[EXPLORE_CRASHES];
	uint32_t states_used, free_from; /* of the tables below: where to look */
	uint32_t kept_from;
	uint32_t edge[EXPLORE_EDGES];   /* how often it was taken */
	uint64_t place[EXPLORE_PLACES]; /* instructions that have changed PM: image offset and
					   address */
	uint32_t weights;               /* a power of two, or 0 */
	uint32_t pm_instructions;       /* by the static analysis */
	uint32_t pm_reached;            /* of these, executed */
	uint32_t places;                /* how many there are in the table */
	uint32_t steered;               /* the analysis is over: paths may start */
	uint32_t image;                 /* as stacks have it */
	struct explore_weight *weight;  /* hash table */
	struct explore_state state[EXPLORE_STATES];
	uint64_t history[EXPLORE_HISTORIES]; /* what paths have done to PM, as hashes */
	uint32_t histories;
	uint32_t cores;
	struct explore_core core[EXPLORE_CORES];
	struct explore_known *answer;
	struct explore_kept *input;
	struct explore_desk *desk;
};

#endif
