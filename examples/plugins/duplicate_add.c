/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plug-in oracle: ranges that a transaction logs twice. It finds what `duplicate-tx-add` finds,
 * and shows how to write a rule of one's own.
 *
 *	cc -shared -fPIC duplicate_add.c -o duplicate_add.so
 *	perdure run --plugin ./duplicate_add.so ./program pool
 */
#include <perdure/oracle.h>

#include <stdlib.h>

enum { THREADS = 256 };

struct range {
	uint64_t start, end;
	uint32_t stack;
	struct range *next;
};

struct state {
	unsigned depth[THREADS]; /* of nested transactions */
	struct range *log[THREADS];
};

static void *start(const struct perdure_host *host)
{
	(void)host;
	return calloc(1, sizeof(struct state));
}

static void forget(struct range **log)
{
	while (*log) {
		struct range *range = *log;

		*log = range->next;
		free(range);
	}
}

static void add(struct range **log, const struct perdure_host *host,
		const struct perdure_event *event)
{
	struct range *range;

	for (range = *log; range; range = range->next)
		if (range->start < event->address + event->size && event->address < range->end)
			break;
	if (range)
		host->report(host, &(struct perdure_report){
					   .message = "logged twice in one transaction",
					   .performance = true,
					   .address = event->address,
					   .size = event->size,
					   .stack = event->stack,
					   .role = "tx",
					   .other_stack = range->stack,
					   .other_role = "tx",
				   });
	range = malloc(sizeof(*range));
	*range = (struct range){ event->address, event->address + event->size, event->stack, *log };
	*log = range;
}

static void event(void *self, const struct perdure_host *host, const struct perdure_event *event)
{
	struct state *state = self;
	unsigned thread = event->thread % THREADS;

	switch (event->kind) {
	case PERDURE_EVENT_TX_BEGIN:
		state->depth[thread]++;
		break;
	case PERDURE_EVENT_TX_ADD:
		add(&state->log[thread], host, event);
		break;
	case PERDURE_EVENT_TX_END:
		if (--state->depth[thread] == 0)
			forget(&state->log[thread]);
		break;
	default:
		break;
	}
}

static void finish(void *self, const struct perdure_host *host)
{
	struct state *state = self;

	(void)host;
	for (unsigned i = 0; i < THREADS; i++)
		forget(&state->log[i]);
	free(state);
}

const struct perdure_oracle perdure_oracle = {
	.abi = PERDURE_ORACLE_ABI,
	.name = "duplicate-add",
	.help = "A transaction logs a range twice: the second time costs and protects nothing.",
	.start = start,
	.event = event,
	.finish = finish,
};
