/*
 * A listing of system calls, signals and ends, one after the other: lines as strace prints them,
 * or a JSON list. Events come from a replay, which knows memory, or from the log alone.
 */
#ifndef BUGNET_CLI_LISTING_H
#define BUGNET_CLI_LISTING_H

#include "cli/call_filter.h"
#include "cli/json.h"
#include "cli/position.h"
#include "explain/explanation.h"

struct listing {
	bool as_json;
	bool several; /* threads: each line says which */
	struct position_range range;
	struct call_filter filter;
	struct json json;
	bool called; /* a call was begun */
	struct explanation call;
};

void listing_open(struct listing *listing);
/* `replayed`: all that was listed came from a replay. */
void listing_close(struct listing *listing, bool replayed);

/* A system call before its effect; then the same one is to come to listing_event. */
void listing_call(struct listing *listing, const struct event *event, const struct explained_memory *memory);
/* Any event; those that a listing does not show are ignored. A system call is shown as it is behind its
 * effect. */
void listing_event(struct listing *listing, uint32_t thread, const struct event *event,
        const struct explained_memory *memory);
/* That it ended, and no more. */
void listing_end(struct listing *listing, uint32_t thread, const struct event *event);

#endif
