/*
 * Two threads set bits of the same word.
 *
 * race: flags
 */
#include "race.h"

static unsigned flags;

static NOINLINE void set(unsigned bit)
{
	IF_FIXED(__atomic_fetch_or(&flags, bit, __ATOMIC_RELAXED);)
	IF_RACING(flags |= bit;)
}

static NOINLINE void *low(void *unused)
{
	set(1);
	return unused;
}

static NOINLINE void *high(void *unused)
{
	set(2);
	return unused;
}

int main(void)
{
	run_two(low, high);
	printf("%d\n", flags != 0);
	return 0;
}
