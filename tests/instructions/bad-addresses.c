/* Addresses that fault, and instructions that take any address without a fault. */
#include "instruction.h"

SNIPPET(load_8, "mov (%rdi), %rax; ret");
SNIPPET(store_8, "mov %rsi, (%rdi); ret");
SNIPPET(load_stack, "mov %rsp, %rdx; mov %rdi, %rsp; mov 8(%rsp), %rax; mov %rdx, %rsp; ret");
SNIPPET(load_rbp, "mov %rbp, %rdx; mov %rdi, %rbp; mov 8(%rbp), %rax; mov %rdx, %rbp; ret");
SNIPPET(push_bad, "mov %rsp, %rdx; mov %rdi, %rsp; push %rax; mov %rdx, %rsp; ret");
SNIPPET(pushf_bad, "mov %rsp, %rdx; mov %rdi, %rsp; pushfq; mov %rdx, %rsp; ret");
SNIPPET(load_16, "movups (%rdi), %xmm3; ret");
SNIPPET(load_16_aligned, "movaps (%rdi), %xmm3; ret");
SNIPPET(store_32, "vmovdqu %ymm3, (%rdi); vzeroupper; ret");
SNIPPET(rmw, "addl $5, (%rdi); ret");
SNIPPET(locked, "lock xadd %rsi, (%rdi); ret");
SNIPPET(load_keeps, "mov $77, %eax; mov $1, %ecx; cmp %eax, %eax; add (%rdi), %rax; ret");
SNIPPET(two_operands, "cmpsq; ret");
SNIPPET(harmless, "prefetcht0 (%rdi); prefetchnta (%rdi); prefetchw (%rdi); nopl (%rdi); nopw "
                  "8(%rdi,%rdi,8); lea (%rdi,%rdi), %rax; "
                  "xor %ecx, %ecx; jrcxz 1f; mov (%rdi), %al; 1: ret");
SNIPPET(clflush_, "clflush (%rdi); ret");
SNIPPET(not_temporal, "mov $0x1122334455667788, %rax; movnti %rax, (%rdi); movq %rax, %xmm0; movntdq %xmm0, "
                      "16(%rdi); movntps %xmm0, "
                      "32(%rdi); movq %rax, %mm0; movntq %mm0, 48(%rdi); emms; sfence; clflush (%rdi); "
                      "mfence; mov (%rdi), %rax; ret");
SNIPPET(cmov_not_taken, "cmp %eax, %eax; cmovne (%rdi), %rax; ret"); /* loads all the same */
SNIPPET(fxsave_bad, "fxsave (%rdi); ret");
SNIPPET(pop_pop, "mov %rsp, %rdx; mov %rdi, %rsp; pop %rax; pop %rcx; mov %rdx, %rsp; ret");

int main(void)
{
	unsigned char *memory = guarded("memory", 2), *end = memory + 2 * PAGE,
	              *read_only = guarded("read-only", 1);
	static const uint64_t not_canonical[] = {
	        0x0000800000000000, 0x8000000000000000, 0xfffe000000000000, 0x1234567812345678};
	catch_faults();
	CHECK(mprotect(read_only, PAGE, PROT_READ) == 0);
	NAME_SNIPPET(load_8);
	NAME_SNIPPET(store_8);
	NAME_SNIPPET(load_stack);
	NAME_SNIPPET(load_rbp);
	NAME_SNIPPET(push_bad);
	NAME_SNIPPET(pushf_bad);
	NAME_SNIPPET(load_16);
	NAME_SNIPPET(load_16_aligned);
	NAME_SNIPPET(store_32);
	NAME_SNIPPET(rmw);
	NAME_SNIPPET(locked);
	NAME_SNIPPET(load_keeps);
	NAME_SNIPPET(two_operands);
	NAME_SNIPPET(clflush_);
	NAME_SNIPPET(cmov_not_taken);
	NAME_SNIPPET(fxsave_bad);
	NAME_SNIPPET(pop_pop);

	for (unsigned n = 0; n < 4; n++) {
		expect_fault("load, not canonical", load_8, SIGSEGV, 0, not_canonical[n], 0);
		CHECK(caught.code == SI_KERNEL && caught.address == 0 && caught.trap == 13);
	}
	expect_fault("store, not canonical", store_8, SIGSEGV, 0, not_canonical[0], 0);
	expect_fault("load over the edge of the canonical half", load_8, SIGSEGV, 0, 0x00007ffffffffffc, 0);
	/* Through rsp and rbp it is a stack fault. */
	expect_fault("rsp, not canonical", load_stack, SIGBUS, 6, not_canonical[1], 0);
	expect_fault("rbp, not canonical", load_rbp, SIGBUS, 6, not_canonical[1], 0);
	expect_fault("push, not canonical", push_bad, SIGBUS, 6, not_canonical[1], 0);
	expect_fault("kernel address", load_8, SIGSEGV, 0, 0xffffffff81000000, 0);
	/* Behind the last bytes there is no address at all. */
	expect_fault("locked, at the end of all addresses", locked, SIGSEGV, 0, 0xfffffffffffffffe, 0);
	expect_fault("locked, last eight bytes", locked, SIGSEGV, 0, 0xfffffffffffffff8, 0);
	expect_fault("null", load_8, SIGSEGV, 0, 0, 0);
	expect_fault("store to null", store_8, SIGSEGV, 0, 8, 0);

	for (unsigned have = 1; have < 8; have++) { /* the address is that of the page that is missing */
		memset(end - 8, 0x11, 8);
		expect_fault("load across", load_8, SIGSEGV, 0, ADDRESS(end - have), 0);
		CHECK_EQ(caught.address, ADDRESS(end));
		expect_fault("store across", store_8, SIGSEGV, 0, ADDRESS(end - have), ~0ull);
		CHECK_EQ(caught.address, ADDRESS(end));
		CHECK_EQ(end[-1], 0x11); /* nothing was written */
		expect_fault("push across", push_bad, SIGSEGV, 6, ADDRESS(end + 8 - have), 0);
		expect_fault("pushf across", pushf_bad, SIGSEGV, 6, ADDRESS(end + 8 - have), 0);
		CHECK_EQ(end[-1], 0x11);
	}
	expect_fault("load across, from below", load_8, SIGSEGV, 0, ADDRESS(memory - 3), 0);
	CHECK_EQ(caught.address, ADDRESS(memory - 3));
	expect_fault("load of 16 across", load_16, SIGSEGV, 0, ADDRESS(end - 15), 0);
	expect_fault("store of 32 across", store_32, SIGSEGV, 0, ADDRESS(end - 1), 0);
	CHECK_EQ(caught.address, ADDRESS(end));
	expect_fault("movaps, not aligned", load_16_aligned, SIGSEGV, 0, ADDRESS(memory + 8), 0);
	expect_fault("store, read-only", store_8, SIGSEGV, 0, ADDRESS(read_only + 100), 0);
	CHECK_EQ(caught.code, SEGV_ACCERR);
	expect_fault("add, read-only", rmw, SIGSEGV, 0, ADDRESS(read_only + 100), 0);
	CHECK_EQ(*(uint32_t *)(read_only + 100), 0);
	expect_fault("load that faults", load_keeps, SIGSEGV, 12, ADDRESS(memory - 8), 0);
	CHECK_EQ(caught.registers[REG_RAX], 77);
	CHECK_EQ(caught.registers[REG_EFL] & 0x8d5, 0x44); /* flags of the cmp */
	expect_fault("cmps, second operand", two_operands, SIGSEGV, 0, ADDRESS(memory - 8), ADDRESS(memory));
	CHECK_EQ(caught.registers[REG_RSI], ADDRESS(memory));
	expect_fault("cmov that is not taken", cmov_not_taken, SIGSEGV, 2, ADDRESS(end), 0);
	expect_fault("fxsave, not aligned", fxsave_bad, SIGSEGV, 0, ADDRESS(memory + 8), 0);
	expect_fault("second pop", pop_pop, SIGSEGV, 7, ADDRESS(end - 8), 0);
	CHECK_EQ(caught.registers[REG_RSP], ADDRESS(end));

	static const uint64_t any[] = {0, 8, 0x8000000000000000, 0xffffffff81000000, 0x7ffffffff000, ~0ull};
	for (unsigned n = 0; n < sizeof any / sizeof *any; n++)
		CHECK_EQ(call(harmless, any[n], 0, 0, 0), 2 * any[n]);
	call(harmless, ADDRESS(end), 0, 0, 0);
	call(clflush_, ADDRESS(memory), 0, 0, 0);
	expect_fault("clflush of a guard page", clflush_, SIGSEGV, 0, ADDRESS(end), 0);
	CHECK_EQ(call(not_temporal, ADDRESS(memory), 0, 0, 0), 0x1122334455667788);
	CHECK(memcmp(memory, memory + 16, 8) == 0 && memcmp(memory, memory + 32, 8) == 0 &&
	        memcmp(memory, memory + 48, 8) == 0);
	return 0;
}
