/*
 * Jumps into the middle of instructions, overlapping code, call $+5; pop, mismatched calls and returns, ret
 * n, push and ret as a jump, a return address changed on the stack, jrcxz and loop, far-off prefixes.
 */
#include "check.h"

uint64_t overlap(uint64_t), call_pop(void), push_ret(uint64_t), changed_return(void), ret_n(uint64_t),
        loops(uint64_t), deep_mismatch(uint64_t), double_return(void);
extern char call_pop_here[];

asm(".text\n"
    /* mov $0x..c3c0ff48, %rax read from its middle is inc %rax; ret */
    ".globl overlap\n"
    "overlap:\n"
    "	movq %rdi, %rax\n"
    "	jmp 1f+2\n"
    "1:	movabsq $0x90909090c3c0ff48, %rax\n"
    "	ret\n"
    "call_pop:\n"
    "	call 1f\n"
    "call_pop_here:\n"
    "1:	popq %rax\n"
    "	ret\n"
    "push_ret:\n"
    "	leaq 1f(%rip), %rax\n"
    "	pushq %rax\n"
    "	ret\n"
    "	ud2\n"
    "1:	leaq 5(%rdi), %rax\n"
    "	ret\n"
    "changed_return:\n"
    "	call 1f\n"
    "	ud2\n"
    "	movl $77, %eax\n"
    "	ret\n"
    "1:	addq $2, (%rsp)\n" /* over the ud2 */
    "	ret\n"
    "ret_n:\n"
    "	pushq %rdi\n"
    "	pushq $3\n"
    "	call 1f\n"
    "	ret\n"
    "1:	movq 8(%rsp), %rax\n"
    "	addq 16(%rsp), %rax\n"
    "	ret $16\n"
    "loops:\n"
    "	movq %rdi, %rcx\n"
    "	xorl %eax, %eax\n"
    "	jrcxz 2f\n"
    "1:	addq %rcx, %rax\n"
    "	loop 1b\n"
    "2:	ret\n"
    /* N calls that never return one by one: the stack is cut back instead */
    "deep_mismatch:\n"
    "	movq %rsp, %rdx\n"
    "	xorl %eax, %eax\n"
    "1:	incq %rax\n"
    "	cmpq %rdi, %rax\n"
    "	je 2f\n"
    "	call 1b\n"
    "	ud2\n"
    "2:	movq %rdx, %rsp\n"
    "	ret\n"
    /* returns two levels at once */
    "double_return:\n"
    "	call 1f\n"
    "	ud2\n"
    "1:	call 2f\n"
    "	ud2\n"
    "2:	addq $16, %rsp\n"
    "	movl $55, %eax\n"
    "	ret\n");

int main(void)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < 20000; i++) {
		CHECK_EQ(overlap(i), i + 1);
		CHECK_EQ(call_pop(), call_pop_here);
		CHECK_EQ(push_ret(i), i + 5);
		CHECK_EQ(changed_return(), 77);
		CHECK_EQ(ret_n(i), i + 3);
		CHECK_EQ(loops(i % 20), i % 20 * (i % 20 + 1) / 2);
		CHECK_EQ(deep_mismatch(1 + i % 100), 1 + i % 100);
		CHECK_EQ(double_return(), 55);
		sum = mix(sum, overlap(i));
	}
	printf("sum %llx\n", (long long)sum);
	return done();
}
