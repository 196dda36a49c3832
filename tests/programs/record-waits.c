/* record: --interval 1M | --interval 1ms */
/*
 * Calls that wait, again and again, after a little work: a thread that is stopped for a keyframe just when it
 * begins to wait must not see that. Each of these calls would end with EINTR in its own way.
 */
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

#include "check.h"

static int epoll, pipes[2];
static sigset_t usr1;

static uint64_t work(unsigned rounds)
{
	uint64_t x = rounds;

	while (rounds--)
		x = x * 6364136223846793005u + 1;
	return x;
}

static void wait_epoll(void)
{
	struct epoll_event event;

	CHECK_EQ(epoll_wait(epoll, &event, 1, 1), 0);
}

static void wait_poll(void)
{
	struct pollfd in = {.fd = pipes[0], .events = POLLIN};

	CHECK_EQ(poll(&in, 1, 1), 0);
}

static void wait_select(void)
{
	struct timeval time = {.tv_usec = 1000};
	fd_set in;

	FD_ZERO(&in);
	FD_SET(pipes[0], &in);
	CHECK_EQ(select(pipes[0] + 1, &in, NULL, NULL, &time), 0);
}

static void wait_signal(void)
{
	struct timespec time = {.tv_nsec = 1000000};

	CHECK_EQ(sigtimedwait(&usr1, NULL, &time), -1);
	CHECK_EQ(errno, EAGAIN);
}

static void wait_sleeping(void)
{
	struct timespec time = {.tv_nsec = 1000000};

	CHECK_EQ(nanosleep(&time, NULL), 0);
}

static void wait_futex(void)
{
	struct timespec time = {.tv_nsec = 1000000};
	uint32_t word = 0;

	CHECK_EQ(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0), -1);
	CHECK_EQ(errno, ETIMEDOUT);
}

int main(void)
{
	static void (*const waits[])(void) = {
	        wait_epoll, wait_poll, wait_select, wait_signal, wait_sleeping, wait_futex};
	uint64_t sum = 0;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	epoll = epoll_create1(0);
	CHECK(epoll >= 0 && pipe(pipes) == 0);
	for (unsigned round = 0; round < 60; round++) {
		for (unsigned i = 0; i < sizeof waits / sizeof *waits; i++) {
			sum += work(1000000 + 7919 * round);
			waits[i]();
		}
	}
	printf("%016lx\n", sum);
	return 0;
}
