/* build: -rdynamic -fno-omit-frame-pointer -fno-optimize-sibling-calls */
/*
 * Unwinding: backtrace() through frames, through a signal handler into the interrupted function, and from a
 * thread; names come out right, so return addresses on the stack are the program's own.
 */
#include "check.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>

static void show(const char *when)
{
	void *frame[50];
	int count = backtrace(frame, 50);
	printf("%s:", when);
	for (int i = 0; i < count; i++) {
		Dl_info info;
		if (dladdr((char *)frame[i] - 1, &info) && info.dli_sname &&
		        !strncmp(info.dli_sname, "level_", 6))
			printf(" %s", info.dli_sname);
	}
	printf("\n");
	fflush(stdout);
}

void level_handler(int sig);
void level_handler(int sig)
{
	(void)sig;
	show("in the handler");
}

void level_3(volatile int *what);
void __attribute__((noinline)) level_3(volatile int *what)
{
	if (*what == 0)
		show("plain");
	else if (*what == 1)
		raise(SIGUSR1);
	else
		asm volatile("ud2");
	asm volatile("");
}

void level_2(volatile int *what);
void __attribute__((noinline)) level_2(volatile int *what)
{
	level_3(what);
	asm volatile("");
}

void *level_1(void *what);
void *__attribute__((noinline)) level_1(void *what)
{
	level_2(what);
	asm volatile("");
	return __builtin_extract_return_addr(__builtin_return_address(0));
}

void level_fault(int sig, siginfo_t *info, void *context);
void level_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	show("at a fault");
	((uint64_t *)context)[5 + 16] += 2; /* rip over the ud2 */
}

int main(void)
{
	volatile int what = 0;
	struct sigaction action = {.sa_sigaction = level_fault, .sa_flags = SA_SIGINFO};
	signal(SIGUSR1, level_handler);
	CHECK(!sigaction(SIGILL, &action, NULL));
	void *result = level_1((void *)&what);
	Dl_info info;
	CHECK(dladdr(result, &info) && !strcmp(info.dli_sname, "main"));
	what = 1;
	level_1((void *)&what);
	what = 2;
	level_1((void *)&what);
	pthread_t thread;
	what = 0;
	CHECK(!pthread_create(&thread, NULL, level_1, (void *)&what));
	CHECK(!pthread_join(thread, NULL));
	return done();
}
