/* run: | --cache 256K */
/*
 * Mutexes of all kinds, condition variables, barriers, read-write locks, semaphores, spin locks, priority
 * inheritance, timed waits: a bounded queue between threads loses nothing and doubles nothing.
 */
#include "check.h"
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#define ITEMS 20000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static uint64_t queue[16];
static unsigned head, tail;
static uint64_t consumed_sum, consumed;

static void *producer(void *arg)
{
	uint64_t base = (uint64_t)arg * ITEMS;
	for (uint64_t i = 0; i < ITEMS; i++) {
		CHECK(!pthread_mutex_lock(&mutex));
		while (head - tail == 16)
			pthread_cond_wait(&not_full, &mutex);
		queue[head++ % 16] = base + i;
		pthread_cond_signal(&not_empty);
		CHECK(!pthread_mutex_unlock(&mutex));
	}
	return NULL;
}

static void *consumer(void *arg)
{
	(void)arg;
	for (;;) {
		CHECK(!pthread_mutex_lock(&mutex));
		while (head == tail && consumed < 2 * ITEMS)
			pthread_cond_wait(&not_empty, &mutex);
		if (consumed == 2 * ITEMS) {
			pthread_cond_broadcast(&not_empty);
			CHECK(!pthread_mutex_unlock(&mutex));
			return NULL;
		}
		uint64_t item = queue[tail++ % 16];
		consumed++;
		consumed_sum += item * item;
		pthread_cond_signal(&not_full);
		if (consumed == 2 * ITEMS)
			pthread_cond_broadcast(&not_empty);
		CHECK(!pthread_mutex_unlock(&mutex));
	}
}

static pthread_barrier_t barrier;
static unsigned phase[4];

static void *phases(void *arg)
{
	unsigned self = (unsigned)(long)arg;
	for (unsigned i = 1; i <= 1000; i++) {
		__atomic_store_n(&phase[self], i, __ATOMIC_SEQ_CST);
		pthread_barrier_wait(&barrier);
		for (int k = 0; k < 4; k++)
			CHECK_EQ(__atomic_load_n(&phase[k], __ATOMIC_SEQ_CST), i);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_mutex_t inheriting, recursive;
static sem_t semaphore;
static volatile uint64_t guarded[4];
static volatile uint64_t pair[2];

static void *locks(void *arg)
{
	unsigned self = (unsigned)(long)arg;
	for (int i = 0; i < 3000; i++) {
		if (i % 4 == (int)self) {
			CHECK(!pthread_rwlock_wrlock(&rwlock));
			pair[0]++;
			pair[1]++;
		} else {
			CHECK(!pthread_rwlock_rdlock(&rwlock));
			CHECK_EQ(pair[0], pair[1]);
		}
		CHECK(!pthread_rwlock_unlock(&rwlock));
		CHECK(!pthread_spin_lock(&spin));
		guarded[0]++;
		CHECK(!pthread_spin_unlock(&spin));
		CHECK(!pthread_mutex_lock(&inheriting));
		guarded[1]++;
		CHECK(!pthread_mutex_unlock(&inheriting));
		CHECK(!pthread_mutex_lock(&recursive));
		CHECK(!pthread_mutex_lock(&recursive));
		guarded[2]++;
		CHECK(!pthread_mutex_unlock(&recursive));
		CHECK(!pthread_mutex_unlock(&recursive));
		CHECK(!sem_wait(&semaphore));
		guarded[3]++;
		CHECK(!sem_post(&semaphore));
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[4];
	pthread_mutexattr_t attr;
	struct timespec when;

	CHECK(!pthread_create(&thread[0], NULL, producer, (void *)0L));
	CHECK(!pthread_create(&thread[1], NULL, producer, (void *)1L));
	CHECK(!pthread_create(&thread[2], NULL, consumer, NULL));
	CHECK(!pthread_create(&thread[3], NULL, consumer, NULL));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(thread[i], NULL));
	uint64_t expected = 0;
	for (uint64_t i = 0; i < 2 * ITEMS; i++)
		expected += i * i;
	CHECK_EQ(consumed_sum, expected);

	CHECK(!pthread_barrier_init(&barrier, NULL, 4));
	for (long i = 0; i < 4; i++)
		CHECK(!pthread_create(&thread[i], NULL, phases, (void *)i));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(thread[i], NULL));

	CHECK(!pthread_spin_init(&spin, 0));
	CHECK(!sem_init(&semaphore, 0, 1));
	CHECK(!pthread_mutexattr_init(&attr));
	CHECK(!pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
	CHECK(!pthread_mutex_init(&inheriting, &attr));
	CHECK(!pthread_mutexattr_init(&attr));
	CHECK(!pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
	CHECK(!pthread_mutex_init(&recursive, &attr));
	for (long i = 0; i < 4; i++)
		CHECK(!pthread_create(&thread[i], NULL, locks, (void *)i));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(thread[i], NULL));
	for (int i = 0; i < 4; i++)
		CHECK_EQ(guarded[i], 12000);
	CHECK_EQ(pair[0], 3000);

	CHECK(!pthread_mutex_lock(&mutex));
	clock_gettime(CLOCK_REALTIME, &when);
	when.tv_nsec += 2000000;
	if (when.tv_nsec >= 1000000000) {
		when.tv_sec++;
		when.tv_nsec -= 1000000000;
	}
	CHECK_EQ(pthread_cond_timedwait(&not_empty, &mutex, &when), ETIMEDOUT);
	CHECK_EQ(pthread_mutex_timedlock(&mutex, &when), ETIMEDOUT);
	CHECK(!pthread_mutex_unlock(&mutex));
	return done();
}
