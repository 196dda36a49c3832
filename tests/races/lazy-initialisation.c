/*
 * Whoever comes first initialises, and both may come first.
 *
 * race: table
 */
#include "race.h"

static int table[4], initialised;
static pthread_once_t once __attribute__((unused)) = PTHREAD_ONCE_INIT;

static NOINLINE void initialise(void)
{
	for (int i = 0; i < 4; i++)
		table[i] = i + 1;
	*(volatile int *)&initialised = 1;
}

static NOINLINE void *use(void *unused)
{
	IF_FIXED(pthread_once(&once, initialise);)
	IF_RACING(if (!*(volatile int *)&initialised) initialise();)
	return table[3] == 9 ? NULL : unused;
}

int main(void)
{
	run_two(use, use);
	puts("done");
	return 0;
}
