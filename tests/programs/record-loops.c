/* record: --interval 5M | --interval 5ms | --interval 100K */
/*
 * Loops that need nothing of the recorder: they load nothing new, make no system call and run no new code. In
 * several threads, with registers, flags and vector registers in use all the time.
 */
#include <pthread.h>

#include "check.h"

#define ROUNDS 60000000ul

/* Carries from one round to the next: what is added up depends on all flags having been kept. */
static uint64_t with_flags(void)
{
	uint64_t sum = 1, count = ROUNDS / 2, mixed = 0x9e3779b97f4a7c15;

	__asm__("clc\n"
	        "1: adc %[mixed], %[sum]\n"
	        "rcr $1, %[mixed]\n"
	        "dec %[count]\n" /* leaves the carry alone */
	        "jnz 1b"
	        : [sum] "+r"(sum), [count] "+r"(count), [mixed] "+r"(mixed)
	        :
	        : "cc");
	return sum;
}

static uint64_t with_numbers(void)
{
	uint64_t x = 1;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		x ^= x >> 29;
	}
	return x;
}

static uint64_t with_vectors(void)
{
	double x = 1, y = 0.5;
	long double z = 1;

	for (uint64_t i = 0; i < ROUNDS / 8; i++) {
		x = x * 0.999999 + y;
		y = y * 1.0000001 - x * 1e-9;
		z = z * 0.99999L + 1;
	}
	return (uint64_t)(x * 1e6) ^ (uint64_t)(z * 1e6L);
}

/* Stores and loads what it stored itself. */
static uint64_t with_memory(void)
{
	uint64_t table[64] = {1};

	for (uint64_t i = 0; i < ROUNDS / 4; i++)
		table[i * 7 % 64] += table[i * 5 % 64] ^ i;
	__asm__ volatile("" : : "m"(table));
	return table[0] ^ table[33];
}

static void *run(void *argument)
{
	static uint64_t (*const loops[])(void) = {with_flags, with_numbers, with_vectors, with_memory};
	uint64_t *result = argument;

	*result = loops[*result]();
	return NULL;
}

int main(void)
{
	uint64_t results[4] = {0, 1, 2, 3};
	pthread_t threads[3];

	for (unsigned i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, run, &results[i]), 0);
	run(&results[3]);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < 4; i++)
		printf("%016lx\n", results[i]);
	return 0;
}
