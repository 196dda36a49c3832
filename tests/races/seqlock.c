/*
 * The data behind a sequence counter is loaded and stored plainly.
 *
 * race: values
 */
#include "race.h"

static _Atomic unsigned sequence;
static IF_FIXED(_Atomic) int values[2];

static NOINLINE void *change(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		usleep(500); /* so that somebody looks in between */
		atomic_store_explicit(&sequence, sequence + 1, memory_order_relaxed);
		atomic_thread_fence(memory_order_release);
		IF_FIXED(atomic_store_explicit(&values[0], i, memory_order_relaxed);)
		IF_FIXED(atomic_store_explicit(&values[1], i, memory_order_relaxed);)
		IF_RACING(*(volatile int *)&values[0] = i;)
		IF_RACING(*(volatile int *)&values[1] = i;)
		atomic_store_explicit(&sequence, sequence + 1, memory_order_release);
	}
	return unused;
}

static NOINLINE void *look(void *unused)
{
	int good = 0;
	for (unsigned before = 0; before < 2 * ROUNDS;) {
		sched_yield();
		before = atomic_load_explicit(&sequence, memory_order_acquire);
		IF_FIXED(int a = atomic_load_explicit(&values[0], memory_order_relaxed);)
		IF_FIXED(int b = atomic_load_explicit(&values[1], memory_order_relaxed);)
		IF_RACING(int a = *(volatile int *)&values[0];)
		IF_RACING(int b = *(volatile int *)&values[1];)
		atomic_thread_fence(memory_order_acquire);
		if (before % 2 == 0 && atomic_load_explicit(&sequence, memory_order_relaxed) == before)
			good += a == b;
	}
	return good < 0 ? NULL : unused;
}

int main(void)
{
	run_two(look, change);
	puts("done");
	return 0;
}
