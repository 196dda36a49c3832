/* Signals that look like faults but were sent, and handlers for which there is no stack. */
#include "check.h"
#include <signal.h>
#include <sys/wait.h>

static volatile int seen, code;

static void handler(int number, siginfo_t *info, void *context)
{
	(void)context;
	seen = number;
	code = info->si_code;
}

static void ignore(int number)
{
	(void)number;
}

static void forge(int number, int with_code)
{
	siginfo_t info;

	memset(&info, 0, sizeof info);
	info.si_signo = number;
	info.si_code = with_code;
	seen = 0;
	/* To itself with a kernel's code: allowed. */
	CHECK_EQ(syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number, &info), 0);
	CHECK_EQ(seen, number);
	CHECK_EQ(code, with_code);
}

/* The status of a child that executes an undefined instruction with a stack pointer that leads nowhere. */
static int die_without_stack(unsigned long stack)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		signal(SIGILL, ignore);
		signal(SIGSEGV, ignore);
		__asm__ volatile("mov %0, %%rsp; ud2" : : "r"(stack));
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	return status & 127;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};

	for (unsigned i = 0; i < 4; i++) {
		CHECK_EQ(sigaction(numbers[i], &action, NULL), 0);
		for (int with_code = 1; with_code < 4; with_code++)
			forge(numbers[i], with_code);
		forge(numbers[i], SI_KERNEL);
	}
	CHECK_EQ(die_without_stack(0x1000), SIGSEGV);
	CHECK_EQ(die_without_stack(0x8000000000000000), SIGSEGV);
	return done();
}
