/*
 * Timers: setitimer of all three kinds, timer_create with signal, thread id and thread function, overrun
 * counts, alarm, getitimer, timerfd, cancelling.
 */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static volatile int count[65];
static volatile int overruns, thread_calls;
static volatile pid_t handled_by;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)context;
	handled_by = gettid();
	count[sig]++;
	if (info->si_code == SI_TIMER)
		overruns += info->si_overrun;
}

static void notify(union sigval value)
{
	CHECK_EQ(value.sival_int, 9);
	__atomic_fetch_add(&thread_calls, 1, __ATOMIC_SEQ_CST);
}

static pid_t waiter_tid;
static volatile int stop;

static void *waiter(void *arg)
{
	(void)arg;
	__atomic_store_n(&waiter_tid, gettid(), __ATOMIC_SEQ_CST);
	while (!stop)
		usleep(1000);
	return NULL;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct itimerval every_ms = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}}, left;
	const struct {
		int which, sig;
	} kinds[] = {{ITIMER_REAL, SIGALRM}, {ITIMER_VIRTUAL, SIGVTALRM}, {ITIMER_PROF, SIGPROF}};

	for (int i = 0; i < 3; i++) {
		CHECK(!sigaction(kinds[i].sig, &action, NULL));
		CHECK(!setitimer(kinds[i].which, &every_ms, NULL));
		while (count[kinds[i].sig] < 20)
			compute(1, 1000);
		CHECK(!getitimer(kinds[i].which, &left));
		CHECK(left.it_interval.tv_usec >= 1000);
		CHECK(!setitimer(kinds[i].which, &off, &left));
		int before = count[kinds[i].sig];
		usleep(10000);
		CHECK_EQ(count[kinds[i].sig], before);
	}

	/* A blocked timer signal comes once, with an overrun count. */
	timer_t timer;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
	struct itimerspec spec = {{0, 1000000}, {0, 1000000}};
	sigset_t set;
	CHECK(!sigaction(SIGRTMIN, &action, NULL));
	CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	CHECK(!timer_settime(timer, 0, &spec, NULL));
	usleep(30000);
	CHECK(!timer_delete(timer) || errno == EINVAL);
	count[SIGRTMIN] = 0;
	CHECK(!sigprocmask(SIG_UNBLOCK, &set, NULL));
	CHECK(count[SIGRTMIN] <= 1); /* a deleted timer's signal may be gone */
	CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	CHECK(!timer_settime(timer, 0, &spec, NULL));
	usleep(30000);
	overruns = count[SIGRTMIN] = 0;
	CHECK(!sigprocmask(SIG_UNBLOCK, &set, NULL));
	while (count[SIGRTMIN] < 3)
		usleep(1000);
	CHECK(!timer_delete(timer));
	CHECK(overruns >= 15);

	/* To one thread. */
	pthread_t thread;
	CHECK(!pthread_create(&thread, NULL, waiter, NULL));
	while (!__atomic_load_n(&waiter_tid, __ATOMIC_SEQ_CST))
		usleep(1000);
	event = (struct sigevent){.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 1};
	event.sigev_notify_thread_id = waiter_tid;
	CHECK(!sigaction(SIGRTMIN + 1, &action, NULL));
	CHECK(!timer_create(CLOCK_REALTIME, &event, &timer));
	CHECK(!timer_settime(timer, 0, &spec, NULL));
	while (count[SIGRTMIN + 1] < 10) {
		usleep(1000);
		if (count[SIGRTMIN + 1])
			CHECK_EQ(handled_by, waiter_tid);
	}
	CHECK(!timer_delete(timer));
	stop = 1;
	CHECK(!pthread_join(thread, NULL));

	/* A function in a thread that libc starts. */
	event = (struct sigevent){.sigev_notify = SIGEV_THREAD, .sigev_notify_function = notify};
	event.sigev_value.sival_int = 9;
	CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK(!timer_settime(timer, 0, &spec, NULL));
	while (thread_calls < 20)
		usleep(1000);
	CHECK(!timer_delete(timer));

	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	uint64_t expirations, total = 0;
	CHECK(fd >= 0);
	CHECK(!timerfd_settime(fd, 0, &spec, NULL));
	while (total < 20) {
		CHECK_EQ(read(fd, &expirations, 8), 8);
		total += expirations;
	}
	close(fd);

	count[SIGALRM] = 0;
	CHECK_EQ(alarm(100), 0);
	CHECK_EQ(alarm(0), 100);
	ualarm(1000, 0);
	while (!count[SIGALRM])
		usleep(500);
	CHECK_EQ(count[SIGALRM], 1);
	return done();
}
