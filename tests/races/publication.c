/*
 * An object is published by a plain pointer.
 *
 * race: published
 */
#include "race.h"

struct object {
	int a, b;
};
static struct object *IF_FIXED(_Atomic) published;

static NOINLINE void *publish(void *unused)
{
	struct object *object = malloc(sizeof *object);
	object->a = 1;
	object->b = 2;
	IF_FIXED(atomic_store_explicit(&published, object, memory_order_release);)
	IF_RACING(published = object;)
	return unused;
}

static NOINLINE void *look(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		IF_FIXED(struct object *object = atomic_load_explicit(&published, memory_order_acquire);)
		IF_RACING(struct object *object = *(struct object *volatile *)&published;)
		if (object && object->a + object->b == 3)
			break;
		sched_yield();
	}
	return unused;
}

int main(void)
{
	run_two(publish, look);
	puts("done");
	return 0;
}
