/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a prebuilt library writes to PM before the crash. It has no hooks, so memory is compared
 * with a copy of what is known, at each call of one of its functions and at each return; what is
 * different goes into the log as stores that are durable at once: the library is trusted.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/execution.h"

#define COPY_BASE 0x240000000000ull /* of the window, at the same offsets */
enum { PAGE = 4096, WORD = 8 };

static bool on;

static unsigned char *copy_of(uint64_t address)
{
	return (unsigned char *)(address - SESSION_WINDOW + COPY_BASE);
}

void foreign_stored(uint64_t address, uint64_t size)
{
	if (on)
		plain_copy(copy_of(address), (const void *)address, size);
}

/* Before a library with transactions makes anything durable it waits for what was flushed. */
static void note(uint64_t start, uint64_t end, bool *first)
{
	if (runtime_thread.changed_files)
		*first = runtime_thread.changed_files = false;
	if (*first)
		log_event(HISTORY_FENCE, 0, runtime_thread.shared->lines.id, 0, 0, 0, NULL);
	log_event(HISTORY_STORE, HISTORY_FOREIGN | HISTORY_LIBRARY | (*first ? 0 : HISTORY_JOINED),
		  0, start, end - start, 0, (const void *)start);
	plain_copy(copy_of(start), (const void *)start, end - start);
	*first = false;
}

static void compare_page(uint64_t page, bool *first)
{
	const uint64_t *now = (const uint64_t *)page, *known = (const uint64_t *)copy_of(page);

	for (unsigned i = 0; i < PAGE / WORD; i++) {
		unsigned from = i;

		while (i < PAGE / WORD && now[i] != known[i])
			i++;
		if (i > from)
			note(page + from * WORD, page + i * WORD, first);
	}
}

static bool same_page(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	uint64_t different = 0;

	for (unsigned i = 0; i < PAGE / WORD; i++)
		different |= x[i] ^ y[i];
	return !different;
}

static void start(void)
{
	on = syscall(SYS_mmap, COPY_BASE, SESSION_WINDOW_SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		     0L) == (long)COPY_BASE;
	runtime_session->executions.prebuilt = true;
	session_limit(runtime_session, thread_owner(),
		      "a prebuilt library writes to PM: its stores were found by comparing memory "
		      "after each of its calls, and are taken to be durable at once");
}

/* Only pages that this process has touched can be different. */
static void compare_range(int pagemap, uint64_t begin, uint64_t end, bool *first)
{
	enum { CHUNK = 1024 };
	const uint64_t present = 1ull << 63;
	uint64_t entry[CHUNK];

	for (uint64_t page = begin; page < end; page += CHUNK * PAGE) {
		ssize_t got = syscall(SYS_pread64, pagemap, entry, sizeof(entry), page / PAGE * 8);

		for (ssize_t n = 0; n < got / 8 && page + n * PAGE < end; n++) {
			uint64_t at = page + n * PAGE;

			if (entry[n] & present && !same_page((void *)at, copy_of(at)))
				compare_page(at, first);
		}
	}
}

void foreign_compare(void)
{
	struct session *session = runtime_session;
	bool first = true;
	int pagemap;

	if (!thread_enter())
		return;
	if (!on)
		start();
	pagemap = syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	for (uint32_t i = 0; i < session->ranges && pagemap >= 0; i++) {
		const struct session_range *range = &session->range[i];

		if (range->file && range->image == runtime_image && range->protection & PROT_READ)
			compare_range(pagemap, range->start, range->end, &first);
	}
	syscall(SYS_close, pagemap);
	if (runtime_thread.releases && !first)
		log_event(HISTORY_RELEASE, 0, runtime_thread.shared->lines.id, 0, 0, 0, NULL);
	runtime_thread.releases &= first;
	thread_leave();
}
