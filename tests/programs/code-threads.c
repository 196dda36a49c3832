/* run: | --cache 256K */
/*
 * One thread rewrites code that another runs, with proper synchronisation: a handshake through an atomic, a
 * mutex, a pipe. The runner executes a serialising instruction (cpuid) after the handshake, as the manuals
 * ask.
 */
#include "emit.h"
#include <cpuid.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#define ROUNDS 1200

static uint8_t *code, *code_writable;
static int turn; /* even: the writer's, odd: the runners' */
static int fds[2][2];

static void serialise(void)
{
	unsigned a, b, c, d;
	__cpuid(0, a, b, c, d);
}

static void wait_for(int value)
{
	for (unsigned spins = 0; __atomic_load_n(&turn, __ATOMIC_ACQUIRE) != value; spins++)
		if (spins > 200)
			sched_yield();
}

static void *runner(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		wait_for(2 * i + 1);
		serialise();
		CHECK_EQ(call(code, 7), i + 7);
		CHECK_EQ(call(code + 32, 7), i * 7);
		__atomic_store_n(&turn, 2 * i + 2, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void *pipe_runner(void *arg)
{
	char byte;
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(read(fds[0][0], &byte, 1), 1);
		serialise();
		CHECK_EQ(call(code, 7), (int)(i ^ 0x5555));
		CHECK_EQ(write(fds[1][1], "x", 1), 1);
	}
	return NULL;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int generation;
static volatile int stop;

static void *mutex_runner(void *arg)
{
	(void)arg;
	while (!stop) {
		CHECK(!pthread_mutex_lock(&mutex));
		serialise();
		CHECK_EQ(call(code + 64, 1), generation);
		CHECK_EQ(call(code + 64, 2), generation);
		CHECK(!pthread_mutex_unlock(&mutex));
		sched_yield();
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[3];
	char byte;

	alarm(55);
	int fd = memfd_create("code", MFD_CLOEXEC);
	CHECK(!ftruncate(fd, 4096));
	for (int dual = 0; dual < 2; dual++) {
		if (dual) {
			code_writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
		} else {
			code = code_writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		}
		CHECK(code != MAP_FAILED && code_writable != MAP_FAILED);
		turn = 0;
		CHECK(!pthread_create(&thread[0], NULL, runner, NULL));
		for (int i = 0; i < ROUNDS; i++) {
			wait_for(2 * i);
			emit_add(code_writable, i);
			emit_multiply(code_writable + 32, i);
			__atomic_store_n(&turn, 2 * i + 1, __ATOMIC_RELEASE);
		}
		CHECK(!pthread_join(thread[0], NULL));

		CHECK(!pipe(fds[0]));
		CHECK(!pipe(fds[1]));
		CHECK(!pthread_create(&thread[0], NULL, pipe_runner, NULL));
		for (int i = 0; i < ROUNDS; i++) {
			emit_constant(code_writable, (int)(i ^ 0x5555));
			CHECK_EQ(write(fds[0][1], "x", 1), 1);
			CHECK_EQ(read(fds[1][0], &byte, 1), 1);
		}
		CHECK(!pthread_join(thread[0], NULL));

		stop = generation = 0;
		emit_constant(code_writable + 64, 0);
		for (int i = 0; i < 3; i++)
			CHECK(!pthread_create(&thread[i], NULL, mutex_runner, NULL));
		for (int i = 1; i < ROUNDS; i++) {
			CHECK(!pthread_mutex_lock(&mutex));
			generation = i;
			emit_constant(code_writable + 64, i);
			CHECK(!pthread_mutex_unlock(&mutex));
			if (i % 16 == 0)
				sched_yield();
		}
		stop = 1;
		for (int i = 0; i < 3; i++)
			CHECK(!pthread_join(thread[i], NULL));
		printf("%s: ok\n", dual ? "mapped twice" : "mapped once");
	}
	return done();
}
