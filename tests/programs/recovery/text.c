/* command: check */
/* variants: 8 */
/* libc's functions read text as far as they must, and no further. */
#include "../pm.h"

#include <strings.h>

struct pm {
	_Alignas(64) _Atomic uint64_t ready;
	_Alignas(64) char text[64];
};

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);
	volatile long result = 0;

	(void)argc;
	if (pm->ready) {
#if BUG == 1
		result = strchr(pm->text, '5') != NULL; /* expect-1: cross-failure-race */
#elif BUG == 2
		result = atoi(pm->text); /* expect-2: cross-failure-race */
#elif BUG == 3
		result = strstr(pm->text, "34") != NULL; /* expect-3: cross-failure-race */
#elif BUG == 4
		result = strcasecmp(pm->text, "123456"); /* expect-4: cross-failure-race */
#elif BUG == 5
		result = memchr(pm->text, '6', 6) != NULL; /* expect-5: cross-failure-race */
#elif BUG == 6
		result = strtol(pm->text, NULL, 10); /* expect-6: cross-failure-race */
#elif BUG == 7
		char copy[64];

		result = snprintf(copy, sizeof(copy), "%s", pm->text); /* expect-7: cross-failure-race */
#elif BUG == 8
		result = strlen(pm->text); /* expect-8: cross-failure-race */
#else
		/* What is behind the first difference is not read. */
		result = strcmp(pm->text + 32, "other") + strncmp(pm->text + 32, "other", 3);
#endif
		return result == 12345;
	}
	memcpy(pm->text, "123456", 7);
#if BUG == 0
	memcpy(pm->text + 32, "x", 1);
	PERSIST(pm->text);
	pm->text[34] = 'z';
#endif
	__atomic_store_n((uint64_t *)&pm->ready, 1, __ATOMIC_RELEASE);
	PERSIST(&pm->ready);
	PERSIST(pm->text);
	return 0;
}
