/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of `--trace`: every event, as the runtime saw it. */
#ifndef SESSION_TRACE_H
#define SESSION_TRACE_H

#include <stdint.h>

enum trace_kind {
	TRACE_LOAD,
	TRACE_STORE,
	TRACE_FAILED_CAS,
	TRACE_FLUSH,
	TRACE_FENCE,
	TRACE_PERSIST,
};

struct trace_record {
	uint32_t kind;   /* enum trace_kind */
	uint32_t detail; /* access flags, enum perdure_flush or enum perdure_fence */
	uint64_t address, size;
	uint32_t stack, thread;
};

#endif
