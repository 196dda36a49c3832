/* For the ring suite: a program that dies in the way it is told. */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int zero;

static int recurse(int n)
{
	volatile char room[4096];

	room[n & 4095] = (char)n;
	return recurse(n + 1) + room[(n + 1) & 4095];
}

static void on_overflow(int signal)
{
	static const char text[] = "overflow\n";

	(void)signal;
	if (write(2, text, sizeof text - 1) < 0)
		_exit(9);
	abort();
}

static void use_alternate_stack(void)
{
	static char room[65536];
	stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
	struct sigaction action = {.sa_handler = on_overflow, .sa_flags = SA_ONSTACK};

	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, NULL);
}

static void die_again(int signal)
{
	(void)signal;
	*(volatile int *)8 = 1;
}

static void *in_thread(void *argument)
{
	usleep(1000);
	*(volatile int *)argument = 1;
	return NULL;
}

static void bus(void)
{
	FILE *file = tmpfile();
	volatile char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);

	at[4096] = 1;
}

/* Another process sends it. */
static void killed(int waiting)
{
	pid_t pid = getpid();

	if (!fork()) {
		usleep(200000);
		kill(pid, SIGTERM);
		_exit(0);
	}
	while (waiting)
		pause();
	for (;;)
		zero += 0;
}

static void filtered(void)
{
	struct sock_filter filter[] = {
	        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
	        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_getppid},
	        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS},
	        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	getppid();
}

static int number_of(const char *name)
{
	for (int i = 1; i < 32; i++) {
		if (sigabbrev_np(i) && !strcmp(sigabbrev_np(i), name))
			return i;
	}
	exit(2);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	char small[8];

	setvbuf(stdout, NULL, _IONBF, 0);
	if (!strcmp(how, "blocked") && argc > 2) {
		sigset_t all;
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
		how = argv[2];
	}
	if (!strcmp(how, "null"))
		*(volatile int *)NULL = 1;
	else if (!strcmp(how, "wild"))
		return *(volatile int *)0x123450;
	else if (!strcmp(how, "jump"))
		((void (*)(void))0x10)();
	else if (!strcmp(how, "divide"))
		return 7 / zero;
	else if (!strcmp(how, "illegal"))
		__asm__ volatile("ud2");
	else if (!strcmp(how, "trap"))
		__asm__ volatile("int3");
	else if (!strcmp(how, "bus"))
		bus();
	else if (!strcmp(how, "abort"))
		abort();
	else if (!strcmp(how, "assertion"))
		assert(zero);
	else if (!strcmp(how, "fortify"))
		strcpy(small, argc > 1 ? "much more than eight bytes" : "");
	else if (!strcmp(how, "double-free")) {
		char *volatile p = malloc(100), *volatile q = p;
		free(p);
		free(q);
	} else if (!strcmp(how, "recursion"))
		return recurse(0);
	else if (!strcmp(how, "recursion-alternate")) {
		use_alternate_stack();
		return recurse(0);
	} else if (!strcmp(how, "handler")) {
		signal(SIGUSR1, die_again);
		raise(SIGUSR1);
	} else if (!strcmp(how, "handler-again")) {
		signal(SIGSEGV, die_again);
		*(volatile int *)16 = 1;
	} else if (!strcmp(how, "thread")) {
		pthread_t thread;
		pthread_create(&thread, NULL, in_thread, (void *)16);
		pthread_join(thread, NULL);
	} else if (!strcmp(how, "heap"))
		((volatile char *)malloc(8))[9] = 1;
	else if (!strcmp(how, "raise"))
		raise(number_of(argv[2]));
	else if (!strcmp(how, "killed-spinning"))
		killed(0);
	else if (!strcmp(how, "killed-waiting"))
		killed(1);
	else if (!strcmp(how, "filtered"))
		filtered();
	return small[0] & 0;
}
