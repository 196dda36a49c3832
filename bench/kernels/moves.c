/*
 * For bench/gdb: about ARGUMENT million instructions, of which the last hundred million come behind the last change of
 * `marker`, and a hundred million before them behind that of `busy.marker`, whose neighbours change all the time; and a
 * function that is called a million times. It dies of abort.
 */
#include <stdio.h>
#include <stdlib.h>

#define TABLE 16384
#define PASS  8 /* instructions in a pass of the loop, about */

long marker, visited;
unsigned table[TABLE];
struct {
	volatile long before, marker, behind;
} busy;

__attribute__((noinline)) void work(long passes)
{
	unsigned number = 1;

	for (long i = 0; i < passes; i++) {
		number = number * 1664525 + 1013904223;
		table[number >> 18] += number;
	}
}

/* Seven instructions in a pass, of which three access memory. */
__attribute__((noinline)) void work_beside(long passes)
{
	for (long i = 0; i < passes; i++) {
		busy.before += i;
		busy.behind = i;
	}
}

__attribute__((noinline)) void leave_busy(void)
{
	__asm__ volatile("");
}

__attribute__((noinline)) void visit(long number)
{
	visited += number;
}

__attribute__((noinline)) void finish(void)
{
	long sum = 0;

	for (int i = 0; i < 50; i++)
		sum += table[i];
	marker = marker + (sum & 1) - (sum & 1);
	printf("%ld\n", sum);
	abort();
}

int main(int argc, char **argv)
{
	long millions = argc > 1 ? atol(argv[1]) : 1000;

	marker = 1;
	for (long i = 0; i < 1000000; i++)
		visit(i);
	work((millions - 220) * 1000000 / PASS);
	busy.marker = 1;
	work_beside(100000000 / 7);
	leave_busy();
	marker = 2;
	work(100000000 / PASS);
	finish();
}
