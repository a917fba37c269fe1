/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Annotations for programs that are checked with Perdure. All of them do nothing when the program
 * runs without it: they are calls of weak symbols that the runtime defines, so an annotated program
 * compiles and links anywhere, with any compiler. docs/annotations.md tells when to use which.
 *
 * `cond` of a function says whether it takes effect. `stage` says when: PERDURE_PRE before the
 * crash, PERDURE_POST after it, or both.
 */
#ifndef PERDURE_H
#define PERDURE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum perdure_when { PERDURE_PRE = 1, PERDURE_POST = 2 };

#define PERDURE_HOOK __attribute__((weak, visibility("default")))

enum perdure_annotation {
	PERDURE_ANNOTATE_ROI_BEGIN = 1,
	PERDURE_ANNOTATE_ROI_END,
	PERDURE_ANNOTATE_COMPLETE,
	PERDURE_ANNOTATE_CRASH_POINT,
	PERDURE_ANNOTATE_SKIP_CRASH_BEGIN,
	PERDURE_ANNOTATE_SKIP_CRASH_END,
	PERDURE_ANNOTATE_SKIP_CHECK_BEGIN,
	PERDURE_ANNOTATE_SKIP_CHECK_END,
	PERDURE_ANNOTATE_COMMIT_VAR,
	PERDURE_ANNOTATE_COMMIT_RANGE,
	PERDURE_ANNOTATE_CHECKSUM_RANGE,
	PERDURE_ANNOTATE_REGISTER,
	PERDURE_ANNOTATE_UNREGISTER,
	PERDURE_ANNOTATE_FOUND,
	PERDURE_ANNOTATE_VERIFY_BEGIN,
	PERDURE_ANNOTATE_VERIFY_END,
};

PERDURE_HOOK void __perdure_annotate(int annotation, int stage, const void *p, const void *q,
				     size_t n);
PERDURE_HOOK int __perdure_stage(void);
PERDURE_HOOK void *__perdure_root_get(unsigned id);
PERDURE_HOOK void __perdure_root_set(unsigned id, void *p);
PERDURE_HOOK void __perdure_symbolic(void *p, size_t n, const char *name);
PERDURE_HOOK void __perdure_assume(int cond);

#define PERDURE_ANNOTATE(annotation, stage, p, q, n)                                               \
	do {                                                                                       \
		if (__perdure_annotate)                                                            \
			__perdure_annotate(annotation, stage, p, q, n);                            \
	} while (0)

/* 0 before the first crash, then 1, 2, … */
static inline int perdure_stage(void)
{
	return __perdure_stage ? __perdure_stage() : 0;
}

/* The region of interest: if there is any, only what happens inside is judged and crashed. */
static inline void perdure_roi_begin(int cond, int stage)
{
	if (cond)
		PERDURE_ANNOTATE(PERDURE_ANNOTATE_ROI_BEGIN, stage, NULL, NULL, 0);
}

static inline void perdure_roi_end(int cond, int stage)
{
	if (cond)
		PERDURE_ANNOTATE(PERDURE_ANNOTATE_ROI_END, stage, NULL, NULL, 0);
}

/* The end of detection: before the crash no crash points follow, after it the recovery is over. */
static inline void perdure_complete(int cond, int stage)
{
	if (cond)
		PERDURE_ANNOTATE(PERDURE_ANNOTATE_COMPLETE, stage, NULL, NULL, 0);
}

/* One more crash point, here. */
static inline void perdure_crash_point(int cond)
{
	if (cond)
		PERDURE_ANNOTATE(PERDURE_ANNOTATE_CRASH_POINT, PERDURE_PRE, NULL, NULL, 0);
}

/* No crash points in here. */
static inline void perdure_skip_crash_begin(int cond)
{
	if (cond)
		PERDURE_ANNOTATE(PERDURE_ANNOTATE_SKIP_CRASH_BEGIN, PERDURE_PRE, NULL, NULL, 0);
}

static inline void perdure_skip_crash_end(int cond)
{
	if (cond)
		PERDURE_ANNOTATE(PERDURE_ANNOTATE_SKIP_CRASH_END, PERDURE_PRE, NULL, NULL, 0);
}

/* What is read in here is not judged. */
static inline void perdure_skip_check_begin(int cond, int stage)
{
	if (cond)
		PERDURE_ANNOTATE(PERDURE_ANNOTATE_SKIP_CHECK_BEGIN, stage, NULL, NULL, 0);
}

static inline void perdure_skip_check_end(int cond, int stage)
{
	if (cond)
		PERDURE_ANNOTATE(PERDURE_ANNOTATE_SKIP_CHECK_END, stage, NULL, NULL, 0);
}

/* A variable that says what is valid: recovery may read it at any time, and writing it commits. */
static inline void perdure_commit_var(const void *var, size_t n)
{
	PERDURE_ANNOTATE(PERDURE_ANNOTATE_COMMIT_VAR, PERDURE_PRE | PERDURE_POST, var, NULL, n);
}

/* The data that it speaks about; without any, the only commit variable speaks about all of PM. */
static inline void perdure_commit_range(const void *var, const void *p, size_t n)
{
	PERDURE_ANNOTATE(PERDURE_ANNOTATE_COMMIT_RANGE, PERDURE_PRE | PERDURE_POST, var, p, n);
}

/* Data that recovery validates as a whole before it uses it. */
static inline void perdure_checksum_range(const void *p, size_t n)
{
	PERDURE_ANNOTATE(PERDURE_ANNOTATE_CHECKSUM_RANGE, PERDURE_PRE | PERDURE_POST, p, NULL, n);
}

/* The code that validates such data: what it reads is found new, old or torn, as a whole. */
static inline void perdure_verify_begin(void)
{
	PERDURE_ANNOTATE(PERDURE_ANNOTATE_VERIFY_BEGIN, PERDURE_POST, NULL, NULL, 0);
}

static inline void perdure_verify_end(void)
{
	PERDURE_ANNOTATE(PERDURE_ANNOTATE_VERIFY_END, PERDURE_POST, NULL, NULL, 0);
}

/* Memory to be treated as PM. */
static inline void perdure_register(void *p, size_t n)
{
	PERDURE_ANNOTATE(PERDURE_ANNOTATE_REGISTER, PERDURE_PRE | PERDURE_POST, p, NULL, n);
}

static inline void perdure_unregister(void *p, size_t n)
{
	PERDURE_ANNOTATE(PERDURE_ANNOTATE_UNREGISTER, PERDURE_PRE | PERDURE_POST, p, NULL, n);
}

/* Pointers that survive a crash, for programs whose PM is the heap. Setting one persists it. */
static inline void *perdure_root_get(unsigned id)
{
	return __perdure_root_get ? __perdure_root_get(id) : NULL;
}

static inline void perdure_root_set(unsigned id, void *p)
{
	if (__perdure_root_set)
		__perdure_root_set(id, p);
}

/* For perdure explore. */
static inline void perdure_symbolic(void *p, size_t n, const char *name)
{
	if (__perdure_symbolic)
		__perdure_symbolic(p, n, name);
}

/* Any number may be a condition, not only those that fit into an int. */
#ifdef __cplusplus
static inline void perdure_assume(bool cond)
#else
static inline void perdure_assume(_Bool cond)
#endif
{
	if (__perdure_assume)
		__perdure_assume(cond);
}

/* Raises a finding of kind `custom` here. */
static inline void perdure_found(const char *message)
{
	PERDURE_ANNOTATE(PERDURE_ANNOTATE_FOUND, PERDURE_PRE | PERDURE_POST, message, NULL, 0);
}

#ifdef __cplusplus
}
#endif

#endif
