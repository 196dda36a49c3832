/* idle N: so many threads that wait, until standard input ends; says when they do. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int waiting, ended;

static void *wait_for_end(void *unused)
{
	pthread_mutex_lock(&mutex);
	waiting++;
	pthread_cond_broadcast(&changed);
	while (!ended)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
	return unused;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t *threads = calloc(count + 1, sizeof *threads);
	char byte;

	for (int i = 0; i < count; i++) {
		if (pthread_create(&threads[i], NULL, wait_for_end, NULL))
			return 1;
	}
	pthread_mutex_lock(&mutex);
	while (waiting < count)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	pthread_mutex_lock(&mutex);
	ended = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
