/* expect: exit 0 */
/* The main thread ends with pthread_exit; the others go on, and the last one's exit ends the process with
 * status 0. */
#include "check.h"
#include <pthread.h>
#include <signal.h>

static pthread_t main_thread;
static volatile int64_t counted, left[4096];

/* Memory can still be had by a thread that may not get signals when it cannot. */
static void work_with_signals_blocked(void)
{
	sigset_t all, old;
	int64_t expected = 0;

	sigfillset(&all);
	CHECK(!pthread_sigmask(SIG_SETMASK, &all, &old));
	CHECK(__atomic_compare_exchange_n(&counted, &expected, 3, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	CHECK(__atomic_fetch_add(&counted, 4, __ATOMIC_SEQ_CST) == 3 && counted == 7);
	for (int i = 0; i < 4096; i++)
		CHECK(__atomic_exchange_n(&left[i], 0, __ATOMIC_SEQ_CST) == i);
	CHECK(!pthread_sigmask(SIG_SETMASK, &old, NULL));
}

static void *second(void *arg)
{
	(void)arg;
	CHECK(!pthread_join(main_thread, NULL));
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", getpid());
	FILE *file = fopen(path, "re");
	CHECK(file && fgets(text, sizeof text, file));
	fclose(file);
	work_with_signals_blocked();
	printf("main is %c, sum %llx\n", strrchr(text, ')')[2], (long long)compute(5, 100000));
	printf("%s", "last words\n");
	fflush(stdout);
	return NULL;
}

static void *first(void *arg)
{
	pthread_t thread;
	CHECK(!pthread_create(&thread, NULL, second, arg));
	pthread_detach(pthread_self());
	return NULL;
}

static void at_exit(void)
{
	puts("exit handler");
}

int main(void)
{
	pthread_t thread;
	main_thread = pthread_self();
	for (int i = 0; i < 4096; i++)
		left[i] = i;
	atexit(at_exit);
	CHECK(!pthread_create(&thread, NULL, first, NULL));
	pthread_exit(NULL);
}
