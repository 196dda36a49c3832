/*
 * Several threads create threads at the same moment: whoever claims a number first need not be the first to get
 * memory for it.
 */
#include "check.h"
#include <pthread.h>

#define MAKERS 8
#define ROUNDS 4

static pthread_barrier_t barrier;
static int made;

static void *leaf(void *argument)
{
	__atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
	return argument;
}

static void *maker(void *argument)
{
	pthread_t threads[ROUNDS];

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < ROUNDS; i++)
		CHECK(pthread_create(&threads[i], NULL, leaf, argument) == 0);
	for (int i = 0; i < ROUNDS; i++)
		pthread_join(threads[i], NULL);
	return argument;
}

int main(void)
{
	pthread_t threads[MAKERS];

	pthread_barrier_init(&barrier, NULL, MAKERS);
	for (int i = 0; i < MAKERS; i++)
		CHECK(pthread_create(&threads[i], NULL, maker, NULL) == 0);
	for (int i = 0; i < MAKERS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(made, MAKERS * ROUNDS);
	return done();
}
