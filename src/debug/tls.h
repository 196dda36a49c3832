/* Where thread-local variables are, as the x86-64 ABI has it: below what the FS base points to. */
#ifndef BUGNET_DEBUG_TLS_H
#define BUGNET_DEBUG_TLS_H

#include "debug/debugger.h"

/*
 * The address of what is `offset` bytes into a module's thread-local variables, for the thread where it
 * stands. The module is the start of its image, the address of its struct link_map, or 0: the program itself.
 * False: `why` tells.
 */
bool tls_address(struct debugger *debugger, uint32_t thread, uint64_t module, uint64_t offset,
        uint64_t *address, char *why, size_t why_size);

#endif
