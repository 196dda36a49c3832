/* build: -O1 -g0 */
/*
 * A hot loop with indirect calls to 5000 different functions, in order and at random; returns are predicted
 * wrongly and the tables of indirect branches overflow. Also through a table that changes, from two call
 * sites, and with threads.
 */
#include "check.h"
#include <pthread.h>

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
F1000(1) F1000(2) F1000(3) F1000(4) F1000(5) typedef uint64_t (*function)(uint64_t);
static const function many[5000] = {P1000(1) P1000(2) P1000(3) P1000(4) P1000(5)};

static uint64_t run(uint64_t seed)
{
	uint64_t sum = seed, state = seed | 1;
	for (int round = 0; round < 30; round++)
		for (unsigned i = 0; i < 5000; i++)
			sum = many[i](sum);
	for (int i = 0; i < 300000; i++)
		sum = many[next_random(&state) % 5000](sum);
	/* few targets that change now and then, from a second site */
	for (int i = 0; i < 300000; i++)
		sum ^= many[i / 1000 * 7 % 5000 + (i & 3)](sum + (uint64_t)i);
	return sum;
}

static void *thread(void *arg)
{
	return (void *)run((uint64_t)arg);
}

int main(void)
{
	pthread_t id[3];
	uint64_t alone[3];
	for (uint64_t i = 0; i < 3; i++) {
		alone[i] = run(i + 1);
		printf("%llx\n", (long long)alone[i]);
	}
	for (uint64_t i = 0; i < 3; i++)
		CHECK(!pthread_create(&id[i], NULL, thread, (void *)(i + 1)));
	for (int i = 0; i < 3; i++) {
		void *result;
		CHECK(!pthread_join(id[i], &result));
		CHECK_EQ(result, alone[i]);
	}
	return done();
}
