// SPDX-License-Identifier: BSD-3-Clause
// The threads of C++: RAII, exceptions, thread_local, futures, C++20's latches and semaphores.
#include "threads.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static std::mutex lock;
static int destroyed;

struct Noisy {
	int value = 1;
	~Noisy()
	{
		std::lock_guard guard(lock);
		destroyed += value;
	}
};
static thread_local Noisy noisy;
static thread_local std::string name = "nobody";

static void many_locks()
{
	std::vector<std::thread> threads;
	std::shared_mutex shared;
	std::timed_mutex timed;
	std::recursive_mutex recursive;
	int written = 0, wrong = 0;

	for (int i = 0; i < 4; i++)
		threads.emplace_back([&, i] {
			noisy.value = i + 1;
			name = std::to_string(i);
			for (int j = 0; j < 50; j++) {
				if (i == 0) {
					std::unique_lock guard(shared);
					written++;
					std::this_thread::yield();
					written++;
				} else {
					std::shared_lock guard(shared);
					wrong += written % 2;
				}
				std::scoped_lock both(lock, recursive);
				std::lock_guard twice(recursive);
			}
			if (name != std::to_string(i))
				std::abort();
		});
	for (auto &thread : threads)
		thread.join();
	std::printf("written %d, wrong %d, destroyed %d, main is %s\n", written, wrong, destroyed,
		    name.c_str());
	timed.lock();
	std::thread([&] { std::printf("timed %d\n", timed.try_lock_for(5ms)); }).join();
	timed.unlock();
}

static int fall(int depth)
{
	Noisy local;

	local.value = 10;
	std::this_thread::yield();
	if (depth == 0)
		throw std::runtime_error("bottom");
	return fall(depth - 1) + 1;
}

static void exceptions()
{
	std::vector<std::thread> threads;
	std::atomic<int> caught{ 0 };

	destroyed = 0;
	for (int i = 0; i < 4; i++)
		threads.emplace_back([&] {
			for (int j = 0; j < 10; j++)
				try {
					fall(5);
				} catch (const std::exception &e) {
					try {
						std::this_thread::yield();
						throw 7;
					} catch (int) {
						std::this_thread::yield();
						caught++;
					}
					if (std::string(e.what()) != "bottom")
						std::abort();
				}
		});
	for (auto &thread : threads)
		thread.join();
	std::printf("caught %d, destroyed %d\n", caught.load(), destroyed);
}

static void futures()
{
	std::promise<int> promise;
	auto future = promise.get_future();
	auto result = std::async(std::launch::async, [] { return fall(2); });
	std::thread giver([&] {
		std::this_thread::sleep_for(2ms);
		promise.set_value(17);
	});

	std::printf("wait %d\n", future.wait_for(100us) == std::future_status::timeout);
	std::printf("future %d\n", future.get());
	giver.join();
	try {
		result.get();
	} catch (const std::exception &e) {
		std::printf("async threw %s\n", e.what());
	}
	std::packaged_task<int(int)> task([](int x) { return x * 2; });
	auto doubled = task.get_future();
	std::thread(std::move(task), 21).join();
	std::printf("task %d\n", doubled.get());
}

static void once_and_conditions()
{
	std::once_flag flag;
	std::condition_variable changed;
	std::condition_variable_any any;
	std::shared_mutex shared;
	std::vector<std::thread> threads;
	int tries = 0, done = 0, ready = 0;

	for (int i = 0; i < 3; i++)
		threads.emplace_back([&] {
			auto attempt = [&] {
				std::this_thread::yield();
				if (++tries < 2)
					throw 1;
				done++;
			};
			try {
				std::call_once(flag, attempt);
			} catch (int) {
				std::call_once(flag, attempt);
			}
			std::unique_lock guard(lock);
			ready++;
			changed.notify_all();
			changed.wait(guard, [&] { return ready >= 3; });
		});
	for (auto &thread : threads)
		thread.join();
	std::printf("tries %d, done %d, ready %d\n", tries, done, ready);
	std::unique_lock guard(lock);
	std::printf("wait_for %d\n", changed.wait_for(guard, 3ms, [] { return false; }));
	std::shared_lock reading(shared);
	std::printf("any %d\n",
		    any.wait_until(reading, std::chrono::steady_clock::now() + 3ms) ==
			    std::cv_status::timeout);
}

static void twenty()
{
	std::latch latch(3);
	std::counting_semaphore<4> semaphore(0);
	std::atomic<int> waited{ 0 }, phases{ 0 };
	std::barrier barrier(3, [&]() noexcept { phases++; });
	std::vector<std::jthread> threads;

	for (int i = 0; i < 3; i++)
		threads.emplace_back([&] {
			latch.arrive_and_wait();
			barrier.arrive_and_wait();
			barrier.arrive_and_wait();
			semaphore.release();
			waited.wait(0);
		});
	for (int i = 0; i < 3; i++)
		semaphore.acquire();
	std::printf("try %d\n", semaphore.try_acquire_for(2ms));
	waited = 1;
	waited.notify_all();
	threads.clear();
	std::printf("phases %d\n", phases.load());
	std::jthread stopped([](std::stop_token token) {
		while (!token.stop_requested())
			std::this_thread::sleep_for(1ms);
	});
	stopped.request_stop();
}

static int made()
{
	static int value = [] {
		std::this_thread::yield();
		return 5;
	}();
	return value;
}

int main()
{
	many_locks();
	exceptions();
	futures();
	once_and_conditions();
	twenty();
	std::thread a(made), b(made);
	a.join();
	b.join();
	std::printf("static %d\n", made());
	std::fflush(stdout);
	return 0;
}
