/* SPDX-License-Identifier: BSD-3-Clause */
/* Accesses that share some of their bytes, whole lines that are flushed, streaming stores. */
#include "races.h"

struct root {
	_Alignas(64) uint32_t word[16];
	_Alignas(64) long long streamed[2];
	_Alignas(64) long written[2];
	_Alignas(64) long left; /* share a line, and nothing else */
	long right;
};
static struct root *root;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin; /* a plain store frees it, which is no fence */

static void *writer(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		memset(&root->word[2], (int)i, 24);   /* store: some */
		WHEN_FIXED(PERSIST(&root->word[15])); /* any byte of the line will do */
		root->left = i;
		CLFLUSH(&root->left);
		pthread_mutex_unlock(&lock);
		WHEN_BUGGY(PERSIST(&root->word[0]));

		pthread_spin_lock(&spin);
		__builtin_ia32_movnti64(&root->streamed[0], i); /* store: streamed */
		root->written[0] = i;                           /* store: written */
		CLWB(&root->written[0]);
		WHEN_FIXED(SFENCE());
		pthread_spin_unlock(&spin);
	}
	return unused;
}

static void *reader(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		sink = root->word[7]; /* load: some */
		sink = root->word[8];
		sink = root->right;
		pthread_mutex_unlock(&lock);
		pthread_spin_lock(&spin);
		sink = root->streamed[0]; /* load: streamed */
		sink = root->written[0];  /* load: written */
		pthread_spin_unlock(&spin);
	}
	return unused;
}

int main(int argc, char **argv)
{
	root = pm_map(argv);
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	run_both(writer, reader);
	return argc != 2;
}
