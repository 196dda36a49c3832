/* expect: saved */
/* cause: a loop leaves out the last element */
/* symptom: the total does not match, which a check finds: bugnet_save() */
#include "../../include/bugnet/bugnet.h"
#include "bug.h"

int main(void)
{
	int values[100], total = 0;

	for (int i = 0; i < 100; i++)
		values[i] = i;
	ROOT_CAUSE();
#ifdef FIXED
	for (int i = 0; i < 100; i++)
#else
	for (int i = 0; i < 99; i++)
#endif
		total += values[i];
	bug_work(9000);
	if (total != 4950)
		bugnet_save("the total is wrong");
	printf("%d\n", total);
	return 0;
}
