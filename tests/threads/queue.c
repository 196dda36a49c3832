/* A queue without locks (Michael and Scott), two threads that put and two that take; nothing is lost or comes twice. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define ITEMS 200

struct node {
	_Atomic(struct node *) next;
	int value;
};
static _Atomic(struct node *) head, tail;
static _Atomic int taken;
static _Atomic unsigned char times[2 * ITEMS];

static void put(int value)
{
	struct node *node = calloc(1, sizeof *node);

	node->value = value;
	for (;;) {
		struct node *last = tail, *next = last->next;
		if (next)
			atomic_compare_exchange_strong(&tail, &last, next);
		else if (atomic_compare_exchange_strong(&last->next, &next, node))
			break;
	}
	struct node *last = tail;
	if (last->next)
		atomic_compare_exchange_strong(&tail, &last, last->next);
}

/* What is taken is not freed: somebody may still look at it. */
static int take(void)
{
	for (;;) {
		struct node *first = head, *next = first->next;
		if (!next)
			return -1;
		int value = next->value;
		if (atomic_compare_exchange_strong(&head, &first, next))
			return value;
	}
}

static void *produce(void *base)
{
	for (int i = 0; i < ITEMS; i++)
		put((int)(long)base + i);
	return NULL;
}

static void *consume(void *unused)
{
	while (taken < 2 * ITEMS) {
		int value = take();
		if (value < 0) {
			sched_yield();
			continue;
		}
		times[value]++;
		taken++;
	}
	return unused;
}

int main(void)
{
	pthread_t threads[4];
	int wrong = 0;

	head = tail = calloc(1, sizeof(struct node));
	pthread_create(&threads[0], NULL, produce, (void *)0L);
	pthread_create(&threads[1], NULL, produce, (void *)(long)ITEMS);
	pthread_create(&threads[2], NULL, consume, NULL);
	pthread_create(&threads[3], NULL, consume, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 2 * ITEMS; i++)
		wrong += times[i] != 1;
	printf("%d taken, %d wrong\n", (int)taken, wrong);
	return wrong != 0;
}
