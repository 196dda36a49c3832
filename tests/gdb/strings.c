/*
 * String instructions that compare: they end where they find what they look for, or not, and have loaded
 * nothing behind that.
 *
 * gdb: watched for loads by tests/gdb.sh, forwards and backwards.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 40

char left[COUNT], right[COUNT];
int32_t numbers[COUNT];
long remaining;

__attribute__((noinline)) void compare_bytes(void)
{
	const char *from = left, *to = right;

	remaining = COUNT;
	__asm__ volatile("repe cmpsb" : "+S"(from), "+D"(to), "+c"(remaining) : : "memory", "cc");
}

__attribute__((noinline)) void compare_back(void)
{
	const char *from = left + COUNT - 1, *to = right + COUNT - 1;

	remaining = COUNT;
	__asm__ volatile("std; repe cmpsb; cld" : "+S"(from), "+D"(to), "+c"(remaining) : : "memory", "cc");
}

__attribute__((noinline)) void find_number(void)
{
	const int32_t *to = numbers;

	remaining = COUNT;
	__asm__ volatile("repne scasl" : "+D"(to), "+c"(remaining) : "a"(7) : "memory", "cc");
}

__attribute__((noinline)) void compare_nothing(void)
{
	const char *from = left, *to = right;

	remaining = 0;
	__asm__ volatile("repe cmpsb" : "+S"(from), "+D"(to), "+c"(remaining) : : "memory", "cc");
}

int main(void)
{
	memset(left, 'x', sizeof left);
	memset(right, 'x', sizeof right);
	left[17] = 'y';
	numbers[23] = 7;
	compare_bytes();
	compare_back();
	find_number();
	compare_nothing();
	abort();
}
