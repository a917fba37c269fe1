/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure-cc: everything is seen otherwise */
/* std::list links its nodes inside the prebuilt libstdc++: a flush of what that changed is needed. */
/* limit: not built with perdure-cc */
#include "../pm.h"

#include <list>
#include <new>

static char *base;
static size_t used = 4096;

template <class T> struct lines {
	using value_type = T;
	lines() = default;
	template <class U> lines(const lines<U> &) {}
	T *allocate(size_t n)
	{
		T *p = reinterpret_cast<T *>(base + used);
		used += (n * sizeof(T) + 63) & ~63ul;
		return p;
	}
	void deallocate(T *, size_t) {}
	bool operator==(const lines &) const { return true; }
	bool operator!=(const lines &) const { return false; }
};

int main(int, char **argv)
{
	base = static_cast<char *>(pm_map(argv));
	auto *list = new (base) std::list<int, lines<int>>;
	CLFLUSH(base);
	list->push_back(1);
	CLFLUSH(base);
	CLFLUSH(base + 4096);
	list->push_back(2);
	CLFLUSH(base);
	CLFLUSH(base + 4096); /* the first node's link changed, unseen */
	CLFLUSH(base + 4160);
	WHEN_BUGGY(CLFLUSH(base + 4096)); /* expect: redundant-flush */
	_exit(0);
}
