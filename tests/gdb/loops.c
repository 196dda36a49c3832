/*
 * Lines that take long: a loop within one line, a call, one after the other.
 *
 * gdb: gone back over by tests/gdb.sh, at once and instruction by instruction.
 */
#include <stdlib.h>

long sum;

__attribute__((noinline)) static long add(long count)
{
	long total = 0;

	for (long i = 0; i < count; i++)
		total += i;
	return total;
}

/* A loop in one range of pcs. */
#define SPIN(count)                                                                                          \
	__asm__ volatile("mov %1, %%rcx; 1: add %%rcx, %0; dec %%rcx; jnz 1b"                                \
	                 : "+m"(sum)                                                                         \
	                 : "r"((long)(count))                                                                \
	                 : "rcx", "cc")

__attribute__((noinline)) static void leave(void)
{
	sum++;
}

static void some(void)
{
	sum = 1;
	SPIN(25);
	for (long i = 0; i < 12; i++)
		sum += i;
	sum += add(3);
	while (sum % 8)
		sum++;
	sum += 2;
}

int main(void)
{
	some();
	SPIN(300000);
	sum += 3;
	SPIN(100000); leave(); /* a call at the end of such a line */
	abort();
}
