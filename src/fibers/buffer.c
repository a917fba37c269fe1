/* SPDX-License-Identifier: BSD-3-Clause */
#include "fibers/buffer.h"

#include "runtime/execution.h"
#include "runtime/hooks.h"

enum { ENTRIES = 32 };

enum kind { STORE, ORDINARY_STORE, FLUSH, SFENCE };

struct entry {
	enum kind kind;
	bool open; /* the program's own instruction is about to store the new value */
	bool idle; /* SFENCE */
	uint32_t size, descriptor, stack;
	void *address;
	uint64_t before, value;
	const char *place;
};

struct buffer {
	unsigned count;
	uint64_t chain; /* of the last hook, without the number of stores */
	unsigned chain_stores;
	struct entry entry[ENTRIES];
};

bool buffers_on;
static __thread struct buffer own __attribute__((tls_model("initial-exec")));

static uint64_t load(const void *p, uint32_t size)
{
	uint64_t value = 0;

	plain_copy(&value, p, size);
	return value;
}

/* ---- memory ---- */

static void settle(void)
{
	struct entry *last = own.count ? &own.entry[own.count - 1] : NULL;

	if (!last || !last->open)
		return;
	last->value = load(last->address, last->size);
	last->open = false;
}

static void take_back(void)
{
	settle();
	for (unsigned i = own.count; i-- > 0;) {
		const struct entry *entry = &own.entry[i];

		if (entry->kind <= ORDINARY_STORE)
			plain_copy(entry->address, &entry->before, entry->size);
	}
}

static void put_there(struct entry *entry)
{
	if (entry->kind > ORDINARY_STORE)
		return;
	entry->before = load(entry->address, entry->size);
	plain_copy(entry->address, &entry->value, entry->size);
}

/* The oldest `count` reach memory, with their events. */
static void drain(unsigned count)
{
	runtime_thread.buffered = false; /* what follows is not waiting any more */
	for (unsigned i = 0; i < count; i++) {
		struct entry *entry = &own.entry[i];

		switch (entry->kind) {
		case STORE:
			hook_commit_store(entry->address, entry->value, entry->descriptor,
					  entry->place, entry->stack);
			break;
		case ORDINARY_STORE:
			put_there(entry);
			if (causality_on)
				causality_stored(runtime_thread.shared->lines.id, entry->address,
						 entry->descriptor);
			break;
		case FLUSH:
			hook_commit_flush(entry->address, entry->descriptor, entry->stack);
			break;
		case SFENCE:
			hook_commit_sfence(entry->idle, entry->stack);
			break;
		}
	}
	for (unsigned i = count; i < own.count; i++)
		own.entry[i - count] = own.entry[i];
	own.count -= count;
	runtime_thread.buffered = own.count != 0;
}

/*
 * The program may have stored to ordinary memory since, unseen, over what waits here: its own last
 * store stays.
 */
void buffer_drain(void)
{
	uint64_t now[ENTRIES];
	unsigned count = own.count;

	if (!count)
		return;
	settle();
	for (unsigned i = 0; i < count; i++)
		if (own.entry[i].kind == ORDINARY_STORE)
			now[i] = load(own.entry[i].address, own.entry[i].size);
	take_back();
	drain(count);
	for (unsigned i = 0; i < count; i++)
		if (own.entry[i].kind == ORDINARY_STORE)
			plain_copy(own.entry[i].address, &now[i], own.entry[i].size);
}

unsigned buffer_waiting(void)
{
	return own.count;
}

void buffer_leave(unsigned kept)
{
	if (!own.count)
		return;
	take_back();
	drain(own.count - kept);
}

void buffer_enter(void)
{
	for (unsigned i = 0; i < own.count; i++)
		put_there(&own.entry[i]);
}

/* ---- hooks ---- */

void buffer_continue(uint64_t descriptor)
{
	uint64_t chain = descriptor >> PERDURE_CHAIN_SHIFT;
	unsigned stores = chain & PERDURE_CHAIN_STORES;

	settle();
	chain &= ~(uint64_t)PERDURE_CHAIN_STORES;
	if (!stores || chain != own.chain || stores != own.chain_stores)
		buffer_drain();
	own.chain = chain;
	own.chain_stores = stores;
}

static struct entry *add(enum kind kind)
{
	struct entry *entry;

	settle();
	if (own.count == ENTRIES)
		buffer_drain();
	entry = &own.entry[own.count++];
	*entry = (struct entry){ .kind = kind };
	runtime_thread.buffered = true;
	return entry;
}

void buffer_store(void *p, uint64_t value, uint32_t descriptor, const char *place, uint32_t stack)
{
	struct entry *entry = add(STORE);

	entry->address = p;
	entry->size = descriptor & PERDURE_SIZE_MASK;
	entry->value = value;
	entry->descriptor = descriptor;
	entry->place = place;
	entry->stack = stack;
	put_there(entry);
	own.chain_stores++;
}

void buffer_ordinary_store(void *p, uint32_t size, uint32_t descriptor)
{
	struct entry *entry = add(ORDINARY_STORE);

	entry->address = p;
	entry->size = size;
	entry->before = load(p, size);
	entry->descriptor = descriptor;
	entry->open = true;
	own.chain_stores++;
}

void buffer_flush(const void *p, uint32_t kind, uint32_t stack)
{
	struct entry *entry = add(FLUSH);

	entry->address = (void *)p;
	entry->descriptor = kind;
	entry->stack = stack;
}

void buffer_sfence(bool idle, uint32_t stack)
{
	struct entry *entry = add(SFENCE);

	entry->idle = idle;
	entry->stack = stack;
}
