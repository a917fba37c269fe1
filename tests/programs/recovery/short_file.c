/* command: check */
/* A file that a crash has left shorter than what is mapped of it: an access behind its end dies. */
#include "../pm.h"

#include <perdure/perdure.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	struct stat status;
	uint64_t *p;

	(void)argc;
	if (fd < 0 || fstat(fd, &status) < 0)
		return 2;
	WHEN_BUGGY(if (!perdure_stage()))
	if (status.st_size < 8192 && ftruncate(fd, 8192) < 0)
		return 2;
	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return 2;
	if (p[512] == 1234) /* expect: crash-symptom */
		return 1;
	__atomic_store_n(&p[512], 5, __ATOMIC_RELEASE);
	PERSIST(&p[512]);
	return 0;
}
