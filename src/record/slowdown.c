#include "record/slowdown.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "record/process_facts.h"

/* What the programs of bench/run need natively, in the mean; they need a quarter to one of them each. */
#define CYCLES_PER_INSTRUCTION 0.5
/* A fault costs the kernel so much; while recording most of them are shadow that was emptied. */
#define FAULT_NANOSECONDS      1000
#define LEAST_PROCESSOR_TIME   50000000

#define CHAIN  200000
#define TRIALS 5

static uint64_t processor_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool usage_read(pid_t pid, struct usage *usage)
{
	char text[PROCESS_STAT_SIZE];
	unsigned long faults, user, system;

	if (!process_stat(pid, text) || sscanf(text, "%*c %*d %*d %*d %*d %*d %*u %lu %*u %*u %*u %lu %lu",
	                                        &faults, &user, &system) != 3)
		return false;
	uint64_t tick = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	usage->faults = faults;
	usage->user = user * tick;
	usage->system = system * tick;
	return true;
}

/* A chain of additions, each of which needs the one before, takes a cycle for each. */
double slowdown_cycle(void)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < TRIALS; i++) {
		uint64_t begin = processor_time(), sum = begin;
		for (unsigned k = 0; k < CHAIN; k++)
			__asm__ volatile("add $3, %0\n\tadd $5, %0\n\tadd $7, %0\n\tadd $9, %0" : "+r"(sum));
		uint64_t took = processor_time() - begin;
		if (took < least)
			least = took;
	}
	return (double)least / (4.0 * CHAIN);
}

double slowdown_between(const struct usage *from, const struct usage *to, double cycle)
{
	double user = (double)(to->user - from->user), system = (double)(to->system - from->system);
	double faults = (double)(to->faults - from->faults) * FAULT_NANOSECONDS;
	double waited = (double)(to->waited - from->waited);
	double executed = (double)(to->executed - from->executed);

	if (user + system < LEAST_PROCESSOR_TIME || to->executed <= from->executed)
		return 0;
	double own_system = system > faults ? system - faults : 0;
	double native = executed * CYCLES_PER_INSTRUCTION * cycle + own_system;
	double recorded = user + system + waited;
	return recorded > native ? recorded / native : 1;
}
