/* How far something is, and a line on the terminal that tells. */
#ifndef BUGNET_RECORDING_PROGRESS_H
#define BUGNET_RECORDING_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Several threads may add to it while others look. */
struct progress {
	uint64_t done, total; /* of whatever is counted; total 0: nobody knows */
};

void progress_set_total(struct progress *progress, uint64_t total);
/* NULL: nobody wants to know. */
void progress_add(struct progress *progress, uint64_t amount);

/* Is standard error a terminal? Nothing is written to anything else. */
bool progress_can_show(void);

/* The line is overwritten by the next one, and by what others write. */
__attribute__((format(printf, 1, 2))) void progress_show(const char *format, ...);
void progress_clear(void);

#endif
