/*
 * A queue on the heap, whose indices are a language's atomic type, or only look like it.
 *
 * race: push() pop()
 */
#include <atomic>
#include <cstdio>
#include <pthread.h>
#include <sched.h>

#define COUNT 200

#ifdef FIXED
typedef std::atomic<unsigned> counter;
#else
typedef volatile unsigned counter;
#endif

struct queue {
	long items[16];
	counter head, tail;
};

extern "C" __attribute__((noinline)) bool push(queue *q, long item)
{
	unsigned tail = q->tail;
	if (tail - q->head == 16)
		return false;
	q->items[tail % 16] = item;
	q->tail = tail + 1;
	return true;
}

extern "C" __attribute__((noinline)) bool pop(queue *q, long *item)
{
	unsigned head = q->head;
	if (head == q->tail)
		return false;
	*item = q->items[head % 16];
	q->head = head + 1;
	return true;
}

static void *consume(void *argument)
{
	long item = 0, sum = 0;
	for (int i = 0; i < COUNT; i++) {
		while (!pop(static_cast<queue *>(argument), &item))
			sched_yield();
		sum += item;
	}
	return reinterpret_cast<void *>(sum);
}

int main()
{
	queue *q = new queue();
	pthread_t thread;
	void *sum;

	pthread_create(&thread, NULL, consume, q);
	for (long i = 0; i < COUNT; i++) {
		while (!push(q, i))
			sched_yield();
	}
	pthread_join(thread, &sum);
	puts(reinterpret_cast<long>(sum) == COUNT * (COUNT - 1) / 2 ? "done" : "wrong");
	return 0;
}
