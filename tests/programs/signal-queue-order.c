/*
 * Real-time signals: queued, not merged; the lowest number first, within one number in the order sent; the
 * values arrive; standard signals are merged; the queue limit gives EAGAIN.
 */
#include "check.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static int log_signal[300], log_value[300], log_code[300];
static volatile int count;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)context;
	CHECK(count < 300);
	log_signal[count] = sig;
	log_value[count] = info->si_value.sival_int;
	log_code[count] = info->si_code;
	CHECK_EQ(info->si_uid, info->si_code == -77 ? 0 : getuid());
	count++;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	sigset_t all, old;

	sigfillset(&action.sa_mask); /* no nesting: the order of delivery is the order of the log */
	for (int sig = SIGRTMIN; sig < SIGRTMIN + 8; sig++)
		CHECK(!sigaction(sig, &action, NULL));
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	sigfillset(&all);
	CHECK(!sigprocmask(SIG_BLOCK, &all, &old));
	for (int i = 0; i < 200; i++) {
		int sig = SIGRTMIN + (i * 5) % 8;
		CHECK(!sigqueue(getpid(), sig, (union sigval){.sival_int = i}));
	}
	for (int i = 0; i < 5; i++)
		CHECK(!sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 1000 + i}));
	CHECK(!sigprocmask(SIG_SETMASK, &old, NULL));
	CHECK_EQ(count, 201);
	CHECK_EQ(log_signal[0], SIGUSR1);
	CHECK_EQ(log_value[0], 1000);
	for (int i = 2; i <= 200; i++) {
		CHECK(log_signal[i] >= log_signal[i - 1]);
		if (log_signal[i] == log_signal[i - 1])
			CHECK(log_value[i] > log_value[i - 1]);
		CHECK_EQ(log_code[i], SI_QUEUE);
	}

	/* One at a time, from a child. */
	count = 0;
	pid_t parent = getpid(), child = fork();
	if (child == 0) {
		for (int i = 0; i < 200; i++)
			while (sigqueue(parent, SIGRTMIN + 1, (union sigval){.sival_int = i}))
				usleep(100);
		_exit(0);
	}
	while (count < 200) {
		for (int i = 0; i < count; i++)
			CHECK_EQ(log_value[i], i);
		if (waitpid(child, NULL, WNOHANG) == child)
			break;
	}
	CHECK_EQ(count, 200);
	for (int i = 0; i < 200; i++)
		CHECK_EQ(log_value[i], i);

	/* rt_sigqueueinfo may forge si_code below zero, not above. */
	siginfo_t forged = {.si_signo = SIGRTMIN, .si_code = -77};
	forged.si_pid = getpid();
	count = 0;
	CHECK(!syscall(SYS_rt_sigqueueinfo, getpid(), SIGRTMIN, &forged));
	CHECK_EQ(count, 1);
	CHECK_EQ(log_code[0], -77);
	CHECK(!syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGRTMIN, &forged));
	CHECK_EQ(count, 2);

	/* The limit. */
	struct rlimit limit = {10, 10};
	CHECK(!sigprocmask(SIG_BLOCK, &all, &old));
	CHECK(!setrlimit(RLIMIT_SIGPENDING, &limit));
	count = 0;
	int sent = 0;
	while (sent < 1000 && !sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = sent}))
		sent++;
	CHECK_EQ(errno, EAGAIN);
	CHECK(sent <= 10);
	CHECK(!sigprocmask(SIG_SETMASK, &old, NULL));
	CHECK_EQ(count, sent);
	return done();
}
