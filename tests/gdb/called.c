/*
 * Functions that are called: often, with results of all kinds, that are left by jumps, that are inlined, and one of which it is chosen at
 * the start which it is.
 *
 * gdb: recorded, and what was called is listed by tests/gdb.sh.
 */
#include <setjmp.h>
#include <stdlib.h>

#define OFTEN 1500

struct wide {
	long first, second, third;
};

volatile long total;
static jmp_buf back;

__attribute__((noinline)) int often(int number)
{
	return number * 2;
}

__attribute__((noinline)) double half(int number)
{
	return number / 2.0;
}

__attribute__((noinline)) struct wide widen(int number)
{
	return (struct wide){number, number + 1, number + 2};
}

__attribute__((noinline)) const char *name(int number)
{
	return number % 2 ? "odd" : "even";
}

__attribute__((noinline)) void leave(int number)
{
	if (number % 2)
		longjmp(back, 1);
}

static inline __attribute__((always_inline)) void add(int number)
{
	total += number;
}

__attribute__((noinline)) static int chosen_one(int number)
{
	return number + 100;
}

static int (*choose(void))(int)
{
	return chosen_one;
}

int chosen(int number) __attribute__((ifunc("choose")));

__attribute__((noinline)) int never(int number)
{
	return number;
}

int main(int argc, char **argv)
{
	(void)argv;
	for (int i = 0; i < 4; i++) {
		total += (long)half(i) + widen(i).third + *name(i) + chosen(i);
		/* Behind the jump it goes on where the call would have come back to. */
		if (!setjmp(back))
			leave(i);
		add(i);
	}
	for (int i = 0; i < OFTEN; i++)
		total += often(i);
	if (argc > 9)
		total += never(argc);
	abort();
}
