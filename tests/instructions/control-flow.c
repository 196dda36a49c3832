/* Where control goes: calls without return, returns without call, into instructions, off the end of memory.
 */
#include "instruction.h"

SNIPPET(call_pop, "call 1f; 1: pop %rax; ret");
SNIPPET(lea_rip, "lea lea_rip(%rip), %rax; ret");
SNIPPET(ret_n, "mov %rsp, %rdx; push %rdi; push %rsi; call 1f; mov %rsp, %rax; sub %rdx, %rax; ret; 1: mov "
               "8(%rsp), %rcx; ret $16");
SNIPPET(push_ret, "lea 1f(%rip), %rax; push %rax; ret; ud2; 1: mov $5, %eax; ret");
SNIPPET(skip_frame,
        "call 1f; ud2; 1: call 2f; ud2; 2: add $16, %rsp; mov $6, %eax; ret"); /* returns two levels up */
SNIPPET(changed_return, "call 1f; ud2; mov $7, %eax; ret; 1: addq $2, (%rsp); ret");
SNIPPET(jump_out, "call 1f; 1: pop %rdx; lea 2f(%rip), %rdx; jmp *%rdx; ud2; 2: mov $8, %eax; ret");
SNIPPET(overlap, ".byte 0xeb, 0xff, 0xc0; ret");        /* jmp to its own second byte: ff c0 is inc eax */
SNIPPET(hidden, "mov $0xc3c0ff, %eax; jmp hidden + 1"); /* and ff c0 c3: inc eax; ret */
SNIPPET(jrcxz_, "mov %rdi, %rcx; pushq $0x46; popfq; jrcxz 1f; mov $1, %eax; ret; 1: pushfq; pop %rax; and "
                "$0x44, %eax; ret");
SNIPPET(jecxz_, "mov %rdi, %rcx; xor %eax, %eax; jecxz 1f; inc %eax; 1: ret");
SNIPPET(loops, "mov %rdi, %rcx; xor %eax, %eax; 1: inc %rax; loop 1b; ret");
SNIPPET(loope_, "mov %rdi, %rcx; xor %eax, %eax; 1: inc %rax; cmp %rsi, %rax; loopne 1b; ret");
SNIPPET(table, "lea 9f(%rip), %rdx; movslq (%rdx,%rdi,4), %rax; add %rdx, %rax; jmp *%rax\n"
               "1: mov $10, %eax; ret; 2: mov $20, %eax; ret; 3: mov $30, %eax; ret; .balign 4; 9: .long 1b "
               "- 9b, 2b - 9b, 3b - 9b");
SNIPPET(call_memory, "lea 1f(%rip), %rax; push %rax; call *(%rsp); pop %rdx; ret; 1: mov $40, %eax; ret");
/* The target is read before the return address is pushed: rsp as base shows which. */
SNIPPET(call_below_rsp, "lea 1f(%rip), %rax; mov %rax, -8(%rsp); call *-8(%rsp); ret; 1: mov $41, %eax; ret");
SNIPPET(jmp_rip, "jmp *1f(%rip); ud2; 2: mov $50, %eax; ret; .pushsection .data.rel.local, \"aw\"; 1: .quad "
                 "2b; .popsection");
SNIPPET(deep, "mov %rdi, %rax; test %rdi, %rdi; jz 1f; dec %rdi; call deep; inc %rax; 1: ret");
SNIPPET(rep_ret, "mov $60, %eax; repz ret");
SNIPPET(data16_call,
        "sub $8, %rsp; .byte 0x66, 0x66, 0x48; call 1f; add $8, %rsp; ret; 1: mov $70, %eax; ret");
SNIPPET(recursion_by_jump, "xor %eax, %eax; 1: inc %eax; lea 1b(%rip), %rdx; lea 2f(%rip), %rcx; cmp %edi, "
                           "%eax; cmove %rcx, %rdx; "
                           "jmp *%rdx; 2: ret");
SNIPPET(far_return,
        "mov %cs, %eax; push %rax; lea 1f(%rip), %rax; push %rax; lretq; ud2; 1: mov $80, %eax; ret");
SNIPPET(interrupt_return, "mov %rsp, %rdx; mov %ss, %eax; push %rax; push %rdx; pushfq; mov %cs, %eax; push "
                          "%rax; lea 1f(%rip), "
                          "%rax; push %rax; iretq; ud2; 1: sub %rsp, %rdx; lea 90(%rdx), %rax; ret");
SNIPPET(jump_to, "jmp *%rdi");
SNIPPET(call_to, "call *%rdi; ret");
SNIPPET(return_to, "push %rdi; ret");

static void pure(void)
{
	CHECK_EQ(call(call_pop, 0, 0, 0, 0), ADDRESS(call_pop) + 5);
	CHECK_EQ(call(lea_rip, 0, 0, 0, 0), ADDRESS(lea_rip));
	CHECK_EQ(call(ret_n, 1, 2, 0, 0), 0);
	CHECK_EQ(call(push_ret, 0, 0, 0, 0), 5);
	CHECK_EQ(call(skip_frame, 0, 0, 0, 0), 6);
	CHECK_EQ(call(changed_return, 0, 0, 0, 0), 7);
	CHECK_EQ(call(jump_out, 0, 0, 0, 0), 8);
	uint64_t before = call(overlap, 0, 0, 0, 0);
	printf("overlap: %u\n", before != 0);
	CHECK_EQ(call(hidden, 0, 0, 0, 0), 0xc3c100);
	CHECK_EQ(call(jrcxz_, 0, 0, 0, 0), 0x44); /* no flag is read or written */
	CHECK_EQ(call(jrcxz_, 1ull << 32, 0, 0, 0), 1);
	CHECK_EQ(call(jecxz_, 1ull << 32, 0, 0, 0), 0);
	CHECK_EQ(call(loops, 12345, 0, 0, 0), 12345);
	CHECK_EQ(call(loope_, 1000, 17, 0, 0), 17);
	for (unsigned n = 0; n < 3; n++)
		CHECK_EQ(call(table, n, 0, 0, 0), 10 * (n + 1));
	CHECK_EQ(call(call_memory, 0, 0, 0, 0), 40);
	CHECK_EQ(call(call_below_rsp, 0, 0, 0, 0), 41);
	CHECK_EQ(call(jmp_rip, 0, 0, 0, 0), 50);
	CHECK_EQ(call(deep, 10000, 0, 0, 0), 10000);
	CHECK_EQ(call(rep_ret, 0, 0, 0, 0), 60);
	CHECK_EQ(call(data16_call, 0, 0, 0, 0), 70);
	CHECK_EQ(call(recursion_by_jump, 1000, 0, 0, 0), 1000);
	CHECK_EQ(call(far_return, 0, 0, 0, 0), 80);
	CHECK_EQ(call(interrupt_return, 0, 0, 0, 0), 90);
}

static void to_nowhere(void)
{
	unsigned char *data = guarded("data", 1);
	NAME_SNIPPET(jump_to);
	NAME_SNIPPET(call_to);
	NAME_SNIPPET(return_to);
	CHECK(faults(jump_to, ADDRESS(data), 0, 0, 0));
	show_fault("jump to data");
	CHECK(caught.signal == SIGSEGV && caught.pc == ADDRESS(data) && caught.address == ADDRESS(data));
	CHECK(faults(call_to, ADDRESS(data - 64), 0, 0, 0));
	show_fault("call to a guard page");
	CHECK(caught.pc == ADDRESS(data - 64));
	CHECK_EQ(*(uint64_t *)(uintptr_t)caught.registers[REG_RSP],
	        ADDRESS(call_to) + 2); /* the return address is there */
	CHECK(faults(return_to, 0, 0, 0, 0));
	show_fault("return to 0");
	CHECK(caught.pc == 0);
	CHECK(faults(jump_to, 0x8000000000000000, 0, 0, 0));
	show_fault("jump to an address that is not canonical");
	CHECK(faults(call_to, 0x0000900000000000, 0, 0, 0));
	show_fault("call to an address that is not canonical");
	CHECK(faults(return_to, 0x1234567812345678, 0, 0, 0));
	show_fault("return to an address that is not canonical");
	CHECK(faults(jump_to, 0xffffffff80000000, 0, 0, 0));
	show_fault("jump into the kernel");
}

/* Code at the end of a page: whole, cut in an instruction, without an end; and across two pages. */
static void page_end(void)
{
	unsigned char *code = guarded("code", 2), *end = code + 2 * PAGE;
	static const unsigned char add_ret[] = {0x48, 0x8d, 0x47, 0x05, 0xc3}; /* lea rax, [rdi + 5]; ret */
	static const unsigned char long_mov[] = {
	        0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 0xc3}; /* mov rax, imm64; ret */
	memcpy(end - 5, add_ret, 5);
	for (unsigned n = 0; n <= sizeof long_mov; n++)
		memcpy(code + n * 64, long_mov, sizeof long_mov);
	memcpy(code + PAGE - 7, long_mov, sizeof long_mov);
	CHECK(mprotect(code, 2 * PAGE, PROT_READ | PROT_EXEC) == 0);
	CHECK_EQ(call(end - 5, 10, 0, 0, 0), 15);
	CHECK_EQ(call(code + PAGE - 7, 0, 0, 0, 0), 0x0807060504030201);
	for (unsigned have = 1; have <= 10; have++) {
		CHECK(mprotect(code, 2 * PAGE, PROT_READ | PROT_WRITE) == 0);
		memcpy(end - have, long_mov, have);
		CHECK(mprotect(code, 2 * PAGE, PROT_READ | PROT_EXEC) == 0);
		CHECK(faults(end - have, 0, 0, 0, 0));
		if (have == 1 || have >= 9)
			show_fault("code cut off");
		CHECK_EQ(caught.signal, SIGSEGV);
		CHECK_EQ(caught.address, ADDRESS(end));
		CHECK_EQ(caught.pc, have == 10 ? ADDRESS(end) : ADDRESS(end - have));
	}
	/* The second page goes, comes back with other code, loses the right to run. */
	CHECK(mprotect(code + PAGE, PAGE, PROT_READ) == 0);
	CHECK(faults(code + PAGE - 7, 0, 0, 0, 0));
	show_fault("second page not executable");
	CHECK_EQ(caught.pc, ADDRESS(code + PAGE - 7));
	CHECK(mprotect(code, 2 * PAGE, PROT_READ | PROT_WRITE) == 0);
	code[PAGE] = 99;
	CHECK(mprotect(code, 2 * PAGE, PROT_READ | PROT_EXEC) == 0);
	CHECK_EQ(call(code + PAGE - 7, 0, 0, 0, 0), 0x0807630504030201);
	CHECK(munmap(code + PAGE, PAGE) == 0);
	CHECK(faults(code + PAGE - 7, 0, 0, 0, 0));
	CHECK_EQ(caught.address, ADDRESS(code + PAGE));
	printf("second page unmapped: SIG%s\n", sigabbrev_np(caught.signal));
}

int main(void)
{
	catch_faults();
	pure();
	to_nowhere();
	page_end();
	return 0;
}
