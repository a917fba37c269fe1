/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program may do that could notice that its code was moved: exceptions, jumps, threads, jump tables,
 * vectors; with a second argument also signals. Prints a number that must not depend on it.
 */
#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <map>
#include <stdexcept>
#include <string>
#include <sys/time.h>
#include <thread>
#include <vector>

#include "pm.h"

namespace
{
volatile long ticks;
long *pm;
std::jmp_buf there;

void count(int)
{
	ticks = ticks + 1;
	pm[100 + ticks % 50] = ticks;
}

void start_timer(int microseconds)
{
	struct itimerval timer = { { 0, microseconds }, { 0, microseconds } };
	struct sigaction action = {};

	action.sa_handler = count;
	sigaction(SIGALRM, &action, nullptr);
	setitimer(ITIMER_REAL, &timer, nullptr);
}

long descend(int depth)
{
	if (depth == 0)
		throw std::runtime_error("deep");
	pm[depth % 64] = depth;
	std::string text(depth, 'x');
	return descend(depth - 1) + static_cast<long>(text.size());
}

long exceptions()
{
	long sum = 0;

	for (int i = 0; i < 200; i++)
		try {
			sum += descend(i % 40 + 1);
		} catch (const std::exception &e) {
			sum += static_cast<long>(std::string(e.what()).size());
		}
	return sum;
}

long containers()
{
	std::map<int, std::vector<std::string>> map;
	long sum = 0;

	for (int i = 0; i < 20000; i++)
		map[i % 97].push_back(std::to_string(i * 7919 % 10007));
	for (auto &entry : map) {
		std::sort(entry.second.begin(), entry.second.end());
		sum += static_cast<long>(entry.second[3].size()) * entry.first;
	}
	return sum;
}

int choose(int x)
{
	switch (x % 12) {
	case 0:
		return 3;
	case 1:
		return x;
	case 2:
		pm[3] = x;
		return 9;
	case 3:
		return 4;
	case 4:
		return x * 2;
	case 5:
		return 77;
	case 6:
		return x - 1;
	case 7:
		return x ^ 5;
	case 8:
		pm[5] += x;
		return 1;
	case 9:
		return 12;
	case 10:
		return x / 3;
	default:
		return 0;
	}
}

long threads()
{
	std::vector<std::thread> all;
	long sum = 0;

	for (int k = 0; k < 4; k++)
		all.emplace_back([k] {
			for (int i = 0; i < 20000; i++)
				__sync_fetch_and_add(&pm[200 + k], i);
		});
	for (auto &thread : all)
		thread.join();
	for (int k = 0; k < 4; k++)
		sum += pm[200 + k];
	return sum;
}

long vectors()
{
	double row[256], *stored = reinterpret_cast<double *>(pm + 300);
	long sum = 0;

	for (int i = 0; i < 256; i++)
		row[i] = i * 0.5;
	for (int round = 0; round < 1000; round++)
		for (int i = 1; i < 255; i++)
			row[i] = (row[i - 1] + row[i] + row[i + 1]) / 3;
	memcpy(stored, row, 512);
	for (int i = 0; i < 64; i++) {
		stored[i] *= 2;
		sum += static_cast<long>(stored[i] * 100);
	}
	return sum;
}
} // namespace

int main(int argc, char **argv)
{
	long sum;

	pm = static_cast<long *>(pm_map(argv));
	if (argc > 2)
		start_timer(atoi(argv[2])); /* every so many microseconds */
	sum = exceptions() + containers();
	for (int i = 0; i < 300000; i++)
		sum += choose(i);
	if (setjmp(there) < 5) {
		pm[7]++;
		std::longjmp(there, static_cast<int>(pm[7]));
	}
	sum += threads() + vectors();
	start_timer(0);
	printf("%ld\n", sum);
	return argc > 99;
}
