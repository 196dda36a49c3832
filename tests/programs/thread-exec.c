/* run: | --children */
/*
 * execve from a thread that is not the first, while others compute, sleep and hold locks: all others go, the
 * new program keeps the process id and has one thread.
 */
#include "check.h"
#include <dirent.h>
#include <pthread.h>

static char **arguments;

static void *compute_forever(void *arg)
{
	(void)arg;
	for (;;)
		compute(1, 1000);
	return NULL;
}

static void *sleep_forever(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

static void *exec_now(void *arg)
{
	char pid[32], level[32];
	snprintf(pid, sizeof pid, "%d", getpid());
	snprintf(level, sizeof level, "%d", (int)(long)arg);
	execl("/proc/self/exe", arguments[0], level, pid, NULL);
	fail("execl");
}

int main(int argc, char **argv)
{
	int level = argc > 1 ? atoi(argv[1]) : 0;
	arguments = argv;
	if (argc > 2) {
		DIR *directory = opendir("/proc/self/task");
		struct dirent *entry;
		int count = 0;
		CHECK(directory);
		while ((entry = readdir(directory)))
			count += entry->d_name[0] != '.';
		closedir(directory);
		CHECK_EQ(getpid(), atoi(argv[2]));
		CHECK_EQ(gettid(), getpid());
		printf("level %d: %d thread\n", level, count);
		fflush(stdout);
	}
	if (level == 10)
		return done();
	pthread_t thread;
	for (int i = 0; i < 3; i++) {
		CHECK(!pthread_create(&thread, NULL, compute_forever, NULL));
		CHECK(!pthread_create(&thread, NULL, sleep_forever, NULL));
	}
	usleep(2000);
	CHECK(!pthread_create(&thread, NULL, exec_now, (void *)(long)(level + 1)));
	if (level & 1)
		pthread_join(thread, NULL);
	for (;;)
		compute(1, 1000);
}
