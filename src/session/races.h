/* SPDX-License-Identifier: BSD-3-Clause */
/* `perdure threads` as shared memory: what is wanted, and what earlier runs have learnt. */
#ifndef SESSION_RACES_H
#define SESSION_RACES_H

#include <stdbool.h>
#include <stdint.h>

enum {
	RACES_LEARNED = 1 << 18,
	RACES_FILES = 64,
	RACES_PATH = 512,
};

/* What is known of an instruction. */
enum races_learned {
	RACES_PM = 1,        /* it touches PM */
	RACES_ACQUIRE = 2,   /* it loads what another thread stores, without a lock */
	RACES_RELEASE = 4,   /* it stores what another thread loads so, or frees a lock */
	RACES_LOCK = 8,      /* it touches the word of a lock: that is no data */
	RACES_EXECUTED = 16, /* otherwise nothing is known of it */
	RACES_COUNTS = 32,   /* it takes or frees locks that count how often that was done */
};

/* By the object's path and the place in it: see races_key. */
enum { RACES_OFTEN = 8 };
struct races_instruction {
	uint64_t key; /* 0: free */
	uint32_t flags;
	/* It takes or frees what looks like a lock: so often as locks do, and as others do. */
	uint32_t alone, disturbed;
};

enum races_detector { RACES_PIFR = 1, RACES_HB = 2 };

/* A PM file as it was before the first run. */
struct races_file {
	char path[RACES_PATH];
	bool existed;
};

/* --dump-regions: where a region starts, and the access that it is about; as stacks. */
enum { RACES_REGIONS = 1 << 16, RACES_EXPRESSION = 48 };
struct races_region {
	uint32_t start, access;
	bool stores;
	char expression[RACES_EXPRESSION];
};

/* --acquire, --release: a function by its place in an object. */
enum { RACES_FUNCTIONS = 256 };
struct races_function {
	char path[RACES_PATH];
	uint64_t start, size; /* offsets in the file's address space */
	bool acquires;        /* when it returns; otherwise it releases when it is called */
};

struct races_settings {
	bool dumps;   /* --dump-regions */
	bool minimal; /* --minimal-regions */
	bool helpers; /* --flush-on-read */
	uint8_t detectors;
	uint32_t sample; /* one region of so many, or one window, see drive/windows.h */
	uint32_t delay;  /* microseconds, before regions end */
	uint32_t decay;  /* per cent of its probability that a delay for nothing costs */
	uint32_t seed;
};

struct session_races {
	bool on;
	bool discovers; /* this run only learns */
	struct races_settings settings;
	bool windows;               /* regions are watched for in windows: see drive/windows.h */
	uint8_t watching;           /* one is open … */
	uint32_t window;            /* … this one */
	uint32_t asked;             /* threads have started, and one shall open: a futex */
	bool restores;              /* files are to be kept for the next run */
	char directory[RACES_PATH]; /* where copies of them are, by number */
	uint32_t files;
	struct races_file file[RACES_FILES];
	uint64_t regions; /* opened, of all runs */
	uint64_t lost;    /* not followed: too many at once */
	uint32_t found;   /* races so far: whether a delay was of use */
	uint32_t dumped;
	struct races_region region[RACES_REGIONS];
	uint32_t functions;
	struct races_function function[RACES_FUNCTIONS];
	uint32_t learned; /* entries */
	struct races_instruction instruction[RACES_LEARNED];
};

struct session;
struct session_module;

/* What an instruction is called in all runs. */
uint64_t races_key(const struct session_module *module, uint64_t address);
/* What is known of it; null if nothing is, or if there is no room to `make` it. */
struct races_instruction *races_instruction(struct session_races *races, uint64_t key, bool make);
/* Does it take or free locks that count? Counters are changed by others about every other time. */
bool races_is_of_lock(const struct races_instruction *instruction);
/* Races about words of which some run has found out only later that they are such locks. */
void races_drop_locks(struct session *session);

/* What a race is: bits of raw_finding.race. */
enum races_trait {
	RACES_OVERLAPPED = 1,     /* regions were open at the same time: pifr */
	RACES_UNORDERED = 2,      /* nothing orders the load behind the persist: hb */
	RACES_UNSYNCHRONISED = 4, /* nothing orders load and store either */
	RACES_READ_IT = 8,        /* the load came when the store was not persistent */
	RACES_FED_STORE = 16,     /* … and then the thread stored to PM, before it was */
	RACES_LEFT = 32,          /* … or told somebody outside */
	RACES_FED_VALUE = 64, /* FED_STORE: and what it stored is what it had read, or lies there */
};

#endif
