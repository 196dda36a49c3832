/* A pool of threads with a mutex and two condition variables: jobs in, results out. */
#include <pthread.h>
#include <stdio.h>

#define JOBS    120
#define ROOM    4
#define WORKERS 3

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static int jobs[ROOM], first, count, ended;
static long sum;

static void *work(void *unused)
{
	for (;;) {
		pthread_mutex_lock(&mutex);
		while (!count && !ended)
			pthread_cond_wait(&not_empty, &mutex);
		if (!count)
			break;
		int job = jobs[first++ % ROOM];
		count--;
		pthread_cond_signal(&not_full);
		pthread_mutex_unlock(&mutex);
		long result = (long)job * job;
		pthread_mutex_lock(&mutex);
		sum += result;
		pthread_mutex_unlock(&mutex);
	}
	pthread_mutex_unlock(&mutex);
	return unused;
}

int main(void)
{
	pthread_t threads[WORKERS];

	for (int i = 0; i < WORKERS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < JOBS; i++) {
		pthread_mutex_lock(&mutex);
		while (count == ROOM)
			pthread_cond_wait(&not_full, &mutex);
		jobs[(first + count++) % ROOM] = i;
		pthread_cond_signal(&not_empty);
		pthread_mutex_unlock(&mutex);
	}
	pthread_mutex_lock(&mutex);
	ended = 1;
	pthread_cond_broadcast(&not_empty);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	printf("%ld\n", sum);
	return sum != (long)(JOBS - 1) * JOBS * (2 * JOBS - 1) / 6;
}
