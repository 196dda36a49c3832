/*
 * Two threads count without a lock.
 *
 * race: counter
 */
#include "race.h"

static int counter;

static NOINLINE void *count(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		IF_FIXED(LOCK();)
		counter++;
		IF_FIXED(UNLOCK();)
	}
	return unused;
}

int main(void)
{
	run_two(count, count);
	printf("%d\n", counter > 0);
	return 0;
}
