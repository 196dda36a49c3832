/*
 * The indices of a ring buffer are plain numbers.
 *
 * race: ring
 */
#include "race.h"

static struct {
	IF_FIXED(_Atomic) unsigned first, last;
	int items[8];
} ring;

#define LOAD(x) IF_FIXED(atomic_load_explicit(&x, memory_order_acquire)) IF_RACING(*(volatile unsigned *)&x)
#define NEXT(x) IF_FIXED(atomic_store_explicit(&x, x + 1, memory_order_release)) IF_RACING(*(volatile unsigned *)&x += 1)

static NOINLINE void *produce(void *unused)
{
	for (int i = 0; i < ROUNDS;) {
		unsigned first = LOAD(ring.first);
		if (ring.last - first == 8) {
			sched_yield();
			continue;
		}
		ring.items[ring.last % 8] = i++;
		NEXT(ring.last);
	}
	return unused;
}

static NOINLINE void *consume(void *unused)
{
	int sum = 0;
	for (int i = 0; i < ROUNDS;) {
		unsigned last = LOAD(ring.last);
		if (last == ring.first) {
			sched_yield();
			continue;
		}
		sum += ring.items[ring.first % 8];
		i++;
		NEXT(ring.first);
	}
	return sum == ROUNDS * (ROUNDS - 1) / 2 ? unused : NULL;
}

int main(void)
{
	run_two(consume, produce);
	puts("done");
	return 0;
}
