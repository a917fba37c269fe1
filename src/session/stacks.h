/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Call stacks, each kept once and named by a number. Lives in the session's shared memory; any
 * thread of any process of the session may add, without a lock.
 */
#ifndef SESSION_STACKS_H
#define SESSION_STACKS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	STACKS_SLOTS = 1 << 20,
	STACKS_WORDS = 1 << 27,
	STACKS_INNER = 40, /* frames kept of a deep stack: the innermost ones … */
	STACKS_OUTER = 8,  /* … and the outermost few */
	STACKS_DEPTH = STACKS_INNER + STACKS_OUTER,
	STACKS_CACHED = 256,
	STACKS_CONTEXTS = 128,
	STACKS_WAYS = 2,
	STACKS_TELLING = 64,
	STACKS_FIRST = 1024,
	STACKS_WORDS_SEEN = 103,
	STACKS_CALLS_SEEN = 6,
};

/* A thread's own recent stacks, in front of the shared table. */
struct stacks_cache {
	struct {
		uint64_t hash;
		uint32_t number;
	} entry[STACKS_CACHED];
};

/*
 * Where a thread has called a function from, a moment ago, and the words on the stack that say so:
 * while they are what they were, it is there, wherever in the function.
 */
struct stacks_context {
	_Alignas(64) const uint64_t *at; /* the return address; null: this is none */
	uint64_t value;                  /* of that */
	uint64_t rbp;
	uint32_t image, stack; /* of some place in the function */
	bool by_rbp;           /* is rbp one of them? */
	uint8_t words, calls;
	/* Each with how many words above `at` it lies, in the upper bits that addresses do not use.
	 */
	uint64_t word[STACKS_WORDS_SEEN];
	struct {
		uint64_t number, frame, function;
	} call[STACKS_CALLS_SEEN]; /* of library functions, as the thread has noted them */
};

#define STACKS_ABOVE_SHIFT 48

/* Two words by which those with the same return address differ: so many words above it; or 0. */
struct stacks_telling {
	int16_t above[2];
};

/* The stack of another place in the same function. */
struct stacks_first {
	uint64_t pc;
	uint32_t from, to;
};

/* In stacks.word: hash, image and depth, then the frames. A number is the index of the hash. */
struct stacks {
	uint32_t used;  /* words; word 0 is never used */
	uint32_t full;  /* stacks that had to be cut to one frame, or could not be kept */
	uint32_t *slot; /* hash table of numbers */
	uint64_t *word;
};

/*
 * The number of this stack, innermost frame first; 0 if there is no room at all. `image` tells
 * which program image the addresses belong to (exec starts another one). *added says whether the
 * stack was new. The cache is the calling thread's.
 */
/* The number of a stack that was seen before; 0 if it was not. */
uint32_t stacks_find(struct stacks *stacks, struct stacks_cache *cache, uint32_t image,
		     const uintptr_t *frames, uint32_t depth);
uint32_t stacks_add(struct stacks *stacks, struct stacks_cache *cache, uint32_t image,
		    const uintptr_t *frames, uint32_t depth, bool *added);

/* The frames of a stack; *depth and *image are filled in. */
const uint64_t *stacks_get(const struct stacks *stacks, uint32_t number, uint32_t *depth,
			   uint32_t *image);

#endif
