/*
 * Signals sent to threads that are about to exit or were just created: each is handled, or the thread was
 * gone (ESRCH); none kills the process, none is handled on a wrong thread.
 */
#include "check.h"
#include <pthread.h>
#include <signal.h>

static __thread pid_t self;
static volatile unsigned handled;
static pid_t current_tid;

static void handler(int sig)
{
	(void)sig;
	if (self)
		CHECK_EQ(self, gettid());
	__atomic_fetch_add(&handled, 1, __ATOMIC_SEQ_CST);
}

static void *brief(void *arg)
{
	self = gettid();
	__atomic_store_n(&current_tid, self, __ATOMIC_SEQ_CST);
	compute((uint64_t)arg, (unsigned)((uint64_t)arg % 200));
	return NULL;
}

static volatile int stop;

static void *sender(void *arg)
{
	unsigned sent = 0;
	(void)arg;
	self = gettid();
	while (!stop) {
		pid_t tid = __atomic_load_n(&current_tid, __ATOMIC_SEQ_CST);
		if (tid && !syscall(SYS_tgkill, getpid(), tid, SIGUSR1))
			sent++;
	}
	return (void *)(long)sent;
}

int main(void)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	pthread_t id, sending;
	void *sent;

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	CHECK(!pthread_create(&sending, NULL, sender, NULL));
	for (uint64_t i = 0; i < 2000; i++) {
		CHECK(!pthread_create(&id, NULL, brief, (void *)i));
		CHECK(!pthread_join(id, NULL));
	}
	stop = 1;
	CHECK(!pthread_join(sending, &sent));
	/* signals pending at the exit of a thread go with it */
	CHECK(handled <= (unsigned)(long)sent);
	return done();
}
