/*
 * The main thread tears down what a worker still uses.
 *
 * race: settings
 */
#include "race.h"

static struct {
	int open, value;
} settings = {1, 5};

static NOINLINE void *work(void *unused)
{
	int sum = 0;
	for (int i = 0; i < ROUNDS; i++)
		sum += *(volatile int *)&settings.value;
	return sum == 1 ? NULL : unused;
}

int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, work, NULL);
	IF_FIXED(pthread_join(thread, NULL);)
	*(volatile int *)&settings.value = 0;
	IF_RACING(pthread_join(thread, NULL);)
	puts("done");
	return 0;
}
