/* "did you mean ...?": the nearest of a list of names to a misspelt one. */
#ifndef BUGNET_CLI_SUGGEST_H
#define BUGNET_CLI_SUGGEST_H

#include <stddef.h>

struct suggestion {
	const char *wanted; /* what the user typed; need not be terminated after `length` */
	size_t length;
	const char *best; /* the nearest name offered so far, NULL when none is near */
	size_t distance;
};

void suggest_init(struct suggestion *suggestion, const char *wanted, size_t length);
void suggest_offer(struct suggestion *suggestion, const char *name);

#endif
