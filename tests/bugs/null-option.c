/* expect: signal 11 */
/* cause: an option that was not given leaves a pointer unset, and nobody looks */
/* symptom: strlen of a null pointer */
#include "bug.h"

static const char *volatile title;

int main(int argc, char **argv)
{
	ROOT_CAUSE();
	for (int i = 1; i < argc; i++)
		title = argv[i];
#ifdef FIXED
	if (!title)
		title = "untitled";
#endif
	bug_work(300);
	printf("%zu\n", strlen(title));
	return 0;
}
