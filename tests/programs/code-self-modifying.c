/*
 * Code that changes itself: an instruction further on in its own block, the very next one, one in the loop it
 * runs in, one behind it, its own page's data; stores of all kinds do it (mov, rep movs, vector, atomic,
 * push).
 */
#include "check.h"
#include <sys/mman.h>

#define PAGE 4096ul

/* Copied to a writable and executable page; each takes what it needs in registers. */
extern char next_start[], next_end[], loop_start[], loop_end[], rep_start[], rep_end[], behind_start[],
        behind_end[], atomic_start[], atomic_end[], vector_start[], vector_end[], push_start[], push_end[];

asm(".section .rodata\n"
    /* the next instruction: changes the immediate of the mov right behind the store */
    "next_start:\n"
    "	movl %edi, 1f+1(%rip)\n"
    "1:	movl $0x11111111, %eax\n"
    "	ret\n"
    "next_end:\n"
    /* each turn of the loop changes the amount that the next turn adds */
    "loop_start:\n"
    "	xorl %eax, %eax\n"
    "	movl $0, 2f+1(%rip)\n"
    "1:	nop\n"
    "2:	addl $0x22222222, %eax\n"
    "	addl $3, 2b+1(%rip)\n"
    "	decl %edi\n"
    "	jnz 1b\n"
    "	ret\n"
    "loop_end:\n"
    /* rep movsb writes the instructions behind it */
    "rep_start:\n"
    "	movq %rdi, %rsi\n"
    "	leaq 1f(%rip), %rdi\n"
    "	movl $6, %ecx\n"
    "	rep movsb\n"
    "1:	.byte 0x0f, 0x0b, 0x0f, 0x0b, 0x0f, 0x0b, 0x0f, 0x0b\n"
    "rep_end:\n"
    /* a jump back to what was just changed */
    "behind_start:\n"
    "	jmp 2f\n"
    "1:	movl $0x33333333, %eax\n"
    "	ret\n"
    "2:	movl %edi, 1b+1(%rip)\n"
    "	jmp 1b\n"
    "behind_end:\n"
    "atomic_start:\n"
    "	lock xaddl %edi, 1f+1(%rip)\n"
    "1:	movl $0, %eax\n"
    "	ret\n"
    "atomic_end:\n"
    "vector_start:\n"
    "	movdqu (%rdi), %xmm0\n"
    "	movdqu %xmm0, 1f(%rip)\n"
    "	.p2align 4, 0x90\n"
    "1:	.fill 32, 1, 0xcc\n"
    "vector_end:\n"
    /* the stack pointer in the code: pushes write instructions */
    "push_start:\n"
    "	movq %rsp, %rdx\n"
    "	leaq 1f+8(%rip), %rsp\n"
    "	pushq %rdi\n"
    "	.p2align 3, 0x90\n"
    "1:	.fill 8, 1, 0xcc\n"
    "	movq %rdx, %rsp\n"
    "	ret\n"
    "push_end:\n"
    ".text\n");

static void *place(char *page, const char *start, const char *end)
{
	memcpy(page, start, (size_t)(end - start));
	return page;
}

int main(void)
{
	char *page =
	        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);

	for (int offset = 0; offset < 2; offset++) {
		/* also across the boundary of the two pages */
		char *at = offset ? page + PAGE - 9 : page;
		int (*number)(int) = place(at, next_start, next_end);
		for (int i = 0; i < 1000; i++)
			CHECK_EQ(number(i), i);
		puts("the next instruction");

		number = place(at, loop_start, loop_end);
		for (int i = 1; i < 60; i++)
			CHECK_EQ(number(i), 3 * i * (i - 1) / 2);
		puts("the loop it runs in");

		unsigned char code[32] = {0xb8, 0, 0, 0, 0, 0xc3};
		int (*with_code)(void *) = place(at, rep_start, rep_end);
		for (int i = 0; i < 1000; i++) {
			memcpy(code + 1, &i, 4);
			CHECK_EQ(with_code(code), i);
		}
		puts("rep movs");

		number = place(at, behind_start, behind_end);
		for (int i = 0; i < 1000; i++)
			CHECK_EQ(number(i), i);
		puts("behind it");

		number = place(at, atomic_start, atomic_end);
		for (int i = 1; i < 1000; i++)
			CHECK_EQ(number(i), i * (i + 1) / 2);
		puts("atomic");

		with_code = place(page, vector_start, vector_end);
		for (int i = 0; i < 1000; i++) {
			memcpy(code + 1, &i, 4);
			CHECK_EQ(with_code(code), i);
		}
		puts("vector");

		/* mov $i, %eax; nop; nop; nop */
		int (*pushes)(uint64_t) = place(page, push_start, push_end);
		for (int i = 0; i < 1000; i++)
			CHECK_EQ(
			        pushes(0x909090 * 0x10000000000ull + ((uint64_t)(unsigned)i << 8) + 0xb8), i);
		puts("push");
	}
	return done();
}
