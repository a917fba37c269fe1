// SPDX-License-Identifier: BSD-3-Clause
// A persistent queue filled by two threads. It publishes the tail under a lock, but persists the
// slot through libpmem without draining, and never persists the counter of one producer.
#include <libpmem.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <thread>

namespace {

struct slot {
	std::uint64_t payload;
	std::uint64_t checksum;
	char padding[48];
};

struct queue {
	std::atomic<std::uint64_t> tail;
	char padding[56];
	std::uint64_t produced[16];
	slot slots[256];
};

class producer {
public:
	producer(queue &q, std::mutex &m, unsigned id) : q_(q), m_(m), id_(id) {}

	void push(std::uint64_t payload)
	{
		std::lock_guard<std::mutex> guard(m_);
		slot &s = q_.slots[q_.tail % 256];

		s.payload = payload;
		s.checksum = ~payload;
		pmem_persist(&s, sizeof(s));
		q_.tail.fetch_add(1);
		pmem_persist(&q_.tail, sizeof(q_.tail));
		q_.produced[id_ * 8]++; // bug: never flushed
	}

private:
	queue &q_;
	std::mutex &m_;
	unsigned id_;
};

} // namespace

int main(int argc, char **argv)
{
	std::size_t size;
	int is_pmem;
	void *memory = pmem_map_file(argc > 1 ? argv[1] : "queue.pm", sizeof(queue),
				     PMEM_FILE_CREATE, 0600, &size, &is_pmem);
	std::mutex m;

	if (!memory)
		return 1;
	auto &q = *static_cast<queue *>(memory);
	auto work = [&](unsigned id) {
		producer p(q, m, id);
		for (unsigned i = 0; i < 100; i++)
			p.push(i);
	};
	std::thread first(work, 0), second(work, 1);
	first.join();
	second.join();
	std::printf("%lu pushed\n", static_cast<unsigned long>(q.tail.load()));
	q.slots[0].payload = 0;
	pmem_flush(&q.slots[0], sizeof(slot)); // bug: no pmem_drain
	return 0;
}
