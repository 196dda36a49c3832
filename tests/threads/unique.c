/* unique: threads that store to and load from the same words with nothing that orders them, each store another value: so
 * every load tells which store it came after. */
#include <pthread.h>
#include <stdint.h>

#define THREADS 3
#define WORDS   4
#define TIMES   3000

static volatile uint64_t words[WORDS];
static pthread_barrier_t barrier;

static void *work(void *argument)
{
	uint64_t self = (uint64_t)argument, state = self * 0x9e3779b97f4a7c15ul, sum = 0;

	pthread_barrier_wait(&barrier);
	for (uint64_t i = 1; i <= TIMES; i++) {
		state = state * 6364136223846793005ul + 1442695040888963407ul;
		if (state >> 50 & 1)
			words[state >> 33 & (WORDS - 1)] = self << 56 | i;
		else
			sum += words[state >> 33 & (WORDS - 1)];
	}
	return (void *)sum;
}

int main(void)
{
	pthread_t threads[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)(i + 1));
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
