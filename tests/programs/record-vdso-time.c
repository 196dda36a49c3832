/*
 * The clock through the vdso: its code reads a page that the kernel writes at every tick, and the time stamp
 * counter. Time goes on and never goes back, in one thread and from one to another.
 */
#include "check.h"
#include <pthread.h>
#include <sys/time.h>
#include <time.h>

static uint64_t latest; /* what any thread has seen last */

static uint64_t now(clockid_t clock)
{
	struct timespec time;
	CHECK(!clock_gettime(clock, &time));
	CHECK((unsigned long)time.tv_nsec < 1000000000);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void *watch(void *arg)
{
	uint64_t last = 0;
	(void)arg;
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t seen = __atomic_load_n(&latest, __ATOMIC_SEQ_CST), time = now(CLOCK_MONOTONIC);
		CHECK(time >= seen && time >= last);
		last = time;
		__atomic_store_n(&latest, time, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

int main(void)
{
	static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME};
	pthread_t thread;
	struct timeval day;

	for (unsigned i = 0; i < sizeof clocks / sizeof clocks[0]; i++) {
		uint64_t first = now(clocks[i]), last = first;
		unsigned rounds = 0;
		/* 20 ms: many ticks of the kernel */
		while (last - first < 20000000) {
			uint64_t time = now(clocks[i]);
			CHECK(time >= last);
			last = time;
			rounds++;
		}
		CHECK(rounds > 5);
	}
	time_t seconds = time(NULL);
	CHECK(!gettimeofday(&day, NULL));
	CHECK(day.tv_sec - seconds <= 1 && day.tv_sec >= seconds);
	CHECK(now(CLOCK_PROCESS_CPUTIME_ID) > 0);

	CHECK(!pthread_create(&thread, NULL, watch, NULL));
	watch(NULL);
	CHECK(!pthread_join(thread, NULL));
	return done();
}
