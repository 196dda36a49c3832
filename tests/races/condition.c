/*
 * What a condition variable is about is set without its mutex.
 *
 * race: ready
 */
#include "race.h"

static int ready;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static NOINLINE void *wait_for_it(void *unused)
{
	LOCK();
	while (!ready)
		IF_FIXED(pthread_cond_wait(&condition, &mutex);)
		IF_RACING({ UNLOCK(); sched_yield(); LOCK(); })
	UNLOCK();
	return unused;
}

static NOINLINE void *tell(void *unused)
{
	IF_FIXED(LOCK();)
	ready = 1;
	IF_FIXED(UNLOCK();)
	pthread_cond_signal(&condition);
	return unused;
}

int main(void)
{
	run_two(wait_for_it, tell);
	puts("done");
	return 0;
}
