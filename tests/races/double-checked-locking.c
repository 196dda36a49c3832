/*
 * The check outside the lock is a plain load.
 *
 * race: instance
 */
#include "race.h"

struct thing {
	int value;
};
static struct thing *IF_FIXED(_Atomic) instance;

static NOINLINE struct thing *get(void)
{
	IF_FIXED(struct thing *thing = atomic_load_explicit(&instance, memory_order_acquire);)
	IF_RACING(struct thing *thing = *(struct thing *volatile *)&instance;)
	if (thing)
		return thing;
	LOCK();
	thing = instance;
	if (!thing) {
		thing = malloc(sizeof *thing);
		thing->value = 3;
		IF_FIXED(atomic_store_explicit(&instance, thing, memory_order_release);)
		IF_RACING(instance = thing;)
	}
	UNLOCK();
	return thing;
}

static NOINLINE void *use(void *unused)
{
	int sum = 0;
	for (int i = 0; i < ROUNDS; i++)
		sum += get()->value;
	return sum == 1 ? NULL : unused;
}

int main(void)
{
	run_two(use, use);
	puts("done");
	return 0;
}
