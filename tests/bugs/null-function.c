/* expect: signal 11 */
/* cause: a table of functions has no entry for one of the kinds */
/* symptom: a call of address 0 */
#include "bug.h"

static void number(void)
{
	puts("number");
}

static void text(void)
{
	puts("text");
}

static void (*volatile handlers[3])(void);

int main(void)
{
	handlers[0] = number;
	ROOT_CAUSE();
	handlers[1] = text;
#ifdef FIXED
	handlers[2] = text;
#endif
	for (int i = 0; i < 3; i++) {
		bug_work(15000);
		handlers[i]();
	}
	return 0;
}
