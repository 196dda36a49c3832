/*
 * Signal masks: sigprocmask in all its ways, pthread_sigmask per thread, sa_mask during a handler,
 * sigpending, order of delivery after unblocking, SIGKILL and SIGSTOP cannot be blocked, masks survive
 * handlers and are restored.
 */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

static void print_set(const char *what, const sigset_t *set)
{
	printf("%s:", what);
	for (int sig = 1; sig < 65; sig++)
		if (sigismember(set, sig) == 1)
			printf(" %d", sig);
	printf("\n");
}

static void print_mask(const char *what)
{
	sigset_t set;
	CHECK(!sigprocmask(SIG_SETMASK, NULL, &set));
	print_set(what, &set);
}

static void print_pending(const char *what)
{
	sigset_t set;
	CHECK(!sigpending(&set));
	print_set(what, &set);
}

static volatile int count[65];
static volatile int log_signals;

static void handler(int sig)
{
	count[sig]++;
	if (log_signals) {
		printf("  got %d\n", sig);
		print_mask("  mask inside");
	}
}

static void edits_mask(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	sigaddset(&((ucontext_t *)context)->uc_sigmask, SIGUSR2);
	sigset_t other;
	sigemptyset(&other);
	sigaddset(&other, SIGHUP);
	CHECK(!sigprocmask(SIG_BLOCK, &other, NULL)); /* gone after the return */
}

static void *thread(void *arg)
{
	sigset_t set;
	(void)arg;
	print_mask("thread inherits");
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	CHECK(!pthread_sigmask(SIG_SETMASK, &set, NULL));
	print_mask("thread set");
	CHECK(!pthread_kill(pthread_self(), SIGTERM));
	print_pending("thread pending");
	sigemptyset(&set);
	CHECK(!pthread_sigmask(SIG_SETMASK, &set, NULL));
	CHECK_EQ(count[SIGTERM], 1);
	return NULL;
}

int main(void)
{
	sigset_t set, old;
	struct sigaction action = {.sa_handler = handler};

	print_mask("at the start");
	sigemptyset(&action.sa_mask);
	for (int sig = 1; sig < 65; sig++)
		if (sig != SIGKILL && sig != SIGSTOP && sig != 32 && sig != 33)
			CHECK(!sigaction(sig, &action, NULL));

	sigfillset(&set);
	CHECK(!sigprocmask(SIG_BLOCK, &set, &old));
	print_mask("all blocked");
	for (int sig = 40; sig >= 34; sig--)
		raise(sig);
	raise(SIGUSR1);
	raise(SIGUSR1);
	raise(SIGTERM);
	raise(SIGSEGV);
	print_pending("pending");
	for (int sig = 1; sig < 65; sig++)
		CHECK_EQ(count[sig], 0);

	sigemptyset(&set);
	sigaddset(&set, 36);
	sigaddset(&set, SIGUSR1);
	CHECK(!sigprocmask(SIG_UNBLOCK, &set, &old));
	CHECK_EQ(count[36], 1);
	CHECK_EQ(count[SIGUSR1], 1);
	print_pending("pending");
	log_signals = 1;
	sigemptyset(&set);
	CHECK(!sigprocmask(SIG_SETMASK, &set, NULL));
	log_signals = 0;
	print_mask("none blocked");
	print_pending("pending");
	for (int sig = 34; sig <= 40; sig++)
		CHECK_EQ(count[sig], 1);

	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGHUP);
	sigaddset(&action.sa_mask, 50);
	CHECK(!sigaction(SIGALRM, &action, NULL));
	log_signals = 1;
	raise(SIGALRM);
	log_signals = 0;
	print_mask("after sa_mask");

	struct sigaction edit = {.sa_sigaction = edits_mask, .sa_flags = SA_SIGINFO};
	CHECK(!sigaction(SIGVTALRM, &edit, NULL));
	raise(SIGVTALRM);
	print_mask("edited by a handler");
	count[SIGUSR2] = 0;
	raise(SIGUSR2);
	CHECK_EQ(count[SIGUSR2], 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK(!sigprocmask(SIG_UNBLOCK, &set, NULL));
	CHECK_EQ(count[SIGUSR2], 1);

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigaddset(&set, SIGTERM);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	count[SIGTERM] = 0;
	pthread_t id;
	CHECK(!pthread_create(&id, NULL, thread, NULL));
	CHECK(!pthread_join(id, NULL));
	print_mask("main after the thread");

	CHECK_ERRNO(sigprocmask(99, &set, NULL), EINVAL);
	CHECK_ERRNO(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 4), EINVAL);
	CHECK_ERRNO(syscall(SYS_rt_sigprocmask, SIG_BLOCK, 8, NULL, 8), EFAULT);
	CHECK_ERRNO(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, 8, 8), EFAULT);
	CHECK_ERRNO(syscall(SYS_rt_sigpending, 8, 8), EFAULT);
	/* An old set that cannot be written: the mask is changed all the same. */
	sigfillset(&set);
	CHECK_ERRNO(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &set, 8, 8), EFAULT);
	print_mask("after EFAULT");
	return done();
}
