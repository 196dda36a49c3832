/* The auxiliary vector that the kernel gave to the program, from its stack as it was at the beginning. */
#ifndef BUGNET_DEBUG_AUXV_H
#define BUGNET_DEBUG_AUXV_H

#include <elf.h>

#include "debug/debugger.h"

#define AUXV_MOST 64

/* Returns how many entries there are, the last one of which is AT_NULL; 0: the recording does not have it. */
unsigned auxv_find(struct debugger *debugger, Elf64_auxv_t to[AUXV_MOST]);

#endif
