/* Can this machine's processor execute what the recorded program was offered, and with the same results? */
#ifndef BUGNET_REPLAY_CPU_LEVEL_H
#define BUGNET_REPLAY_CPU_LEVEL_H

#include <stdbool.h>
#include <stddef.h>

#include "recording/meta.h"

/* False: `why` names both, and what to do. */
bool cpu_level_suffices(const struct meta *meta, char *why, size_t why_size);

/* Did the recorded program have the registers of AVX-512? */
bool cpu_was_wide(const struct meta *meta);

/* Is it another model than the one that recorded? */
bool cpu_is_other(const struct meta *meta);

#endif
