// SPDX-License-Identifier: BSD-3-Clause
/* Work that is handed over: by a semaphore, a condition, a barrier, the life of a thread. */
#include <condition_variable>
#include <mutex>
#include <semaphore.h>
#include <shared_mutex>
#include <thread>

#include "races.h"

struct item {
	alignas(64) long value;
};
static struct item *item;
static sem_t full, empty;
static std::mutex mutex;
static std::condition_variable changed;
static bool there;
static std::shared_mutex shared;
static pthread_barrier_t barrier;

static void give(long i)
{
	item[0].value = i; /* store: semaphore */
	WHEN_FIXED(PERSIST(&item[0]));
	sem_post(&full);
	WHEN_BUGGY(PERSIST(&item[0]));
	sem_wait(&empty);
	{
		std::unique_lock<std::mutex> hold(mutex);
		item[1].value = i; /* store: condition */
		WHEN_FIXED(PERSIST(&item[1]));
		there = true;
		changed.notify_one();
	}
	WHEN_BUGGY(PERSIST(&item[1]));
	{
		std::unique_lock<std::shared_mutex> hold(shared);
		item[2].value = i; /* store: shared */
		WHEN_FIXED(PERSIST(&item[2]));
	}
	WHEN_BUGGY(PERSIST(&item[2]));
	item[3].value = i; /* store: barrier */
	WHEN_FIXED(PERSIST(&item[3]));
	pthread_barrier_wait(&barrier);
	WHEN_BUGGY(PERSIST(&item[3]));
	pthread_barrier_wait(&barrier);
}

static void take(void)
{
	sem_wait(&full);
	sink = item[0].value; /* load: semaphore */
	sem_post(&empty);
	{
		std::unique_lock<std::mutex> hold(mutex);
		changed.wait(hold, [] { return there; });
		there = false;
		sink = item[1].value; /* load: condition */
	}
	{
		std::shared_lock<std::shared_mutex> hold(shared);
		sink = item[2].value; /* load: shared */
	}
	pthread_barrier_wait(&barrier);
	sink = item[3].value; /* load: barrier */
	pthread_barrier_wait(&barrier);
}

int main(int argc, char **argv)
{
	enum { SOME = 300 };

	item = static_cast<struct item *>(pm_map(argv));
	sem_init(&full, 0, 0);
	sem_init(&empty, 0, 0);
	pthread_barrier_init(&barrier, nullptr, 2);
	item[4].value = 1; /* store: before */
	WHEN_FIXED(PERSIST(&item[4]));
	std::thread taker([] {
		sink = item[4].value; /* load: before */
		for (long i = 0; i < SOME; i++)
			take();
		item[5].value = 1; /* store: after */
		WHEN_FIXED(PERSIST(&item[5]));
	});
	for (long i = 0; i < SOME; i++)
		give(i);
	taker.join();
	sink = item[5].value; /* load: after */
	return argc != 2;
}
