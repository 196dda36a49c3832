/* The vdso: clock_gettime of all clocks, gettimeofday, time, getcpu; time goes forwards and agrees with the
 * kernel's. */
#include "check.h"
#include <sched.h>
#include <sys/time.h>
#include <time.h>

static int64_t nanoseconds(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int main(void)
{
	const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW,
	        CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_TAI,
	        CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
	struct timespec fast, slow, before;

	for (unsigned c = 0; c < sizeof clocks / sizeof *clocks; c++) {
		if (clock_gettime(clocks[c], &before))
			continue;
		for (int i = 0; i < 2000; i++) {
			CHECK(!clock_gettime(clocks[c], &fast));
			CHECK(fast.tv_nsec >= 0 && fast.tv_nsec < 1000000000);
			if (clocks[c] != CLOCK_REALTIME && clocks[c] != CLOCK_REALTIME_COARSE &&
			        clocks[c] != CLOCK_TAI)
				CHECK(nanoseconds(fast) >= nanoseconds(before));
			before = fast;
		}
		CHECK(!syscall(SYS_clock_gettime, clocks[c], &slow));
		int64_t difference = nanoseconds(slow) - nanoseconds(fast);
		CHECK(difference > -1000000000 && difference < 10000000000);
		CHECK(!clock_getres(clocks[c], &fast));
		printf("clock %d works\n", clocks[c]);
	}
	CHECK_ERRNO(clock_gettime(12345, &fast), EINVAL);

	struct timeval day;
	for (int i = 0; i < 1000; i++) {
		time_t now = time(NULL);
		CHECK(!gettimeofday(&day, NULL));
		CHECK(!clock_gettime(CLOCK_REALTIME, &fast));
		CHECK(day.tv_sec >= now && day.tv_sec - now < 10);
		CHECK(fast.tv_sec >= day.tv_sec);
	}
	unsigned processor, node;
	for (int i = 0; i < 1000; i++) {
		CHECK(!getcpu(&processor, &node));
		CHECK(processor < (unsigned)sysconf(_SC_NPROCESSORS_CONF));
	}
	/* On one processor it is that one, by every way to ask. */
	cpu_set_t set, all;
	CHECK(!sched_getaffinity(0, sizeof all, &all));
	for (int cpu = 0; cpu < 4; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		CHECK(!sched_setaffinity(0, sizeof set, &set));
		CHECK_EQ(sched_getcpu(), cpu);
		CHECK(!getcpu(&processor, &node));
		CHECK_EQ(processor, cpu);
		unsigned aux;
		asm volatile("rdtscp" : "=c"(aux) : : "eax", "edx");
		CHECK_EQ(aux & 0xfff, cpu);
	}
	uint64_t last = 0;
	for (int i = 0; i < 10000; i++) {
		uint64_t now = __builtin_ia32_rdtsc();
		CHECK(now >= last);
		last = now;
	}
	return done();
}
