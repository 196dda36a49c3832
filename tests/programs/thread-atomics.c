/* build: -mcx16 */
/*
 * Atomic instructions under contention: add, exchange, compare-and-swap of 1 to 16 bytes, or/and/xor, bit
 * test and set; nothing is lost. Store buffering is seen only where x86 allows it.
 */
#include "check.h"
#include <pthread.h>
#include <sched.h>

#define THREADS 4
#define ROUNDS  50000

static struct {
	uint8_t byte;
	uint16_t word;
	uint32_t dword;
	uint64_t qword, swapped, bits, maximum;
	uint64_t pair[2] __attribute__((aligned(16)));
	uint64_t split_line[3];
} shared __attribute__((aligned(64)));

static int compare_swap_16(uint64_t *target, uint64_t *expected, const uint64_t *wanted)
{
	char equal;
	asm volatile("lock cmpxchg16b %1; setz %0"
	             : "=q"(equal), "+m"(*(__int128 *)target), "+a"(expected[0]), "+d"(expected[1])
	             : "b"(wanted[0]), "c"(wanted[1])
	             : "cc", "memory");
	return equal;
}

static void *work(void *arg)
{
	uint64_t self = (uint64_t)arg, exchanged = 0;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		__atomic_fetch_add(&shared.byte, 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&shared.word, 3, __ATOMIC_SEQ_CST);
		__atomic_fetch_sub(&shared.dword, 1, __ATOMIC_SEQ_CST);
		uint64_t old = __atomic_load_n(&shared.qword, __ATOMIC_SEQ_CST);
		while (!__atomic_compare_exchange_n(
		        &shared.qword, &old, old * 3 + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			;
		exchanged += __atomic_exchange_n(&shared.swapped, self * ROUNDS + i, __ATOMIC_SEQ_CST);
		__atomic_fetch_xor(&shared.bits, 1ull << (self * 16 + i % 16), __ATOMIC_SEQ_CST);
		uint64_t expected[2] = {shared.pair[0], shared.pair[1]}, wanted[2];
		do {
			wanted[0] = expected[0] + 1;
			wanted[1] = expected[1] + 2;
		} while (!compare_swap_16(shared.pair, expected, wanted));
		asm volatile("lock incq %0" : "+m"(shared.split_line[1]) : : "cc");
	}
	return (void *)exchanged;
}

static volatile int x, y, go;
static int r1, r2;

static void wait_for(int value)
{
	for (unsigned spins = 0; __atomic_load_n(&go, __ATOMIC_ACQUIRE) != value; spins++)
		if (spins > 1000)
			sched_yield();
}

static void *other(void *arg)
{
	(void)arg;
	for (int i = 1; i <= 5000; i++) {
		wait_for(2 * i - 1);
		__atomic_store_n(&y, 1, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		r2 = __atomic_load_n(&x, __ATOMIC_RELAXED);
		__atomic_store_n(&go, 2 * i, __ATOMIC_RELEASE);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];
	uint64_t exchanged = 0, expected = 0;
	void *result;

	for (uint64_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, work, (void *)i));
	for (int i = 0; i < THREADS; i++) {
		CHECK(!pthread_join(thread[i], &result));
		exchanged += (uint64_t)result;
	}
	exchanged += shared.swapped;
	for (uint64_t i = 0; i < THREADS * ROUNDS; i++)
		expected += i;
	CHECK_EQ(exchanged, expected);
	CHECK_EQ(shared.byte, (uint8_t)(THREADS * ROUNDS));
	CHECK_EQ(shared.word, (uint16_t)(3 * THREADS * ROUNDS));
	CHECK_EQ(shared.dword, (uint32_t) - (THREADS * ROUNDS));
	CHECK_EQ(shared.pair[0], THREADS * ROUNDS);
	CHECK_EQ(shared.pair[1], 2 * THREADS * ROUNDS);
	CHECK_EQ(shared.split_line[1], THREADS * ROUNDS);
	uint64_t value = 0;
	for (int i = 0; i < THREADS * ROUNDS; i++)
		value = value * 3 + 1;
	CHECK_EQ(shared.qword, value);
	printf("bits %llx\n", (long long)shared.bits);

	CHECK(!pthread_create(&thread[0], NULL, other, NULL));
	for (int i = 1; i <= 5000; i++) {
		x = y = 0;
		__atomic_store_n(&go, 2 * i - 1, __ATOMIC_RELEASE);
		__atomic_store_n(&x, 1, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		r1 = __atomic_load_n(&y, __ATOMIC_RELAXED);
		wait_for(2 * i);
		CHECK(r1 || r2);
	}
	CHECK(!pthread_join(thread[0], NULL));
	return done();
}
