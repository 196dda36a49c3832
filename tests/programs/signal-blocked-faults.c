/* cases: sent pending timed descriptor suspend threads fork exec handler ignored system-calls */
/*
 * The signals that faults raise, sent by somebody while they are blocked: pending as any other, for all who look; found in
 * computing code as well as in system calls; waited for, read, let in by the masks of system calls; not inherited by
 * children, kept across execve; delivered once, when they are unblocked.
 */
#include "check.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
#define FAULTS 5

static volatile int count[65], code[65], value[65];
static volatile sig_atomic_t ticks;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)context;
	count[sig]++;
	code[sig] = info->si_code;
	value[sig] = info->si_value.sival_int;
}

static void tick(int sig)
{
	(void)sig;
	ticks++;
}

static void catch_all(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	for (int i = 0; i < FAULTS; i++)
		CHECK(!sigaction(faults[i], &action, NULL));
}

static void change(int how)
{
	sigset_t set;
	sigemptyset(&set);
	for (int i = 0; i < FAULTS; i++)
		sigaddset(&set, faults[i]);
	CHECK(!pthread_sigmask(how, &set, NULL));
}

/* What the kernel says of the calling thread, and what sigpending says. */
static void show(const char *what)
{
	FILE *file = fopen("/proc/thread-self/status", "re");
	char line[256];
	sigset_t set;
	CHECK(file);
	printf("%s\n", what);
	while (fgets(line, sizeof line, file))
		if (!strncmp(line, "SigBlk", 6) || !strncmp(line, "SigPnd", 6) || !strncmp(line, "ShdPnd", 6))
			printf("  %s", line);
	fclose(file);
	CHECK(!sigpending(&set));
	printf("  pending:");
	for (int sig = 1; sig < 65; sig++)
		if (sigismember(&set, sig) == 1)
			printf(" %d", sig);
	printf("\n");
}

/* From another process, while this one computes, or sleeps. */
static void sent_by_child(int sleeping)
{
	pid_t parent = getpid(), child;
	for (int i = 0; i < FAULTS; i++) {
		CHECK((child = fork()) >= 0);
		if (child == 0) {
			usleep(3000);
			_exit(kill(parent, faults[i]) < 0);
		}
		int status;
		if (sleeping)
			CHECK_EQ(waitpid(child, &status, 0), child); /* not interrupted */
		else
			while (waitpid(child, &status, WNOHANG) == 0)
				compute(1, 10000);
		CHECK_EQ(status, 0);
		for (int j = 0; j < 20; j++)
			compute(2, 100);
	}
}

static void expect_each(int times)
{
	for (int i = 0; i < FAULTS; i++)
		CHECK_EQ(count[faults[i]], times);
}

static void sent(void)
{
	change(SIG_BLOCK);
	sent_by_child(0);
	expect_each(0);
	show("sent to the process, computing");
	change(SIG_UNBLOCK);
	expect_each(1);
	for (int i = 0; i < FAULTS; i++)
		printf("  %d: code %d\n", faults[i], code[faults[i]]);
	show("unblocked");
	change(SIG_BLOCK);
	sent_by_child(1);
	expect_each(1);
	show("sent to the process, waiting");
	change(SIG_UNBLOCK);
	expect_each(2);
}

static void pending(void)
{
	change(SIG_BLOCK);
	for (int i = 0; i < FAULTS; i++)
		CHECK(!raise(faults[i]));
	compute(3, 1000);
	show("raised");
	for (int i = 0; i < FAULTS; i++)
		CHECK(!raise(faults[i])); /* one is enough */
	show("raised again");
	change(SIG_UNBLOCK);
	expect_each(1);
	change(SIG_BLOCK);
	for (int i = 0; i < FAULTS; i++)
		CHECK(!sigqueue(getpid(), faults[i], (union sigval){.sival_int = 70 + i}));
	compute(3, 1000);
	show("queued");
	change(SIG_UNBLOCK);
	expect_each(2);
	for (int i = 0; i < FAULTS; i++)
		printf("  %d: code %d value %d\n", faults[i], code[faults[i]], value[faults[i]]);
}

static void timed(void)
{
	sigset_t set;
	siginfo_t info;
	struct timespec now = {0, 0}, soon = {0, 5000000};
	change(SIG_BLOCK);
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &set));
	CHECK_ERRNO(sigtimedwait(&set, &info, &soon), EAGAIN);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < FAULTS; i++)
			CHECK(!kill(getpid(), faults[i]));
		compute(4, 1000);
		show("before");
		for (int i = 0; i < FAULTS; i++) {
			int sig = sigtimedwait(&set, &info, &now);
			printf("  %d code %d, from itself: %d\n", sig, info.si_code, info.si_pid == getpid());
			compute(5, 100);
		}
		show("after");
		CHECK_ERRNO(sigtimedwait(&set, &info, &now), EAGAIN);
	}
	pid_t parent = getpid(), child = fork();
	if (child == 0) {
		usleep(5000);
		_exit(kill(parent, SIGBUS) < 0);
	}
	CHECK_EQ(sigwaitinfo(&set, &info), SIGBUS);
	CHECK_EQ(info.si_pid, child);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	change(SIG_UNBLOCK);
	expect_each(0);
}

static void descriptor(void)
{
	sigset_t set;
	struct signalfd_siginfo info;
	change(SIG_BLOCK);
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &set));
	int fd = signalfd(-1, &set, SFD_NONBLOCK);
	CHECK(fd >= 0);
	sent_by_child(0);
	struct pollfd poll_fd = {fd, POLLIN, 0};
	CHECK_EQ(poll(&poll_fd, 1, 1000), 1);
	for (int i = 0; i < FAULTS; i++) {
		CHECK_EQ(read(fd, &info, sizeof info), sizeof info);
		printf("  %u code %d\n", info.ssi_signo, info.ssi_code);
	}
	CHECK_ERRNO(read(fd, &info, sizeof info), EAGAIN);
	raise(SIGSEGV);
	CHECK_EQ(read(fd, &info, sizeof info), sizeof info);
	CHECK_EQ(info.ssi_signo, SIGSEGV);
	change(SIG_UNBLOCK);
	expect_each(0);
}

/* A mask of a call's own lets them in, and only for that call. */
static void suspend(void)
{
	sigset_t none, all;
	struct timespec long_time = {20, 0};
	int pipe_fd[2], expected = 0;
	CHECK(!pipe(pipe_fd));
	int epoll = epoll_create1(0);
	sigemptyset(&none);
	sigfillset(&all);
	change(SIG_BLOCK);
	for (int before = 0; before < 2; before++) {
		for (int i = 0; i < 4; i++) {
			pid_t parent = getpid(), child = fork();
			if (child == 0) {
				if (!before)
					usleep(5000);
				_exit(kill(parent, SIGSEGV) < 0);
			}
			if (before)
				CHECK_EQ(waitpid(child, NULL, 0), child);
			compute(6, 1000);
			fd_set set;
			FD_ZERO(&set);
			FD_SET(pipe_fd[0], &set);
			struct pollfd poll_fd = {pipe_fd[0], POLLIN, 0};
			struct epoll_event event;
			CHECK_EQ(count[SIGSEGV], expected);
			if (before || i % 2)
				CHECK_EQ(ppoll(&poll_fd, 1, &(struct timespec){0, 1000000}, &all), 0);
			CHECK_EQ(count[SIGSEGV], expected);
			switch (i) {
			case 0:
				CHECK_ERRNO(sigsuspend(&none), EINTR);
				break;
			case 1:
				CHECK_ERRNO(ppoll(&poll_fd, 1, &long_time, &none), EINTR);
				break;
			case 2:
				CHECK_ERRNO(pselect(pipe_fd[0] + 1, &set, NULL, NULL, &long_time, &none), EINTR);
				break;
			case 3:
				CHECK_ERRNO(epoll_pwait(epoll, &event, 1, 20000, &none), EINTR);
				break;
			}
			CHECK_EQ(count[SIGSEGV], ++expected);
			if (!before)
				CHECK_EQ(waitpid(child, NULL, 0), child);
		}
		show("after four calls");
	}
	change(SIG_UNBLOCK);
	CHECK_EQ(count[SIGSEGV], expected);
}

static volatile int stop, waited;

static void *waiter(void *arg)
{
	sigset_t set;
	int sig;
	(void)arg;
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &set));
	do {
		CHECK(!sigwait(&set, &sig));
		__atomic_fetch_add(&waited, 1, __ATOMIC_SEQ_CST);
	} while (sig != SIGTRAP);
	return NULL;
}

static void *computing(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST))
		compute(7, 100);
	return NULL;
}

/* All block them, some compute, one waits; and one that does not block them gets what is sent to all. */
static void threads(void)
{
	pthread_t waits, busy[3];
	change(SIG_BLOCK);
	CHECK(!pthread_create(&waits, NULL, waiter, NULL));
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_create(&busy[i], NULL, computing, NULL));
	for (int i = 0; i < 100; i++) {
		CHECK(!kill(getpid(), faults[i % 4]));
		while (__atomic_load_n(&waited, __ATOMIC_SEQ_CST) <= i)
			compute(8, 100);
	}
	CHECK(!kill(getpid(), SIGTRAP));
	CHECK(!pthread_join(waits, NULL));
	CHECK_EQ(waited, 101);
	CHECK(!pthread_kill(busy[0], SIGSEGV)); /* its own, and nobody else's */
	compute(9, 10000);
	expect_each(0);
	change(SIG_UNBLOCK);
	expect_each(0);
	for (int i = 0; i < 50; i++) {
		CHECK(!kill(getpid(), SIGFPE));
		while (count[SIGFPE] <= i)
			sched_yield();
	}
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_join(busy[i], NULL));
	CHECK_EQ(count[SIGFPE], 50);
	CHECK_EQ(count[SIGSEGV], 0);
	show("at the end");
}

static void forked(void)
{
	change(SIG_BLOCK);
	raise(SIGSEGV);
	raise(SIGILL);
	compute(10, 1000);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		show("the child");
		change(SIG_UNBLOCK);
		expect_each(0);
		change(SIG_BLOCK);
		raise(SIGSEGV);
		compute(10, 1000);
		change(SIG_UNBLOCK);
		CHECK_EQ(count[SIGSEGV], 1);
		exit(0);
	}
	int status;
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	show("the parent");
	change(SIG_UNBLOCK);
	CHECK_EQ(count[SIGSEGV], 1);
	CHECK_EQ(count[SIGILL], 1);
}

/* A signal handler with a mask, and another whose own signal is blocked meanwhile. */
static void raise_all(int sig)
{
	(void)sig;
	for (int i = 0; i < FAULTS; i++)
		raise(faults[i]);
	compute(11, 1000);
	expect_each(0);
	show("in the handler");
}

static void in_handler(void)
{
	struct sigaction action = {.sa_handler = raise_all};
	sigfillset(&action.sa_mask);
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	raise(SIGUSR1);
	expect_each(1);
	show("behind it");
}

/* Blocked, it is pending although it is ignored, and forgotten when it is unblocked or the action is set again. */
static void ignored(void)
{
	for (int i = 0; i < FAULTS; i++)
		signal(faults[i], SIG_IGN);
	change(SIG_BLOCK);
	for (int i = 0; i < FAULTS; i++)
		raise(faults[i]);
	compute(12, 1000);
	change(SIG_UNBLOCK);
	show("ignored");
	for (int i = 0; i < FAULTS; i++)
		signal(faults[i], SIG_DFL);
	change(SIG_BLOCK);
	for (int i = 0; i < FAULTS; i++)
		raise(faults[i]);
	compute(12, 1000);
	show("would kill");
	sigset_t set;
	struct timespec now = {0, 0};
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &set));
	for (int i = 0; i < FAULTS; i++)
		CHECK(sigtimedwait(&set, NULL, &now) > 0);
	change(SIG_UNBLOCK);
}

/* Bad addresses in system calls are errors, whatever is blocked and pending; other signals interrupt as always. */
static void system_calls(void)
{
	struct sigaction action = {.sa_handler = tick};
	struct itimerval timer = {{0, 2000}, {0, 2000}};
	sigset_t set;
	CHECK(!sigaction(SIGALRM, &action, NULL));
	change(SIG_BLOCK);
	for (int round = 0; round < 2; round++) {
		CHECK_ERRNO(syscall(SYS_write, 1, 8, 5), EFAULT);
		CHECK_ERRNO(syscall(SYS_rt_sigprocmask, SIG_BLOCK, 8, NULL, 8), EFAULT);
		CHECK_ERRNO(syscall(SYS_rt_sigaction, SIGUSR1, 8, NULL, 8), EFAULT);
		CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
		for (int i = 0; i < 20; i++) {
			CHECK_ERRNO(pause(), EINTR);
			compute(13, 20000);
		}
		CHECK(!setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL));
		CHECK(ticks >= 20);
		ticks = 0;
		CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &set));
		for (int i = 0; i < FAULTS; i++)
			CHECK_EQ(sigismember(&set, faults[i]), 1);
		if (round == 0)
			for (int i = 0; i < FAULTS; i++)
				raise(faults[i]);
	}
	show("still pending");
	change(SIG_UNBLOCK);
	expect_each(1);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "sent";
	alarm(50);
	if (!strcmp(what, "after-exec")) {
		show("after execve");
		catch_all();
		change(SIG_UNBLOCK);
		CHECK_EQ(count[SIGSEGV], 1);
		CHECK_EQ(count[SIGFPE], 1);
		return done();
	}
	catch_all();
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "sent"))
		sent();
	else if (!strcmp(what, "pending"))
		pending();
	else if (!strcmp(what, "timed"))
		timed();
	else if (!strcmp(what, "descriptor"))
		descriptor();
	else if (!strcmp(what, "suspend"))
		suspend();
	else if (!strcmp(what, "threads"))
		threads();
	else if (!strcmp(what, "fork"))
		forked();
	else if (!strcmp(what, "handler"))
		in_handler();
	else if (!strcmp(what, "ignored"))
		ignored();
	else if (!strcmp(what, "system-calls"))
		system_calls();
	else if (!strcmp(what, "exec")) {
		change(SIG_BLOCK);
		raise(SIGSEGV);
		compute(14, 1000);
		kill(getpid(), SIGFPE);
		compute(14, 1000);
		show("before execve");
		CHECK_ERRNO(execl("/nowhere", "nowhere", NULL), ENOENT);
		show("it failed");
		execl("/proc/self/exe", argv[0], "after-exec", NULL);
		fail("execve: %d", errno);
	}
	return done();
}
