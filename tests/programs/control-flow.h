/*
 * Control flow of all kinds with one checksum: big switch tables, polymorphic function pointers, computed
 * goto, tail calls, deep recursion, setjmp loops, qsort callbacks, very large frames, 1000 functions called
 * in turn. Compiled in several ways (static, PIE, not PIE, lazy and immediate binding, stripped) by the
 * build-*.c programs.
 */
#include "check.h"
#include <math.h>
#include <setjmp.h>

#ifdef __OPTIMIZE__
#define TAIL_CALLS 1000000
#else
#define TAIL_CALLS 50000 /* real calls */
#endif

#define F1(n)                                                                                                \
	static uint64_t __attribute__((noinline)) f##n(uint64_t x)                                           \
	{                                                                                                    \
		return x * (n * 2u + 1) + (x >> 7);                                                          \
	}
#define F10(n) F1(n##0) F1(n##1) F1(n##2) F1(n##3) F1(n##4) F1(n##5) F1(n##6) F1(n##7) F1(n##8) F1(n##9)
#define F100(n)                                                                                              \
	F10(n##0) F10(n##1) F10(n##2) F10(n##3) F10(n##4) F10(n##5) F10(n##6) F10(n##7) F10(n##8) F10(n##9)
#define F1000(n)                                                                                             \
	F100(n##0)                                                                                           \
	F100(n##1) F100(n##2) F100(n##3) F100(n##4) F100(n##5) F100(n##6) F100(n##7) F100(n##8) F100(n##9)
#define P1(n)  f##n,
#define P10(n) P1(n##0) P1(n##1) P1(n##2) P1(n##3) P1(n##4) P1(n##5) P1(n##6) P1(n##7) P1(n##8) P1(n##9)
#define P100(n)                                                                                              \
	P10(n##0) P10(n##1) P10(n##2) P10(n##3) P10(n##4) P10(n##5) P10(n##6) P10(n##7) P10(n##8) P10(n##9)
#define P1000(n)                                                                                             \
	P100(n##0)                                                                                           \
	P100(n##1) P100(n##2) P100(n##3) P100(n##4) P100(n##5) P100(n##6) P100(n##7) P100(n##8) P100(n##9)
F1000(1)
static uint64_t (*const many[])(uint64_t) = {P1000(1)};

static uint64_t call_many(void)
{
	uint64_t sum = 1, state = 7;
	for (int round = 0; round < 50; round++)
		for (unsigned i = 0; i < 1000; i++)
			sum = many[i](sum);
	for (int i = 0; i < 100000; i++)
		sum = many[next_random(&state) % 1000](sum);
	return sum;
}

static uint64_t __attribute__((noinline)) big_switch(unsigned what, uint64_t x)
{
#define S1(n)                                                                                                \
	case n:                                                                                              \
		x = x * 31 + n % 17;                                                                         \
		break;
#define S10(n) S1(n##0) S1(n##1) S1(n##2) S1(n##3) S1(n##4) S1(n##5) S1(n##6) S1(n##7) S1(n##8) S1(n##9)
	switch (what) {
		/* clang-format off */
		S10(1) S10(2) S10(3) S10(4) S10(5) S10(6) S10(7)
		S10(8) S10(9) S10(10) S10(11) S10(12) S10(13) S10(14)
	case 500:
		x ^= 0x1234;
		break;
	case 777:
		return ~x;
	default:
		x++;
	}
	/* clang-format on */
	return x;
}

static uint64_t interpret(const uint8_t *program, uint64_t x)
{
	static void *const labels[] = {&&add, &&multiply, &&exclusive, &&shift, &&branch, &&stop};
	const uint8_t *at = program;
	unsigned budget = 5000;
#define NEXT                                                                                                 \
	if (!budget--)                                                                                       \
		return x;                                                                                    \
	goto *labels[*at++]
	NEXT;
add:
	x += *at++;
	NEXT;
multiply:
	x *= *at++ | 1u;
	NEXT;
exclusive:
	x ^= (uint64_t)*at++ << 32;
	NEXT;
shift:
	x = x << 3 | x >> 61;
	NEXT;
branch:
	at = x & 1 ? program : at + 1;
	NEXT;
stop:
	return x;
}

static uint64_t __attribute__((noinline)) recurse(uint64_t depth)
{
	if (depth == 0)
		return 1;
	return recurse(depth - 1) * 3 + depth;
}

static uint64_t __attribute__((noinline)) mutual_odd(uint64_t n, uint64_t sum);
static uint64_t __attribute__((noinline)) mutual_even(uint64_t n, uint64_t sum)
{
	return n == 0 ? sum : mutual_odd(n - 1, sum * 5 + 1);
}
static uint64_t __attribute__((noinline)) mutual_odd(uint64_t n, uint64_t sum)
{
	return n == 0 ? ~sum : mutual_even(n - 1, sum ^ n);
}

static uint64_t __attribute__((noinline)) large_frame(unsigned size)
{
	volatile uint8_t frame[3 << 20];
	uint64_t sum = 0;
	for (unsigned i = 0; i < size; i += 4093)
		frame[i] = (uint8_t)i;
	for (unsigned i = 0; i < size; i += 4093)
		sum += frame[i];
	return sum;
}

static int compare_up(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static int compare_down(const void *a, const void *b)
{
	return compare_up(b, a);
}

static uint64_t sorts(void)
{
	static uint32_t numbers[5000];
	uint64_t state = 3, sum = 0;
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 5000; i++)
			numbers[i] = (uint32_t)next_random(&state);
		qsort(numbers, 5000, sizeof *numbers, round & 1 ? compare_up : compare_down);
		for (int i = 1; i < 5000; i++)
			CHECK(round & 1 ? numbers[i] >= numbers[i - 1] : numbers[i] <= numbers[i - 1]);
		sum = mix(sum, numbers[2500]);
	}
	return sum;
}

static jmp_buf jumps[10];

static void __attribute__((noinline)) jump_from(int depth, int to)
{
	if (depth == 0)
		longjmp(jumps[to], to + 1);
	jump_from(depth - 1, to);
	asm volatile("");
}

static uint64_t long_jumps(void)
{
	volatile uint64_t sum = 0;
	for (volatile int i = 0; i < 20000; i++) {
		int came = setjmp(jumps[i % 10]);
		if (!came)
			jump_from(i % 20, i % 10);
		CHECK_EQ(came, i % 10 + 1);
		sum = mix(sum, (uint64_t)came);
	}
	return sum;
}

static uint64_t library(void)
{
	uint64_t sum = 0;
	char text[200];
	for (int i = 0; i < 500; i++) {
		snprintf(
		        text, sizeof text, "%d-%s-%08x-%.3f-%c", i, "text", i * 77777, i / 9.0, 'a' + i % 26);
		char *end;
		long number = strtol(text, &end, 10);
		CHECK_EQ(number, i);
		sum = mix(sum, strlen(text) + (uint64_t)(end - text));
		char *copy = strdup(text);
		CHECK(!strcmp(copy, text));
		CHECK(strstr(copy, "text") == copy + (strchr(text, '-') - text) + 1);
		memmove(copy + 1, copy, 10);
		sum = mix(sum, (unsigned char)copy[5]);
		free(copy);
	}
	for (int i = 1; i < 200; i++) {
		double value = i * 0.37;
		long double longer = value;
		snprintf(text, sizeof text, "%.12g %.12g %.12g %.15Lg", value * value, value / 3, sqrt(value),
		        longer / 7);
		for (char *c = text; *c; c++)
			sum = mix(sum, (unsigned char)*c);
	}
	return sum;
}

int main(void)
{
	uint64_t sum = call_many(), state = 11;
	printf("many functions %llx\n", (long long)sum);
	for (int i = 0; i < 200000; i++)
		sum = big_switch((unsigned)(next_random(&state) % 800), sum);
	printf("switch %llx\n", (long long)sum);
	uint8_t program[1000];
	for (unsigned i = 0; i < sizeof program; i++)
		program[i] = (uint8_t)(i % 2 ? i * 7 % 5 : i % 3 + (i % 7 == 0));
	for (unsigned i = 0; i < sizeof program; i++)
		program[i] %= 5;
	for (int i = 0; i < 50; i++)
		sum = interpret(program, sum);
	printf("interpreter %llx\n", (long long)sum);
	printf("recursion %llx %llx\n", (long long)recurse(100000), (long long)recurse(50000));
	printf("tail calls %llx\n", (long long)mutual_even(TAIL_CALLS, sum));
	printf("large frame %llx\n", (long long)large_frame(3 << 20));
	printf("sorts %llx\n", (long long)sorts());
	printf("long jumps %llx\n", (long long)long_jumps());
	printf("library %llx\n", (long long)library());
	return done();
}
