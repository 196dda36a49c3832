/*
 * Each program here has a race; built with -DFIXED it has none. A comment with `race:` names the variable, or, if it
 * has no name, the functions that race; one with `allocated:` the function that called the
 * allocator for it; `stack:` the innermost function, which is inlined, and those that called it, of which without_lines has no line; `freed:` the one that frees it and
 * the one that uses it; `call:` a system call, the function that makes it and the one that races with what it does to memory; `ordered: no` says that nobody can tell which access came first.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
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
	pthread_barrier_t *start, *end;
};

static void *run_one(void *argument)
{
	struct runner *runner = argument;

	pthread_barrier_wait(runner->start);
	void *result = runner->function(runner->argument);
	pthread_barrier_wait(runner->end);
	return result;
}

/*
 * All run at the same time, and have ended when it returns. None begins before all are there, and none ends before all
 * are done: making a thread would order it behind those that have ended, and so would the lock that malloc takes for
 * a thread's arena at its end and at the first call of another.
 */
static void run(struct runner *runners, unsigned count)
{
	pthread_t threads[8];
	pthread_barrier_t start, end;

	pthread_barrier_init(&start, NULL, count);
	pthread_barrier_init(&end, NULL, count);
	for (unsigned i = 0; i < count; i++) {
		runners[i].start = &start;
		runners[i].end = &end;
		pthread_create(&threads[i], NULL, run_one, &runners[i]);
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static inline void run_two(void *(*first)(void *), void *(*second)(void *))
{
	run((struct runner[]){{.function = first}, {.function = second}}, 2);
}

/* Until the thread has ended, of which nobody is told: that orders nothing. */
static inline void outlive(pid_t thread)
{
	while (syscall(SYS_tgkill, getpid(), thread, 0) == 0)
		usleep(1000);
}

static pthread_mutex_t mutex __attribute__((unused)) = PTHREAD_MUTEX_INITIALIZER;
#define LOCK()   pthread_mutex_lock(&mutex)
#define UNLOCK() pthread_mutex_unlock(&mutex)
