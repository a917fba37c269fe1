/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thread-specific data. The C library keeps the values, in the control block; only its destructors
 * are called here, because a fiber's end is not known to it.
 */
#include "fibers/fibers.h"

#include <limits.h>
#include <threads.h>

typedef void (*destructor)(void *value);
static destructor destructors[PTHREAD_KEYS_MAX];

PUBLIC int pthread_key_create(pthread_key_t *key, destructor function)
{
	int result = REAL(pthread_key_create)(key, function);

	if (result == 0 && *key < PTHREAD_KEYS_MAX)
		destructors[*key] = function;
	return result;
}

PUBLIC int pthread_key_delete(pthread_key_t key)
{
	if (key < PTHREAD_KEYS_MAX)
		destructors[key] = NULL;
	return REAL(pthread_key_delete)(key);
}

PUBLIC int tss_create(tss_t *key, tss_dtor_t function)
{
	return pthread_key_create(key, function) == 0 ? thrd_success : thrd_error;
}

PUBLIC void tss_delete(tss_t key)
{
	pthread_key_delete(key);
}

static bool run_once(void)
{
	bool any = false;

	for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX; key++) {
		void *value = destructors[key] ? pthread_getspecific(key) : NULL;

		if (!value)
			continue;
		pthread_setspecific(key, NULL);
		destructors[key](value);
		any = true;
	}
	return any;
}

void keys_run_destructors(void)
{
	for (int i = 0; i < PTHREAD_DESTRUCTOR_ITERATIONS && run_once(); i++)
		;
}
