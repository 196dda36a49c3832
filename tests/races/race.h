/*
 * Each program here has a race; built with -DFIXED it has none. A comment with `race:` names the variable, or, if it
 * has no name, the functions that race.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef FIXED
#define IF_FIXED(...)   __VA_ARGS__
#define IF_RACING(...)
#else
#define IF_FIXED(...)
#define IF_RACING(...) __VA_ARGS__
#endif

#define ROUNDS   50
#define NOINLINE __attribute__((noinline))

/* Both run at the same time, and have ended when it returns. */
static void run_two(void *(*first)(void *), void *(*second)(void *))
{
	pthread_t threads[2];

	pthread_create(&threads[0], NULL, first, NULL);
	pthread_create(&threads[1], NULL, second, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

static pthread_mutex_t mutex __attribute__((unused)) = PTHREAD_MUTEX_INITIALIZER;
#define LOCK()   pthread_mutex_lock(&mutex)
#define UNLOCK() pthread_mutex_unlock(&mutex)
