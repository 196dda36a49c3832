/*
 * A value is handed over by builtins of the compiler, or one side forgets to use one.
 *
 * race: ready
 */
#include "race.h"

static int ready, payload, sum;

static NOINLINE void *give(void *unused)
{
	payload = 5;
	__atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
	return unused;
}

static NOINLINE void *take(void *unused)
{
	IF_FIXED(if (__atomic_load_n(&ready, __ATOMIC_ACQUIRE)))
	IF_RACING(if (ready))
		sum += payload;
	return unused;
}

int main(void)
{
	run_two(give, take);
	printf("%d\n", sum == 0 || sum == 5);
	return 0;
}
