/* Where a program executed another one: its recording ends there. */
#ifndef BUGNET_DEBUG_EXECUTED_H
#define BUGNET_DEBUG_EXECUTED_H

#include "debug/debugger.h"

/* Did the thread's recording end because of that? */
bool executed_at_end(struct debugger *debugger, uint32_t thread);
/* What there is to say of it where the thread stands, at its end; false: it did not end in this way. */
bool executed_text(struct debugger *debugger, uint32_t thread, char *text, size_t size);

#endif
