/* What a recording comes to, for people and as JSON. */
#ifndef BUGNET_CLI_SUMMARY_H
#define BUGNET_CLI_SUMMARY_H

#include <stdio.h>

#include "cli/recording.h"
#include "cli/symbols.h"

#define SUMMARY_CALLS 1024 /* numbers of system calls that are told apart */

struct summary_keyframe {
	uint32_t thread;
	uint64_t position;
	uint64_t realtime; /* ns since 1970 */
	uint32_t leans_on;
	uint64_t raw_size, stored_size; /* of its stretch */
};

struct summary_end {
	bool known;
	bool untold; /* by threads: there is nothing but kind and status */
	uint32_t thread;
	uint64_t position;
	struct event_end event;
	bool has_symbol; /* there was code at its pc */
	struct symbol symbol;
};

struct summary {
	struct recording *recording;
	uint64_t instructions;
	bool has_loads; /* they were counted: */
	uint64_t loads;
	uint64_t logged_loads, words; /* lines that differed, and words of them */
	uint64_t results, calls, signals;
	uint64_t raw_size, stored_size; /* of the events */
	uint64_t packed_size;           /* of files inside */
	uint64_t calls_by_number[SUMMARY_CALLS];
	struct summary_keyframe *keyframes;
	size_t keyframe_count;
	struct summary_end end;
};

/* Reads all events. */
void summary_init(struct summary *summary, struct recording *recording);
void summary_deinit(struct summary *summary);

void summary_print(const struct summary *summary, FILE *out);
void summary_print_json(const struct summary *summary, FILE *out);

/* Of the recording without the files inside; 0 when there are no instructions. */
double summary_bits_per_instruction(const struct summary *summary);

#endif
