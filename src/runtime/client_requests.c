/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmemcheck's client requests. PMDK and other programs use them to say which bytes of PM are
 * volatile on purpose, and what they persist by other means. Valgrind's question whether it is
 * there is answered yes to libpmem* only, because that makes PMDK announce what it does; any
 * other program would behave differently for no gain.
 */
#include "races/races.h"
#include "runtime/hooks.h"

#define TOOL_BASE(a, b) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16)

enum request {
	RUNNING_ON_VALGRIND = 0x1001,
	REGISTER_MAPPING = TOOL_BASE('P', 'C'),
	REGISTER_FILE,
	REMOVE_MAPPING,
	IS_MAPPING,
	PRINT_MAPPINGS,
	DO_FLUSH,
	DO_FENCE,
	SET_CLEAN = TOOL_BASE('P', 'C') + 17,
};

/* PMDK registers a variable of its own and asks whether that worked. */
static uint64_t registered_outside;

/*
 * A whole mapping is removed just before it is unmapped: that is where it will be judged. Less
 * than a page is volatile data inside PM: locks, run-time state.
 */
static void exclude(struct session_thread *thread, uint64_t address, uint64_t size, bool on)
{
	if (on && size >= 4096 && address % 4096 == 0)
		return;
	lines_exclude(&runtime_session->lines, &thread->lines, address, size, on);
	if (on && runtime_races)
		regions_exclude((void *)address, size);
	if (on)
		tell(thread, PERDURE_EVENT_VOLATILE, 0, (void *)address, size, 0);
}

static void flush(struct session_thread *thread, uint64_t address, uint64_t size, uint32_t stack)
{
	uint64_t line = address & ~(uint64_t)(PERDURE_LINE_SIZE - 1);

	for (; line < address + size; line += PERDURE_LINE_SIZE) {
		lines_flush(&runtime_session->lines, &thread->lines, line, stack, LINES_ANNOUNCED,
			    NULL);
		tell(thread, PERDURE_EVENT_FLUSH, PERDURE_CLWB, (void *)line, 0, stack);
	}
	__perdure_inline.pending = thread->lines.flushes != 0;
}

static void handle(struct session_thread *thread, uint32_t request, uint64_t address, uint64_t size,
		   const struct frame *frame)
{
	struct lines *lines = &runtime_session->lines;

	switch (request) {
	case REGISTER_MAPPING:
	case REMOVE_MAPPING:
		exclude(thread, address, size, request == REMOVE_MAPPING);
		break;
	case DO_FLUSH:
		flush(thread, address, size, stack_capture(frame));
		break;
	case SET_CLEAN:
		lines_forget(lines, &thread->lines, address, size);
		tell(thread, PERDURE_EVENT_PERSIST, 0, (void *)address, size, 0);
		break;
	default:
		break;
	}
}

enum client_need client_request_needs(const volatile uint64_t *arguments)
{
	switch ((uint32_t)arguments[0]) {
	case RUNNING_ON_VALGRIND:
		return CLIENT_ALL;
	case DO_FLUSH:
		return in_window((void *)arguments[1]) ? CLIENT_STACK : CLIENT_NOTHING;
	case REGISTER_MAPPING:
	case REMOVE_MAPPING:
	case IS_MAPPING:
	case DO_FENCE:
	case SET_CLEAN:
		return CLIENT_LITTLE;
	default:
		return CLIENT_NOTHING;
	}
}

uint64_t client_request(uint64_t standard, const volatile uint64_t *arguments,
			const struct frame *frame)
{
	uint64_t address = arguments[1], size = arguments[2];
	uint32_t request = arguments[0];
	struct session_thread *thread;

	if (!runtime_session)
		return standard;
	if (request == RUNNING_ON_VALGRIND)
		return modules_is_libpmem(frame) ? 1 : standard;
	if (request == IS_MAPPING)
		return in_window((void *)address) || address == registered_outside;
	if (request == REGISTER_MAPPING && !in_window((void *)address))
		registered_outside = address;
	if (request == DO_FENCE) {
		thread = thread_enter();
		if (thread) {
			lines_fence(&runtime_session->lines, &thread->lines,
				    thread->lines.last_fence, false);
			__perdure_inline.pending = 0;
			tell(thread, PERDURE_EVENT_FENCE, PERDURE_SFENCE, NULL, 0, 0);
			thread_leave();
		}
		return standard;
	}
	if (!in_window((void *)address) || !(thread = thread_enter()))
		return standard;
	handle(thread, request, (uintptr_t)place_in_window((void *)address), size, frame);
	thread_leave();
	return standard;
}

PUBLIC uint64_t __perdure_client_request(uint64_t standard, const volatile uint64_t *arguments);

PUBLIC uint64_t __perdure_client_request(uint64_t standard, const volatile uint64_t *arguments)
{
	return client_request(standard, arguments, FRAME);
}
