/* Fork in a program of threads: the child has one thread, makes more of its own, and both go on. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS  2000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;
static _Thread_local long own;
static int stop;

static void *add(void *argument)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		total += (long)argument;
		pthread_mutex_unlock(&lock);
		own++;
	}
	return (void *)own;
}

/* Has a lock of the C library and one of the program's all the time. */
static void *busy(void *argument)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		free(malloc(100 + (size_t)argument));
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[THREADS];
	void *rounds;

	for (long i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, add, (void *)(i + 1)))
			abort();
	}
	for (int i = 0; i < THREADS; i++) {
		if (pthread_join(threads[i], &rounds) || (long)rounds != ROUNDS)
			abort();
	}
}

int main(void)
{
	pthread_t other;
	int status;

	if (pthread_create(&other, NULL, busy, NULL))
		abort();
	run_threads();
	pid_t child = fork();
	run_threads();
	if (total != 2 * ROUNDS * (1 + 2 + 3 + 4))
		abort();
	if (child == 0)
		_exit(7);
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
		abort();
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(other, NULL);
	return 0;
}
