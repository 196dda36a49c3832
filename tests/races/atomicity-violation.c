/*
 * A pointer is tested, and used when another thread may have taken it away.
 *
 * race: name
 */
#include "race.h"

static const char *name = "somebody";

static NOINLINE void *use(void *unused)
{
	size_t sum = 0;
	for (int i = 0; i < ROUNDS; i++) {
		IF_FIXED(LOCK();)
		const char *copy = name;
		if (copy)
			sum += strlen(copy);
		IF_FIXED(UNLOCK();)
	}
	return sum ? unused : NULL;
}

static NOINLINE void *change(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		IF_FIXED(LOCK();)
		name = i % 2 ? "somebody" : NULL;
		IF_FIXED(UNLOCK();)
	}
	return unused;
}

int main(void)
{
	run_two(use, change);
	puts("done");
	return 0;
}
