/*
 * The vsyscall page, where the kernel still has it: callable at its fixed address, and readable or not as
 * natively; a call to anything else in it is SIGSEGV.
 */
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

#define PAGE 0xffffffffff600000ul

static sigjmp_buf back;
static volatile uint64_t pc, address;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	pc = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	address = (uint64_t)info->si_addr;
	siglongjmp(back, 1);
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	int (*volatile day)(struct timeval *, void *) = (int (*)(struct timeval *, void *))PAGE;
	time_t (*volatile seconds)(time_t *) = (time_t(*)(time_t *))(PAGE + 1024);
	int (*volatile getcpu_call)(unsigned *, unsigned *, void *) =
	        (int (*)(unsigned *, unsigned *, void *))(PAGE + 2048);
	void (*volatile nothing)(void) = (void (*)(void))(PAGE + 100);
	struct timeval now;

	CHECK(!sigaction(SIGSEGV, &action, NULL));
	if (!sigsetjmp(back, 1)) {
		for (int i = 0; i < 100; i++) {
			CHECK(!day(&now, NULL));
			CHECK(now.tv_sec > 1600000000);
			time_t time_now = seconds(NULL);
			/* Its clock goes by ticks, and may be a little behind. */
			CHECK(time_now >= now.tv_sec - 1 && time_now < now.tv_sec + 10);
			unsigned cpu;
			CHECK(!getcpu_call(&cpu, NULL, NULL));
		}
		puts("works");
	} else {
		printf("SIGSEGV, pc %s\n", pc == PAGE ? "at the page" : "elsewhere");
	}
	if (!sigsetjmp(back, 1)) {
		printf("readable: %02x\n", *(volatile unsigned char *)PAGE);
	} else {
		printf("not readable, address %s\n", address == PAGE ? "right" : "wrong");
	}
	if (!sigsetjmp(back, 1))
		nothing();
	else
		printf("no such entry, pc %s\n", pc == PAGE + 100 ? "right" : "elsewhere");
	return done();
}
