/* 5000 threads that live briefly, and 64 at once; nothing may be left of them. */
#include "check.h"
#include <dirent.h>
#include <pthread.h>

static uint64_t total;
static pthread_barrier_t barrier;

static void *brief(void *arg)
{
	__atomic_fetch_add(&total, compute((uint64_t)arg, 10), __ATOMIC_SEQ_CST);
	return arg;
}

static void *together(void *arg)
{
	pthread_barrier_wait(&barrier);
	brief(arg);
	pthread_barrier_wait(&barrier);
	return arg;
}

static int threads_now(void)
{
	DIR *directory = opendir("/proc/self/task");
	struct dirent *entry;
	int count = 0;
	CHECK(directory);
	while ((entry = readdir(directory)))
		count += entry->d_name[0] != '.';
	closedir(directory);
	return count;
}

int main(void)
{
	pthread_t thread[64];
	void *result;
	uint64_t expected = 0;

	CHECK_EQ(threads_now(), 1);
	for (uint64_t i = 0; i < 5000; i++) {
		expected += compute(i, 10);
		CHECK(!pthread_create(&thread[0], NULL, brief, (void *)i));
		CHECK(!pthread_join(thread[0], &result));
		CHECK_EQ(result, i);
	}
	CHECK_EQ(total, expected);

	CHECK(!pthread_barrier_init(&barrier, NULL, 65));
	for (int round = 0; round < 5; round++) {
		for (uint64_t i = 0; i < 64; i++) {
			expected += compute(i, 10);
			CHECK(!pthread_create(&thread[i], NULL, together, (void *)i));
		}
		CHECK_EQ(threads_now(), 65);
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		for (int i = 0; i < 64; i++)
			CHECK(!pthread_join(thread[i], NULL));
	}
	CHECK_EQ(total, expected);
	for (int i = 0; i < 1000 && threads_now() > 1; i++)
		usleep(1000);
	CHECK_EQ(threads_now(), 1);
	printf("total %llx\n", (long long)total);
	return done();
}
