/* expect: signal 11 */
/* cause: a file name longer than its global buffer is copied into it */
/* symptom: the pointer behind the buffer is part of the name when it is followed */
#include "bug.h"

static struct {
	char name[32];
	long *size;
} file;

int main(void)
{
	static long size;
	char name[64];

	memset(name, 'n', sizeof name);
	name[40] = 0;
	file.size = &size;
#ifdef FIXED
	snprintf(file.name, sizeof file.name, "%s", name);
#else
	ROOT_CAUSE();
	strcpy(file.name, name);
#endif
	bug_work(8000);
	printf("%ld\n", *file.size);
	return 0;
}
