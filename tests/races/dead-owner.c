/*
 * A thread ends with a robust lock, which the kernel then gives to the next one; or it has not taken it at all.
 *
 * race: result
 */
#include "race.h"
#include <errno.h>

static int result;
static pthread_mutex_t robust_lock;
static sem_t taken;

static NOINLINE void *leave(void *unused)
{
	IF_FIXED(pthread_mutex_lock(&robust_lock);)
	sem_post(&taken);
	usleep(300000);
	result = 5;
	return unused;
}

static NOINLINE void *take_over(void *unused)
{
	sem_wait(&taken);
	int status = pthread_mutex_lock(&robust_lock);
	if (status == EOWNERDEAD)
		pthread_mutex_consistent(&robust_lock);
	result++;
	pthread_mutex_unlock(&robust_lock);
	return unused;
}

int main(void)
{
	pthread_mutexattr_t attributes;
	IF_FIXED(pthread_t threads[2];)

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust_lock, &attributes);
	sem_init(&taken, 0, 0);
#ifdef FIXED
	pthread_create(&threads[0], NULL, leave, NULL);
	pthread_create(&threads[1], NULL, take_over, NULL);
	pthread_join(threads[1], NULL);
	pthread_join(threads[0], NULL);
#else
	run_two(leave, take_over);
#endif
	puts("done");
	return 0;
}
