/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways in which a recovery can fail. */
#ifndef DRIVE_SYMPTOMS_H
#define DRIVE_SYMPTOMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drive/memo.h"

/* Signals are symptoms under their own numbers. */
enum symptom {
	SYMPTOM_NONE,
	SYMPTOM_HANG = 100, /* uses CPU time without end */
	SYMPTOM_BLOCKED,    /* waits for something that does not come */
	SYMPTOM_DEADLOCK,   /* its threads wait for each other */
	SYMPTOM_MEMORY,
	SYMPTOM_OUTPUT, /* fills the disk */
	SYMPTOM_PROCESSES,
	SYMPTOM_SANITIZER,
	SYMPTOM_BAD_EXIT,     /* a status that the user calls bad */
	SYMPTOM_INCONSISTENT, /* the user's checker says so */
};

/* In words, for a report. Allocated. */
char *symptom_text(const struct outcome *outcome);

/* What sanitizers print before they end a program: the first line of it, or null. Allocated. */
char *symptom_sanitizer(const char *output);

#endif
