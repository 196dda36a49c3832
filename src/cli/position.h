/* Positions as users write them. */
#ifndef BUGNET_CLI_POSITION_H
#define BUGNET_CLI_POSITION_H

#include <stdbool.h>
#include <stdint.h>

#define POSITION_ANY_THREAD UINT32_MAX

/* From one position up to and including another. */
struct position_range {
	uint32_t thread; /* POSITION_ANY_THREAD: of every thread */
	uint64_t from, to;
};

/* A decimal number; what is not given stays as it is. False after saying what is wrong with it. */
bool number_parse(const char *command, const char *option, const char *text, uint64_t least, uint64_t most,
        uint64_t *number);

/*
 * The range that --from, --to and --thread ask for; each may be NULL. False after saying
 * what is wrong with them.
 */
struct range_values;
bool position_range_parse(
        const char *command, const struct range_values *values, struct position_range *range);

#endif
