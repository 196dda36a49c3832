/* expect: signal 11 */
/* cause: an array of the heap is cleared up to the count of another, larger array */
/* symptom: a pointer behind the array is null when it is used */
#include "bug.h"

static int variable_count = 4, array_count = 64;

struct table {
	long arrays[8];
	const char *name;
};

int main(void)
{
	volatile struct table *table = calloc(2, sizeof *table);

	table->name = "numbers";
#ifdef FIXED
	int count = variable_count;
#else
	int count = array_count / 6;
#endif
	ROOT_CAUSE();
	for (int i = 0; i < count; i++)
		table->arrays[i] = 0;
	bug_work(500);
	printf("%c\n", table->name[0]);
	return array_count != 64;
}
