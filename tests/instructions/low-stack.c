/*
 * A stack in low memory. Recording finds out about it by the first access to its shadow; what is executed
 * again then must find everything as it was.
 */
#include "instruction.h"
#include <sys/mman.h>

/* rdi: stack, rsi: where to */
SNIPPET(call_there, "mov %rsp, %r11; mov %rdi, %rsp; call *%rsi; mov %r11, %rsp; ret");
SNIPPET(next_word, "mov (%rsp), %rax; ret");

int main(void)
{
	uint64_t *low =
	        mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	uint64_t *top = low + 4096;

	CHECK(low != MAP_FAILED);
	catch_faults();
	NAME_SNIPPET(call_there);
	top[-1] = 0x123456789abcdef;
	/* No address at all: the CPU blames the call, which has not pushed anything. */
	CHECK(faults(call_there, ADDRESS(top), 1ull << 47, 0, 0));
	show_fault("call to nowhere");
	CHECK_EQ(caught.registers[REG_RSP], (greg_t)ADDRESS(top));
	CHECK_EQ(top[-1], 0x123456789abcdef);
	CHECK(!faults(call_there, ADDRESS(top), ADDRESS(next_word), 0, 0));
	CHECK(top[-1] > ADDRESS(call_there) && top[-1] < ADDRESS(call_there_end));
	puts("the return address is there");
	return 0;
}
