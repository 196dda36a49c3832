/* bt, bts, btr, btc: a bit number in a register moves the address, one in an immediate does not. */
#include "instruction.h"

#define FLAGS "pushfq; popq %rax; and $1, %eax; ret"

SNIPPET(bt_64, "bt %rsi, (%rdi); " FLAGS);
SNIPPET(bts_64, "bts %rsi, (%rdi); " FLAGS);
SNIPPET(btr_64, "btr %rsi, (%rdi); " FLAGS);
SNIPPET(btc_64, "btc %rsi, (%rdi); " FLAGS);
SNIPPET(bt_32, "bt %esi, (%rdi); " FLAGS);
SNIPPET(bts_32, "bts %esi, (%rdi); " FLAGS);
SNIPPET(btr_32, "btr %esi, (%rdi); " FLAGS);
SNIPPET(btc_32, "btc %esi, (%rdi); " FLAGS);
SNIPPET(bt_16, "bt %si, (%rdi); " FLAGS);
SNIPPET(bts_16, "bts %si, (%rdi); " FLAGS);
SNIPPET(btr_16, "btr %si, (%rdi); " FLAGS);
SNIPPET(btc_16, "btc %si, (%rdi); " FLAGS);
SNIPPET(lock_bts_64, "lock bts %rsi, (%rdi); " FLAGS);
SNIPPET(lock_btr_32, "lock btr %esi, (%rdi); " FLAGS);
SNIPPET(lock_btc_16, "lock btc %si, (%rdi); " FLAGS);
SNIPPET(bts_index, "mov $3, %edx; bts %rsi, 16(%rdi,%rdx,8); " FLAGS);
SNIPPET(bts_immediate, "btsq $77, (%rdi); " FLAGS);
SNIPPET(btc_register, "mov %rdi, %rdx; btc %rsi, %rdx; mov %rdx, %rax; ret");
SNIPPET(bt_stack, "push %rdi; bt %rsi, (%rsp); sbb %eax, %eax; pop %rdi; ret");

static const struct {
	const char *name, *code;
	unsigned size;
	char operation; /* t, s, r or c */
} forms[] = {{"bt 64", bt_64, 8, 't'}, {"bts 64", bts_64, 8, 's'}, {"btr 64", btr_64, 8, 'r'},
        {"btc 64", btc_64, 8, 'c'}, {"bt 32", bt_32, 4, 't'}, {"bts 32", bts_32, 4, 's'},
        {"btr 32", btr_32, 4, 'r'}, {"btc 32", btc_32, 4, 'c'}, {"bt 16", bt_16, 2, 't'},
        {"bts 16", bts_16, 2, 's'}, {"btr 16", btr_16, 2, 'r'}, {"btc 16", btc_16, 2, 'c'},
        {"lock bts 64", lock_bts_64, 8, 's'}, {"lock btr 32", lock_btr_32, 4, 'r'},
        {"lock btc 16", lock_btc_16, 2, 'c'}};

static const int64_t numbers[] = {0, 1, 15, 16, 31, 32, 63, 64, 65, 127, 1000, 4095, 8191, 16383, -1, -8, -16,
        -17, -33, -64, -65, -1000, -8192};

int main(void)
{
	unsigned char *memory = guarded("memory", 3);
	catch_faults();
	NAME_SNIPPET(bts_64);
	NAME_SNIPPET(bt_32);
	for (unsigned f = 0; f < sizeof forms / sizeof *forms; f++) {
		unsigned carries = 0;
		for (unsigned n = 0; n < sizeof numbers / sizeof *numbers; n++) {
			unsigned char *base = memory + PAGE + 64;
			int64_t bit = numbers[n];
			for (unsigned k = 0; k < 3 * PAGE; k++)
				memory[k] = (unsigned char)(k * 7 + (k >> 5));
			unsigned char *byte = base + (bit >> 3), before = *byte,
			              mask = (unsigned char)(1 << (bit & 7));
			unsigned char expected = before;
			if (forms[f].operation == 's')
				expected |= mask;
			if (forms[f].operation == 'r')
				expected &= (unsigned char)~mask;
			if (forms[f].operation == 'c')
				expected ^= mask;
			uint64_t carry = call(forms[f].code, ADDRESS(base), (uint64_t)bit, 0, 0);
			CHECK_EQ(carry, (before & mask) != 0);
			CHECK_EQ(*byte, expected);
			*byte = before;
			for (unsigned k = 0; k < 3 * PAGE; k++)
				CHECK_EQ(memory[k], (unsigned char)(k * 7 + (k >> 5)));
			carries += (unsigned)carry << n;
		}
		printf("%s: carries %#x\n", forms[f].name, carries);
	}
	memset(memory, 0, 3 * PAGE);
	CHECK_EQ(call(bts_index, ADDRESS(memory), 200, 0, 0), 0);
	CHECK_EQ(memory[16 + 24 + 25], 1);
	CHECK_EQ(call(bts_immediate, ADDRESS(memory + 512), 0, 0, 0), 0); /* 77 mod 64 */
	CHECK_EQ(memory[512 + 1], 1 << 5);
	CHECK_EQ(call(btc_register, 0, 64 + 5, 0, 0), 32);
	CHECK_EQ((int)call(bt_stack, 1ul << 40, 40, 0, 0), -1);
	/* The word that holds the bit faults, not the one at the base. */
	expect_fault("bts above", bts_64, SIGSEGV, 0, ADDRESS(memory), 3 * 32768);
	CHECK_EQ(caught.address, ADDRESS(memory + 3 * PAGE));
	expect_fault("bt below", bt_32, SIGSEGV, 0, ADDRESS(memory), (uint64_t)-1);
	return 0;
}
