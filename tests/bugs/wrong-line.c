/* expect: output negative balance */
/* cause: an amount is subtracted twice */
/* symptom: a line of output that should never come */
#include "bug.h"

int main(void)
{
	volatile long balance = 100;

	balance -= 60;
	ROOT_CAUSE();
#ifndef FIXED
	balance -= 60;
#endif
	bug_work(12000);
	if (balance < 0)
		fprintf(stderr, "warning: negative balance: %ld\n", balance);
	return 0;
}
