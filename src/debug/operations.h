/*
 * Locked instructions whose stamps the log does not tell, since they are the next numbers: what threads do
 * between two of them is ordered all the same. They are counted by a replay, if that takes no time to speak
 * of.
 */
#ifndef BUGNET_DEBUG_OPERATIONS_H
#define BUGNET_DEBUG_OPERATIONS_H

#include "debug/debugger.h"

/* Of all threads, into the chronicle; where it cannot be done the chronicle stays as it is. */
void operations_count(struct debugger *debugger);

#endif
