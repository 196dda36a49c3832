/* siginfo of every sender: kill, tgkill, raise, sigqueue, timers, SIGIO of a pipe, SIGCHLD; sigaction read
 * back. */
#include "check.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

static volatile int count;
static volatile siginfo_t last;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)context;
	CHECK_EQ(info->si_signo, sig);
	last = *info;
	count++;
}

static void other(int sig)
{
	(void)sig;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART}, now;

	/* What is set is what is read, and at the start everything is at its default. */
	for (int sig = 1; sig < 65; sig++) {
		if (sig == 32 || sig == 33)
			continue;
		CHECK(!sigaction(sig, NULL, &now));
		if (now.sa_handler != SIG_DFL || now.sa_flags)
			fail("signal %d has a handler at the start", sig);
	}
	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGTERM);
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	CHECK(!sigaction(SIGUSR1, NULL, &now));
	CHECK(now.sa_sigaction == handler);
	CHECK_EQ(now.sa_flags & ~0x4000000, action.sa_flags);
	CHECK(sigismember(&now.sa_mask, SIGTERM) && !sigismember(&now.sa_mask, SIGINT));
	struct sigaction previous, plain = {.sa_handler = other, .sa_flags = SA_ONSTACK | (int)SA_RESETHAND};
	CHECK(!sigaction(SIGUSR1, &plain, &previous));
	CHECK(previous.sa_sigaction == handler);
	CHECK(!sigaction(SIGUSR1, &action, &previous));
	CHECK(previous.sa_handler == other);
	CHECK_EQ(previous.sa_flags & ~0x4000000, plain.sa_flags);
	CHECK_ERRNO(sigaction(SIGKILL, &action, NULL), EINVAL);
	CHECK_ERRNO(sigaction(SIGSTOP, &action, NULL), EINVAL);
	CHECK(!sigaction(SIGKILL, NULL, &now));
	CHECK_ERRNO(sigaction(65, &action, NULL), EINVAL);
	CHECK_ERRNO(sigaction(0, &action, NULL), EINVAL);
	CHECK_ERRNO(syscall(SYS_rt_sigaction, SIGUSR1, 8, NULL, 8), EFAULT);
	CHECK_ERRNO(syscall(SYS_rt_sigaction, SIGUSR1, NULL, 8, 8), EFAULT);
	CHECK_ERRNO(syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 4), EINVAL);
	/* The raw structure, with a restorer of its own and flags the kernel does not know. */
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		unsigned long mask;
	} raw = {other, 0x04000000 | SA_RESTART | SA_NODEFER, (void *)0x123456, 0xff00000000000000}, raw_now;
	CHECK(!syscall(SYS_rt_sigaction, SIGWINCH, &raw, NULL, 8));
	CHECK(!syscall(SYS_rt_sigaction, SIGWINCH, NULL, &raw_now, 8));
	CHECK(!memcmp(&raw, &raw_now, sizeof raw));

	for (int sig = 1; sig < 65; sig++)
		if (sig != SIGKILL && sig != SIGSTOP && sig != 32 && sig != 33)
			CHECK(!sigaction(sig, &action, NULL));
	kill(getpid(), SIGUSR1);
	CHECK_EQ(last.si_code, SI_USER);
	CHECK_EQ(last.si_pid, getpid());
	CHECK_EQ(last.si_uid, getuid());
	syscall(SYS_tgkill, getpid(), gettid(), SIGSEGV);
	CHECK_EQ(last.si_signo, SIGSEGV);
	CHECK_EQ(last.si_code, SI_TKILL);
	kill(getpid(), SIGSEGV);
	CHECK_EQ(last.si_code, SI_USER);
	CHECK_EQ(last.si_pid, getpid());
	kill(getpid(), SIGTRAP);
	CHECK_EQ(last.si_signo, SIGTRAP);
	kill(getpid(), SIGILL);
	kill(getpid(), SIGFPE);
	kill(getpid(), SIGBUS);
	kill(getpid(), SIGSYS);
	CHECK_EQ(last.si_code, SI_USER);
	sigqueue(getpid(), SIGSEGV, (union sigval){.sival_ptr = (void *)0x123456789abc});
	CHECK_EQ(last.si_code, SI_QUEUE);
	CHECK_EQ(last.si_value.sival_ptr, 0x123456789abc);
	pthread_sigqueue(pthread_self(), SIGUSR2, (union sigval){.sival_int = 5});
	CHECK_EQ(last.si_code, SI_QUEUE);
	CHECK_EQ(last.si_value.sival_int, 5);

	timer_t timer;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 4};
	struct itimerspec soon = {{0, 0}, {0, 1000000}};
	event.sigev_value.sival_int = 77;
	CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	count = 0;
	CHECK(!timer_settime(timer, 0, &soon, NULL));
	while (!count)
		usleep(1000);
	CHECK_EQ(last.si_code, SI_TIMER);
	CHECK_EQ(last.si_value.sival_int, 77);
	CHECK_EQ(last.si_overrun, 0);
	CHECK(!timer_delete(timer));

	int pair[2];
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	CHECK(!fcntl(pair[0], F_SETOWN, getpid()));
	CHECK(!fcntl(pair[0], F_SETSIG, SIGRTMIN + 5));
	CHECK(!fcntl(pair[0], F_SETFL, O_ASYNC));
	count = 0;
	CHECK_EQ(write(pair[1], "x", 1), 1);
	while (!count)
		usleep(1000);
	CHECK_EQ(last.si_signo, SIGRTMIN + 5);
	CHECK_EQ(last.si_fd, pair[0]);
	CHECK(last.si_band & 1);

	count = 0;
	pid_t child = fork();
	if (child == 0)
		_exit(44);
	while (!count)
		usleep(1000);
	CHECK_EQ(last.si_signo, SIGCHLD);
	CHECK_EQ(last.si_status, 44);
	CHECK_EQ(last.si_pid, child);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	return done();
}
