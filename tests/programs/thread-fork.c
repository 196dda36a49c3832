/*
 * fork in a program with running threads, many times, from different threads: the child has one thread, its
 * memory works, its own threads work. pthread_atfork handlers run in order.
 */
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>

static volatile int stop;
static __thread uint64_t local = 5;
static char order[64];

static void note(const char *what)
{
	strcat(order, what);
}

static void prepare_a(void)
{
	note("a");
}

static void prepare_b(void)
{
	note("b");
}

static void parent_a(void)
{
	note("P");
}

static void parent_b(void)
{
	note("Q");
}

static void child_a(void)
{
	note("x");
}

static void child_b(void)
{
	note("y");
}

static void *busy(void *arg)
{
	uint64_t expected = compute((uint64_t)arg, 2000);
	while (!stop) {
		CHECK_EQ(compute((uint64_t)arg, 2000), expected);
		void *memory = malloc(100 + (size_t)(expected & 1023));
		CHECK(memory);
		free(memory);
	}
	return NULL;
}

static void *in_child(void *arg)
{
	CHECK_EQ(local, 5);
	return (void *)((long)arg + 1);
}

static void fork_and_check(int round)
{
	local = (uint64_t)round + 100;
	pid_t parent = getpid(), child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		pthread_t thread;
		void *result;
		CHECK_EQ(getppid(), parent);
		CHECK_EQ(gettid(), getpid());
		CHECK_EQ(local, (uint64_t)round + 100);
		free(malloc(1000));
		for (long i = 0; i < 3; i++) {
			CHECK(!pthread_create(&thread, NULL, in_child, (void *)i));
			CHECK(!pthread_join(thread, &result));
			CHECK_EQ(result, i + 1);
		}
		_exit(round % 100);
	}
	int status;
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), round % 100);
}

static void *forks(void *arg)
{
	(void)arg;
	for (int i = 0; i < 50; i++)
		fork_and_check(i);
	local = 5;
	return NULL;
}

int main(void)
{
	pthread_t thread[3], forking;
	alarm(50);
	for (uint64_t i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, busy, (void *)(i + 1)));
	CHECK(!pthread_create(&forking, NULL, forks, NULL));
	for (int i = 0; i < 50; i++)
		fork_and_check(i + 7);
	CHECK(!pthread_join(forking, NULL));
	stop = 1;
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_join(thread[i], NULL));

	CHECK(!pthread_atfork(prepare_a, parent_a, child_a));
	CHECK(!pthread_atfork(prepare_b, parent_b, child_b));
	pid_t child = fork();
	if (child == 0) {
		CHECK(!strcmp(order, "baxy"));
		_exit(0);
	}
	CHECK(!strcmp(order, "baPQ"));
	int status;
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	return done();
}
