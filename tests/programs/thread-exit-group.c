/* cases: main other signal-storm nested */
/* expect: exit 42 */
/*
 * exit_group while other threads compute, create threads, wait in locks and translate new code: the process
 * ends with the status given, at once.
 */
#include "check.h"
#include <pthread.h>
#include <signal.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *empty(void *arg)
{
	return arg;
}

static void *compute_forever(void *arg)
{
	for (;;)
		compute((uint64_t)arg, 1000);
	return NULL;
}

static void *create_forever(void *arg)
{
	(void)arg;
	for (;;) {
		pthread_t thread;
		if (!pthread_create(&thread, NULL, empty, NULL))
			pthread_join(thread, NULL);
	}
	return NULL;
}

static void *lock_forever(void *arg)
{
	(void)arg;
	for (;;) {
		pthread_mutex_lock(&mutex);
		compute(1, 10);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void *exits(void *arg)
{
	(void)arg;
	usleep(20000);
	_exit(42);
}

static void handler(int sig)
{
	(void)sig;
}

static void *storms(void *arg)
{
	for (;;)
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "main";
	pthread_t thread, self = pthread_self();
	void *(*const bodies[])(void *) = {compute_forever, create_forever, lock_forever, lock_forever};

	printf("%s\n", how);
	fflush(stdout);
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&thread, NULL, bodies[i], (void *)1L));
	if (!strcmp(how, "other")) {
		CHECK(!pthread_create(&thread, NULL, exits, NULL));
		compute_forever((void *)3L);
	}
	if (!strcmp(how, "signal-storm")) {
		signal(SIGUSR1, handler);
		CHECK(!pthread_create(&thread, NULL, storms, &self));
	}
	if (!strcmp(how, "nested")) {
		/* Two threads call it at the same time. */
		CHECK(!pthread_create(&thread, NULL, exits, NULL));
		CHECK(!pthread_create(&thread, NULL, exits, NULL));
	}
	usleep(20000);
	exit(42);
}
