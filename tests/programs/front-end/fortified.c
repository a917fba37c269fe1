/* flags: -D_FORTIFY_SOURCE=2 */
/* Copies that libc's headers check are seen like others, also small ones. */
#include "../pm.h"

struct header {
	char signature[8];
	char name[16];
	_Alignas(64) char text[32];
	_Alignas(64) char zeros[16];
};

int main(int argc, char **argv)
{
	struct header *header = pm_map(argv);

	(void)argc;
	memcpy(header->signature, "PERDURE", 8); /* expect: missing-flush */
	memcpy(header->name, argv[0], 2); /* expect: missing-flush */
	strcpy(header->text, "text"); /* expect: missing-flush */
	memset(header->zeros, 0, 16); /* expect: missing-flush */
	WHEN_FIXED(CLWB(header); CLWB(header->text); PERSIST(header->zeros);)
	return 0;
}
