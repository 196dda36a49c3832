/* run: | --cache 256K */
/* Cancellation: deferred in a blocking call, asynchronous in a computing loop, disabled, cleanup handlers, in
 * order. */
#include "check.h"
#include <pthread.h>
#include <semaphore.h>

static unsigned cleaned;
static int fds[2];
static sem_t ready;

static void cleanup(void *arg)
{
	__atomic_fetch_add(&cleaned, (unsigned)(long)arg, __ATOMIC_SEQ_CST);
}

static void *in_read(void *arg)
{
	char byte;
	(void)arg;
	pthread_cleanup_push(cleanup, (void *)1L);
	pthread_cleanup_push(cleanup, (void *)100L);
	sem_post(&ready);
	if (read(fds[0], &byte, 1) >= 0)
		fail("read returned");
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *in_loop(void *arg)
{
	volatile uint64_t sum = 0;
	(void)arg;
	pthread_cleanup_push(cleanup, (void *)1L);
	CHECK(!pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
	sem_post(&ready);
	for (;;)
		sum = sum * 3 + 1;
	pthread_cleanup_pop(0);
	return NULL;
}

static void *test_point(void *arg)
{
	(void)arg;
	pthread_cleanup_push(cleanup, (void *)1L);
	CHECK(!pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
	sem_post(&ready);
	usleep(2000);
	pthread_testcancel();
	CHECK(!pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
	for (;;)
		pthread_testcancel();
	pthread_cleanup_pop(0);
	return NULL;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void unlock(void *arg)
{
	pthread_mutex_unlock(arg);
	cleanup((void *)1L);
}

static void *in_wait(void *arg)
{
	(void)arg;
	CHECK(!pthread_mutex_lock(&mutex));
	pthread_cleanup_push(unlock, &mutex);
	sem_post(&ready);
	for (;;)
		pthread_cond_wait(&condition, &mutex);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *by_exit(void *arg)
{
	(void)arg;
	pthread_cleanup_push(cleanup, (void *)1L);
	sem_post(&ready);
	pthread_exit(PTHREAD_CANCELED);
	pthread_cleanup_pop(0);
	return NULL;
}

int main(void)
{
	const struct {
		const char *name;
		void *(*run)(void *);
		unsigned sum;
	} kinds[] = {{"deferred, in read", in_read, 101}, {"asynchronous", in_loop, 1},
	        {"disabled first", test_point, 1}, {"condition variable", in_wait, 1},
	        {"pthread_exit", by_exit, 1}};

	alarm(50);
	CHECK(!pipe(fds));
	CHECK(!sem_init(&ready, 0, 0));
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		for (int round = 0; round < 50; round++) {
			pthread_t thread;
			void *result;
			cleaned = 0;
			CHECK(!pthread_create(&thread, NULL, kinds[i].run, NULL));
			CHECK(!sem_wait(&ready));
			pthread_cancel(thread);
			CHECK(!pthread_join(thread, &result));
			CHECK(result == PTHREAD_CANCELED);
			CHECK_EQ(cleaned, kinds[i].sum);
		}
		printf("%s: ok\n", kinds[i].name);
	}
	return done();
}
