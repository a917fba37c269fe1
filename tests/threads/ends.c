/* SPDX-License-Identifier: BSD-3-Clause */
/* How threads end: by return, pthread_exit, cancellation; clean-up handlers and destructors. */
#include "threads.h"

static pthread_key_t key, again;
static int destroyed;
static __thread int own = 7;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int started;

static void destroy(void *value)
{
	destroyed += (int)(long)value;
}

static void set_again(void *value)
{
	if ((long)value > 1)
		pthread_setspecific(again, (void *)((long)value - 1));
	destroyed += 100;
}

static void *use_keys(void *argument)
{
	own += (int)(long)argument;
	pthread_setspecific(key, (void *)(long)own);
	pthread_setspecific(again, (void *)3);
	sched_yield();
	return pthread_getspecific(key);
}

static void clean_up(void *argument)
{
	say("clean up %s", (const char *)argument);
}

static void deeper(int depth)
{
	pthread_cleanup_push(clean_up, "deeper");
	if (depth == 0)
		pthread_exit((void *)42);
	deeper(depth - 1);
	pthread_cleanup_pop(0);
}

static void *exit_deep_inside(void *argument)
{
	pthread_cleanup_push(clean_up, "outside");
	deeper(2);
	pthread_cleanup_pop(0);
	return argument;
}

static void unlock(void *argument)
{
	say("unlock after cancellation: %d", pthread_mutex_unlock(argument));
}

static void *wait_for_ever(void *argument)
{
	pthread_mutex_lock(&lock);
	pthread_cleanup_push(unlock, &lock);
	started = 1;
	for (;;)
		pthread_cond_wait(&never, &lock);
	pthread_cleanup_pop(0);
	return argument;
}

static void *sleep_for_ever(void *argument)
{
	pthread_cleanup_push(clean_up, "sleep");
	for (;;)
		sleep(1000);
	pthread_cleanup_pop(0);
	return argument;
}

static int disabled_is_over;

static void *refuse_for_a_while(void *argument)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	for (int i = 0; i < 5; i++)
		usleep(1000);
	disabled_is_over = 1;
	pthread_setcancelstate(old, NULL);
	pthread_testcancel();
	say("not reached");
	return argument;
}

static void *detached(void *argument)
{
	pthread_detach(pthread_self());
	pthread_mutex_lock(&lock);
	started++;
	pthread_mutex_unlock(&lock);
	return argument;
}

static void cancel(void *(*function)(void *))
{
	pthread_t thread;
	void *result;
	int asked;

	pthread_create(&thread, NULL, function, NULL);
	usleep(2000);
	asked = pthread_cancel(thread);
	pthread_join(thread, &result);
	say("cancelled %d %d", asked, result == PTHREAD_CANCELED);
}

static void *after_main(void *argument)
{
	usleep(5000);
	say("after main");
	return argument;
}

int main(void)
{
	pthread_attr_t attributes;
	pthread_t thread[3];
	void *result;

	pthread_key_create(&key, destroy);
	pthread_key_create(&again, set_again);
	for (long i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, use_keys, (void *)i);
	for (int i = 0; i < 3; i++) {
		pthread_join(thread[i], &result);
		say("key %ld", (long)result);
	}
	say("destroyed %d, own %d", destroyed, own);
	pthread_key_delete(again);
	say("exit %ld", (long)run(exit_deep_inside));
	cancel(wait_for_ever);
	say("lock is free %d", pthread_mutex_trylock(&lock));
	pthread_mutex_unlock(&lock);
	cancel(sleep_for_ever);
	cancel(refuse_for_a_while);
	say("disabled %d", disabled_is_over);
	started = 0;
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, detached, NULL);
	for (int seen = 0; seen < 3; usleep(1000)) {
		pthread_mutex_lock(&lock);
		seen = started;
		pthread_mutex_unlock(&lock);
	}
	say("join self %d", pthread_join(pthread_self(), NULL) == EDEADLK);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, 1 << 20);
	pthread_create(&thread[0], &attributes, after_main, NULL);
	pthread_exit(NULL);
}
