/* expect: signal 6 */
/* cause: a loop writes one element more than the block of the heap has */
/* symptom: free() finds the size of the next block damaged */
#include "bug.h"

int main(void)
{
	enum { COUNT = 3 };
	volatile long *block = malloc(COUNT * sizeof *block);
	char *volatile next = malloc(64);

#ifdef FIXED
	for (int i = 0; i < COUNT; i++)
#else
	ROOT_CAUSE();
	for (int i = 0; i <= COUNT; i++)
#endif
		block[i] = 1;
	bug_work(2000);
	free(next);
	free((void *)block);
	return 0;
}
