/* expect: signal 11 */
/* cause: a variable is set in one branch only */
/* symptom: an index that is what an earlier function left on the stack */
#include "bug.h"

static volatile int values[16];

static __attribute__((noinline)) void leave_something(void)
{
	volatile long room[64];

	for (int i = 0; i < 64; i++)
		room[i] = 0x7f7f7f7f7f7f;
}

static __attribute__((noinline)) long choose(int kind)
{
	volatile long index[40]; /* most of it for other kinds */

	ROOT_CAUSE();
	if (kind == 1)
		index[20] = 3;
#ifdef FIXED
	else
		index[20] = 0;
#endif
	bug_work(700);
	return index[20];
}

int main(int argc, char **argv)
{
	(void)argv;
	leave_something();
	return values[choose(argc + 1)];
}
