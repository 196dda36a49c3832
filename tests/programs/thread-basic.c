/* run: | --cache 256K */
/* Threads with thread-local data: each computes its own sum; create, join, return values, keys and their
 * destructors. */
#include "check.h"
#include <pthread.h>

#define THREADS 8

static __thread uint64_t local = 17;
static __thread char local_text[64] = "initial";
static __thread uint64_t *local_pointer;
static pthread_key_t key;
static unsigned destroyed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned once_count;

static void destroy(void *value)
{
	CHECK_EQ(*(uint64_t *)value, local);
	free(value);
	__atomic_fetch_add(&destroyed, 1, __ATOMIC_SEQ_CST);
}

static void run_once(void)
{
	once_count++;
}

static void *work(void *arg)
{
	uint64_t seed = (uint64_t)arg;
	CHECK_EQ(local, 17);
	CHECK(!strcmp(local_text, "initial"));
	CHECK(local_pointer == NULL);
	local_pointer = &local;
	pthread_once(&once, run_once);
	errno = (int)seed;
	for (int i = 0; i < 2000; i++) {
		local = mix(local, compute(seed + (uint64_t)i, 50));
		snprintf(local_text, sizeof local_text, "thread %d at %d", (int)seed, i);
		CHECK(local_pointer == &local);
	}
	CHECK_EQ(errno, seed);
	uint64_t *value = malloc(sizeof *value);
	*value = local;
	CHECK(!pthread_setspecific(key, value));
	return (void *)local;
}

int main(void)
{
	pthread_t thread[THREADS];
	uint64_t alone[THREADS];

	CHECK(!pthread_key_create(&key, destroy));
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < THREADS; i++)
			CHECK(!pthread_create(&thread[i], NULL, work, (void *)(i + 1)));
		for (int i = 0; i < THREADS; i++) {
			void *result;
			CHECK(!pthread_join(thread[i], &result));
			if (round)
				CHECK_EQ(result, alone[i]);
			alone[i] = (uint64_t)result;
			if (!round)
				printf("thread %d: %llx\n", i, (long long)alone[i]);
		}
	}
	CHECK_EQ(destroyed, 3 * THREADS);
	CHECK_EQ(once_count, 1);
	CHECK_EQ(local, 17);
	return done();
}
