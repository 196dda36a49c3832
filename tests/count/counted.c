/*
 * What is counted, without a libc: its number of instructions depends on nothing but the code. Loops with live flags,
 * calls, indirect jumps, string and emulated instructions, system calls, signals and faults whose handler skips the
 * instruction that faulted.
 */
#include <stddef.h>
#include <stdint.h>

#define SIGUSR1     10
#define SIGSEGV     11
#define SA_SIGINFO  4ul
#define SA_RESTORER 0x04000000ul

struct action {
	void (*handler)(int, void *, void *);
	unsigned long flags;
	void (*restorer)(void);
	unsigned long mask;
};

static long call(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long result;
	__asm__ volatile("syscall"
	                 : "=a"(result)
	                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
	                 : "rcx", "r11", "memory");
	return result;
}

__asm__("restorer: mov $15, %eax; syscall");
void restorer(void);

static volatile unsigned handled;

static void handler(int number, void *info, void *context)
{
	uint64_t *registers = (uint64_t *)((char *)context + 40); /* r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip */

	(void)info;
	if (number == SIGSEGV)
		registers[16] += 3; /* mov (%rax), %rax */
	handled++;
}

static int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static uint64_t add(uint64_t a) { return a + 3; }
static uint64_t rotate(uint64_t a) { return a << 7 | a >> 57; }
static uint64_t (*const functions[])(uint64_t) = {add, rotate};

static void live_flags(void)
{
	uint64_t words[8] = {~0ul, ~0ul, 3, 4, 5, 6, 7, 8};

	__asm__ volatile("mov $8, %%ecx\n"
	                 "xor %%edx, %%edx\n" /* clears the carry */
	                 "1: mov (%0,%%rdx,8), %%rax\n"
	                 "adc %%rax, (%0,%%rdx,8)\n"
	                 "lea 1(%%rdx), %%rdx\n"
	                 "dec %%ecx\n"
	                 "jne 1b\n"
	                 :
	                 : "r"(words)
	                 : "rax", "rcx", "rdx", "memory", "cc");
}

static void strings(void)
{
	static char from[5000], to[5000];
	void *source = from, *target = to;
	long count = sizeof from;

	__asm__ volatile("rep movsb" : "+S"(source), "+D"(target), "+c"(count) : : "memory");
	count = 0;
	__asm__ volatile("rep stosb" : "+D"(target), "+c"(count) : "a"(0) : "memory");
	count = 40;
	target = to;
	__asm__ volatile("1: movsb; loop 1b" : "+S"(source), "+D"(target), "+c"(count) : : "memory");
}

static void emulated(void)
{
	unsigned a = 0, b, c = 0, d;

	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	__asm__ volatile("rdtsc" : "=a"(a), "=d"(d));
	__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; popfq; lea 128(%%rsp), %%rsp" : : : "memory", "cc");
}

void _start(void);
void _start(void)
{
	struct action action = {handler, SA_SIGINFO | SA_RESTORER, restorer, 0};
	uint64_t value = 1;

	call(13, SIGSEGV, (long)&action, 0, 8);
	call(13, SIGUSR1, (long)&action, 0, 8);
	for (int i = 0; i < 300; i++)
		value = functions[value & 1](value);
	value += fib(12);
	for (int i = 0; i < 20; i++)
		live_flags();
	strings();
	long self = call(39, 0, 0, 0, 0);
	for (int i = 0; i < 10; i++) {
		emulated();
		call(62, self, SIGUSR1, 0, 0);
		__asm__ volatile("xor %%eax, %%eax\n\tmov (%%rax), %%rax" : : : "rax", "cc");
	}
	call(231, handled == 20 && value ? 0 : 1, 0, 0, 0);
	__builtin_unreachable();
}
