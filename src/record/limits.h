/* Limits on address space of a process that nothing of ours is in any more; see target/limits.c. */
#ifndef BUGNET_RECORD_LIMITS_H
#define BUGNET_RECORD_LIMITS_H

#include <sys/types.h>

#include "target/layout.h"

void limits_give_back(pid_t pid, const struct process_memory *memory);

#endif
