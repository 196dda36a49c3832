/*
 * A semaphore is posted before the result is there.
 *
 * race: result
 */
#include "race.h"

static int result;
static sem_t semaphore;

static NOINLINE void *compute(void *unused)
{
	IF_FIXED(result = 5;)
	sem_post(&semaphore);
	IF_RACING(result = 5;)
	return unused;
}

static NOINLINE void *wait_for_it(void *unused)
{
	sem_wait(&semaphore);
	return *(volatile int *)&result == 99 ? NULL : unused;
}

int main(void)
{
	sem_init(&semaphore, 0, 0);
	run_two(wait_for_it, compute);
	puts("done");
	return 0;
}
