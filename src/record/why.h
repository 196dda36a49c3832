/* Why something could not be done, in words for the user: the last thing on the way out. */
#ifndef BUGNET_RECORD_WHY_H
#define BUGNET_RECORD_WHY_H

#include <stdbool.h>
#include <stddef.h>

/* Returns false, always. */
__attribute__((format(printf, 3, 4))) bool fail_because(char *why, size_t size, const char *format, ...);

#endif
