/* life CASE: what happens to single threads: signals sent to one of them, storage of their own, cancellation, and the
 * exit of the process while others run. cases: signals storage cancel exit */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 4

static pthread_t threads[THREADS];
static int shared[THREADS], ready, stop;
static _Thread_local int got;
static _Thread_local char big[100000];

static void check(int good)
{
	if (!good)
		abort();
}

static void start(void *(*work)(void *))
{
	for (long i = 0; i < THREADS; i++)
		check(!pthread_create(&threads[i], NULL, work, (void *)i));
	while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < THREADS)
		sched_yield();
}

static void join(void *expected)
{
	void *result;

	for (int i = 0; i < THREADS; i++)
		check(!pthread_join(threads[i], &result) && result == expected);
}

/* ---- signals ---- */

static void take(int number)
{
	got += number == SIGUSR1;
}

/* Counts what was sent to it, in a loop without system calls, or in one that waits. */
static void *take_signals(void *argument)
{
	long number = (long)argument;

	__atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
		if (number % 2)
			usleep(1000);
		__atomic_store_n(&shared[number], got, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void signals(void)
{
	struct sigaction action = {.sa_handler = take};

	check(!sigaction(SIGUSR1, &action, NULL));
	start(take_signals);
	for (int round = 1; round <= 20; round++) {
		for (int i = 0; i < THREADS; i++)
			check(!pthread_kill(threads[i], SIGUSR1));
		/* The next one only when all have had this one: they do not queue. */
		for (int i = 0; i < THREADS; i++) {
			while (__atomic_load_n(&shared[i], __ATOMIC_SEQ_CST) < round)
				sched_yield();
		}
	}
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	join(NULL);
	check(got == 0);
}

/* ---- storage ---- */

static pthread_key_t key;

static void destroy(void *value)
{
	__atomic_fetch_add(&shared[0], *(int *)value, __ATOMIC_SEQ_CST);
	free(value);
}

static void *use_storage(void *argument)
{
	int *value = malloc(sizeof *value);

	*value = (int)(long)argument + 1;
	check(!pthread_setspecific(key, value));
	__atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 1000; i++) {
		got += *(int *)pthread_getspecific(key);
		big[i * 100] = (char)got;
		errno = got;
	}
	check(errno == got && got == 1000 * *value && big[99900] == (char)got && big[99901] == 0);
	return NULL;
}

static void storage(void)
{
	check(!pthread_key_create(&key, destroy));
	start(use_storage);
	join(NULL);
	check(shared[0] == 1 + 2 + 3 + 4 && got == 0);
}

/* ---- cancellation ---- */

static void clean_up(void *number)
{
	__atomic_store_n(&shared[(long)number], 1, __ATOMIC_SEQ_CST);
}

/* In a system call that waits, in a loop that tests, and in one that can be left anywhere. */
static void *be_cancelled(void *argument)
{
	long number = (long)argument;
	int old;

	pthread_cleanup_push(clean_up, argument);
	if (number == 2)
		check(!pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old));
	__atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
	for (volatile long i = 0;; i++) {
		if (number == 0)
			pause();
		else if (number != 2)
			pthread_testcancel();
		/* With few processors the others get to cancelling sooner, and there is less to order. */
		if (i % 1000 == 999)
			sched_yield();
	}
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancel(void)
{
	start(be_cancelled);
	for (int i = 0; i < THREADS; i++)
		check(!pthread_cancel(threads[i]));
	join(PTHREAD_CANCELED);
	for (int i = 0; i < THREADS; i++)
		check(shared[i]);
}

/* ---- exit ---- */

static void *never_end(void *argument)
{
	__atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		__atomic_fetch_add(&shared[(long)argument % 2], 1, __ATOMIC_SEQ_CST);
		if ((long)argument == 3)
			usleep(100);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (!strcmp(name, "signals"))
		signals();
	else if (!strcmp(name, "storage"))
		storage();
	else if (!strcmp(name, "cancel"))
		cancel();
	else if (!strcmp(name, "exit"))
		start(never_end);
	else
		return 1;
	return 0;
}
