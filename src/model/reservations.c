/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/reservations.h"

#include "model/spin.h"

void reservations_add(struct reservations *r, uint32_t owner, const struct reservation *entry)
{
	bool locked = spin_lock(&r->lock, owner);
	uint32_t i;

	for (i = 0; i < r->used; i++)
		if (!r->entry[i].process ||
		    (r->entry[i].process == entry->process && r->entry[i].key == entry->key))
			break;
	if (i < RESERVATIONS) {
		r->entry[i] = *entry;
		if (i == r->used)
			r->used++;
	} else {
		r->lost = 1;
	}
	if (locked)
		spin_unlock(&r->lock);
}

/* An object that is gone, or that never came to be, has nothing to lose. */
static void settle(struct reservation *entry, struct lines *lines, struct lines_thread *thread,
		   enum reservations_end how)
{
	if (entry->frees == (how == RESERVATIONS_PUBLISH))
		lines_forget(lines, thread, entry->start, entry->end - entry->start);
	entry->process = 0;
}

static struct reservation *find(struct reservations *r, uint32_t process, uint64_t key)
{
	for (uint32_t i = 0; i < r->used; i++)
		if (r->entry[i].process == process + 1 && r->entry[i].key == key)
			return &r->entry[i];
	return NULL;
}

void reservations_end(struct reservations *r, struct lines *lines, struct lines_thread *thread,
		      uint32_t process, uint64_t key, enum reservations_end how)
{
	bool locked = spin_lock(&r->lock, thread->owner);
	struct reservation *entry = find(r, process, key);

	if (entry)
		settle(entry, lines, thread, how);
	if (locked)
		spin_unlock(&r->lock);
}

void reservations_publish_later(struct reservations *r, struct lines_thread *thread,
				uint32_t process, uint64_t key)
{
	bool locked = spin_lock(&r->lock, thread->owner);
	struct reservation *entry = find(r, process, key);

	if (entry)
		entry->publishing = thread->id;
	if (locked)
		spin_unlock(&r->lock);
}

void reservations_finish(struct reservations *r, struct lines *lines, struct lines_thread *thread,
			 bool commit)
{
	bool locked;

	if (!r->used)
		return;
	locked = spin_lock(&r->lock, thread->owner);
	for (uint32_t i = 0; i < r->used; i++)
		if (r->entry[i].process && r->entry[i].publishing == thread->id)
			settle(&r->entry[i], lines, thread,
			       commit ? RESERVATIONS_PUBLISH : RESERVATIONS_CANCEL);
	if (locked)
		spin_unlock(&r->lock);
}

void reservations_drop(struct reservations *r, struct lines *lines, struct lines_thread *thread,
		       uint32_t process, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < r->used; i++)
		if (r->entry[i].process == process + 1 && r->entry[i].start >= start &&
		    r->entry[i].start < end)
			settle(&r->entry[i], lines, thread, RESERVATIONS_CANCEL);
}

uint64_t reservations_until(const struct reservations *r, uint32_t process, uint64_t address)
{
	for (uint32_t i = 0; i < r->used; i++) {
		const struct reservation *entry = &r->entry[i];

		if (entry->process == process + 1 && !entry->frees && address >= entry->start &&
		    address < entry->end)
			return entry->end;
	}
	return address;
}
