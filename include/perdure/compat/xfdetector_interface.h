/* SPDX-License-Identifier: BSD-3-Clause */
/* XFDetector's annotations, for programs that were written for it: perdure-cc finds this file. */
#ifndef PERDURE_XFDETECTOR_INTERFACE_H
#define PERDURE_XFDETECTOR_INTERFACE_H

#include <perdure/perdure.h>

#ifndef PRE_FAILURE
#define PRE_FAILURE PERDURE_PRE
#define POST_FAILURE PERDURE_POST
#endif

/* As the tool has them. */
#define XFDetector_RoIBegin(condition, stage) perdure_roi_begin(condition, stage)
#define XFDetector_RoIEnd(condition, stage) perdure_roi_end(condition, stage)
#define XFDetector_addFailurePoint(condition) perdure_crash_point(condition)
#define XFDetector_skipFailureBegin(condition) perdure_skip_crash_begin(condition)
#define XFDetector_skipFailureEnd(condition) perdure_skip_crash_end(condition)
#define XFDetector_skipDetectionBegin(condition, stage) perdure_skip_check_begin(condition, stage)
#define XFDetector_skipDetectionEnd(condition, stage) perdure_skip_check_end(condition, stage)
#define XFDetector_complete(condition, stage) perdure_complete(condition, stage)
#define XFDetector_addCommitVar(variable, size) perdure_commit_var(variable, size)
#define XFDetector_addCommitRange(variable, address, size)                                         \
	perdure_commit_range(variable, address, size)

/* As the paper has them. */
#define RoIBegin(condition, stage) perdure_roi_begin(condition, stage)
#define RoIEnd(condition, stage) perdure_roi_end(condition, stage)
#define completeDetection(condition, stage) perdure_complete(condition, stage)
#define skipFailureBegin(condition) perdure_skip_crash_begin(condition)
#define skipFailureEnd(condition) perdure_skip_crash_end(condition)
#define addFailurePoint(condition) perdure_crash_point(condition)
#define skipDetectionBegin(condition, stage) perdure_skip_check_begin(condition, stage)
#define skipDetectionEnd(condition, stage) perdure_skip_check_end(condition, stage)
#define addCommitVar(variable) perdure_commit_var(&(variable), sizeof(variable))
#define addCommitRange(variable, address, size) perdure_commit_range(&(variable), address, size)

#endif
