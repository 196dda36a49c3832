/*
 * Each thread has a lock, but not the same one.
 *
 * race: shared
 */
#include "race.h"

static int shared;
static pthread_mutex_t another __attribute__((unused)) = PTHREAD_MUTEX_INITIALIZER;

static NOINLINE void *first(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		LOCK();
		shared++;
		UNLOCK();
	}
	return unused;
}

static NOINLINE void *second(void *unused)
{
	pthread_mutex_t *mine = IF_FIXED(&mutex) IF_RACING(&another);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(mine);
		shared += 3;
		pthread_mutex_unlock(mine);
	}
	return unused;
}

int main(void)
{
	run_two(first, second);
	printf("%d\n", shared > 0);
	return 0;
}
