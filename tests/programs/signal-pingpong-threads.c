/* timeout: 120 */
/*
 * The same between two threads of one process with pthread_kill, half of the waits in sigsuspend and half in
 * ppoll and pselect, whose mask argument must open the window as atomically.
 */
#include "check.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>

#define ROUNDS 25000

static volatile unsigned received[2];
static pthread_t thread[2];
static __thread int self;

static void handler(int sig)
{
	(void)sig;
	received[self]++;
}

static void *play(void *arg)
{
	self = (int)(long)arg;
	pthread_t peer = thread[!self];
	sigset_t open;
	struct epoll_event event;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	pthread_sigmask(SIG_SETMASK, NULL, &open);
	sigdelset(&open, SIGUSR1);
	if (self == 0)
		CHECK(!pthread_kill(peer, SIGUSR1));
	for (unsigned i = 1; i <= ROUNDS; i++) {
		while (received[self] < i) {
			int result = 0;
			errno = 0;
			switch (i % 4) {
			case 0:
				result = sigsuspend(&open);
				break;
			case 1:
				result = ppoll(NULL, 0, NULL, &open);
				break;
			case 2:
				result = pselect(0, NULL, NULL, NULL, NULL, &open);
				break;
			case 3:
				result = epoll_pwait(epoll, &event, 1, -1, &open);
				break;
			}
			CHECK_EQ(result, -1);
			CHECK_EQ(errno, EINTR);
		}
		CHECK_EQ(received[self], i);
		if (self || i < ROUNDS)
			CHECK(!pthread_kill(peer, SIGUSR1));
	}
	close(epoll);
	return NULL;
}

int main(void)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	sigset_t set;

	alarm(110);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	thread[0] = pthread_self();
	CHECK(!pthread_create(&thread[1], NULL, play, (void *)1L));
	play(NULL);
	CHECK(!pthread_join(thread[1], NULL));
	printf("%u and %u signals\n", received[0], received[1]);
	return done();
}
