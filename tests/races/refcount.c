/*
 * References are counted without atomic instructions.
 *
 * race: references
 */
#include "race.h"

static int references = 2;

static NOINLINE void *drop(void *unused)
{
	IF_FIXED(int left = __atomic_sub_fetch(&references, 1, __ATOMIC_ACQ_REL);)
	IF_RACING(int left = --references;)
	return left < 0 ? NULL : unused;
}

int main(void)
{
	run_two(drop, drop);
	puts("done");
	return 0;
}
