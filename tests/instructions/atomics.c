/* Locked instructions, cmpxchg8b and cmpxchg16b, xchg; movbe. */
#include "instruction.h"

SNIPPET(cmpxchg8b, "push %rbx; mov (%rsi), %eax; mov 4(%rsi), %edx; mov 8(%rsi), %ebx; mov 12(%rsi), %ecx\n"
                   "lock cmpxchg8b (%rdi); setz %cl; mov %eax, (%rsi); mov %edx, 4(%rsi); movzbl %cl, %eax; "
                   "pop %rbx; ret");
SNIPPET(cmpxchg16b, "push %rbx; mov (%rsi), %rax; mov 8(%rsi), %rdx; mov 16(%rsi), %rbx; mov 24(%rsi), %rcx\n"
                    "lock cmpxchg16b (%rdi); setz %cl; mov %rax, (%rsi); mov %rdx, 8(%rsi); movzbl %cl, "
                    "%eax; pop %rbx; ret");
SNIPPET(plain_cmpxchg16b,
        "push %rbx; mov (%rsi), %rax; mov 8(%rsi), %rdx; mov 16(%rsi), %rbx; mov 24(%rsi), %rcx\n"
        "cmpxchg16b (%rdi); setz %cl; mov %rax, (%rsi); mov %rdx, 8(%rsi); movzbl %cl, %eax; pop %rbx; ret");
SNIPPET(unaligned_cmpxchg16b, "lock cmpxchg16b (%rdi); ret");
SNIPPET(cmpxchg_64, "mov %rsi, %rax; lock cmpxchg %rdx, (%rdi); ret");
SNIPPET(cmpxchg_8, "mov %rsi, %rax; cmpxchg %dl, (%rdi); ret");
SNIPPET(xadd_32, "mov %esi, %eax; lock xadd %eax, (%rdi); ret");
SNIPPET(xchg_16, "mov %esi, %eax; xchg %ax, (%rdi); ret");
SNIPPET(inc_8, "stc; lock incb (%rdi); setc %al; movzbl %al, %eax; ret");
SNIPPET(sub_64, "lock sub %rsi, (%rdi); pushfq; pop %rax; and $0x8d5, %eax; ret");
SNIPPET(neg_32, "lock negl (%rdi); pushfq; pop %rax; and $0x8d5, %eax; ret");
SNIPPET(read_only, "mov $1, %eax; lock xadd %eax, (%rdi); ret");
/* cmpxchg writes even when the comparison fails, so it faults on read-only memory */
SNIPPET(read_only_cmpxchg, "mov $77, %eax; cmpxchg %ecx, (%rdi); ret");
SNIPPET(illegal_lock, ".byte 0xf0; mov (%rdi), %eax; ret");
SNIPPET(over_the_lock, "mov %rsi, %rax; test %rdx, %rdx; jz 1f + 1; 1: lock xadd %rax, (%rdi); ret");
SNIPPET(movbe_16, "mov %rsi, %rax; movbe (%rdi), %ax; ret");
SNIPPET(movbe_32, "mov %rsi, %rax; movbe (%rdi), %eax; ret");
SNIPPET(movbe_64, "movbe (%rdi), %rax; ret");
SNIPPET(movbe_store, "movbe %rsi, (%rdi); movbe %esi, 8(%rdi); movbe %si, 12(%rdi); ret");

int main(void)
{
	unsigned char *memory = guarded("memory", 2);
	catch_faults();
	__builtin_cpu_init();
	uint32_t *words = (uint32_t *)memory;
	words[0] = 1;
	words[1] = 2;
	uint32_t pair[4] = {1, 2, 30, 40};
	CHECK_EQ(call(cmpxchg8b, ADDRESS(words), ADDRESS(pair), 0, 0), 1);
	CHECK(words[0] == 30 && words[1] == 40 && pair[0] == 1 && pair[1] == 2);
	CHECK_EQ(call(cmpxchg8b, ADDRESS(words), ADDRESS(pair), 0, 0), 0);
	CHECK(words[0] == 30 && words[1] == 40 && pair[0] == 30 && pair[1] == 40);
	/* across a cache line and a page */
	memcpy(memory + PAGE - 3, pair, 8);
	CHECK_EQ(call(cmpxchg8b, ADDRESS(memory + PAGE - 3), ADDRESS(pair), 0, 0), 1);

	_Alignas(16) uint64_t wide[2] = {5, 6};
	uint64_t quad[4] = {5, 6, 70, 80};
	CHECK_EQ(call(cmpxchg16b, ADDRESS(wide), ADDRESS(quad), 0, 0), 1);
	CHECK(wide[0] == 70 && wide[1] == 80 && quad[0] == 5 && quad[1] == 6);
	CHECK_EQ(call(plain_cmpxchg16b, ADDRESS(wide), ADDRESS(quad), 0, 0), 0);
	CHECK(wide[0] == 70 && wide[1] == 80 && quad[0] == 70 && quad[1] == 80);
	quad[2] = 1;
	CHECK_EQ(call(plain_cmpxchg16b, ADDRESS(wide), ADDRESS(quad), 0, 0), 1);
	CHECK(wide[0] == 1 && wide[1] == 80);

	uint64_t value = 100;
	CHECK_EQ(call(cmpxchg_64, ADDRESS(&value), 100, 200, 0), 100);
	CHECK_EQ(value, 200);
	CHECK_EQ(call(cmpxchg_64, ADDRESS(&value), 100, 300, 0), 200);
	CHECK_EQ(value, 200);
	CHECK_EQ(call(cmpxchg_8, ADDRESS(&value), 0xff00, 7, 0), 0xff00 + 200);
	CHECK_EQ(call(xadd_32, ADDRESS(&value), 0xffffffff, 0, 0), 200);
	CHECK_EQ(value, 199);
	CHECK_EQ(call(xchg_16, ADDRESS(&value), 0xabcd1234, 0, 0), 0xabcd0000 + 199);
	CHECK_EQ(value, 0x1234);
	value = 0xff;
	CHECK_EQ(call(inc_8, ADDRESS(&value), 0, 0, 0), 1); /* carry is kept */
	CHECK_EQ(value, 0);
	uint64_t flags = call(sub_64, ADDRESS(&value), 1, 0, 0);
	CHECK_EQ(value, ~0ull);
	printf("lock sub: flags %#llx\n", (unsigned long long)flags);
	flags = call(neg_32, ADDRESS(&value), 0, 0, 0);
	CHECK_EQ(value, 0xffffffff00000001);
	printf("lock neg: flags %#llx\n", (unsigned long long)flags);
	value = 10;
	CHECK_EQ(call(over_the_lock, ADDRESS(&value), 1, 0, 0), 10);
	CHECK_EQ(call(over_the_lock, ADDRESS(&value), 1, 1, 0), 11);
	CHECK_EQ(value, 12);

	NAME_SNIPPET(unaligned_cmpxchg16b);
	NAME_SNIPPET(read_only);
	NAME_SNIPPET(read_only_cmpxchg);
	NAME_SNIPPET(illegal_lock);
	expect_fault("cmpxchg16b, not aligned", unaligned_cmpxchg16b, SIGSEGV, 0, ADDRESS(memory + 8), 0);
	CHECK(mprotect(memory, PAGE, PROT_READ) == 0);
	expect_fault("xadd, read-only", read_only, SIGSEGV, 5, ADDRESS(memory + 16), 0);
	CHECK_EQ(caught.registers[REG_RAX], 1);
	expect_fault(
	        "cmpxchg that would fail, read-only", read_only_cmpxchg, SIGSEGV, 5, ADDRESS(memory + 16), 0);
	CHECK_EQ(caught.registers[REG_RAX], 77);
	expect_fault("lock mov", illegal_lock, SIGILL, 0, ADDRESS(memory), 0);

	const unsigned char *bytes = (const unsigned char *)"\x11\x22\x33\x44\x55\x66\x77\x88";
	unsigned char out[16] = {0};
	CHECK_EQ(call(movbe_16, ADDRESS(bytes), 0xffffffffffffffff, 0, 0), 0xffffffffffff1122);
	CHECK_EQ(call(movbe_32, ADDRESS(bytes), 0xffffffffffffffff, 0, 0), 0x11223344);
	CHECK_EQ(call(movbe_64, ADDRESS(bytes), 0, 0, 0), 0x1122334455667788);
	call(movbe_store, ADDRESS(out), 0x0102030405060708, 0, 0);
	CHECK(memcmp(out, "\1\2\3\4\5\6\7\x8\5\6\7\x8\7\x8", 14) == 0);
	return 0;
}
