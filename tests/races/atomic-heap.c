/*
 * States in blocks of the heap that one thread sets and another looks at: members of an atomic type, or not.
 *
 * race: set() look()
 */
#include "race.h"

#define BLOCKS 8

struct block {
	int payload;
	IF_FIXED(_Atomic) int state;
};

static struct block *blocks[BLOCKS];
static int sum;

static NOINLINE void *set(void *unused)
{
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i]->payload = i;
		IF_FIXED(atomic_store_explicit(&blocks[i]->state, 1, memory_order_release);)
		IF_RACING(blocks[i]->state = 1;)
	}
	return unused;
}

static NOINLINE void *look(void *unused)
{
	for (int i = BLOCKS - 1; i >= 0; i--) {
		if (blocks[i]->state == 1)
			sum += blocks[i]->payload;
	}
	return unused;
}

int main(void)
{
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = calloc(1, sizeof *blocks[i]);
	run_two(set, look);
	printf("%d\n", sum >= 0);
	return 0;
}
