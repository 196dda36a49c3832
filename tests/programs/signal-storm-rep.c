/* record: --ring 256M */
/*
 * Signals at 10 kHz over long rep instructions: they are interrupted in the middle and go on; the context
 * shows rcx, rsi and rdi that fit together, and the memory is right at the end.
 */
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#define SIZE (32u << 20)

extern char rep_movs[], rep_stos[], rep_scas[];
static uint8_t *source, *destination;
static volatile unsigned signals, inside;

static void handler(int sig, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	char *pc = (char *)r[REG_RIP];
	(void)sig;
	(void)info;
	signals++;
	if (pc == rep_movs) {
		inside++;
		uint64_t moved = SIZE - (uint64_t)r[REG_RCX];
		CHECK_EQ(r[REG_RSI], (uint64_t)source + moved);
		CHECK_EQ(r[REG_RDI], (uint64_t)destination + moved);
	} else if (pc == rep_stos) {
		inside++;
		CHECK_EQ(r[REG_RDI], (uint64_t)destination + SIZE - (uint64_t)r[REG_RCX] * 8);
		CHECK_EQ(r[REG_RAX], 0x0123456789abcdef);
	} else if (pc == rep_scas) {
		inside++;
		CHECK_EQ(r[REG_RDI], (uint64_t)destination + SIZE - (uint64_t)r[REG_RCX]);
	}
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct itimerval timer = {{0, 100}, {0, 100}}, off = {{0, 0}, {0, 0}};

	source = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	destination = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(source != MAP_FAILED && destination != MAP_FAILED);
	for (unsigned i = 0; i < SIZE; i++)
		source[i] = (uint8_t)(i * 31 + i / 4096);
	CHECK(!sigaction(SIGALRM, &action, NULL));
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
	for (int round = 0; round < 5; round++) {
		uint64_t rcx = SIZE / 8, rsi = 0, rdi = (uint64_t)destination;
		asm volatile(".globl rep_stos; rep_stos: rep stosq"
		             : "+c"(rcx), "+D"(rdi)
		             : "a"(0x0123456789abcdef)
		             : "memory");
		CHECK_EQ(rcx, 0);
		for (unsigned i = 0; i < SIZE; i += 8)
			CHECK_EQ(*(uint64_t *)(destination + i), 0x0123456789abcdef);
		rcx = SIZE, rdi = (uint64_t)destination;
		asm volatile(".globl rep_scas; rep_scas: repne scasb"
		             : "+c"(rcx), "+D"(rdi)
		             : "a"(0x77)
		             : "memory", "cc");
		CHECK_EQ(rcx, 0);
		rcx = SIZE, rdi = (uint64_t)destination, rsi = (uint64_t)source;
		asm volatile(".globl rep_movs; rep_movs: rep movsb"
		             : "+c"(rcx), "+D"(rdi), "+S"(rsi)
		             :
		             : "memory");
		CHECK_EQ(rcx, 0);
		CHECK(!memcmp(source, destination, SIZE));
	}
	CHECK(!setitimer(ITIMER_REAL, &off, NULL));
	CHECK(signals > 100);
	return done();
}
