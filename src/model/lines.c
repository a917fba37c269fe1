/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/lines.h"

#include "model/mix.h"
#include "model/spin.h"

enum { REFILL = 64, KEEP = 256 };

static const struct lines_listener *const *listeners;
static bool overwriting_is_heard;

#define TELL(event, ...)                                                                           \
	for (const struct lines_listener *const *l = listeners; l && *l; l++)                      \
		if ((*l)->event)                                                                   \
	(*l)->event(__VA_ARGS__)

void lines_listen(const struct lines_listener *const *list)
{
	listeners = list;
	overwriting_is_heard = false;
	for (; list && *list; list++)
		overwriting_is_heard |= (*list)->overwritten != NULL;
}

/* ---- pools: a free list a thread, refilled from and spilled to a shared one ---- */

static uint32_t *store_link(struct lines *lines, uint32_t index)
{
	return &lines->store[index].next;
}

static uint32_t *flush_link(struct lines *lines, uint32_t index)
{
	return &lines->flush[index].next_in_line;
}

typedef uint32_t *(*link_fn)(struct lines *lines, uint32_t index);

static void pool_refill(struct lines *lines, struct lines_pool *pool, link_fn link,
			const struct lines_thread *thread, uint32_t *list, uint32_t *count)
{
	bool locked = spin_lock(&pool->lock, thread->owner);

	for (int i = 0; i < REFILL; i++) {
		uint32_t index = pool->first_free;

		if (index) {
			pool->first_free = *link(lines, index);
			pool->free_count--;
		} else if (pool->used + 1 < pool->capacity) {
			index = ++pool->used;
		} else {
			break;
		}
		*link(lines, index) = *list;
		*list = index;
		++*count;
	}
	if (locked)
		spin_unlock(&pool->lock);
}

static void pool_spill(struct lines *lines, struct lines_pool *pool, link_fn link,
		       const struct lines_thread *thread, uint32_t *list, uint32_t *count)
{
	bool locked = spin_lock(&pool->lock, thread->owner);

	for (; *count > KEEP / 2; --*count) {
		uint32_t index = *list;

		*list = *link(lines, index);
		*link(lines, index) = pool->first_free;
		pool->first_free = index;
		pool->free_count++;
	}
	if (locked)
		spin_unlock(&pool->lock);
}

static struct lines_store *store_at(const struct lines *lines, const struct lines_line *line,
				    uint32_t index)
{
	return index == LINES_OWN ? (struct lines_store *)&line->own : &lines->store[index];
}

static uint32_t store_new(struct lines *lines, struct lines_thread *thread,
			  const struct lines_line *line)
{
	uint32_t index;

	if (!line->own.bytes)
		return LINES_OWN;

	if (!thread->free_stores)
		pool_refill(lines, &lines->stores, store_link, thread, &thread->free_stores,
			    &thread->free_stores_count);
	index = thread->free_stores;
	if (!index) {
		lines->dropped++;
		return 0;
	}
	thread->free_stores = lines->store[index].next;
	thread->free_stores_count--;
	return index;
}

/* A null thread is the coordinator's after everybody is gone: nothing needs to be reused. */
static void store_free(struct lines *lines, struct lines_thread *thread, struct lines_line *line,
		       uint32_t index)
{
	if (index == LINES_OWN)
		line->own.bytes = 0;
	if (index == LINES_OWN || !thread)
		return;
	lines->store[index].next = thread->free_stores;
	thread->free_stores = index;
	if (++thread->free_stores_count > KEEP)
		pool_spill(lines, &lines->stores, store_link, thread, &thread->free_stores,
			   &thread->free_stores_count);
}

static uint32_t flush_new(struct lines *lines, struct lines_thread *thread)
{
	uint32_t index;

	if (!thread->free_flushes)
		pool_refill(lines, &lines->flushes, flush_link, thread, &thread->free_flushes,
			    &thread->free_flushes_count);
	index = thread->free_flushes;
	if (!index) {
		lines->dropped++;
		return 0;
	}
	thread->free_flushes = lines->flush[index].next_in_line;
	thread->free_flushes_count--;
	return index;
}

static void flush_free(struct lines *lines, struct lines_thread *thread, uint32_t index)
{
	lines->flush[index].next_in_line = thread->free_flushes;
	thread->free_flushes = index;
	if (++thread->free_flushes_count > KEEP)
		pool_spill(lines, &lines->flushes, flush_link, thread, &thread->free_flushes,
			   &thread->free_flushes_count);
}

/* ---- lines ---- */

static uint64_t line_index(const struct lines *lines, uint64_t address)
{
	return (address - lines->base) / LINES_LINE_SIZE;
}

static uint64_t line_address(const struct lines *lines, uint64_t index)
{
	return lines->base + index * LINES_LINE_SIZE;
}

static inline __attribute__((always_inline)) bool
line_lock(struct lines *lines, struct lines_thread *thread, uint64_t index)
{
	struct lines_line *line = &lines->line[index];

	if (!thread)
		return true;
	if (lines->concurrent) {
		if (!spin_lock(&line->lock, thread->owner))
			return false;
	} else {
		if (line->lock)
			return false;
		line->lock = thread->owner;
	}
	thread->locked = index + 1;
	return true;
}

static inline void line_unlock(struct lines *lines, struct lines_thread *thread, uint64_t index)
{
	if (!thread)
		return;
	thread->locked = 0;
	spin_unlock(&lines->line[index].lock);
}

static uint32_t next_sequence(struct lines *lines, const struct lines_line *line)
{
	uint32_t store = line->stores ? store_at(lines, line, line->stores)->sequence : 0;
	uint32_t flush = line->flushes ? lines->flush[line->flushes].sequence : 0;

	return (store > flush ? store : flush) + 1;
}

/*
 * Would this flush, once completed, make this store persistent? Another thread's flush does not
 * reach a non-temporal store, which may still be in its own processor's buffer.
 */
static bool flush_covers(const struct lines_flush *flush, const struct lines_store *store)
{
	if (flush->sequence < store->sequence)
		return false;
	if (store->nontemporal)
		return store->thread == (uint16_t)flush->thread;
	return !flush->nontemporal;
}

static void drop_covered(struct lines *lines, struct lines_thread *thread, struct lines_line *line,
			 const struct lines_flush *flush)
{
	uint32_t *link = &line->stores;

	while (*link) {
		uint32_t index = *link;
		struct lines_store *store = store_at(lines, line, index);

		if (flush && !flush_covers(flush, store)) {
			link = &store->next;
			continue;
		}
		*link = store->next;
		store_free(lines, thread, line, index);
	}
}

static void unlink_all_flushes(struct lines *lines, struct lines_line *line)
{
	while (line->flushes) {
		struct lines_flush *flush = &lines->flush[line->flushes];

		line->flushes = flush->next_in_line;
		flush->line = LINES_NO_LINE;
	}
}

/* Takes the flush out of its line's list; it stays with its thread. */
static void unlink_flush(struct lines *lines, struct lines_line *line, uint32_t index)
{
	uint32_t *link = &line->flushes;

	while (*link && *link != index)
		link = &lines->flush[*link].next_in_line;
	if (*link)
		*link = lines->flush[index].next_in_line;
}

static uint32_t own_pending(struct lines *lines, const struct lines_thread *thread,
			    const struct lines_line *line, bool nontemporal)
{
	for (uint32_t i = line->flushes; i; i = lines->flush[i].next_in_line)
		if (lines->flush[i].thread == thread->id &&
		    lines->flush[i].nontemporal == nontemporal)
			return i;
	return 0;
}

/* A newer flush of the same line by the same thread takes the place of the older one. */
static void add_pending(struct lines *lines, struct lines_thread *thread, uint64_t index,
			uint32_t stack, bool nontemporal)
{
	struct lines_line *line = &lines->line[index];
	uint32_t sequence = next_sequence(lines, line);
	uint32_t entry = own_pending(lines, thread, line, nontemporal);

	if (entry) {
		unlink_flush(lines, line, entry);
	} else {
		entry = flush_new(lines, thread);
		if (!entry)
			return;
		lines->flush[entry].next_in_thread = thread->flushes;
		thread->flushes = entry;
	}
	lines->flush[entry].line = index;
	lines->flush[entry].next_in_line = line->flushes;
	lines->flush[entry].sequence = sequence;
	lines->flush[entry].stack = stack;
	lines->flush[entry].thread = thread->id;
	lines->flush[entry].nontemporal = nontemporal;
	line->flushes = entry;
}

/* The newest pending flush of this thread that covers the store; 0 if none. */
static uint32_t own_cover(struct lines *lines, const struct lines_thread *thread,
			  const struct lines_line *line, const struct lines_store *store)
{
	for (uint32_t i = line->flushes; i; i = lines->flush[i].next_in_line)
		if (lines->flush[i].thread == thread->id && flush_covers(&lines->flush[i], store))
			return i;
	return 0;
}

/* ---- events ---- */

bool lines_begin(struct lines *lines, struct lines_thread *thread, uint64_t address)
{
	return line_lock(lines, thread, line_index(lines, address));
}

bool lines_try(struct lines *lines, const struct lines_thread *thread, uint64_t address)
{
	return spin_try(&lines->line[line_index(lines, address)].lock, thread->owner);
}

void lines_abandon(struct lines *lines, struct lines_thread *thread)
{
	if (thread->locked)
		spin_release(&lines->line[thread->locked - 1].lock, thread->owner);
	thread->locked = 0;
	spin_release(&lines->stores.lock, thread->owner);
	spin_release(&lines->flushes.lock, thread->owner);
}

void lines_cancel(struct lines *lines, uint64_t address)
{
	spin_unlock(&lines->line[line_index(lines, address)].lock);
}

/* The new store takes over bytes of older ones. Returns one of the same stack to merge with. */
static uint32_t take_over(struct lines *lines, struct lines_thread *thread, uint64_t index,
			  uint64_t bytes, uint32_t stack, bool nontemporal)
{
	struct lines_line *line = &lines->line[index];
	uint32_t newest_flush = line->flushes ? lines->flush[line->flushes].sequence : 0;
	uint32_t same = 0;

	for (uint32_t *link = &line->stores; *link;) {
		uint32_t i = *link;
		struct lines_store *old = store_at(lines, line, i);

		if (old->bytes & bytes) {
			uint64_t shared = old->bytes & bytes;

			TELL(overwritten, lines, thread,
			     line_address(lines, index) + __builtin_ctzll(shared),
			     __builtin_popcountll(shared), old, stack);
			old->bytes &= ~bytes;
		}
		if (old->stack == stack && old->thread == (uint16_t)thread->id && !nontemporal &&
		    !old->nontemporal && old->sequence > newest_flush && i == line->stores) {
			same = i;
			link = &old->next;
		} else if (!old->bytes) {
			*link = old->next;
			store_free(lines, thread, line, i);
		} else {
			link = &old->next;
		}
	}
	return same;
}

/* Threads share the table: it is not written without need. */
static void touch(struct lines *lines, uint64_t offset)
{
	uint8_t *touched = &lines->touched[offset >> LINES_BLOCK_SHIFT];

	if (!(*touched & LINES_STORED))
		__atomic_fetch_or(touched, LINES_STORED, __ATOMIC_RELAXED);
}

/* No flush is under way, and nothing of what was there is left. */
static bool is_only_store(const struct lines_line *line, uint64_t bytes)
{
	if (line->flushes || line->excluded)
		return false;
	return !line->stores || (line->stores == LINES_OWN && !line->own.next &&
				 !(line->own.bytes & ~bytes) && !overwriting_is_heard);
}

static __attribute__((noinline)) void end_store_among(struct lines *lines,
						      struct lines_thread *thread, uint64_t address,
						      uint64_t bytes, uint32_t stack,
						      bool nontemporal)
{
	uint64_t index = line_index(lines, address);
	struct lines_line *line = &lines->line[index];
	uint32_t entry;

	bytes &= ~line->excluded;
	if (!bytes || (lines->model == LINES_EADR && !nontemporal)) {
		line_unlock(lines, thread, index);
		return;
	}
	entry = take_over(lines, thread, index, bytes, stack, nontemporal);
	if (entry) {
		store_at(lines, line, entry)->bytes |= bytes;
		store_at(lines, line, entry)->event = thread->event;
	} else if ((entry = store_new(lines, thread, line))) {
		if (!line->stores)
			touch(lines, address - lines->base);
		*store_at(lines, line, entry) = (struct lines_store){
			.bytes = bytes,
			.event = thread->event,
			.next = line->stores,
			.sequence = next_sequence(lines, line),
			.stack = stack,
			.thread = thread->id,
			.nontemporal = nontemporal,
		};
		line->stores = entry;
	}
	if (nontemporal)
		add_pending(lines, thread, index, stack, true);
	line_unlock(lines, thread, index);
}

void lines_end_store(struct lines *lines, struct lines_thread *thread, uint64_t address,
		     uint64_t bytes, uint32_t stack, bool nontemporal)
{
	uint64_t index = line_index(lines, address);
	struct lines_line *line = &lines->line[index];

	line->content = 0;
	if (nontemporal || lines->model == LINES_EADR || !is_only_store(line, bytes)) {
		end_store_among(lines, thread, address, bytes, stack, nontemporal);
		return;
	}
	if (!line->stores)
		touch(lines, address - lines->base);
	line->own = (struct lines_store){
		.bytes = bytes,
		.event = thread->event,
		.sequence = 1,
		.stack = stack,
		.thread = thread->id,
	};
	line->stores = LINES_OWN;
	line_unlock(lines, thread, index);
}

/* Nothing to write back: the line is clean, or this thread's pending flushes cover all of it. */
static bool flush_is_redundant(struct lines *lines, const struct lines_thread *thread,
			       const struct lines_line *line, uint32_t *earlier)
{
	*earlier = line->cleaner;
	for (uint32_t i = line->stores; i;) {
		const struct lines_store *store = store_at(lines, line, i);
		uint32_t cover = own_cover(lines, thread, line, store);

		if (!cover)
			return false;
		*earlier = lines->flush[cover].stack;
		i = store->next;
	}
	return true;
}

/* Never 0. The four products do not wait for each other. */
static uint64_t hash_line(const volatile uint64_t *memory)
{
	static const uint64_t key[LINES_LINE_SIZE / 8] = {
		0x9e3779b97f4a7c15ull, 0xff51afd7ed558ccdull, 0xc4ceb9fe1a85ec53ull,
		0xbf58476d1ce4e5b9ull, 0x94d049bb133111ebull, 0xd6e8feb86659fd93ull,
		0xa0761d6478bd642full, 0xe7037ed1a0b428dbull,
	};
	uint64_t hash = 0;

	for (int i = 0; i < LINES_LINE_SIZE / 8; i += 2)
		hash += mix(memory[i] ^ key[i], memory[i + 1] ^ key[i + 1]);
	return hash | 1;
}

void lines_flush(struct lines *lines, struct lines_thread *thread, uint64_t address, uint32_t stack,
		 enum lines_flush_kind kind, const volatile uint64_t *memory)
{
	uint64_t index = line_index(lines, address);
	struct lines_line *line = &lines->line[index];
	uint64_t content;
	uint32_t earlier;

	if (lines->model == LINES_EADR)
		return;
	if (!line_lock(lines, thread, index))
		return;
	content = memory ? hash_line(memory) : 0;
	if (flush_is_redundant(lines, thread, line, &earlier)) {
		if (line->content && content && line->content != content && !line->excluded)
			lines->foreign = 1;
		else if (kind != LINES_ANNOUNCED && !line->excluded)
			TELL(redundant_flush, lines, thread, line_address(lines, index), stack,
			     earlier);
	} else if (kind != LINES_ORDERED) {
		add_pending(lines, thread, index, stack, false);
	}
	if (kind == LINES_ORDERED) /* non-temporal stores need a fence all the same */
		drop_covered(lines, thread, line, &(struct lines_flush){ .sequence = UINT32_MAX });
	if (kind != LINES_ANNOUNCED)
		line->cleaner = stack;
	line->content = content;
	line_unlock(lines, thread, index);
}

void lines_fence(struct lines *lines, struct lines_thread *thread, uint32_t stack, bool idle)
{
	uint32_t i;

	if (idle && !thread->flushes && lines->model != LINES_EADR)
		TELL(redundant_fence, lines, thread, stack, thread->last_fence);
	/* One at a time off the list: the thread may be torn out of here by a jump. */
	while ((i = thread->flushes)) {
		struct lines_flush *flush = &lines->flush[i];
		uint64_t index = flush->line;
		bool locked;

		if (index != LINES_NO_LINE) {
			locked = line_lock(lines, thread, index);
			/* Another thread may have cleaned the line meanwhile. */
			if (flush->line == index) {
				drop_covered(lines, thread, &lines->line[index], flush);
				unlink_flush(lines, &lines->line[index], i);
			}
			if (locked)
				line_unlock(lines, thread, index);
		}
		thread->flushes = flush->next_in_thread;
		flush_free(lines, thread, i);
	}
	thread->last_fence = stack;
}

/* ---- ranges ---- */

typedef void (*line_fn)(struct lines *lines, struct lines_thread *thread, uint64_t index,
			uint64_t bytes, uint32_t stack);

/* The bytes of line `index` that lie in [address, end). */
static uint64_t bytes_in_range(const struct lines *lines, uint64_t index, uint64_t address,
			       uint64_t end)
{
	uint64_t start = line_address(lines, index), stop = start + LINES_LINE_SIZE;

	start = start < address ? address : start;
	stop = stop > end ? end : stop;
	return lines_bytes(start, stop - start);
}

static void visit_block(struct lines *lines, struct lines_thread *thread, uint64_t block,
			uint64_t address, uint64_t end, uint32_t stack, line_fn visit)
{
	const uint64_t per_block = (1ull << LINES_BLOCK_SHIFT) / LINES_LINE_SIZE;

	for (uint64_t i = block * per_block; i < (block + 1) * per_block; i++) {
		uint64_t start = line_address(lines, i);

		if (start + LINES_LINE_SIZE <= address || start >= end || !lines->line[i].stores)
			continue;
		if (!line_lock(lines, thread, i))
			continue;
		visit(lines, thread, i, bytes_in_range(lines, i, address, end), stack);
		line_unlock(lines, thread, i);
	}
}

/* Only blocks that were stored to are looked at: a large, sparse mapping costs little. */
static void visit_range(struct lines *lines, struct lines_thread *thread, uint64_t address,
			uint64_t size, uint32_t stack, line_fn visit)
{
	uint64_t end = address + size;
	uint64_t first = (address - lines->base) >> LINES_BLOCK_SHIFT;
	uint64_t last = (end - 1 - lines->base) >> LINES_BLOCK_SHIFT;

	if (!size)
		return;
	for (uint64_t block = first; block <= last; block++)
		if (lines->touched[block] & LINES_STORED)
			visit_block(lines, thread, block, address, end, stack, visit);
}

static void persist_line(struct lines *lines, struct lines_thread *thread, uint64_t index,
			 uint64_t bytes, uint32_t stack)
{
	(void)bytes; /* a line is written back as a whole */
	drop_covered(lines, thread, &lines->line[index], NULL);
	unlink_all_flushes(lines, &lines->line[index]);
	lines->line[index].cleaner = stack;
}

void lines_persist(struct lines *lines, struct lines_thread *thread, uint64_t address,
		   uint64_t size, uint32_t stack)
{
	visit_range(lines, thread, address, size, stack, persist_line);
}

/* Whose stores are forgotten, and from when on. */
struct forgetting {
	bool all;
	uint16_t thread;
	uint64_t since;
};

static bool is_forgotten(const struct forgetting *what, const struct lines_store *store)
{
	return what->all || (store->thread == what->thread && store->event >= what->since);
}

static void forget_stores(struct lines *lines, struct lines_thread *thread, uint64_t index,
			  uint64_t bytes, const struct forgetting *what)
{
	struct lines_line *line = &lines->line[index];
	uint32_t *link = &line->stores;

	while (*link) {
		uint32_t i = *link;
		struct lines_store *store = store_at(lines, line, i);

		if (is_forgotten(what, store))
			store->bytes &= ~bytes;
		if (store->bytes) {
			link = &store->next;
			continue;
		}
		*link = store->next;
		store_free(lines, thread, line, i);
	}
}

static void forget_line(struct lines *lines, struct lines_thread *thread, uint64_t index,
			uint64_t bytes, uint32_t unused)
{
	(void)unused;
	forget_stores(lines, thread, index, bytes, &(struct forgetting){ .all = true });
}

static void forget_line_of_thread(struct lines *lines, struct lines_thread *thread, uint64_t index,
				  uint64_t bytes, uint32_t whose)
{
	forget_stores(lines, thread, index, bytes, &(struct forgetting){ .thread = whose });
}

/* The number of events of one thread fits into the lower half, which the visitor can hand on. */
static void forget_line_since(struct lines *lines, struct lines_thread *thread, uint64_t index,
			      uint64_t bytes, uint32_t since)
{
	uint64_t first = thread->event - (uint32_t)(thread->event - since);

	forget_stores(lines, thread, index, bytes,
		      &(struct forgetting){ .thread = thread->id, .since = first });
}

void lines_forget(struct lines *lines, struct lines_thread *thread, uint64_t address, uint64_t size)
{
	visit_range(lines, thread, address, size, 0, forget_line);
}

void lines_forget_thread(struct lines *lines, struct lines_thread *thread, uint64_t address,
			 uint64_t size, uint32_t whose)
{
	visit_range(lines, thread, address, size, whose, forget_line_of_thread);
}

void lines_forget_since(struct lines *lines, struct lines_thread *thread, uint64_t address,
			uint64_t size, uint64_t event)
{
	visit_range(lines, thread, address, size, event, forget_line_since);
}

static void lose_line(struct lines *lines, struct lines_thread *thread, uint64_t index,
		      uint64_t bytes, uint32_t stack)
{
	struct lines_line *line = &lines->line[index];

	for (uint32_t i = line->stores; i; i = store_at(lines, line, i)->next) {
		const struct lines_store *store = store_at(lines, line, i);
		uint64_t lost = store->bytes & bytes;
		uint32_t flush = 0;

		if (!lost)
			continue;
		for (uint32_t f = line->flushes; f && !flush; f = lines->flush[f].next_in_line)
			if (flush_covers(&lines->flush[f], store))
				flush = lines->flush[f].stack;
		TELL(lost, lines, thread, line_address(lines, index) + __builtin_ctzll(lost),
		     64 - __builtin_clzll(lost) - __builtin_ctzll(lost), store, flush);
	}
	forget_line(lines, thread, index, bytes, stack);
	if (!line->stores)
		unlink_all_flushes(lines, line);
}

void lines_lose(struct lines *lines, struct lines_thread *thread, uint64_t address, uint64_t size)
{
	visit_range(lines, thread, address, size, 0, lose_line);
}

static void include_line(struct lines *lines, struct lines_thread *thread, uint64_t index,
			 uint64_t bytes)
{
	if (!lines->line[index].excluded || !line_lock(lines, thread, index))
		return;
	lines->line[index].excluded &= ~bytes;
	line_unlock(lines, thread, index);
}

static void exclude_line(struct lines *lines, struct lines_thread *thread, uint64_t index,
			 uint64_t bytes)
{
	uint64_t offset = index * LINES_LINE_SIZE;

	if (!line_lock(lines, thread, index))
		return;
	__atomic_fetch_or(&lines->touched[offset >> LINES_BLOCK_SHIFT], LINES_EXCLUDED,
			  __ATOMIC_RELAXED);
	lines->line[index].excluded |= bytes;
	forget_line(lines, thread, index, bytes, 0);
	line_unlock(lines, thread, index);
}

void lines_exclude(struct lines *lines, struct lines_thread *thread, uint64_t address,
		   uint64_t size, bool exclude)
{
	const uint64_t per_block = 1ull << LINES_BLOCK_SHIFT;
	uint64_t end = address + size;

	while (address < end) {
		uint64_t block = (address - lines->base) >> LINES_BLOCK_SHIFT;
		uint64_t index = line_index(lines, address);

		if (!exclude && !(lines->touched[block] & LINES_EXCLUDED)) {
			address = lines->base + (block + 1) * per_block;
			continue;
		}
		if (exclude)
			exclude_line(lines, thread, index,
				     bytes_in_range(lines, index, address, end));
		else
			include_line(lines, thread, index,
				     bytes_in_range(lines, index, address, end));
		address = line_address(lines, index + 1);
	}
}

/* ---- questions ---- */

bool lines_are_excluded(const struct lines *lines, uint64_t address, uint64_t size)
{
	uint64_t end = address + size;

	while (address < end) {
		uint64_t block = (address - lines->base) >> LINES_BLOCK_SHIFT;
		uint64_t index = line_index(lines, address);
		uint64_t bytes = bytes_in_range(lines, index, address, end);

		if (!(lines->touched[block] & LINES_EXCLUDED) ||
		    bytes & ~lines->line[index].excluded)
			return false;
		address = line_address(lines, index + 1);
	}
	return true;
}

static enum lines_state store_state(const struct lines *lines, const struct lines_line *line,
				    const struct lines_store *store)
{
	for (uint32_t i = line->flushes; i; i = lines->flush[i].next_in_line)
		if (flush_covers(&lines->flush[i], store))
			return LINES_FLUSHED;
	return LINES_DIRTY;
}

enum lines_state lines_query(const struct lines *lines, uint64_t address, uint64_t size)
{
	const uint64_t per_block = 1ull << LINES_BLOCK_SHIFT;
	enum lines_state worst = LINES_PERSISTENT;
	uint64_t end = address + size;

	while (address < end && worst != LINES_DIRTY) {
		uint64_t block = (address - lines->base) >> LINES_BLOCK_SHIFT;
		uint64_t index = line_index(lines, address);
		uint64_t bytes = bytes_in_range(lines, index, address, end);
		const struct lines_line *line = &lines->line[index];

		if (!(lines->touched[block] & LINES_STORED)) {
			address = lines->base + (block + 1) * per_block;
			continue;
		}
		for (uint32_t i = line->stores; i; i = store_at(lines, line, i)->next) {
			enum lines_state state;

			if (!(store_at(lines, line, i)->bytes & bytes))
				continue;
			state = store_state(lines, line, store_at(lines, line, i));
			if (state > worst)
				worst = state;
		}
		address = line_address(lines, index + 1);
	}
	return worst;
}
