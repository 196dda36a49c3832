/* A line on the terminal while a command takes longer than a second. */
#ifndef BUGNET_CLI_TICKER_H
#define BUGNET_CLI_TICKER_H

#include <pthread.h>
#include <stdbool.h>

#include "recording/progress.h"

enum ticker_unit { TICKER_BYTES, TICKER_INSTRUCTIONS };

struct ticker {
	const char *command, *doing; /* "bugnet COMMAND: DOING" */
	enum ticker_unit unit;
	struct progress progress;

	/* its own */
	pthread_t thread;
	bool running;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool over;
};

/* Command, doing and unit are set. Nothing happens where there is no terminal. */
void ticker_begin(struct ticker *ticker);
/* Before anything else is written. */
void ticker_end(struct ticker *ticker);

#endif
