/*
 * A flag that is not atomic says that data is there.
 *
 * race: flag
 */
#include "race.h"

static int data;
static IF_FIXED(_Atomic) int flag;

static NOINLINE void *send(void *unused)
{
	data = 42;
	IF_FIXED(atomic_store_explicit(&flag, 1, memory_order_release);)
	IF_RACING(*(volatile int *)&flag = 1;)
	return unused;
}

static NOINLINE void *receive(void *unused)
{
	IF_FIXED(while (!atomic_load_explicit(&flag, memory_order_acquire)) sched_yield();)
	IF_RACING(while (!*(volatile int *)&flag) sched_yield();)
	return data == 42 ? unused : NULL;
}

int main(void)
{
	run_two(receive, send);
	puts("done");
	return 0;
}
