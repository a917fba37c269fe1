/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/kinds.h"

#include <string.h>

static const struct kind_info kinds[KIND_COUNT] = {
	[KIND_MISSING_FLUSH] = { "missing-flush", true, true, false,
				 "a store is never written back to persistent memory",
				 "The bytes may still be in a cache when the power fails, however long ago "
				 "they were stored: after the crash the old content is back. Write the line "
				 "back after the store (clwb, clflushopt, pmem_flush, pmem_persist, or by "
				 "logging the bytes in a transaction) and order it with a fence. If the data "
				 "is volatile on purpose, keep it out of persistent memory, or suppress the "
				 "finding." },
	[KIND_MISSING_FENCE] = { "missing-fence", true, true, true,
				 "a store is written back, but no fence ever orders it",
				 "clwb, clflushopt and non-temporal stores only start a write-back. Until a "
				 "fence of the same thread (sfence, mfence, a locked instruction, pmem_drain) "
				 "nothing says that it has reached persistent memory. Add one after the flush, "
				 "before anything relies on the data." },
	[KIND_REDUNDANT_FLUSH] = { "redundant-flush", false, true, false,
				   "a flush has nothing to write back",
				   "The line was already written back and nothing was stored to it since. The "
				   "flush costs time and bandwidth and protects nothing. Remove it, or flush "
				   "only what was written." },
	[KIND_REDUNDANT_FENCE] = { "redundant-fence", false, true, false,
				   "a store fence has nothing to order",
				   "No store, flush or non-temporal store of this thread lies between this fence "
				   "and the one before. Remove it." },
	[KIND_OVERWRITE_UNPERSISTED] = { "overwrite-unpersisted", false, false, false,
					 "a store is overwritten before it was persistent",
					 "The first store was never persistent before the second one replaced it. If a "
					 "recovery is meant to see the first value, it is lost; if not, the first "
					 "store can go." },
	[KIND_STORE_OUTSIDE_TX] = { "store-outside-tx", true, true, true,
				    "a store in a transaction to bytes that it did not log",
				    "The transaction has not logged these bytes, and they are not in an object "
				    "that is new in it. If the program crashes or aborts, they are not rolled "
				    "back with the rest; and the commit does not write them back. Log the range "
				    "before the store (TX_ADD, TX_ADD_FIELD, TX_SET, pmemobj_tx_add_range)." },
	[KIND_DUPLICATE_TX_ADD] = { "duplicate-tx-add", false, true, true,
				    "a range is logged twice in one transaction",
				    "Some of these bytes are in the log of this transaction, or of the one around "
				    "it, already. Logging them again costs time and log space. Remove the second "
				    "one, or narrow its range." },
	[KIND_TRANSIENT_DATA] = { "transient-data", false, true, false,
				  "volatile data in persistent memory",
				  "These bytes are never flushed, and no recovery reads them: they could as "
				  "well be in ordinary memory, which is faster. Or recovery ought to read "
				  "them, and then they must be flushed." },
	[KIND_CROSS_FAILURE_RACE] = { "cross-failure-race", true, true, true,
				      "recovery reads what may not have been persistent",
				      "After a crash at this point the bytes may hold either the new or an older "
				      "value, and recovery uses them as if it knew. Persist the store before what "
				      "makes recovery read it, let recovery write the bytes before it reads them, "
				      "or, if they are a flag that says what is valid, store it atomically or "
				      "declare it with perdure_commit_var." },
	[KIND_CROSS_FAILURE_SEMANTIC] = { "cross-failure-semantic", true, true, true,
					  "recovery reads what its commit variable calls invalid",
					  "The commit variable that recovery has read says which data is valid, and "
					  "these bytes are not: they were written after the commit (or not ordered "
					  "before it), or are older than the commit before it. Change the order of "
					  "the stores, or read the other copy." },
	[KIND_TORN_STORE] = { "torn-store", true, true, true,
			      "recovery reads a store that may be half persistent",
			      "The store is not atomic: the compiler may make it in several steps, or use "
			      "the place for something else first, and a crash in between leaves a mixture. "
			      "Nothing that recovery has read before says that the store was complete: no "
			      "later atomic store to the line, and nothing that comes after a flush of it. "
			      "Make the store atomic, which costs nothing on this machine, or let recovery "
			      "read first what was stored after the flush, or protect the data with a "
			      "checksum." },
	[KIND_CRASH_SYMPTOM] = { "crash-symptom", true, true, true, "recovery fails after a crash",
				 "With what a crash at this point can leave in memory, the recovery crashes, "
				 "hangs, or says that it failed. The stores that may be missing there are "
				 "listed, those that the recovery read first." },
	[KIND_THREAD_RACE] = { "thread-race", true, true, false,
			       "a thread acts on what another one has not yet persisted",
			       "Other threads see a store before it is persistent. If one of them acts on "
			       "it, and the power fails in between, what it did is there afterwards, or "
			       "somebody has been told, and the store it relied on is gone. Persist before "
			       "the lock is released, or before the store that publishes the data; or let "
			       "readers write back what they read before they rely on it." },
	[KIND_CUSTOM] = { "custom", true, true, true, "what a plug-in found",
			  "A plug-in oracle has raised this finding; its documentation says what it "
			  "means." },
};

const struct kind_info *kind_info(enum finding_kind kind)
{
	return &kinds[kind];
}

enum finding_kind kind_by_name(const char *name)
{
	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (strcmp(kinds[kind].name, name) == 0)
			return kind;
	return KIND_COUNT;
}

uint32_t kinds_default(void)
{
	uint32_t set = 0;

	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (kinds[kind].on_by_default)
			set |= 1u << kind;
	return set;
}

const char *kind_severity(enum finding_kind kind)
{
	return kinds[kind].correctness ? "correctness" : "performance";
}
