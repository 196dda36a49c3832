/* Positions as users write them: 1500000, or 2:1500000 for one of thread 2. */
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

/*
 * The range that --from and --to ask for; either may be NULL. False after saying what is
 * wrong with them.
 */
bool position_range_parse(
        const char *command, const char *from, const char *to, struct position_range *range);

#endif
