/*
 * A store under a lock for readers.
 *
 * race: total
 */
#include "race.h"

static long total;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t both_inside;

static NOINLINE void *add(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		IF_FIXED(pthread_rwlock_wrlock(&lock);)
		IF_RACING(pthread_rwlock_rdlock(&lock);)
		IF_RACING(pthread_barrier_wait(&both_inside);)
		total++;
		IF_RACING(pthread_barrier_wait(&both_inside);)
		pthread_rwlock_unlock(&lock);
	}
	return unused;
}

int main(void)
{
	pthread_barrier_init(&both_inside, NULL, 2);
	run_two(add, add);
	printf("%d\n", total > 0);
	return 0;
}
