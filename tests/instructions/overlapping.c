/*
 * Instructions that overlap, by the byte at which they begin, and are followed by the same one: it is reached
 * from two sides, neither of which is a branch. Compilers of Lisp do that without meaning to, with bytes of
 * data behind int3. While recording, code goes on with what it knows at the end of the block in front of it
 * about registers that are in their slots already, and about the instruction that has set the flags; what
 * it would know here holds for one of the two sides only.
 */
#include "instruction.h"

/* Both go from the first byte of 1: or from the second one to the same load. rsi: a word; edi: which way. */

/* mov $0x900e0348, %eax, or add (%rsi), %rcx ; nop */
SNIPPET(changed_register, "mov $1, %eax; add (%rsi), %rcx; test %edi, %edi; jnz 1f + 1\n"
                          "1: .byte 0xb8; add (%rsi), %rcx; nop\n"
                          "add (%rsi), %rcx; ret");
/* cmp $0x9066ff85, %eax, or test %edi, %edi ; xchg %ax, %ax */
SNIPPET(other_flags, "mov %edx, %eax; test %edi, %edi; jnz 1f + 1\n"
                     "1: .byte 0x3d; test %edi, %edi; xchg %ax, %ax\n"
                     "mov (%rsi), %rcx; sete %al; movzbl %al, %eax; ret");

int main(void)
{
	uint64_t word = 7;

	for (unsigned round = 0; round < 3; round++) {
		CHECK_EQ(call(changed_register, 0, ADDRESS(&word), 0, 0), 0x900e0348);
		CHECK_EQ(call(changed_register, 1, ADDRESS(&word), 0, 0), 1);
		CHECK_EQ(call(other_flags, 0, ADDRESS(&word), 0x9066ff85, 0), 1);
		CHECK_EQ(call(other_flags, 0, ADDRESS(&word), 0, 0), 0);
		CHECK_EQ(call(other_flags, 1, ADDRESS(&word), 0x9066ff85, 0), 0);
		word += round; /* a miss in between */
	}
	puts("ok");
	return 0;
}
