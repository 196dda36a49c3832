/*
 * Hard limits on address space and data, set by the program itself. What it has above them it does not get, what is
 * below it does, also after new threads and in children; it is told what it set, and cannot raise it.
 */
#include "check.h"
#include <linux/capability.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MEGABYTE (1ul << 20)
#define LIMIT    (900 * MEGABYTE)
#define LOWER    (800 * MEGABYTE)

/* Who may raise limits is no test. */
static void drop_capability(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	CHECK(!syscall(SYS_capget, &header, data));
	data[0].effective &= ~(1u << CAP_SYS_RESOURCE);
	data[0].permitted &= ~(1u << CAP_SYS_RESOURCE);
	CHECK(!syscall(SYS_capset, &header, data));
}

/* Only a mapping that may be written counts as data. */
static void *map(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void check_memory(void)
{
	void *large = map(500 * MEGABYTE);

	CHECK(large != MAP_FAILED);
	memset(large, 1, MEGABYTE);
	CHECK_ERRNO(map(500 * MEGABYTE), ENOMEM);
	CHECK(!munmap(large, 500 * MEGABYTE));
	CHECK_ERRNO(map(1000 * MEGABYTE), ENOMEM);
}

static void check_told(int resource, rlim_t soft, rlim_t hard)
{
	struct rlimit limit;

	CHECK(!getrlimit(resource, &limit));
	CHECK_EQ(limit.rlim_cur, soft);
	CHECK_EQ(limit.rlim_max, hard);
	CHECK(!syscall(SYS_getrlimit, resource, &limit));
	CHECK_EQ(limit.rlim_cur, soft);
	CHECK(!prlimit(getpid(), resource, NULL, &limit));
	CHECK_EQ(limit.rlim_max, hard);
}

/* One at a time looks at the memory: two would not get it. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_there;

static void *thread(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&all_there);
	pthread_mutex_lock(&turn);
	check_memory();
	pthread_mutex_unlock(&turn);
	return NULL;
}

static void check_with_threads(void)
{
	pthread_t ids[4];
	pthread_attr_t attributes;

	CHECK(!pthread_attr_init(&attributes));
	CHECK(!pthread_attr_setstacksize(&attributes, MEGABYTE));
	CHECK(!pthread_barrier_init(&all_there, NULL, 5));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&ids[i], &attributes, thread, NULL));
	thread(NULL);
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(ids[i], NULL));
}

static void check_in_child(int resource, bool forks)
{
	int status;
	pid_t child = forks ? fork() : vfork();

	if (child == 0) {
		if (forks) {
			check_memory();
			check_told(resource, LIMIT, LIMIT);
			execl("/nonexistent", "nonexistent", NULL);
			check_memory();
		}
		execl("/bin/sh", "sh", "-c", resource == RLIMIT_AS ? "ulimit -Sv" : "ulimit -Sd", NULL);
		_exit(1);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK_EQ(status, 0);
}

static void check_resource(int resource)
{
	struct rlimit limit = {LIMIT, LIMIT}, old;

	CHECK(!prlimit(0, resource, &limit, &old));
	check_told(resource, LIMIT, LIMIT);
	check_memory();
	check_with_threads();
	fflush(stdout);
	check_in_child(resource, true);
	check_in_child(resource, false);
	limit.rlim_max++;
	CHECK_ERRNO(setrlimit(resource, &limit), EPERM);
	CHECK_ERRNO(setrlimit(resource, &old), EPERM);
	limit = (struct rlimit){LIMIT + 1, LIMIT};
	CHECK_ERRNO(setrlimit(resource, &limit), EINVAL);
	CHECK_ERRNO(setrlimit(resource, (void *)8), EFAULT);
	limit = (struct rlimit){MEGABYTE, LOWER};
	CHECK(!prlimit(getpid(), resource, &limit, &old));
	CHECK_EQ(old.rlim_cur, LIMIT);
	CHECK_EQ(old.rlim_max, LIMIT);
	check_told(resource, MEGABYTE, LOWER);
	CHECK_ERRNO(map(50 * MEGABYTE), ENOMEM);
	limit.rlim_cur = LOWER;
	CHECK(!setrlimit(resource, &limit));
	check_told(resource, LOWER, LOWER);
	check_memory();
	limit.rlim_max++;
	CHECK_ERRNO(setrlimit(resource, &limit), EPERM);
}

int main(void)
{
	drop_capability();
	check_resource(RLIMIT_DATA);
	check_resource(RLIMIT_AS);
	return done();
}
