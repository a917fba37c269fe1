/* SPDX-License-Identifier: BSD-3-Clause */
/* std::atomic and containers: shown where the program uses them, not inside their headers. */
#include "../pm.h"

#include <atomic>
#include <utility>

int main(int argc, char **argv)
{
	char *p = static_cast<char *>(pm_map(argv));
	auto &number = *reinterpret_cast<std::atomic<long> *>(p);
	auto &pair = *reinterpret_cast<std::pair<long, long> *>(p + 64);

	number.store(argc, std::memory_order_release); /* expect: missing-flush */
	pair = std::make_pair(1, argc); /* expect: missing-flush */
	WHEN_FIXED(CLFLUSH(p));
	WHEN_FIXED(CLFLUSH(p + 64));
	return 0;
}
