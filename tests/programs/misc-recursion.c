/* Recursion a million calls deep on a stack of 512 MB, with returns all the way; and two hundred times a
 * little less. */
#include "check.h"
#include <pthread.h>

static uint64_t __attribute__((noinline)) recurse(uint64_t depth, uint64_t sum)
{
	volatile uint64_t local = sum ^ depth;
	if (depth == 0)
		return sum;
	uint64_t below = recurse(depth - 1, sum * 3 + 1);
	return below ^ local;
}

static uint64_t __attribute__((noinline)) zigzag(unsigned depth, int (*hash)(int))
{
	if (depth == 0)
		return 1;
	uint64_t sum = zigzag(depth - 1, hash) + (uint64_t)hash((int)depth);
	if (depth % 1000 == 0)
		sum ^= zigzag(depth / 3 > 2000 ? 2000 : depth / 3, hash);
	return sum;
}

static int hash_one(int x)
{
	return x * 7 & 1023;
}

static int hash_two(int x)
{
	return x ^ 85;
}

static void *thread(void *arg)
{
	(void)arg;
	printf("a million deep: %llx\n", (long long)recurse(1000000, 1));
	uint64_t sum = 0;
	for (uint64_t i = 0; i < 200; i++)
		sum = mix(sum, recurse(10000 + i, i));
	printf("two hundred times: %llx\n", (long long)sum);
	printf("zigzag: %llx %llx\n", (long long)zigzag(20000, hash_one), (long long)zigzag(20000, hash_two));
	return NULL;
}

int main(void)
{
	pthread_attr_t attr;
	pthread_t id;
	CHECK(!pthread_attr_init(&attr));
	CHECK(!pthread_attr_setstacksize(&attr, 512ul << 20));
	CHECK(!pthread_create(&id, &attr, thread, NULL));
	CHECK(!pthread_join(id, NULL));
	return done();
}
