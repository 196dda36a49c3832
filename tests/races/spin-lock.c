/*
 * A spin lock is taken by a load and a store; the right one is released by a plain store.
 *
 * race: taken
 */
#include "race.h"

static int taken;
static long inside;

static NOINLINE void take(void)
{
	IF_FIXED(while (__atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE)) sched_yield();)
	IF_RACING(while (*(volatile int *)&taken) sched_yield();)
	IF_RACING(*(volatile int *)&taken = 1;)
}

static NOINLINE void *work(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		take();
		inside++;
		__atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
	}
	return unused;
}

int main(void)
{
	run_two(work, work);
	printf("%d\n", inside > 0);
	return 0;
}
