/*
 * A storm of signals over a loop of system calls: pipes, futexes, memory maps, clocks. With SA_RESTART every
 * transfer must be complete; without, every EINTR must have left things as they were.
 */
#include "check.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile unsigned signals;
static int fds[2];

static void handler(int sig)
{
	(void)sig;
	signals++;
}

static void *echo(void *arg)
{
	(void)arg;
	uint64_t expected = 0, value;
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (read(fds[0], &value, 8) == 8 && value != ~0ull)
		CHECK_EQ(value, expected++);
	return (void *)expected;
}

static void storm(int flags, unsigned rounds)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	struct itimerval timer = {{0, 100}, {0, 100}}, off = {{0, 0}, {0, 0}};
	pthread_t thread;
	void *result;
	uint64_t end = ~0ull;

	CHECK(!pipe(fds));
	CHECK(!pthread_create(&thread, NULL, echo, NULL));
	CHECK(!sigaction(SIGALRM, &action, NULL));
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
	pid_t self = getpid();
	for (uint64_t i = 0; i < rounds; i++) {
		ssize_t size = write(fds[1], &i, 8);
		if (size != 8) {
			CHECK(size == -1 && errno == EINTR && !flags);
			i--;
			continue;
		}
		CHECK_EQ(syscall(SYS_getpid), self);
		if (i % 50 == 0) {
			char *page =
			        mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			CHECK(page != MAP_FAILED);
			page[5000] = (char)i;
			CHECK(!mprotect(page, 4096, PROT_READ));
			CHECK_EQ((unsigned char)page[5000], (unsigned char)i);
			CHECK(!munmap(page, 8192));
		}
		if (i % 100 == 0) {
			struct timespec pause_for = {0, 50000}, rest;
			while (nanosleep(&pause_for, &rest)) {
				CHECK_EQ(errno, EINTR);
				pause_for = rest;
			}
		}
	}
	CHECK(!setitimer(ITIMER_REAL, &off, NULL));
	while (write(fds[1], &end, 8) != 8)
		CHECK_EQ(errno, EINTR);
	CHECK(!pthread_join(thread, &result));
	CHECK_EQ(result, rounds);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	storm(SA_RESTART, 30000);
	storm(0, 30000);
	CHECK(signals > 100);
	return done();
}
