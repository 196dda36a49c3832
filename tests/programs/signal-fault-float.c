/* link: -lm */
/*
 * Floating-point faults: unmasked exceptions of x87 and SSE give SIGFPE with the right code and pc; the x87
 * environment shows the program's own pc and data address, not the code cache's.
 */
#include "check.h"
#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

static sigjmp_buf back;
static char *expected;
extern char sse_div[], x87_div[], x87_wait[], sse_vector[], x87_store[];
double memory_operand = 3.5;

static void handler(int sig, siginfo_t *info, void *context)
{
	mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
	printf("  signal %d code %d pc %s addr %s trap %lld mxcsr %#x control %#x status %#x\n", sig,
	        info->si_code, (char *)m->gregs[REG_RIP] == expected ? "right" : "wrong",
	        info->si_addr == expected ? "pc" : "other", m->gregs[REG_TRAPNO], m->fpregs->mxcsr,
	        m->fpregs->cwd, m->fpregs->swd);
	siglongjmp(back, 1);
}

static void reset(void)
{
	asm volatile("fninit");
	unsigned mxcsr = 0x1f80;
	asm volatile("ldmxcsr %0" : : "m"(mxcsr));
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	CHECK(!sigaction(SIGFPE, &action, NULL));
	unsigned mxcsr = 0x1f80 & ~0x200u; /* divide by zero unmasked */
	unsigned short control = 0x37f & ~4;
	double zero = 0, one = 1;

	puts("sse divide");
	expected = sse_div;
	if (!sigsetjmp(back, 1)) {
		asm volatile("ldmxcsr %0; movsd %1, %%xmm0; .globl sse_div; sse_div: divsd %2, %%xmm0"
		             :
		             : "m"(mxcsr), "m"(one), "m"(zero)
		             : "xmm0");
		fail("no SIGFPE");
	}
	reset();

	puts("sse invalid");
	mxcsr = 0x1f80 & ~0x80u;
	expected = sse_vector;
	if (!sigsetjmp(back, 1)) {
		asm volatile("ldmxcsr %0; xorps %%xmm1, %%xmm1; .globl sse_vector; sse_vector: divps %%xmm1, "
		             "%%xmm1"
		             :
		             : "m"(mxcsr)
		             : "xmm1");
		fail("no SIGFPE");
	}
	reset();

	/* x87 reports at the next waiting instruction. */
	puts("x87 divide");
	expected = x87_wait;
	if (!sigsetjmp(back, 1)) {
		asm volatile("fldcw %0; fld1; fldz; .globl x87_div; x87_div: fdivrp; .globl x87_wait; "
		             "x87_wait: fwait"
		             :
		             : "m"(control));
		fail("no SIGFPE");
	}
	reset();

	/* The environment remembers the last x87 instruction that was not a control instruction. */
	uint32_t environment[7] = {0};
	asm volatile("fld1; .globl x87_store; x87_store: faddl memory_operand(%%rip); fnstenv %0; fstp "
	             "%%st(0); fldcw %1"
	             : "=m"(environment)
	             : "m"((unsigned short){0x37f}));
	printf("fnstenv: pc %s, operand %s\n",
	        environment[3] == (uint32_t)(uint64_t)x87_store ? "right"
	        : environment[3] == 0                           ? "0"
	                                                        : "wrong",
	        environment[5] == (uint32_t)(uint64_t)&memory_operand ? "right"
	        : environment[5] == 0                                 ? "0"
	                                                              : "wrong");
	struct {
		uint16_t control, status;
		uint8_t tag, zero;
		uint16_t opcode;
		uint64_t pc, data;
		uint8_t rest[488];
	} image __attribute__((aligned(64)));
	memset(&image, 0, sizeof image);
	asm volatile("fninit; fld1; faddl memory_operand(%%rip); fxsave64 %0; fstp %%st(0)" : "=m"(image));
	printf("fxsave: tag %#x\n", image.tag);

	CHECK(!feenableexcept(FE_OVERFLOW));
	volatile double big = 1e300;
	puts("overflow");
	expected = NULL;
	if (!sigsetjmp(back, 1)) {
		big = big * big;
		fail("no SIGFPE");
	}
	reset();
	volatile int dividend = -2147483647 - 1, divisor = -1;
	puts("integer overflow");
	if (!sigsetjmp(back, 1)) {
		dividend = dividend / divisor;
		fail("no SIGFPE");
	}
	return done();
}
