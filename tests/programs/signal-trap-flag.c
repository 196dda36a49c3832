/*
 * TF set by popf: a SIGTRAP after each instruction, with the pc of the next one; the handler clears TF to
 * stop. AC set by popf: a misaligned access is SIGBUS.
 */
#include "check.h"
#include <signal.h>
#include <ucontext.h>

extern char step_start[], step_end[];
static unsigned steps;
static uint64_t path;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
	char *pc = (char *)m->gregs[REG_RIP];
	(void)sig;
	CHECK_EQ(info->si_code, TRAP_TRACE);
	CHECK(steps < 1000);
	steps++;
	path = mix(path, (uint64_t)(pc - step_start));
	printf("step to %+ld, rax %lld\n", (long)(pc - step_start), m->gregs[REG_RAX]);
	if (pc >= step_end)
		m->gregs[REG_EFL] &= ~0x100;
}

static void on_bus(int sig, siginfo_t *info, void *context)
{
	mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
	/* The kernel leaves AC set for the handler. */
	asm volatile("leaq -256(%%rsp), %%rsp; pushfq; andq $~0x40000, (%%rsp); popfq; leaq 256(%%rsp), %%rsp"
	             :
	             :
	             : "cc", "memory");
	printf("signal %d code %d trap %lld flags %#llx\n", sig, info->si_code, m->gregs[REG_TRAPNO],
	        m->gregs[REG_EFL] & ~0xcd5);
	m->gregs[REG_EFL] &= ~0x40000;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	uint64_t rax = 0, rcx = 5, buffer[4] = {0};

	setvbuf(stdout, NULL, _IOFBF, 65536);
	CHECK(!sigaction(SIGTRAP, &action, NULL));
	action.sa_sigaction = on_bus;
	CHECK(!sigaction(SIGBUS, &action, NULL));
	asm volatile("leaq -256(%%rsp), %%rsp\n"
	             "pushfq\n"
	             "orq $0x100, (%%rsp)\n"
	             "popfq\n"
	             ".globl step_start, step_end\n"
	             "step_start: nop\n"
	             "1: addq %%rcx, %%rax\n"
	             "decq %%rcx\n"
	             "jnz 1b\n"
	             "call 2f\n"
	             "jmp 3f\n"
	             "2: ret\n"
	             "3: nop\n"
	             "step_end: nop\n"
	             "nop\n"
	             "leaq 256(%%rsp), %%rsp\n"
	             : "+a"(rax), "+c"(rcx)
	             :
	             : "cc", "memory");
	CHECK_EQ(rax, 15);
	printf("%u steps\n", steps);

	char *odd = (char *)buffer + 1;
	asm volatile("leaq -256(%%rsp), %%rsp\n"
	             "pushfq\n"
	             "orq $0x40000, (%%rsp)\n"
	             "popfq\n"
	             "movq %1, (%0)\n"
	             "pushfq\n"
	             "popq %%rax\n"
	             "leaq 256(%%rsp), %%rsp\n"
	             : "+r"(odd), "+r"(rcx), "=a"(rax)
	             :
	             : "cc", "memory");
	CHECK(!(rax & 0x40100));
	return done();
}
