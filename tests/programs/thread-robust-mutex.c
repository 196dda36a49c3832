/*
 * Robust mutexes: the owner dies (a thread that exits, a process that is killed) and the next locker is told,
 * once. The kernel walks the list after the thread is gone.
 */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void init(pthread_mutex_t *mutex, int shared)
{
	pthread_mutexattr_t attr;
	CHECK(!pthread_mutexattr_init(&attr));
	CHECK(!pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
	CHECK(!pthread_mutexattr_setpshared(
	        &attr, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE));
	CHECK(!pthread_mutex_init(mutex, &attr));
}

static pthread_mutex_t mutex[10];

static void *die_holding(void *arg)
{
	(void)arg;
	for (int i = 0; i < 10; i++)
		CHECK(!pthread_mutex_lock(&mutex[i]));
	return NULL;
}

static void *wait_for(void *arg)
{
	int result = pthread_mutex_lock(arg);
	if (result == EOWNERDEAD) {
		CHECK(!pthread_mutex_consistent(arg));
		CHECK(!pthread_mutex_unlock(arg));
	}
	return (void *)(long)result;
}

int main(void)
{
	pthread_t thread, other;
	void *result;

	for (int i = 0; i < 10; i++)
		init(&mutex[i], 0);
	for (int round = 0; round < 50; round++) {
		CHECK(!pthread_create(&thread, NULL, die_holding, NULL));
		CHECK(!pthread_join(thread, NULL));
		for (int i = 0; i < 10; i++) {
			CHECK_EQ(pthread_mutex_lock(&mutex[i]), EOWNERDEAD);
			CHECK(!pthread_mutex_consistent(&mutex[i]));
			CHECK(!pthread_mutex_unlock(&mutex[i]));
			CHECK(!pthread_mutex_lock(&mutex[i]));
			CHECK(!pthread_mutex_unlock(&mutex[i]));
		}
	}

	/* Across processes: the owner is killed while another waits. */
	pthread_mutex_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	init(shared, 1);
	for (int round = 0; round < 20; round++) {
		int ready[2];
		char byte;
		CHECK(!pipe(ready));
		pid_t child = fork();
		if (child == 0) {
			CHECK(!pthread_mutex_lock(shared));
			CHECK_EQ(write(ready[1], "x", 1), 1);
			for (;;)
				pause();
		}
		CHECK_EQ(read(ready[0], &byte, 1), 1);
		CHECK_EQ(pthread_mutex_trylock(shared), EBUSY);
		CHECK(!pthread_create(&other, NULL, wait_for, shared));
		if (round & 1)
			usleep(1000);
		CHECK(!kill(child, SIGKILL));
		CHECK(!pthread_join(other, &result));
		CHECK_EQ(result, EOWNERDEAD);
		CHECK_EQ(waitpid(child, NULL, 0), child);
		close(ready[0]);
		close(ready[1]);
	}
	return done();
}
