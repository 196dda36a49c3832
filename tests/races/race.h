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

struct runner {
	void *(*function)(void *);
	void *argument;
	pthread_barrier_t *start;
};

static void *run_one(void *argument)
{
	struct runner *runner = argument;

	pthread_barrier_wait(runner->start);
	return runner->function(runner->argument);
}

/*
 * All run at the same time, and have ended when it returns. None begins before all are there: making a thread would order
 * it behind those that have ended.
 */
static void run(struct runner *runners, unsigned count)
{
	pthread_t threads[8];
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, count);
	for (unsigned i = 0; i < count; i++) {
		runners[i].start = &start;
		pthread_create(&threads[i], NULL, run_one, &runners[i]);
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static inline void run_two(void *(*first)(void *), void *(*second)(void *))
{
	run((struct runner[]){{.function = first}, {.function = second}}, 2);
}

static pthread_mutex_t mutex __attribute__((unused)) = PTHREAD_MUTEX_INITIALIZER;
#define LOCK()   pthread_mutex_lock(&mutex)
#define UNLOCK() pthread_mutex_unlock(&mutex)
