/* cases: thousand many */
/*
 * A thousand threads at a time, with stacks of the usual size, or several thousands with small ones: all live
 * until the last one is there, and each works on its stack, on memory of its own and on memory that all share.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THOUSAND 1000
#define MANY     3000
#define WORDS    64

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int wanted, arrived, passed;
static uint64_t shared[MANY];

static uint64_t mix(uint64_t *words, uint64_t seed)
{
	uint64_t sum = seed;

	for (int i = 0; i < WORDS; i++) {
		words[i] = sum * 0x9e3779b97f4a7c15 + (uint64_t)i;
		sum ^= words[i] >> 7;
	}
	for (int i = 0; i < WORDS; i++)
		sum = sum * 31 + words[i];
	return sum;
}

/* What the thread left before all were there must be there after it. */
static void *work(void *argument)
{
	uint64_t number = (uintptr_t)argument, on_stack[WORDS], *own = malloc(sizeof on_stack);

	shared[number] = mix(on_stack, number);
	mix(own, number + 1);
	pthread_mutex_lock(&mutex);
	arrived++;
	if (arrived == wanted)
		pthread_cond_broadcast(&changed);
	while (arrived < wanted)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);

	uint64_t again[WORDS], neighbour = (number + 1) % (uint64_t)wanted;
	int good = mix(again, number) == shared[number] && memcmp(again, on_stack, sizeof again) == 0;
	mix(again, number + 1);
	good &= memcmp(again, own, sizeof again) == 0 && mix(again, neighbour) == shared[neighbour];
	free(own);
	pthread_mutex_lock(&mutex);
	passed += good;
	pthread_mutex_unlock(&mutex);
	return NULL;
}

int main(int argc, char **argv)
{
	int many = argc > 1 && strcmp(argv[1], "many") == 0;
	static pthread_t threads[MANY];
	pthread_attr_t attributes;
	int made = 0, error = 0;

	wanted = many ? MANY : THOUSAND;
	pthread_attr_init(&attributes);
	if (many)
		pthread_attr_setstacksize(&attributes, 64 << 10);
	while (made < wanted && !error) {
		error = pthread_create(&threads[made], &attributes, work, (void *)(uintptr_t)made);
		made += !error;
	}
	if (error) {
		printf("%d made, error %d\n", made, error);
		return 1;
	}
	for (int i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
	printf("%d made, %d passed\n", made, passed);
	return passed != made;
}
