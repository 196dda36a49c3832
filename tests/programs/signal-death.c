/* run: | --children */
/* timeout: 120 */
/*
 * Death by each signal, as the parent sees it: status, core flag (with RLIMIT_CORE raised: whether a core is
 * written depends on the machine, natively or not), si_code in waitid; sent by itself, by the parent, by a
 * fault.
 */
#include "check.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void fault_segv(void)
{
	volatile int *volatile bad = (volatile int *)8;
	*bad = 1;
}

static void fault_fpe(void)
{
	asm volatile("xorl %%ecx, %%ecx; divl %%ecx" : : : "eax", "ecx", "edx", "cc");
}

static void fault_ill(void)
{
	asm volatile("ud2");
}

static void fault_trap(void)
{
	asm volatile("int3");
}

static void fault_jump(void)
{
	void (*volatile bad)(void) = (void (*)(void))16;
	bad();
}

static void fault_abort(void)
{
	abort();
}

static void fault_blocked(void)
{
	sigset_t set;
	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	fault_segv();
}

static void fault_ignored(void)
{
	signal(SIGSEGV, SIG_IGN);
	fault_segv();
}

static void in_handler(int sig)
{
	(void)sig;
	fault_segv(); /* SIGSEGV is blocked here: death */
}

static void fault_in_handler(void)
{
	signal(SIGSEGV, in_handler);
	fault_segv();
}

static void fault_no_stack(void)
{
	signal(SIGSEGV, in_handler);
	asm volatile("movq $64, %%rsp; pushq %%rax" : : : "memory"); /* no stack for the frame */
}

static void fault_abort_handled(void)
{
	signal(SIGABRT, SIG_IGN);
	abort();
}

static void describe(const char *name, pid_t child)
{
	int status;
	siginfo_t info;
	CHECK(!waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
	CHECK_EQ(waitpid(child, &status, 0), child);
	printf("%s: ", name);
	if (WIFEXITED(status))
		printf("exit %d", WEXITSTATUS(status));
	else
		printf("signal %d%s", WTERMSIG(status), WCOREDUMP(status) ? ", core dumped" : "");
	printf(", code %d status %d\n", info.si_code, info.si_status);
}

int main(void)
{
	struct rlimit core = {RLIM_INFINITY, RLIM_INFINITY};
	char name[64];

	if (setrlimit(RLIMIT_CORE, &core)) {
		core.rlim_cur = core.rlim_max = 0;
		CHECK(!getrlimit(RLIMIT_CORE, &core));
		core.rlim_cur = core.rlim_max;
		CHECK(!setrlimit(RLIMIT_CORE, &core));
	}
	setvbuf(stdout, NULL, _IONBF, 0);
	static const int stops[] = {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
	for (int sig = 1; sig < 65; sig++) {
		int stop = 0;
		for (int i = 0; i < 4; i++)
			stop |= sig == stops[i];
		if (stop || sig == 32 || sig == 33)
			continue;
		pid_t child = fork();
		if (child == 0) {
			raise(sig);
			_exit(1);
		}
		snprintf(name, sizeof name, "raise %d", sig);
		describe(name, child);
		unlink("core");
		if (sig == SIGCHLD || sig == SIGCONT || sig == SIGURG || sig == SIGWINCH)
			continue;
		if (sig > 31 && sig < 60)
			continue;
		child = fork();
		if (child == 0)
			for (;;)
				compute(1, 1000);
		kill(child, sig);
		snprintf(name, sizeof name, "kill %d", sig);
		describe(name, child);
		unlink("core");
	}
	const struct {
		const char *name;
		void (*run)(void);
	} faults[] = {{"segv", fault_segv}, {"fpe", fault_fpe}, {"ill", fault_ill}, {"trap", fault_trap},
	        {"jump to nowhere", fault_jump}, {"abort", fault_abort},
	        {"abort ignored", fault_abort_handled}, {"segv blocked", fault_blocked},
	        {"segv ignored", fault_ignored}, {"segv in the handler", fault_in_handler},
	        {"segv without a stack", fault_no_stack}};
	for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++) {
		pid_t child = fork();
		if (child == 0) {
			faults[i].run();
			_exit(1);
		}
		describe(faults[i].name, child);
		unlink("core");
	}
	return done();
}
