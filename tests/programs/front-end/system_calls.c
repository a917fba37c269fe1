/* SPDX-License-Identifier: BSD-3-Clause */
/* What the system and libc write into PM is stored there. */
#include "../pm.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

int main(int argc, char **argv)
{
	char *p = pm_map(argv);
	int pair[2], fd = open("/proc/self/exe", O_RDONLY);
	struct iovec vector[2] = { { p + 64 * 6, 8 }, { p + 64 * 7, 8 } };
	FILE *file = fdopen(dup(fd), "r");
	int parsed;

	(void)argc;
	if (read(fd, p, 100) != 100) /* expect: missing-flush */
		return 9;
	if (pread(fd, p + 64 * 2, 8, 0) != 8) /* expect: missing-flush */
		return 9;
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	if (write(pair[0], "hello", 5) != 5)
		return 9;
	if (recv(pair[1], p + 64 * 3, 8, 0) != 5) /* expect: missing-flush */
		return 9;
	if (fread(p + 64 * 4, 1, 8, file) != 8) /* expect: missing-flush */
		return 9;
	snprintf(p + 64 * 5, 20, "%d", 12345); /* expect: missing-flush */
	if (readv(fd, vector, 2) != 16) /* expect: missing-flush */
		return 9;
	parsed = sscanf("17 word", "%d %s", (int *)(p + 64 * 8), p + 64 * 9); /* expect: missing-flush */
	clock_gettime(CLOCK_REALTIME, (struct timespec *)(p + 64 * 10)); /* expect: missing-flush */
	strncpy(p + 64 * 11, "name", 16); /* expect: missing-flush */
	strcat(p + 64 * 11, "more"); /* expect: missing-flush */
#ifdef FIXED
	for (int line = 0; line < 12; line++)
		CLFLUSH(p + 64 * line);
#endif
	return parsed == 2 ? 0 : 9;
}
