/*
 * Two threads and a lock-free queue between them, and a stack that both push to and pop from with
 * compare-and-swap of two words.
 */
#include "check.h"
#include <pthread.h>
#include <sched.h>

#define SLOTS 64
#define ITEMS 20000
#define NODES 512

/* The head and tail are each written by one thread only. */
static struct {
	uint64_t items[SLOTS];
	_Alignas(64) uint64_t head;
	_Alignas(64) uint64_t tail;
} queue;

/* The index of the top node plus one, and a count that makes every state differ from those before. */
static _Alignas(16) struct top {
	uint64_t index, count;
} top;
static uint64_t next[NODES], uses[NODES];

static int swap_top(struct top *expected, struct top desired)
{
	unsigned char swapped;
	__asm__ volatile("lock cmpxchg16b %1\n\tsete %0"
	                 : "=q"(swapped), "+m"(top), "+a"(expected->index), "+d"(expected->count)
	                 : "b"(desired.index), "c"(desired.count)
	                 : "cc", "memory");
	return swapped;
}

static void push(uint64_t node)
{
	struct top old = {0, 0};
	do
		__atomic_store_n(&next[node], old.index, __ATOMIC_RELAXED);
	while (!swap_top(&old, (struct top){node + 1, old.count + 1}));
}

static long pop(void)
{
	struct top old = {0, 0};
	swap_top(&old, old);
	while (old.index)
		if (swap_top(&old, (struct top){__atomic_load_n(&next[old.index - 1], __ATOMIC_RELAXED), old.count + 1}))
			return (long)old.index - 1;
	return -1;
}

/* Take a node, use it alone, give it back. */
static void use_nodes(void)
{
	for (unsigned i = 0; i < ITEMS; i++) {
		long node = pop();
		CHECK(node >= 0);
		uses[node]++;
		push((uint64_t)node);
	}
}

static void *producer(void *arg)
{
	uint64_t state = 11;
	(void)arg;
	for (uint64_t i = 0; i < ITEMS; i++) {
		while (i - __atomic_load_n(&queue.head, __ATOMIC_ACQUIRE) == SLOTS)
			sched_yield();
		queue.items[i % SLOTS] = next_random(&state);
		__atomic_store_n(&queue.tail, i + 1, __ATOMIC_RELEASE);
	}
	use_nodes();
	return NULL;
}

int main(void)
{
	pthread_t thread;
	uint64_t sum = 0, total = 0;
	for (unsigned i = 0; i < NODES; i++)
		push(i);
	CHECK(!pthread_create(&thread, NULL, producer, NULL));
	for (uint64_t i = 0; i < ITEMS; i++) {
		while (__atomic_load_n(&queue.tail, __ATOMIC_ACQUIRE) == i)
			sched_yield();
		sum = mix(sum, queue.items[i % SLOTS]);
		__atomic_store_n(&queue.head, i + 1, __ATOMIC_RELEASE);
	}
	use_nodes();
	CHECK(!pthread_join(thread, NULL));
	for (unsigned i = 0; i < NODES; i++)
		total += uses[i];
	CHECK_EQ(total, 2 * ITEMS);
	printf("%016llx\n", (unsigned long long)sum);
	return done();
}
