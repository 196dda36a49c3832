/*
 * A counter that one thread changes by an atomic instruction and the other by a plain one.
 *
 * race: counter
 */
#include "race.h"

static unsigned counter;

static NOINLINE void *count(void *unused)
{
	for (int i = 0; i < ROUNDS; i++)
		__atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
	return unused;
}

static NOINLINE void bump(void)
{
	IF_FIXED(__atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);)
	IF_RACING(counter++;)
}

static NOINLINE void *count_too(void *unused)
{
	for (int i = 0; i < ROUNDS; i++)
		bump();
	return unused;
}

int main(void)
{
	run_two(count, count_too);
	printf("%d\n", counter > 0);
	return 0;
}
