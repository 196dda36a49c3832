/* build: -O1 */
/*
 * Runs for a second or two in many short phases, each of code not run before, with signals, threads, children
 * and system calls: the program whose supervisor is killed under it. Its output does not depend on time.
 */
#include "../check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define F1(n)                                                                                                \
	static uint64_t __attribute__((noinline)) phase_##n(uint64_t x)                                      \
	{                                                                                                    \
		for (int i = 0; i < 20000 + n; i++)                                                          \
			x = mix(x, n * 2654435761u + (unsigned)i);                                           \
		return x;                                                                                    \
	}
#define F10(n) F1(n##0) F1(n##1) F1(n##2) F1(n##3) F1(n##4) F1(n##5) F1(n##6) F1(n##7) F1(n##8) F1(n##9)
#define F100(n)                                                                                              \
	F10(n##0) F10(n##1) F10(n##2) F10(n##3) F10(n##4) F10(n##5) F10(n##6) F10(n##7) F10(n##8) F10(n##9)
#define P1(n)  phase_##n,
#define P10(n) P1(n##0) P1(n##1) P1(n##2) P1(n##3) P1(n##4) P1(n##5) P1(n##6) P1(n##7) P1(n##8) P1(n##9)
#define P100(n)                                                                                              \
	P10(n##0) P10(n##1) P10(n##2) P10(n##3) P10(n##4) P10(n##5) P10(n##6) P10(n##7) P10(n##8) P10(n##9)
F100(1) F100(2) static uint64_t (*const phases[])(uint64_t) = {P100(1) P100(2)};

static volatile unsigned signals;

static void handler(int sig)
{
	(void)sig;
	signals++;
}

static void *thread(void *arg)
{
	return (void *)phases[(long)arg % 200](1);
}

int main(void)
{
	struct timespec pause_for = {0, 5000000};
	uint64_t sum = 1;

	setvbuf(stdout, NULL, _IONBF, 0);
	signal(SIGUSR1, handler);
	puts("started");
	for (int i = 0; i < 200; i++) {
		sum = phases[i](sum);
		nanosleep(&pause_for, NULL);
		raise(SIGUSR1);
		if (i % 20 == 10) {
			pthread_t id;
			void *result;
			int status;
			CHECK(!pthread_create(&id, NULL, thread, (void *)(long)(i + 7)));
			CHECK(!pthread_join(id, &result));
			sum = mix(sum, (uint64_t)result);
			pid_t child = fork();
			if (child == 0)
				_exit((int)(phases[(i + 9) % 200](2) & 63));
			CHECK_EQ(waitpid(child, &status, 0), child);
			CHECK(WIFEXITED(status));
			sum = mix(sum, (uint64_t)WEXITSTATUS(status));
			printf("phase %d: %llx\n", i, (long long)sum);
		}
	}
	printf("%u signals, sum %llx\n", signals, (long long)sum);
	return done();
}
