/*
 * Signals and threads: those sent to the process go to a thread that does not block them, those sent to a
 * thread stay there; pthread_kill storms at computing threads whose sums must stay right; a thread blocked in
 * a call is woken.
 */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <time.h>

#define THREADS 4

static __thread volatile unsigned mine;
static __thread int index_of_thread = -1;
static volatile unsigned by_thread[THREADS];
static volatile int stop;
static pthread_barrier_t barrier;

static void handler(int sig)
{
	(void)sig;
	if (index_of_thread < 0)
		fail("a signal came to a thread that blocks it");
	by_thread[index_of_thread]++;
	mine++;
}

static void *worker(void *arg)
{
	index_of_thread = (int)(long)arg;
	uint64_t expected = compute((uint64_t)index_of_thread, 5000);
	unsigned rounds = 0;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	pthread_barrier_wait(&barrier);
	while (!stop) {
		CHECK_EQ(compute((uint64_t)index_of_thread, 5000), expected);
		rounds++;
	}
	CHECK_EQ(mine, by_thread[index_of_thread]);
	return (void *)(long)(rounds > 0);
}

static volatile int asleep_woken;

static void on_usr2(int sig)
{
	(void)sig;
	asleep_woken++;
}

static void *sleeper(void *arg)
{
	(void)arg;
	struct timespec long_time = {100, 0};
	index_of_thread = 0;
	pthread_barrier_wait(&barrier);
	CHECK_ERRNO(nanosleep(&long_time, NULL), EINTR);
	return NULL;
}

int main(void)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	pthread_t thread[THREADS];
	sigset_t set;

	alarm(50);
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	action.sa_handler = on_usr2;
	CHECK(!sigaction(SIGUSR2, &action, NULL));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	CHECK(!pthread_barrier_init(&barrier, NULL, THREADS + 1));
	for (long i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, worker, (void *)i));
	pthread_barrier_wait(&barrier);
	struct timespec pause_for = {0, 20000};
	for (int i = 0; i < 4000; i++) {
		CHECK(!pthread_kill(thread[i % THREADS], SIGUSR1));
		if (i % 8 == 0)
			nanosleep(&pause_for, NULL);
	}
	for (int i = 0; i < 1000; i++) {
		CHECK(!kill(getpid(), SIGUSR1));
		if (i % 8 == 0)
			nanosleep(&pause_for, NULL);
	}
	stop = 1;
	for (int i = 0; i < THREADS; i++) {
		void *result;
		CHECK(!pthread_join(thread[i], &result));
		CHECK_EQ(result, 1);
		CHECK(by_thread[i] > 0);
	}

	pthread_barrier_destroy(&barrier);
	CHECK(!pthread_barrier_init(&barrier, NULL, 2));
	CHECK(!pthread_create(&thread[0], NULL, sleeper, NULL));
	pthread_barrier_wait(&barrier);
	while (pthread_tryjoin_np(thread[0], NULL)) {
		usleep(5000);
		pthread_kill(thread[0], SIGUSR2);
	}
	CHECK(asleep_woken > 0);
	return done();
}
