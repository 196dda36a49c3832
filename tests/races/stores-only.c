/*
 * Two threads store, and nobody ever loads it: which came first nobody can tell.
 *
 * race: value
 * ordered: no
 */
#include "race.h"

static volatile int value;

static NOINLINE void *store(void *argument)
{
	IF_FIXED(LOCK();)
	value = 5;
	IF_FIXED(UNLOCK();)
	return argument;
}

static NOINLINE void *store_other(void *argument)
{
	IF_FIXED(LOCK();)
	value = 6;
	IF_FIXED(UNLOCK();)
	return argument;
}

int main(void)
{
	run_two(store, store_other);
	puts("done");
	return 0;
}
