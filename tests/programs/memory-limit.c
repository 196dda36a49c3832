/*
 * RLIMIT_AS set by the program itself to a little more than it has: small maps work, large ones give ENOMEM,
 * malloc gives NULL, and new code still runs, also in a thread.
 */
#include "check.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void *thread(void *arg)
{
	return (void *)(long)(*(int *)arg * 2);
}

int main(void)
{
	struct rlimit limit = {0, RLIM_INFINITY};
	limit.rlim_cur = 128ul << 20;
	CHECK(!setrlimit(RLIMIT_AS, &limit));
	char *small = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(small != MAP_FAILED);
	memset(small, 1, 16 << 20);
	CHECK_ERRNO(
	        mmap(NULL, 1ul << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), ENOMEM);
	CHECK_ERRNO(
	        mmap(NULL, 1ul << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), ENOMEM);
	void *volatile block = malloc(256ul << 20);
	CHECK(block == NULL);
	CHECK_ERRNO(brk((char *)sbrk(0) + (1ul << 30)), ENOMEM);
	/* Code that was not run before, a thread, many small maps. */
	char text[64];
	snprintf(text, sizeof text, "%.5Lf %a", 1.0L / 3, 2.5);
	printf("%s\n", text);
	pthread_t id;
	pthread_attr_t attr;
	void *result;
	int value = 21;
	CHECK(!pthread_attr_init(&attr));
	CHECK(!pthread_attr_setstacksize(&attr, 1 << 20));
	CHECK(!pthread_create(&id, &attr, thread, &value));
	CHECK(!pthread_join(id, &result));
	CHECK_EQ(result, 42);
	for (int i = 0; i < 1000; i++) {
		void *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(page != MAP_FAILED);
		CHECK(!munmap(page, 8192));
	}
	CHECK(!munmap(small, 16 << 20));
	limit.rlim_cur = RLIM_INFINITY;
	CHECK(!setrlimit(RLIMIT_AS, &limit));
	block = malloc(256ul << 20);
	CHECK(block != NULL);
	free(block);
	return done();
}
