/*
 * What a handler finds on entry: arguments in registers, stack aligned, direction flag clear, the red zone of
 * the interrupted code untouched, the frame's extended state as large as the kernel promises, the return
 * address a restorer that the program itself gave; and a frame built by hand taken by rt_sigreturn.
 */
#include "check.h"
#include <signal.h>
#include <sys/auxv.h>
#include <ucontext.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

struct entry {
	uint64_t rdi, rsi, rdx, rsp, flags, return_address;
} entry;

static volatile int handled;

void raw_handler(void);
void after_entry(int sig, siginfo_t *info, ucontext_t *context);

/* Stores the registers as they are on entry, then goes on in C. */
asm(".globl raw_handler\n"
    "raw_handler:\n"
    "	movq %rdi, entry(%rip)\n"
    "	movq %rsi, entry+8(%rip)\n"
    "	movq %rdx, entry+16(%rip)\n"
    "	movq %rsp, entry+24(%rip)\n"
    "	pushfq\n"
    "	popq entry+32(%rip)\n"
    "	movq (%rsp), %rax\n"
    "	movq %rax, entry+40(%rip)\n"
    "	jmp after_entry\n");

void after_entry(int sig, siginfo_t *info, ucontext_t *context)
{
	CHECK_EQ(entry.rdi, sig);
	CHECK_EQ(entry.rsi, info);
	CHECK_EQ(entry.rdx, context);
	CHECK_EQ(entry.rsp % 16, 8);
	CHECK_EQ(entry.flags & 0x400, 0);
	CHECK_EQ(entry.rsp + 8, context); /* the frame is: return address, ucontext, siginfo */
	CHECK(info > (siginfo_t *)context);
	/* mov $15, %rax; syscall: what unwinders look for */
	CHECK(!memcmp((void *)entry.return_address, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9));
	CHECK_EQ((uint64_t)context->uc_mcontext.fpregs % 64, 0);
	uint32_t *software = (uint32_t *)((char *)context->uc_mcontext.fpregs + 464);
	CHECK_EQ(software[0], 0x46505853);
	CHECK_EQ(*(uint32_t *)((char *)context->uc_mcontext.fpregs + software[4]), 0x46505845);
	CHECK(software[4] >= 512 + 64);
	CHECK(software[1] >= software[4] + 4);
	unsigned long promised = getauxval(AT_MINSIGSTKSZ);
	if (promised)
		CHECK((uint64_t)context->uc_mcontext.fpregs + software[1] - entry.rsp <= promised);
	CHECK_EQ(context->uc_link, NULL);
	CHECK_EQ(context->uc_flags & 7, 7); /* FP_XSTATE, SIGCONTEXT_SS, STRICT_RESTORE_SS */
	CHECK_EQ(context->uc_mcontext.gregs[REG_CSGSFS] & 0xffff, 0x33);
	handled++;
}

/* Interrupts itself with data in the red zone and the direction flag set. */
static int red_zone(void)
{
	uint64_t good;
	asm volatile("movl $1, %%r8d\n"
	             "movl $0x5a, %%eax\n"
	             "movl $128, %%ecx\n"
	             "leaq -1024(%%rsp), %%rsp\n" /* our own room: the compiler may use the red zone too */
	             "leaq -128(%%rsp), %%rdi\n"
	             "rep stosb\n"
	             "std\n"
	             "movl %[getpid], %%eax\n"
	             "syscall\n"
	             "movl %%eax, %%edi\n"
	             "movl %%eax, %%esi\n"
	             "movl %[sig], %%edx\n"
	             "movl %[tgkill], %%eax\n"
	             "syscall\n"
	             "pushfq\n" /* uses 8 bytes of it: checked from -120 on */
	             "popq %%rsi\n"
	             "cld\n"
	             "testl $0x400, %%esi\n"
	             "jnz 1f\n"
	             "xorl %%r8d, %%r8d\n"
	             "1:\n"
	             "movl $120, %%ecx\n"
	             "leaq -128(%%rsp), %%rdi\n"
	             "movl $0x5a, %%eax\n"
	             "repe scasb\n"
	             "je 2f\n"
	             "xorl %%r8d, %%r8d\n"
	             "2:\n"
	             "leaq 1024(%%rsp), %%rsp\n"
	             "movq %%r8, %[good]\n"
	             : [good] "=r"(good)
	             : [getpid] "i"(SYS_getpid), [tgkill] "i"(SYS_tgkill), [sig] "i"(SIGUSR1)
	             : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r11", "memory", "cc");
	return (int)good;
}

static char hand_stack[65536] __attribute__((aligned(64)));

static void __attribute__((noreturn)) arrive(void)
{
	puts("arrived by a frame made by hand");
	exit(done());
}

int main(void)
{
	struct sigaction action = {
	        .sa_sigaction = (void (*)(int, siginfo_t *, void *))raw_handler, .sa_flags = SA_SIGINFO};
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	for (int i = 0; i < 100; i++)
		raise(SIGUSR1);
	CHECK_EQ(handled, 100);
	CHECK_EQ(red_zone(), 1);
	CHECK_EQ(handled, 101);

	/* rt_sigreturn from nowhere: a frame without extended state. */
	ucontext_t *frame = (ucontext_t *)(hand_stack + 8192);
	memset(frame, 0, sizeof *frame);
	frame->uc_mcontext.gregs[REG_RIP] = (greg_t)arrive;
	frame->uc_mcontext.gregs[REG_RSP] = (greg_t)(hand_stack + 32768 + 8);
	frame->uc_mcontext.gregs[REG_EFL] = 0x202;
	frame->uc_mcontext.gregs[REG_CSGSFS] = 0x33 | ((greg_t)0x2b << 48);
	frame->uc_flags = 6;
	fflush(stdout);
	asm volatile("movq %0, %%rsp; movl $15, %%eax; syscall" : : "r"(frame) : "memory");
	fail("back from rt_sigreturn");
}
