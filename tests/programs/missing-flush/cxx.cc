/* SPDX-License-Identifier: BSD-3-Clause */
/* C++: templates, exceptions, thread_local and virtual functions around the lost store. */
#include "../pm.h"

#include <stdexcept>

template <typename T> struct cell {
	T value;
	void set(T v)
	{
		value = v; /* expect: missing-flush */
		WHEN_FIXED(CLWB(&value));
	}
};

struct writer {
	virtual ~writer() = default;
	virtual void write(cell<double> *c) = 0;
};

struct throwing : writer {
	void write(cell<double> *c) override
	{
		c->set(1.5);
		throw std::runtime_error("after the store");
	}
};

thread_local int calls;

int main(int, char **argv)
{
	auto *c = static_cast<cell<double> *>(pm_map(argv));
	throwing t;
	writer &w = t;

	try {
		calls++;
		w.write(c);
	} catch (const std::runtime_error &) {
		SFENCE();
	}
	return calls == 1 && c->value == 1.5 ? 0 : 9;
}
