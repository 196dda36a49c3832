/* run: | --cache 256K */
/* library: lib/one.c */
/* library: lib/two.c -Wl,-z,now */
/* build: -ldl */
/*
 * Two libraries loaded in turn, mostly at the same address: after dlclose the old code is gone, and the
 * address runs the new one's. With threads that use the libraries' thread-local data, and with other threads
 * running meanwhile.
 */
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>

static char path[2][4200];
static volatile int stop;

static void *busy(void *arg)
{
	uint64_t expected = compute(5, 3000);
	(void)arg;
	while (!stop)
		CHECK_EQ(compute(5, 3000), expected);
	return NULL;
}

static void *in_thread(void *arg)
{
	int (*thread_value)(void) = (int (*)(void))arg;
	int first = thread_value();
	CHECK_EQ(thread_value(), first + 1);
	return (void *)(long)first;
}

int main(void)
{
	char self[4096];
	void *last = NULL;
	int same = 0;
	ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
	CHECK(size > 0);
	self[size] = 0;
	snprintf(path[0], sizeof path[0], "%s.one.so", self);
	snprintf(path[1], sizeof path[1], "%s.two.so", self);

	pthread_t other, thread;
	CHECK(!pthread_create(&other, NULL, busy, NULL));
	for (int round = 0; round < 80; round++) {
		int which = round & 1;
		void *library = dlopen(path[which], which ? RTLD_NOW : RTLD_LAZY);
		if (!library)
			fail("dlopen: %s", dlerror());
		int (*answer)(int) = (int (*)(int))dlsym(library, "answer");
		const char *(*describe)(char *) = (const char *(*)(char *))dlsym(library, "describe");
		int (*thread_value)(void) = (int (*)(void))dlsym(library, "thread_value");
		CHECK(answer && describe && thread_value);
		same += (void *)answer == last;
		last = (void *)answer;
		for (int i = 0; i < 50; i++)
			CHECK_EQ(answer(i), which ? i * 10 - 135 : i * 45 + 10);
		char buffer[64] = "12345";
		CHECK(!strcmp(describe(buffer), which ? "library two, length 5" : "library one, length 5"));
		if (round % 10 == which) {
			void *result;
			CHECK(!pthread_create(&thread, NULL, in_thread, (void *)thread_value));
			CHECK(!pthread_join(thread, &result));
			CHECK_EQ(result, which ? 22 : 11);
		}
		CHECK(!dlclose(library));
	}
	stop = 1;
	CHECK(!pthread_join(other, NULL));
	printf("at the same address: %s\n", same > 100 ? "mostly" : "seldom");
	CHECK(!dlopen("/nonexistent/library.so", RTLD_NOW));
	CHECK(dlerror() != NULL);
	return done();
}
