/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Actions that a library has prepared and not yet published: objects that are reserved, which
 * nobody can reach and anybody may write, and objects that will be freed. An action is known by the
 * address of the program's own record of it. Any thread of a process may publish it.
 *
 * A plain library like lines.h; in memory that processes share.
 */
#ifndef MODEL_RESERVATIONS_H
#define MODEL_RESERVATIONS_H

#include "model/lines.h"

enum { RESERVATIONS = 4096 };

struct reservation {
	uint32_t process;    /* number + 1; 0: a free entry */
	uint32_t publishing; /* the thread whose transaction publishes it; 0: none yet */
	uint64_t key, start, end;
	bool frees;
};

struct reservations {
	uint32_t lock, used;
	uint32_t lost; /* there was no room */
	struct reservation entry[RESERVATIONS];
};

enum reservations_end {
	RESERVATIONS_PUBLISH, /* happens now */
	RESERVATIONS_CANCEL,  /* never happens */
};

void reservations_add(struct reservations *r, uint32_t owner, const struct reservation *entry);

/* The action is published or cancelled; what is no object afterwards is forgotten. */
void reservations_end(struct reservations *r, struct lines *lines, struct lines_thread *thread,
		      uint32_t process, uint64_t key, enum reservations_end how);

/* It will be published when the thread's transaction commits … */
void reservations_publish_later(struct reservations *r, struct lines_thread *thread,
				uint32_t process, uint64_t key);
/* … which it does now, or aborts. */
void reservations_finish(struct reservations *r, struct lines *lines, struct lines_thread *thread,
			 bool commit);

/*
 * The process is gone, or has unmapped the range: nothing there happens any more. `thread` may be
 * null.
 */
void reservations_drop(struct reservations *r, struct lines *lines, struct lines_thread *thread,
		       uint32_t process, uint64_t start, uint64_t end);

/* The end of the reserved object that `address` lies in; `address` if it lies in none. */
uint64_t reservations_until(const struct reservations *r, uint32_t process, uint64_t address);

#endif
