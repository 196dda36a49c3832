/* build: -z execstack -Wno-trampolines */
/*
 * gcc's nested functions: their address is a trampoline written to the stack, new on each call; also a
 * function copied to the stack and to the heap and called there.
 */
#include "emit.h"
#include <sys/mman.h>

static int apply(int (*f)(int), int value)
{
	asm volatile("" : "+r"(f));
	return f(value);
}

static int __attribute__((noinline)) outer(int depth, int factor)
{
	int calls = 0;
	int inner(int value)
	{
		calls++;
		return value * factor + depth;
	}
	int sum = apply(inner, 3) + apply(inner, 4);
	CHECK_EQ(calls, 2);
	CHECK_EQ(sum, 7 * factor + 2 * depth);
	if (depth)
		sum += outer(depth - 1, factor + 1);
	return sum + apply(inner, 1);
}

static int compare_count;

static int __attribute__((noinline)) sort_with(int *numbers, int count, int direction)
{
	int compare(const void *a, const void *b)
	{
		compare_count++;
		return direction * (*(const int *)a - *(const int *)b);
	}
	qsort(numbers, (size_t)count, sizeof *numbers, compare);
	return numbers[0];
}

static int __attribute__((noinline)) copied_to_stack(int value)
{
	uint8_t code[64];
	if (value & 1)
		emit_add(code, value);
	else
		emit_multiply(code, value);
	asm volatile("" : : "r"(code) : "memory");
	return call(code, 10);
}

int main(void)
{
	uint64_t sum = 0;
	for (int i = 0; i < 1000; i++)
		sum = mix(sum, (uint64_t)outer(i % 30, i));
	for (int i = 0; i < 100; i++) {
		int numbers[50];
		for (int k = 0; k < 50; k++)
			numbers[k] = (k * 37 + i) % 101;
		int lowest = sort_with(numbers, 50, 1), highest = sort_with(numbers, 50, -1);
		CHECK(lowest < highest);
		sum = mix(sum, (uint64_t)(lowest * 1000 + highest));
	}
	for (int i = 0; i < 2000; i++)
		CHECK_EQ(copied_to_stack(i), i & 1 ? i + 10 : i * 10);

	uint8_t *heap = aligned_alloc(4096, 8192);
	CHECK(!mprotect(heap, 8192, PROT_READ | PROT_WRITE | PROT_EXEC));
	for (int i = 0; i < 2000; i++) {
		memset(heap, 0xcc, 64);
		emit_loop(heap, i);
		CHECK_EQ(call(heap, 4), i + 10);
	}
	printf("sum %llx\n", (long long)sum);
	return done();
}
