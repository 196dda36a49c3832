/*
 * What the recording has next, for whoever wants to compare: the next state in the feed that the
 * thread has not come to.
 */
#ifndef BUGNET_REPLAY_EXPECTED_H
#define BUGNET_REPLAY_EXPECTED_H

#include "replay/feeder.h"

/* False: the buffer that the thread reads has none. */
bool expected_state(const struct feed *feed, const struct feeder *feeder, struct state *state);

#endif
