/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chain of sorted pages, after the published description of FAST&FAIR: entries are shifted in place with
 * plain stores and flushed line by line; a counter tells readers which way they move; the index of the last
 * entry is only a hint.
 */
#include "pm.h"

#include <perdure/perdure.h>

namespace
{
struct page;

struct header {
	page *sibling_ptr;
	uint32_t switch_counter;
	int32_t last_index;
};

struct entry {
	uint64_t key;
	char *ptr;
};

struct page {
	static constexpr int ENTRIES = 6;
	alignas(64) header hdr;
	alignas(64) entry records[ENTRIES + 1];

	int count() const
	{
		int n = hdr.last_index;

		while (n < ENTRIES && records[n].ptr)
			n++;
		return n;
	}

	void insert(uint64_t key, char *ptr)
	{
		int i;

		for (i = count() - 1; i >= 0 && records[i].key > key; i--) {
			records[i + 1].ptr = records[i].ptr;
			records[i + 1].key = records[i].key;
			PERSIST(&records[i + 1]);
		}
		records[i + 1].key = key;
		records[i + 1].ptr = ptr;
		PERSIST(&records[i + 1]);
	}

	void turn()
	{
		hdr.switch_counter++;
		PERSIST(&hdr);
		hdr.last_index = 1; /* a hint */
	}

	void split(page *right)
	{
		right->records[0] = records[ENTRIES - 1];
		PERSIST(right);
		PERSIST(right->records);
		hdr.sibling_ptr = right;
		PERSIST(&hdr);
	}

	uint64_t search(uint64_t key) const
	{
		uint64_t found = hdr.switch_counter;

		found += hdr.last_index;
		for (int i = 0; i < ENTRIES && records[i].ptr; i++)
			if (records[i].key == key)
				return found + 1;
		return hdr.sibling_ptr ? hdr.sibling_ptr->search(key) : 0;
	}
};

struct tree {
	alignas(64) page *root;
	page pages[2];
};
} // namespace

int main(int argc, char **argv)
{
	auto *pm = static_cast<tree *>(pm_map(argv));

	if (perdure_stage() > 0)
		return pm->root && pm->root->search(99) > 99;
	pm->root = &pm->pages[0];
	PERSIST(&pm->root);
	pm->root->insert(5, argv[0]);
	pm->root->turn();
	for (uint64_t key = 4; key > 0; key--)
		pm->root->insert(key, argv[0]);
	for (uint64_t key = 10; key < 11; key++)
		pm->root->insert(key, argv[0]);
	pm->root->split(&pm->pages[1]);
	return argc > 99;
}
