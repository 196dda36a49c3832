/* More threads at a time than can be recorded: one is refused with EAGAIN, as a limit would do it, and all
 * others work. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#define WANTED 300

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t open_now = PTHREAD_COND_INITIALIZER;
static int is_open, passed;

static void *wait_for_all(void *unused)
{
	pthread_mutex_lock(&mutex);
	while (!is_open)
		pthread_cond_wait(&open_now, &mutex);
	passed++;
	pthread_mutex_unlock(&mutex);
	return unused;
}

int main(void)
{
	pthread_t threads[WANTED];
	pthread_attr_t small;
	int made = 0, error = 0;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	while (made < WANTED && !(error = pthread_create(&threads[made], &small, wait_for_all, NULL)))
		made++;
	pthread_mutex_lock(&mutex);
	is_open = 1;
	pthread_cond_broadcast(&open_now);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
	printf("%d made, %d passed, error %d\n", made, passed, error);
	return passed != made || (error && error != EAGAIN);
}
