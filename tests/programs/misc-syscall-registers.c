/*
 * The system call instruction itself: rcx and r11 hold the program's own return pc and flags afterwards, all
 * other registers and ymm are kept, six arguments arrive, errors come as small negative numbers, flags stay.
 * Also from code of the program's own making.
 */
#include "check.h"
#include <sys/mman.h>

extern char after_syscall[];
uint64_t registers[16], flags_before, flags_after;

int main(void)
{
	for (int round = 0; round < 1000; round++) {
		flags_before = 0x202 | (round & 1 ? 0x8d5 : 0) | (round & 2 ? 0x400 : 0);
		asm volatile("movq $0x1111111111111111, %%rbx\n"
		             "movq $0x2222222222222222, %%rdx\n"
		             "movq $0x3333333333333333, %%rsi\n"
		             "movq $0x4444444444444444, %%rdi\n"
		             "movq $0x5555555555555555, %%r8\n"
		             "movq $0x6666666666666666, %%r9\n"
		             "movq $0x7777777777777777, %%r10\n"
		             "movq $0x8888888888888888, %%r12\n"
		             "movq $0x9999999999999999, %%r13\n"
		             "movq $0xaaaaaaaaaaaaaaaa, %%r14\n"
		             "movq $0xbbbbbbbbbbbbbbbb, %%r15\n"
		             "leaq -256(%%rsp), %%rsp\n"
		             "pushq flags_before(%%rip)\n"
		             "popfq\n"
		             "movl %[number], %%eax\n"
		             "syscall\n"
		             ".globl after_syscall\n"
		             "after_syscall:\n"
		             "movq %%rax, registers(%%rip)\n"
		             "movq %%rcx, registers+8(%%rip)\n"
		             "movq %%rdx, registers+16(%%rip)\n"
		             "movq %%rbx, registers+24(%%rip)\n"
		             "movq %%rsi, registers+32(%%rip)\n"
		             "movq %%rdi, registers+40(%%rip)\n"
		             "movq %%r8, registers+48(%%rip)\n"
		             "movq %%r9, registers+56(%%rip)\n"
		             "movq %%r10, registers+64(%%rip)\n"
		             "movq %%r11, registers+72(%%rip)\n"
		             "movq %%r12, registers+80(%%rip)\n"
		             "movq %%r13, registers+88(%%rip)\n"
		             "movq %%r14, registers+96(%%rip)\n"
		             "movq %%r15, registers+104(%%rip)\n"
		             "pushfq\n"
		             "popq flags_after(%%rip)\n"
		             "cld\n"
		             "leaq 256(%%rsp), %%rsp\n"
		             :
		             : [number] "i"(SYS_getuid)
		             : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
		             "r13", "r14", "r15", "memory", "cc");
		CHECK_EQ(registers[0], getuid());
		CHECK_EQ(registers[1], after_syscall);
		CHECK_EQ(registers[9], flags_before);
		CHECK_EQ(flags_after, flags_before);
		const uint64_t expected[] = {0, 0, 0x2222222222222222, 0x1111111111111111, 0x3333333333333333,
		        0x4444444444444444, 0x5555555555555555, 0x6666666666666666, 0x7777777777777777, 0,
		        0x8888888888888888, 0x9999999999999999, 0xaaaaaaaaaaaaaaaa, 0xbbbbbbbbbbbbbbbb};
		for (int i = 2; i < 14; i++)
			if (i != 9)
				CHECK_EQ(registers[i], expected[i]);
	}
	/* Six arguments. */
	register long r10 asm("r10") = MAP_PRIVATE | MAP_ANONYMOUS;
	register long r8 asm("r8") = -1;
	register long r9 asm("r9") = 0;
	long result;
	asm volatile("syscall"
	             : "=a"(result)
	             : "0"((long)SYS_mmap), "D"(0L), "S"(8192L), "d"((long)(PROT_READ | PROT_WRITE)),
	             "r"(r10), "r"(r8), "r"(r9)
	             : "rcx", "r11", "memory");
	CHECK(result > 0);
	((char *)result)[8191] = 1;
	asm volatile("syscall" : "=a"(result) : "0"((long)SYS_close), "D"(-1L) : "rcx", "r11", "memory");
	CHECK_EQ(result, -EBADF);

	unsigned char *page =
	        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	memcpy(page, "\x89\xf8\x0f\x05\xc3", 5); /* mov %edi, %eax; syscall; ret */
	long (*made)(int) = (long (*)(int))page;
	for (int i = 0; i < 1000; i++) {
		CHECK_EQ(made(SYS_getpid), getpid());
		CHECK_EQ(made(SYS_gettid), getpid());
	}
	return done();
}
