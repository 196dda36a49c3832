/*
 * A thread uses what another one was to have set before.
 *
 * race: configuration
 */
#include "race.h"

static int configuration;
static sem_t ready;

static NOINLINE void *configure(void *unused)
{
	configuration = 7;
	sem_post(&ready);
	return unused;
}

static NOINLINE void *work(void *unused)
{
	IF_FIXED(sem_wait(&ready);)
	int seen = configuration;
	return seen == 99 ? NULL : unused;
}

int main(void)
{
	sem_init(&ready, 0, 0);
	run_two(work, configure);
	puts("done");
	return 0;
}
