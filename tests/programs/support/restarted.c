/*
 * A program whose threads wait in the calls that the kernel goes on with by restart_syscall when the process was
 * stopped and continued, for tests/attach.sh. Who returns too early says so. It ends when its standard input does, and
 * ends the waits that can be ended.
 */
#include "../check.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>

static const struct timespec long_time = {100000, 0};
static struct timespec left;
static atomic_bool stop;
static _Atomic int word;
static int pipe_ends[2];

/* What it returned, or -errno. */
static long came_back(const char *name, long result)
{
	if (result < 0)
		result = -errno;
	if (!stop) {
		printf("%s returned %ld\n", name, result);
		fflush(stdout);
	}
	return result;
}

static void *in_nanosleep(void *unused)
{
	came_back("nanosleep", syscall(SYS_nanosleep, &long_time, &left));
	return unused;
}

static void *in_clock_nanosleep(void *unused)
{
	came_back("clock_nanosleep", syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &long_time, NULL));
	return unused;
}

static void *in_poll(void *unused)
{
	struct pollfd end = {.fd = pipe_ends[0], .events = POLLIN};

	CHECK_EQ(came_back("poll", syscall(SYS_poll, &end, 1, 100000000)), 1);
	CHECK_EQ(end.revents, POLLIN);
	return unused;
}

static void *in_futex(void *unused)
{
	CHECK_EQ(came_back("futex", syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &long_time, NULL, 0)), 0);
	return unused;
}

int main(void)
{
	static void *(*const waits[])(void *) = {in_nanosleep, in_clock_nanosleep, in_poll, in_futex};
	pthread_t threads[4];
	char byte;

	CHECK(pipe(pipe_ends) == 0);
	for (unsigned i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, waits[i], NULL) == 0);
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) != 0)
		;
	stop = true;
	CHECK(write(pipe_ends[1], "x", 1) == 1);
	pthread_join(threads[2], NULL);
	/* One that returned too early has nobody left to wake. */
	CHECK_EQ(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1), 1);
	pthread_join(threads[3], NULL);
	puts("done");
	return 5;
}
