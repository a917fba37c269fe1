/* SPDX-License-Identifier: BSD-3-Clause */
/* What the program itself says about its persistent memory: perdure/perdure.h. */
#include "perdure/perdure.h"

#include <string.h>
#include <unistd.h>

#include "checkers/checkers.h"
#include "model/spin.h"
#include "runtime/execution.h"

static int now(void)
{
	return runtime_recovers ? PERDURE_POST : PERDURE_PRE;
}

static void add_range(struct view_range *list, uint32_t *count, const void *p, size_t n)
{
	struct executions *all = &runtime_session->executions;
	struct view_range range = { (uintptr_t)p, (uintptr_t)p + n };

	for (uint32_t i = 0; i < *count; i++)
		if (list[i].start == range.start && list[i].end == range.end)
			return;
	if (*count == EXECUTION_RANGES) {
		all->ranges_lost = 1;
		return;
	}
	list[*count] = range;
	__atomic_store_n(count, *count + 1, __ATOMIC_RELEASE);
}

/* One variable for each byte. */
static void add_cover(const void *variable, const void *p, size_t n)
{
	struct executions *all = &runtime_session->executions;
	struct execution_cover cover = { (uintptr_t)variable, { (uintptr_t)p, (uintptr_t)p + n } };

	for (uint32_t i = 0; i < all->covers; i++) {
		const struct execution_cover *other = &all->cover[i];

		if (other->range.start >= cover.range.end || other->range.end <= cover.range.start)
			continue;
		if (other->variable == cover.variable && other->range.start == cover.range.start &&
		    other->range.end == cover.range.end)
			return;
		if (other->variable != cover.variable)
			all->ranges_overlap = 1;
	}
	if (all->covers == EXECUTION_RANGES) {
		all->ranges_lost = 1;
		return;
	}
	all->cover[all->covers] = cover;
	__atomic_store_n(&all->covers, all->covers + 1, __ATOMIC_RELEASE);
}

static void note(enum history_kind kind, const struct frame *frame)
{
	struct session_thread *thread = runtime_logs ? thread_enter() : NULL;

	if (!thread)
		return;
	log_event(kind, 0, thread->lines.id, 0, 0, stack_capture(frame), NULL);
	thread_leave();
}

static void skip_check(bool begin)
{
	if (runtime_recovers)
		recovery_skip(begin);
	else
		checkers_mute(begin);
}

static void region_of_interest(bool begin, const struct frame *frame)
{
	if (runtime_recovers)
		recovery_interest(begin);
	else
		note(begin ? HISTORY_INTEREST : HISTORY_DISINTEREST, frame);
}

static void complete(const struct frame *frame)
{
	if (runtime_recovers)
		_exit(0); /* what follows is no recovery any more */
	note(HISTORY_QUIET, frame);
}

static void found(const char *message, const struct frame *frame)
{
	struct session *session = runtime_session;
	struct session_thread *thread = thread_enter();
	struct session_custom *custom;
	uint32_t index = 0;
	bool locked;

	if (!thread)
		return;
	locked = spin_lock(&session->lock, thread_owner());
	while (index < session->customs &&
	       strncmp(session->custom[index].message, message, sizeof(custom->message) - 1) != 0)
		index++;
	if (index < SESSION_CUSTOM) {
		custom = &session->custom[index];
		if (index == session->customs) {
			strcpy(custom->oracle, "program");
			strncpy(custom->message, message, sizeof(custom->message) - 1);
			strcpy(custom->role, "store");
			session->customs++;
		}
		checkers_report(&(struct raw_finding){ .kind = KIND_CUSTOM,
						       .stack = stack_capture(frame),
						       .thread = thread->lines.id,
						       .custom = index + 1 },
				thread_owner());
	}
	if (locked)
		spin_unlock(&session->lock);
	thread_leave();
}

static void register_memory(const void *p)
{
	if (!in_window(p))
		session_limit(runtime_session, thread_owner(),
			      "perdure_register: memory that no PM file is mapped to cannot be "
			      "followed; name the file with --pm, or use --pm-heap");
}

PUBLIC void __perdure_annotate(int annotation, int stage, const void *p, const void *q, size_t n)
{
	struct executions *all;

	if (!runtime_session)
		return;
	all = &runtime_session->executions;
	if (annotation == PERDURE_ANNOTATE_ROI_BEGIN && stage & PERDURE_POST)
		all->interest_after = 1;
	if (!(stage & now()))
		return;
	switch (annotation) {
	case PERDURE_ANNOTATE_ROI_BEGIN:
	case PERDURE_ANNOTATE_ROI_END:
		region_of_interest(annotation == PERDURE_ANNOTATE_ROI_BEGIN, FRAME);
		break;
	case PERDURE_ANNOTATE_COMPLETE:
		complete(FRAME);
		break;
	case PERDURE_ANNOTATE_CRASH_POINT:
		note(HISTORY_CRASH, FRAME);
		break;
	case PERDURE_ANNOTATE_SKIP_CRASH_BEGIN:
		note(HISTORY_QUIET, FRAME);
		break;
	case PERDURE_ANNOTATE_SKIP_CRASH_END:
		note(HISTORY_LOUD, FRAME);
		break;
	case PERDURE_ANNOTATE_SKIP_CHECK_BEGIN:
	case PERDURE_ANNOTATE_SKIP_CHECK_END:
		skip_check(annotation == PERDURE_ANNOTATE_SKIP_CHECK_BEGIN);
		break;
	case PERDURE_ANNOTATE_VERIFY_BEGIN:
	case PERDURE_ANNOTATE_VERIFY_END:
		recovery_verify(annotation == PERDURE_ANNOTATE_VERIFY_BEGIN, NULL);
		break;
	case PERDURE_ANNOTATE_COMMIT_VAR:
		add_range(all->commit, &all->commits, p, n);
		break;
	case PERDURE_ANNOTATE_COMMIT_RANGE:
		add_cover(p, q, n);
		break;
	case PERDURE_ANNOTATE_CHECKSUM_RANGE:
		add_range(all->checksum, &all->checksums, p, n);
		break;
	case PERDURE_ANNOTATE_REGISTER:
		register_memory(p);
		break;
	case PERDURE_ANNOTATE_FOUND:
		found(p, FRAME);
		break;
	default:
		break;
	}
}

PUBLIC int __perdure_stage(void)
{
	return runtime_execution ? (int)runtime_execution->stage : 0;
}
