/* syscall leaves the return address in rcx and the flags in r11, both the program's; int 0x80; nothing else
 * changes. */
#include "instruction.h"

/* Sets all registers, calls getppid, stores all registers; rdi: array of 16 */
SNIPPET(all_registers,
        "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rdi\n"
        "mov %rsp, saved_stack(%rip)\n"
        "mov $0x101, %ebx; mov $0x102, %edx; mov $0x103, %esi; mov $0x104, %edi; mov $0x105, %ebp; mov "
        "$0x106, %r8d\n"
        "mov $0x107, %r9d; mov $0x108, %r10d; mov $0x109, %r12d; mov $0x10a, %r13d; mov $0x10b, %r14d; mov "
        "$0x10c, %r15d\n"
        "mov $110, %eax; pushq $0x246; popfq; stc; std\n" /* CF, PF, ZF, DF */
        "syscall_place: syscall\nafter_syscall:\n"
        "cld; xchg %rdi, (%rsp); mov %rax, (%rdi); mov %rcx, 8(%rdi); mov %r11, 16(%rdi); mov %rbx, "
        "24(%rdi); mov %rdx, 32(%rdi)\n"
        "mov %rsi, 40(%rdi); mov %rbp, 48(%rdi); mov %r8, 56(%rdi); mov %r9, 64(%rdi); mov %r10, 72(%rdi); "
        "mov %r12, 80(%rdi)\n"
        "mov %r13, 88(%rdi); mov %r14, 96(%rdi); mov %r15, 104(%rdi); pop %rax; mov %rax, 112(%rdi)\n"
        "lea -8(%rsp), %rax; sub saved_stack(%rip), %rax; mov %rax, 120(%rdi)\n"
        "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n"
        ".pushsection .bss; saved_stack: .quad 0; .popsection");
__asm__(".globl after_syscall\n.hidden after_syscall");
extern const char after_syscall[] __attribute__((visibility("hidden")));

SNIPPET(flags_kept, "mov $110, %eax; pushq %rdi; popfq; syscall; pushfq; pop %rax; pushq $0x202; popfq; and "
                    "$0x240cd5, %eax; ret");
SNIPPET(bad_number, "mov $-1, %eax; syscall; ret");
SNIPPET(int_80, "push %rbx; mov %edi, %eax; mov $0x1122334455667788, %r10; mov %r10, %rcx; int $0x80; cmp "
                "%r10, %rcx; setne %cl; "
                "movzbl %cl, %ecx; shl $32, %rcx; add %rcx, %rax; pop %rbx; ret");
SNIPPET(red_zone, "movq %rdi, -64(%rsp); mov $110, %eax; syscall; mov -64(%rsp), %rax; ret");
SNIPPET(vectors, "movq %rdi, %xmm15; vinsertf128 $1, %xmm15, %ymm15, %ymm15; mov $110, %eax; syscall; "
                 "vextractf128 $1, %ymm15, "
                 "%xmm0; movq %xmm0, %rax; vzeroupper; ret");

int main(void)
{
	uint64_t r[16];
	catch_faults();
	call(all_registers, ADDRESS(r), 0, 0, 0);
	CHECK_EQ(r[0], getppid());
	CHECK_EQ(r[1], ADDRESS(after_syscall));
	CHECK_EQ(r[2] & 0xfff, 0x647);
	printf("r11: %#llx\n", (unsigned long long)r[2]);
	static const uint64_t expected[] = {
	        0x101, 0x102, 0x103, 0x105, 0x106, 0x107, 0x108, 0x109, 0x10a, 0x10b, 0x10c, 0x104};
	for (unsigned n = 0; n < 12; n++)
		CHECK_EQ(r[3 + n], expected[n]);
	CHECK_EQ(r[15], 0);
	for (uint64_t flags = 0; flags < 64; flags++) {
		uint64_t wanted = (flags & 1) | (flags & 2) << 1 | (flags & 4) << 2 | (flags & 8) << 3 |
		                  (flags & 16) << 6 | (flags & 32) << 6;
		CHECK_EQ(call(flags_kept, wanted | 0x202, 0, 0, 0), wanted);
	}
	CHECK_EQ(call(flags_kept, 0x240202, 0, 0, 0), 0x240000); /* AC and ID */
	CHECK_EQ(call(bad_number, 0, 0, 0, 0), (uint64_t)-38);
	CHECK_EQ(call(red_zone, 0x1234567, 0, 0, 0), 0x1234567);
	CHECK_EQ(call(vectors, 0x7654321, 0, 0, 0), 0x7654321);
	NAME_SNIPPET(int_80);
	/* 20 is getpid and 64 getppid there; a kernel without 32-bit support refuses with SIGSEGV. */
	if (faults(int_80, 20, 0, 0, 0)) {
		show_fault("int 0x80");
	} else {
		CHECK_EQ(call(int_80, 20, 0, 0, 0), getpid());
		CHECK_EQ(call(int_80, 64, 0, 0, 0), getppid());
		printf("int 0x80: right\n");
	}
	return 0;
}
