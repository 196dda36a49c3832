/* cases: errno kill strict */
/*
 * The program forbids itself all system calls but read, write, exit, exit_group and rt_sigreturn, then runs
 * code that was never run before, in many places, receives signals that were sent before, faults and
 * recovers. Whatever the tool needs by then it must have, or do without.
 */
#include "seccomp.h"
#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

static volatile int handled, faults;

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 3; /* mov (%rax), %rax */
	faults++;
}

/* 500 functions, each first called under the filter. */
#define F1(n)                                                                                                \
	static uint64_t __attribute__((noinline)) function_##n(uint64_t x)                                   \
	{                                                                                                    \
		return mix(x, n * 2654435761u) ^ (x >> (n % 13 + 1));                                        \
	}
#define F5(n)  F1(n##0) F1(n##1) F1(n##2) F1(n##3) F1(n##4)
#define F50(n) F5(n##0) F5(n##1) F5(n##2) F5(n##3) F5(n##4) F5(n##5) F5(n##6) F5(n##7) F5(n##8) F5(n##9)
#define F500   F50(1) F50(2) F50(3) F50(4) F50(5) F50(6) F50(7) F50(8) F50(9)
#define C1(n)  function_##n,
#define C5(n)  C1(n##0) C1(n##1) C1(n##2) C1(n##3) C1(n##4)
#define C50(n) C5(n##0) C5(n##1) C5(n##2) C5(n##3) C5(n##4) C5(n##5) C5(n##6) C5(n##7) C5(n##8) C5(n##9)
#define C500   C50(1) C50(2) C50(3) C50(4) C50(5) C50(6) C50(7) C50(8) C50(9)
F500 static uint64_t (*const functions[])(uint64_t) = {C500};

static int compare(const void *a, const void *b)
{
	return *(const int *)a < *(const int *)b ? 1 : -1;
}

static void say(const char *text)
{
	if (write(1, text, strlen(text)) < 0)
		syscall(SYS_exit_group, 9);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "errno";
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	int fds[2];
	char text[256];

	CHECK(!sigaction(SIGSEGV, &action, NULL));
	action = (struct sigaction){.sa_handler = on_signal};
	CHECK(!sigaction(SIGIO, &action, NULL));
	CHECK(!pipe(fds));
	CHECK(!fcntl(fds[0], F_SETOWN, getpid()));
	CHECK(!fcntl(fds[0], F_SETFL, O_ASYNC));
	fflush(stdout);

	const int allowed[] = {SYS_read, SYS_write, SYS_exit, SYS_exit_group, SYS_rt_sigreturn};
	int result;
	if (!strcmp(how, "errno"))
		result = install_filter(allowed, 5, SECCOMP_RET_ERRNO | EPERM);
	else if (!strcmp(how, "kill"))
		result = install_filter(allowed, 5, SECCOMP_RET_KILL_PROCESS);
	else
		result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	if (result)
		syscall(SYS_exit, SKIP_STATUS);

	/* New code. */
	uint64_t sum = 1;
	for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++)
		sum = functions[i](sum);
	int numbers[100];
	for (int i = 0; i < 100; i++)
		numbers[i] = (i * 7919) % 1009;
	qsort(numbers, 100, sizeof *numbers, compare);
	snprintf(text, sizeof text, "sum %llx, largest %d, %.6f, %s\n", (long long)sum, numbers[0], 22 / 7.0,
	        "formatted");
	for (char *c = text; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	say(text);

	/* A signal: data on the pipe raises SIGIO. */
	if (write(fds[1], "x", 1) != 1)
		syscall(SYS_exit, 8);
	for (int i = 0; i < 100000000 && !handled; i++)
		asm volatile("" : : : "memory");
	snprintf(text, sizeof text, "handled %d\n", handled);
	say(text);

	/* Faults. */
	for (int i = 0; i < 3; i++)
		asm volatile("xorl %%eax, %%eax; movq (%%rax), %%rax" : : : "rax", "cc", "memory");
	snprintf(text, sizeof text, "faults %d\n", faults);
	say(text);

	if (!strcmp(how, "errno")) {
		errno = 0;
		long pid = syscall(SYS_getpid);
		snprintf(text, sizeof text, "getpid %ld errno %d\n", pid, errno);
		say(text);
	}
	say("done\n");
	syscall(SYS_exit, 0); /* strict mode has no exit_group */
}
