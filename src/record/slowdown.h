/*
 * How much slower a process is for being recorded: an estimate. What it used is known, and how many
 * instructions it has executed; how fast it would have executed them natively is not, and is
 * taken to be what programs do in the mean. See docs/architecture.md for how far off that is.
 */
#ifndef BUGNET_RECORD_SLOWDOWN_H
#define BUGNET_RECORD_SLOWDOWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* All of it since the process began, or since anything: only differences count. */
struct usage {
	uint64_t time;         /* CLOCK_MONOTONIC, ns */
	uint64_t user, system; /* processor time, ns */
	uint64_t faults;       /* that needed no disk */
	uint64_t waited;       /* for the supervisor, ns */
	uint64_t executed;     /* instructions */
};

/* Processor time and faults of a process; false: there is none. */
bool usage_read(pid_t pid, struct usage *usage);

/* ns of a cycle of this processor, as it runs now. */
double slowdown_cycle(void);

/* Times natively, over what was used in between; 0: there is too little to tell. */
double slowdown_between(const struct usage *from, const struct usage *to, double cycle);

#endif
