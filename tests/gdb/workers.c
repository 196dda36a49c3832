/*
 * Two workers take jobs from a list under a lock; one of them writes the wrong slot, and the other one dies of it later.
 *
 * gdb: see tests/gdb.sh.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define JOBS 24

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static long next_job, done;
static long *results[JOBS];
static __thread char padding[100];
static __thread long latest = -1;

__attribute__((noinline)) static void finish_job(long job, long worker)
{
	long slot = job == 13 ? job + 1 : job;
	long *result = malloc(sizeof *result);

	*result = job * 10 + worker;
	latest = *result;
	results[slot] = result;
	if (job == 13)
		results[13] = (long *)0x13; /* the wrong one */
	done++;
}

static void *work(void *argument)
{
	long worker = (long)argument;

	errno = 40 + (int)worker;
	padding[0] = (char)worker;
	pthread_barrier_wait(&barrier);
	for (;;) {
		pthread_mutex_lock(&lock);
		long job = next_job++;
		if (job < JOBS)
			finish_job(job, worker);
		pthread_mutex_unlock(&lock);
		if (job >= JOBS)
			return NULL;
		usleep(100);
	}
}

__attribute__((noinline)) static long collect(void)
{
	long sum = 0;

	for (int i = 0; i < JOBS; i++)
		sum += *results[i];
	return sum;
}

int main(void)
{
	pthread_t threads[2];

	pthread_barrier_init(&barrier, NULL, 3);
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, (void *)(i + 1));
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%ld jobs\n", done);
	printf("%ld\n", collect());
	return 0;
}
