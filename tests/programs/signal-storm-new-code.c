/* run: | --cache 256K */
/*
 * Signals at 10 kHz while every block is new: code is generated, run once and replaced, libraries of libc
 * functions are used for the first time, threads start. Most signals find the program waiting for a
 * translation.
 */
#include "emit.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#define AREA (1u << 20)

static volatile unsigned signals, in_code;
static uint8_t *area;
static uint8_t *handler_code;

static void handler(int sig, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	uint8_t *pc = (uint8_t *)registers[REG_RIP];
	(void)sig;
	(void)info;
	signals++;
	if (pc >= area && pc < area + AREA) {
		in_code++;
		/* at the start of an instruction of the generated code, not inside one */
		if (*pc != 0x8d && *pc != 0xeb && *pc != 0xc3 && *pc != 0x89)
			fail("interrupted at the byte %02x", *pc);
	}
	/* new code in the handler too */
	emit_constant(handler_code + signals % 64 * 16, (int)signals);
	CHECK_EQ(call(handler_code + signals % 64 * 16, 0), (int)signals);
}

/* mov %edi, %eax; then n times: lea 1(%rax), %eax; jmp +1; an int3 in between; then ret */
static int generate(uint8_t *at, unsigned n)
{
	uint8_t *start = at;
	*at++ = 0x89, *at++ = 0xf8;
	for (unsigned i = 0; i < n; i++) {
		*at++ = 0x8d, *at++ = 0x40, *at++ = 1;
		*at++ = 0xeb, *at++ = 1, *at++ = 0xcc;
	}
	*at++ = 0xc3;
	return (int)(at - start);
}

static void *thread(void *arg)
{
	return (void *)compute((uint64_t)arg, 1000);
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct itimerval timer = {{0, 400}, {0, 400}}, off = {{0, 0}, {0, 0}};
	uint64_t state = 12;
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);

	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	handler_code =
	        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(area != MAP_FAILED && handler_code != MAP_FAILED);
	CHECK(!sigaction(SIGALRM, &action, NULL));
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
	for (int round = 0; round < 400 || signals < 2000; round++) {
		unsigned n = 50 + (unsigned)(next_random(&state) % 500);
		uint8_t *at = area + next_random(&state) % (AREA - 8192);
		generate(at, n);
		CHECK_EQ(call(at, round), round + (int)n);
		CHECK_EQ(call(at, -round), -round + (int)n);
		if (round % 20 == 0) {
			pthread_t id;
			void *result;
			/* the thread blocks the signal: two handlers at once would share handler_code */
			CHECK(!sigprocmask(SIG_BLOCK, &alarms, NULL));
			CHECK(!pthread_create(&id, NULL, thread, (void *)(uint64_t)round));
			CHECK(!sigprocmask(SIG_UNBLOCK, &alarms, NULL));
			CHECK(!pthread_join(id, &result));
			CHECK_EQ(result, compute((uint64_t)round, 1000));
		}
	}
	CHECK(!setitimer(ITIMER_REAL, &off, NULL));
	return done();
}
