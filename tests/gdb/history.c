/*
 * Values of all kinds that change: bit-fields beside each other, what is larger than a word, and a counter of which two threads
 * in turns make more changes than are listed.
 *
 * gdb: see tests/gdb.sh.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#define ROUNDS 3000

enum kind { NOTHING, SOME, ALL };
struct bits {
	unsigned a : 3, b : 5;
	int c : 24;
	union {
		struct {
			enum kind kind : 2;
			unsigned rest : 13;
		};
	};
} bits, *pointer = &bits;
typedef long pair __attribute__((vector_size(16)));

long double wide;
float fractions[8];
pair both;
long counter;
static sem_t turns[2];

__attribute__((noinline)) static void change_bits(void)
{
	bits.a = 5;
	pointer->b = 17;
	bits.c = -12345;
	pointer->b = 17; /* as it is already */
	bits.a = 2;
	bits.c = 7;
	bits.kind = ALL;
	bits.rest = 4097;
	bits.b = 30;
}

__attribute__((noinline)) static void change_values(long number)
{
	wide = 1.25L;
	fractions[0] = 1.5f;
	fractions[7] = 2.5f;
	both = (pair){number, number + 1};
	both = (pair){number, number + 2};
}

static void *count(void *argument)
{
	long worker = (long)argument;

	for (int round = 0; round < ROUNDS; round++) {
		sem_wait(&turns[worker]);
		for (int i = 0; i < (worker ? 3 : 7); i++)
			counter++;
		sem_post(&turns[!worker]);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	change_bits();
	change_values(1);
	sem_init(&turns[0], 0, 1);
	sem_init(&turns[1], 0, 0);
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, count, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	abort();
}
