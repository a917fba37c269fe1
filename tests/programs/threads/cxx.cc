/* SPDX-License-Identifier: BSD-3-Clause */
/* std::thread, std::mutex: unlocking completes the flush, the plain end of a thread does not. */
/* threads: yes */
#include "../pm.h"

#include <mutex>
#include <thread>

int main(int, char **argv)
{
	long *p = static_cast<long *>(pm_map(argv));
	std::mutex mutex;

	std::thread first([&] {
		std::lock_guard<std::mutex> guard(mutex);
		p[0] = 1;
		CLWB(p);
	});
	first.join();
	std::thread second([&] {
		p[8] = 1; /* expect: missing-fence */
		CLWB(p + 8);
		WHEN_FIXED(SFENCE());
	});
	second.join();
	return 0;
}
