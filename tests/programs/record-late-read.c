/*
 * A buffer that one thread polls while another thread's read() fills it: the polling thread makes no system call
 * and nobody stores to the buffer but the kernel.
 */
#include "check.h"
#include <pthread.h>

#define SIZE   20000
#define ROUNDS 30

static unsigned char buffer[SIZE];
static int pipes[2];
static unsigned round_wanted;

static void *reader(void *arg)
{
	(void)arg;
	for (unsigned round = 1; round <= ROUNDS; round++) {
		while (__atomic_load_n(&round_wanted, __ATOMIC_ACQUIRE) != round)
			;
		for (size_t done_bytes = 0; done_bytes < SIZE;) {
			ssize_t size = read(pipes[0], buffer + done_bytes, SIZE - done_bytes);
			CHECK(size > 0);
			done_bytes += (size_t)size;
		}
	}
	return NULL;
}

static void *writer(void *arg)
{
	static unsigned char out[SIZE];
	(void)arg;
	for (unsigned round = 1; round <= ROUNDS; round++) {
		for (unsigned i = 0; i < SIZE; i++)
			out[i] = (unsigned char)(1 + (i * 7 + round * 13) % 255);
		for (size_t done_bytes = 0; done_bytes < SIZE;) {
			ssize_t size = write(pipes[1], out + done_bytes, SIZE - done_bytes);
			CHECK(size > 0);
			done_bytes += (size_t)size;
		}
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2];
	uint64_t sum = 0;
	CHECK(!pipe(pipes));
	CHECK(!pthread_create(&threads[0], NULL, reader, NULL));
	CHECK(!pthread_create(&threads[1], NULL, writer, NULL));
	for (unsigned round = 1; round <= ROUNDS; round++) {
		volatile unsigned char *bytes = buffer;
		memset(buffer, 0, SIZE);
		__atomic_store_n(&round_wanted, round, __ATOMIC_RELEASE);
		for (unsigned i = 0; i < SIZE; i++) {
			while (!bytes[i])
				;
			sum = mix(sum, bytes[i]);
		}
	}
	CHECK(!pthread_join(threads[0], NULL) && !pthread_join(threads[1], NULL));
	printf("%016llx\n", (unsigned long long)sum);
	return done();
}
