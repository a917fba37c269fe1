/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plug-in oracles: checkers of your own, for `--plugin X.so`. docs/plugins.md tells how to write
 * one.
 *
 * A plug-in is a shared object that defines
 *
 *	const struct perdure_oracle perdure_oracle = {
 *		.abi = PERDURE_ORACLE_ABI,
 *		.name = "my-rule",
 *		.event = my_event,
 *	};
 *
 * It is loaded by the perdure command, not by the program under test: it may use malloc, stdio and
 * threads as it likes. A plug-in that crashes ends all plug-ins, and nothing else. It hears the
 *events one by one, in the order in which they happened, and asks the host about the state that
 *memory had at that moment.
 *
 * The ABI only grows: members are added at the end of structures and in place of reserved ones;
 * the host looks at `abi` to see what a plug-in has, a plug-in at host->abi.
 */
#ifndef PERDURE_ORACLE_H
#define PERDURE_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PERDURE_ORACLE_ABI 2

enum perdure_event_kind {
	PERDURE_EVENT_LOAD = 1,
	PERDURE_EVENT_STORE,
	PERDURE_EVENT_FAILED_CAS, /* a compare-and-swap that stored nothing */
	PERDURE_EVENT_FLUSH,      /* of the line at `address`; detail: enum perdure_flush */
	PERDURE_EVENT_FENCE,      /* detail: enum perdure_fence */
	PERDURE_EVENT_PERSIST,    /* msync, fsync, or a library: durable now */
	PERDURE_EVENT_TX_BEGIN,   /* address, size: the pool, 0 if not known */
	PERDURE_EVENT_TX_ADD,     /* a range is logged; detail: enum perdure_tx_flag */
	PERDURE_EVENT_TX_COMMIT,  /* of the innermost transaction */
	PERDURE_EVENT_TX_ABORT,
	PERDURE_EVENT_TX_END,
	PERDURE_EVENT_ALLOC, /* of PM, through a library that has a model */
	PERDURE_EVENT_FREE,
	PERDURE_EVENT_LOCK, /* address: the lock, anywhere in memory */
	PERDURE_EVENT_UNLOCK,
	PERDURE_EVENT_MAP, /* PM appears at [address, address + size) … */
	PERDURE_EVENT_UNMAP,
	PERDURE_EVENT_VOLATILE, /* these bytes are volatile on purpose */
	PERDURE_EVENT_PUBLISH,  /* reserved objects become ordinary ones */
};

enum perdure_tx_flag {
	PERDURE_TX_NO_FLUSH = 1,    /* the commit does not flush it */
	PERDURE_TX_RESERVED = 2,    /* alloc: nobody's until it is published */
	PERDURE_TX_ATOMIC = 4,      /* alloc: not undone by an abort, not flushed by a commit */
	PERDURE_TX_NO_SNAPSHOT = 8, /* add: an abort does not restore it */
};

struct perdure_event {
	uint32_t kind;   /* enum perdure_event_kind */
	uint32_t detail; /* loads and stores: flags of perdure/event.h */
	uint64_t address, size;
	uint32_t thread; /* 1, 2, …; never used twice */
	uint32_t stack;  /* names the call stack; 0 if there is none */
	uint64_t number; /* 1, 2, … */
	uint64_t place;  /* for perdure_host.type; 0 if the type is not known */
	uint64_t value;  /* ABI 2: what was stored, if that is at most 8 bytes; otherwise 0 */
	uint64_t symbol; /* ABI 2: perdure explore: not 0 if it could be something else: see may */
};

/* The worst that can be said of any byte of a range. */
enum perdure_persistence {
	PERDURE_PERSISTENT, /* no crash can lose it */
	PERDURE_FLUSHED,    /* written back, no fence yet */
	PERDURE_DIRTY,      /* not written back since it was stored */
};

struct perdure_frame {
	const char *function; /* never null */
	const char *file;     /* null if unknown */
	unsigned line, column;
};

/*
 * A structure that a store goes to, as the expression in the source has it. In an array inside of
 * it, any element counts as the first: `offset` is that of a[0], whichever a[i] was stored to.
 */
struct perdure_type {
	const char *name;  /* as in "struct node"; templates without their arguments */
	uint64_t offset;   /* of the access in it */
	uint64_t size;     /* of the structure; 0 if debug information does not tell */
	const char *field; /* as in "pair.left"; null if it does not tell */
};

/* Of a value that was stored to a number, both without a sign. */
enum perdure_relation {
	PERDURE_EQUAL,
	PERDURE_DIFFERENT,
	PERDURE_BELOW,
	PERDURE_ABOVE,
};

struct perdure_report {
	const char *message;
	bool performance;       /* otherwise a matter of correctness */
	uint64_t address, size; /* 0: about no address */
	uint32_t stack;         /* where it is shown */
	const char *role;       /* load, store, flush, fence, tx, lock; null: store */
	uint32_t other_stack;   /* a second place, or 0 */
	const char *other_role;
};

struct perdure_host {
	uint32_t abi;
	void *data; /* the host's own */

	enum perdure_persistence (*persistence)(const struct perdure_host *host, uint64_t address,
						uint64_t size);
	/* How many transactions the thread is inside of. */
	unsigned (*transactions)(const struct perdure_host *host, uint32_t thread);
	/* Is every byte logged, or part of an object that is new in the transaction? */
	bool (*is_logged)(const struct perdure_host *host, uint32_t thread, uint64_t address,
			  uint64_t size);
	/* Frame 0 is the innermost one. False behind the last. Strings live as long as the host. */
	bool (*symbol)(const struct perdure_host *host, uint32_t stack, unsigned frame,
		       struct perdure_frame *result);
	/*
	 * The structures that a store went to: level 0 is the innermost one, level 1 the one around
	 * it in the expression (`n` in n->pair.left), and so on. False if there is none.
	 */
	bool (*type)(const struct perdure_host *host, const struct perdure_event *event,
		     unsigned level, struct perdure_type *result);
	/* Raises a finding of kind `custom`. Equal ones are counted. */
	void (*report)(const struct perdure_host *host, const struct perdure_report *report);

	/*
	 * ABI 2: of a store of at most 8 bytes: can what it stores be in this relation to a number,
	 * on the path that it is on? Must it? In an exploration the solver is asked; elsewhere a
	 * value is what it is, and both say the same.
	 */
	bool (*may)(const struct perdure_host *host, const struct perdure_event *event,
		    enum perdure_relation relation, uint64_t number);
	bool (*must)(const struct perdure_host *host, const struct perdure_event *event,
		     enum perdure_relation relation, uint64_t number);

	/* Reserved for the content of memory, and crash points: null. */
	void (*reserved[10])(void);
};

struct perdure_oracle {
	uint32_t abi;     /* PERDURE_ORACLE_ABI */
	const char *name; /* stable: it is part of fingerprints and suppressions */
	const char *help; /* what the rule is about, for reports; may be null */

	/* All may be null. What `start` returns is handed to the others; null is no error. */
	void *(*start)(const struct perdure_host *host);
	void (*event)(void *self, const struct perdure_host *host,
		      const struct perdure_event *event);
	void (*finish)(void *self, const struct perdure_host *host);

	/* Reserved for crash hooks: before a crash point, before and after a recovery. */
	void (*reserved[12])(void);
};

extern const struct perdure_oracle perdure_oracle;

#ifdef __cplusplus
}
#endif

#endif
