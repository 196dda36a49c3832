/*
 * A block that was freed and given out again, grown meanwhile: what races is in the last of these, and another thread
 * allocates all the time, too.
 *
 * race: add() take()
 * allocated: late()
 */
#include "race.h"

static long *block;

static NOINLINE long *early(void)
{
	long *first = malloc(48);
	first[1] = 1;
	return first;
}

static NOINLINE long *late(void)
{
	return realloc(malloc(24), 48);
}

static NOINLINE void *add(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		char *noise = malloc(48);
		memset(noise, i, 48);
		IF_FIXED(LOCK();)
		*(volatile long *)&block[2] += 1;
		IF_FIXED(UNLOCK();)
		free(noise);
	}
	return unused;
}

static NOINLINE void *take(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		IF_FIXED(LOCK();)
		*(volatile long *)&block[2] -= 1;
		IF_FIXED(UNLOCK();)
	}
	return unused;
}

int main(void)
{
	free(early());
	block = late();
	block[2] = 0;
	run_two(add, take);
	printf("%d\n", block[2] < 1000);
	return 0;
}
