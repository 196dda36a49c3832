/*
 * A handler that reads the bytes of the instruction it interrupted, skips it by its length and goes on: the
 * way emulators and managed runtimes use SIGILL and SIGSEGV. The bytes at the context's pc are the program's
 * own.
 */
#include "check.h"
#include <signal.h>
#include <ucontext.h>

static unsigned count;

static void handler(int sig, siginfo_t *info, void *context)
{
	mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
	const uint8_t *pc = (uint8_t *)m->gregs[REG_RIP];
	unsigned length = 0;

	(void)info;
	if (pc[0] == 0x0f && pc[1] == 0x0b)
		length = 2; /* ud2 */
	else if (pc[0] == 0x48 && pc[1] == 0x8b && pc[2] == 0x04 && pc[3] == 0x25)
		length = 8; /* mov 0x...,%rax */
	else if (pc[0] == 0xf4)
		length = 1; /* hlt */
	else if (pc[0] == 0x48 && pc[1] == 0xc7 && pc[2] == 0x04 && pc[3] == 0x25)
		length = 12; /* movq $.., 0x.. */
	else
		fail("unknown bytes %02x %02x %02x %02x", pc[0], pc[1], pc[2], pc[3]);
	printf("signal %d:", sig);
	for (unsigned i = 0; i < length + 4; i++)
		printf(" %02x", pc[i]);
	printf("\n");
	m->gregs[REG_RAX] += 0x1000;
	m->gregs[REG_RIP] += length;
	count++;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	uint64_t rax = 5;

	CHECK(!sigaction(SIGILL, &action, NULL));
	CHECK(!sigaction(SIGSEGV, &action, NULL));
	asm volatile("ud2; nop; nop; nop; nop\n"
	             "movq 0x10, %%rax; addq $1, %%rax\n"
	             "hlt; xchgq %%rax, %%rax; nop; nop\n"
	             "movq $7, 0x18; incq %%rax; nop"
	             : "+a"(rax)
	             :
	             : "cc", "memory");
	CHECK_EQ(count, 4);
	CHECK_EQ(rax, 5 + 4 * 0x1000 + 2);
	for (int i = 0; i < 3; i++)
		asm volatile("ud2; leaq 1(%%rax), %%rax; nop" : "+a"(rax) : : "memory");
	CHECK_EQ(count, 7);
	CHECK_EQ(rax, 5 + 7 * 0x1000 + 5);
	return done();
}
