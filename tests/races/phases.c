/*
 * The second phase begins while another thread is in the first.
 *
 * race: cells
 */
#include "race.h"

static int cells[2];
static pthread_barrier_t barrier;

static NOINLINE int phases(int own)
{
	cells[own] = own + 1;
	IF_FIXED(pthread_barrier_wait(&barrier);)
	return *(volatile int *)&cells[!own];
}

static NOINLINE void *first(void *unused)
{
	return phases(0) == 99 ? NULL : unused;
}

static NOINLINE void *second(void *unused)
{
	return phases(1) == 99 ? NULL : unused;
}

int main(void)
{
	pthread_barrier_init(&barrier, NULL, 2);
	run_two(first, second);
	puts("done");
	return 0;
}
