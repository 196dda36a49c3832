/* Instructions that move rsp and use it, or memory, at the same time; xlat. */
#include "instruction.h"

SNIPPET(push_rsp, "mov %rsp, %rdx; push %rsp; pop %rax; sub %rdx, %rax; ret");
SNIPPET(pop_rsp, "mov %rsp, %rdx; push %rdx; pop %rsp; mov %rsp, %rax; sub %rdx, %rax; ret");
SNIPPET(push_memory, "sub $64, %rsp; mov %rdi, 8(%rsp); pushq 8(%rsp); pop %rax; add $64, %rsp; ret");
SNIPPET(push_memory_16,
        "sub $64, %rsp; mov %rdi, 8(%rsp); pushw 10(%rsp); movzwl (%rsp), %eax; add $66, %rsp; ret");
/* pop to memory addressed by rsp uses rsp after the increment */
SNIPPET(pop_memory,
        "sub $64, %rsp; movq $0, 24(%rsp); push %rdi; popq 24(%rsp); mov 24(%rsp), %rax; add $64, %rsp; ret");
SNIPPET(pop_memory_index, "mov $2, %ecx; sub $64, %rsp; movq $0, 24(%rsp); push %rdi; popq 8(%rsp,%rcx,8); "
                          "mov 24(%rsp), %rax; add $64, %rsp; ret");
SNIPPET(pop_at_rsp, "push %rsi; push %rdi; popq (%rsp); pop %rax; ret");
SNIPPET(push_immediates,
        "push $-2; pushw $0x1234; pushq $0x7fffffff; pop %rax; xor %ecx, %ecx; popw %cx; add %rcx, %rax; pop "
        "%rcx; add %rcx, %rax; ret");
SNIPPET(enter_0, "enter $32, $0; mov %rbp, %rax; sub %rsp, %rax; leave; ret");
SNIPPET(enter_1, "enter $16, $1; mov -8(%rbp), %rax; sub %rbp, %rax; mov %rbp, %rdx; sub %rsp, %rdx; add "
                 "%rdx, %rax; leave; ret");
SNIPPET(enter_3, "mov %rsp, %rdx\n"
                 "push %rbp; mov %rsp, %rbp; push $0x11; push $0x22; push $0x33; sub $64, %rsp\n"
                 "enter $24, $3\n" /* copies two frame pointers from the frame of the caller */
                 "mov -8(%rbp), %rax; shl $8, %rax; add -16(%rbp), %rax; mov -24(%rbp), %rcx; sub %rbp, "
                 "%rcx; shl $16, %rcx; add "
                 "%rcx, %rax\n"
                 "leave; leave; ret");
SNIPPET(leave_far, "push %rbp; mov %rdi, %rbp; mov %rsp, %rdx; leave; mov %rbp, %rax; mov %rsp, %rcx; mov "
                   "%rdx, %rsp; pop %rbp; "
                   "sub %rdi, %rcx; add %rcx, %rax; ret");
SNIPPET(enter_fault, "mov %rsp, %r8; mov %rdi, %rsp; enter $128, $0; mov %r8, %rsp; ret");
SNIPPET(push_fault, "mov %rsp, %r8; mov %rdi, %rsp; push %rdi; mov %r8, %rsp; ret");
SNIPPET(pop_fault, "mov %rsp, %r8; mov %rdi, %rsp; popq (%rsi); mov %r8, %rsp; ret");
SNIPPET(call_fault, "mov %rsp, %r8; mov %rdi, %rsp; call 1f; 1: mov %r8, %rsp; ret");
SNIPPET(ret_fault, "mov %rsp, %r8; mov %rdi, %rsp; ret");
SNIPPET(xlat_plain, "push %rbx; mov %rdi, %rbx; mov %rsi, %rax; xlat; pop %rbx; ret");
SNIPPET(xlat_fault, "push %rbx; mov %rdi, %rbx; mov %rsi, %rax; xlat; pop %rbx; ret");
SNIPPET(pushf_popf, "pushfq; orq $0x400, (%rsp); popfq; pushfq; pop %rax; cld; and $0x500, %eax; ret");

int main(void)
{
	unsigned char *memory = guarded("memory", 2);
	uint64_t frame[4] = {0x1234, 0, 0, 0};
	catch_faults();
	CHECK_EQ(call(push_rsp, 0, 0, 0, 0), 0);
	CHECK_EQ(call(pop_rsp, 0, 0, 0, 0), 0);
	CHECK_EQ(call(push_memory, 0x1122334455667788, 0, 0, 0), 0x1122334455667788);
	CHECK_EQ(call(push_memory_16, 0x1122334455667788, 0, 0, 0), 0x5566);
	CHECK_EQ(call(pop_memory, 77, 0, 0, 0), 77);
	CHECK_EQ(call(pop_memory_index, 78, 0, 0, 0), 78);
	CHECK_EQ(call(pop_at_rsp, 79, 80, 0, 0), 79);
	CHECK_EQ(call(push_immediates, 0, 0, 0, 0), 0x7fffffffull + 0x1234 - 2);
	CHECK_EQ(call(enter_0, 0, 0, 0, 0), 32);
	CHECK_EQ(call(enter_1, 0, 0, 0, 0), 16 + 8);
	uint64_t nested = call(enter_3, 0, 0, 0, 0);
	CHECK_EQ(nested, (0x11 << 8) + 0x22);
	printf("enter with 3 levels: %#llx\n", (unsigned long long)nested);
	CHECK_EQ(call(leave_far, ADDRESS(frame), 0, 0, 0), 0x1234 + 8);
	for (unsigned n = 0; n < 256; n++)
		memory[1000 + n] = (unsigned char)(n ^ 0x5a);
	for (unsigned n = 0; n < 256; n++) /* only al is the index, only al changes */
		CHECK_EQ(call(xlat_plain, ADDRESS(memory + 1000), 0x1100 + n, 0, 0), 0x1100 + (n ^ 0x5a));
	CHECK_EQ(call(pushf_popf, 0, 0, 0, 0), 0x400);
	NAME_SNIPPET(enter_fault);
	NAME_SNIPPET(push_fault);
	NAME_SNIPPET(pop_fault);
	NAME_SNIPPET(call_fault);
	NAME_SNIPPET(ret_fault);
	NAME_SNIPPET(xlat_fault);
	/* A fault leaves rsp as it was. */
	expect_fault("push", push_fault, SIGSEGV, 6, ADDRESS(memory), 0);
	CHECK_EQ(caught.registers[REG_RSP], ADDRESS(memory));
	expect_fault("pop to a guard page", pop_fault, SIGSEGV, 6, ADDRESS(memory + 64), ADDRESS(memory - 8));
	CHECK_EQ(caught.registers[REG_RSP], ADDRESS(memory + 64));
	expect_fault("call", call_fault, SIGSEGV, 6, ADDRESS(memory), 0);
	CHECK_EQ(caught.registers[REG_RSP], ADDRESS(memory));
	expect_fault("ret", ret_fault, SIGSEGV, 6, ADDRESS(memory - 8), 0);
	CHECK_EQ(caught.registers[REG_RSP], ADDRESS(memory - 8));
	expect_fault("enter", enter_fault, SIGSEGV, 6, ADDRESS(memory + 64), 0);
	CHECK_EQ(caught.registers[REG_RSP], ADDRESS(memory + 64));
	expect_fault("xlat", xlat_fault, SIGSEGV, 7, ADDRESS(memory - 10), 9);
	CHECK_EQ(caught.address, ADDRESS(memory - 1));
	return 0;
}
