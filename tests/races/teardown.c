/*
 * One thread tears down what another one still uses.
 *
 * race: settings
 */
#include "race.h"

static struct {
	int open, value;
} settings = {1, 5};
static sem_t finished;

static NOINLINE void *work(void *unused)
{
	int sum = 0;
	for (int i = 0; i < ROUNDS; i++)
		sum += *(volatile int *)&settings.value;
	sem_post(&finished);
	return sum == 1 ? NULL : unused;
}

static NOINLINE void *tear_down(void *unused)
{
	IF_FIXED(sem_wait(&finished);)
	*(volatile int *)&settings.value = 0;
	return unused;
}

int main(void)
{
	sem_init(&finished, 0, 0);
	run_two(work, tear_down);
	puts("done");
	return 0;
}
