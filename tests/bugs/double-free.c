/* expect: signal 6 */
/* cause: both the error path and the end of the function free the buffer */
/* symptom: free() notices */
#include "bug.h"

int main(void)
{
	char *volatile buffer = malloc(100);
	volatile int failed = 1;

	if (failed) {
		ROOT_CAUSE();
		free(buffer);
#ifdef FIXED
		buffer = NULL;
#endif
	}
	bug_work(4000);
	free(buffer);
	return 0;
}
