/*
 * Registers that recording keeps aside over several instructions come back as they were, also when an
 * instruction is executed again because memory is not what it was, and another register was needed meanwhile;
 * and a handler finds them, and what kind of access it was that failed.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define COUNT 16

static unsigned char buffer[COUNT * 4096];
static const void *at_memory __attribute__((used)), *at_fresh __attribute__((used));
static uint64_t *at_out __attribute__((used));

/* The registers behind `cmp dword [memory]`, which leaves the choice, and `cmp byte [fresh]`, which has few.
 */
static void compare_both(const void *memory, const void *fresh, uint64_t out[COUNT])
{
	at_memory = memory;
	at_fresh = fresh;
	at_out = out;
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
	                 "push %%rbp\n\t"
	                 "push %%rbx\n\t"
	                 "push at_out(%%rip)\n\t"
	                 "mov at_memory(%%rip), %%rbx\n\t"
	                 "mov at_fresh(%%rip), %%rbp\n\t"
	                 "mov $0xa0, %%eax\n\t mov $0xc0, %%ecx\n\t mov $0xd0, %%edx\n\t"
	                 "mov $0xe0, %%esi\n\t mov $0xf0, %%edi\n\t"
	                 "mov $8, %%r8d\n\t mov $9, %%r9d\n\t mov $10, %%r10d\n\t mov $11, %%r11d\n\t"
	                 "mov $12, %%r12d\n\t mov $13, %%r13d\n\t mov $14, %%r14d\n\t mov $15, %%r15d\n\t"
	                 "jmp 1f\n"
	                 "1:\n\t"
	                 "cmpl $5, (%%rbx)\n\t"
	                 "cmpb $3, (%%rbp)\n\t"
	                 "addl $1, 64(%%rbp)\n\t"
	                 "cmpb $3, 128(%%rbp)\n\t"
	                 "lea 1(%%rax), %%rax\n\t lea 1(%%rcx), %%rcx\n\t lea 1(%%rdx), %%rdx\n\t"
	                 "jmp 2f\n"
	                 "2:\n\t"
	                 "pop %%rbx\n\t"
	                 "mov %%rax, (%%rbx)\n\t mov %%rcx, 8(%%rbx)\n\t mov %%rdx, 16(%%rbx)\n\t"
	                 "mov %%rsi, 24(%%rbx)\n\t mov %%rdi, 32(%%rbx)\n\t"
	                 "mov %%r8, 40(%%rbx)\n\t mov %%r9, 48(%%rbx)\n\t mov %%r10, 56(%%rbx)\n\t"
	                 "mov %%r11, 64(%%rbx)\n\t mov %%r12, 72(%%rbx)\n\t mov %%r13, 80(%%rbx)\n\t"
	                 "mov %%r14, 88(%%rbx)\n\t mov %%r15, 96(%%rbx)\n\t"
	                 "pop %%rbx\n\t"
	                 "pop %%rbp\n\t"
	                 "lea 128(%%rsp), %%rsp\n\t"
	                 :
	                 :
	                 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
	                 "r15", "memory", "cc");
}

static sigjmp_buf back;

static void show_fault(int number, siginfo_t *info, void *context)
{
	const greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	printf("signal %d, error %#llx, rsi %#llx, rdi %#llx, r8 %#llx\n", number, regs[REG_ERR],
	        regs[REG_RSI], regs[REG_RDI], regs[REG_R8]);
	(void)info;
	siglongjmp(back, 1);
}

/* It would be read first, and natively is told as a write. */
static void modify_nothing(const void *memory, void *nothing)
{
	__asm__ volatile("mov $0xe0, %%esi\n\t mov $0xf0, %%edi\n\t mov $8, %%r8d\n\t"
	                 "jmp 1f\n"
	                 "1:\n\t"
	                 "cmpl $5, (%[memory])\n\t"
	                 "andq $1, (%[nothing])\n\t"
	                 :
	                 : [memory] "b"(memory), [nothing] "a"(nothing)
	                 : "rsi", "rdi", "r8", "memory", "cc");
}

/* f3 41 90 looks like pause, and is xchg r8, rax: also right behind a load that borrows. */
static void exchange_like_pause(void)
{
	uint64_t rax = 1, r8 = 2, sum;

	__asm__ volatile("mov %0, %%rax; mov %1, %%r8; lea 2f(%%rip), %%rdx; jmp 1f; 1: bsf buffer(%%rip), "
	                 "%%rcx; .byte 0xf3, 0x41, 0x90\n\t"
	                 "jmp *%%rdx; 2: add buffer(%%rip), %%rcx; mov %%rax, %0; mov %%r8, %1; mov %%rcx, %2"
	                 : "+m"(rax), "+m"(r8), "=m"(sum)
	                 :
	                 : "rax", "rcx", "rdx", "r8", "cc", "memory");
	printf("exchanged: %d %d\n", rax == 2, r8 == 1);
}

int main(void)
{
	static const uint64_t expected[COUNT] = {0xa1, 0xc1, 0xd1, 0xe0, 0xf0, 8, 9, 10, 11, 12, 13, 14, 15};
	static char line[4096]; /* what the kernel writes is news to the shadow */
	static int memory = 5;
	int ends[2];

	memset(line, 'x', sizeof line);
	if (pipe(ends))
		return 1;
	for (unsigned i = 0; i < COUNT; i++) {
		uint64_t out[COUNT] = {0};

		if (write(ends[1], line, sizeof line) != (ssize_t)sizeof line ||
		        read(ends[0], buffer + i * 4096, 4096) != 4096)
			return 1;
		compare_both(&memory, buffer + i * 4096 + 1024, out);
		for (unsigned k = 0; k < COUNT; k++)
			if (out[k] != expected[k])
				printf("round %u: register %u is %#lx, not %#lx\n", i, k,
				        (unsigned long)out[k], (unsigned long)expected[k]);
	}
	struct sigaction action = {.sa_sigaction = show_fault, .sa_flags = SA_SIGINFO};
	void *nothing = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	sigaction(SIGSEGV, &action, NULL);
	if (!sigsetjmp(back, 1))
		modify_nothing(&memory, nothing);
	puts("done");
	exchange_like_pause();
	return 0;
}
