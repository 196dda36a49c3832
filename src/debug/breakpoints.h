/*
 * Breakpoints, with the conditions that gdb gives them: agent expressions (target/agent.h). It stops if one
 * of them is true, or if there are none.
 */
#ifndef BUGNET_DEBUG_BREAKPOINTS_H
#define BUGNET_DEBUG_BREAKPOINTS_H

#include <stdbool.h>

#include "record/vector.h"
#include "replay/explorer.h"

struct breakpoint {
	uint64_t pc;
	struct explorer_condition *conditions;
	uint32_t condition_count;
};

struct breakpoints {
	VECTOR(struct breakpoint) items;
};

/*
 * One that is there gets other conditions. They are as in gdb's packet: "X" and a size in hex, a comma, and
 * the bytes in hex, one behind the other, or nothing. False: they make no sense, and nothing was changed.
 */
bool breakpoints_insert(struct breakpoints *breakpoints, uint64_t pc, const char *conditions);
void breakpoints_remove(struct breakpoints *breakpoints, uint64_t pc);
bool breakpoints_have(const struct breakpoints *breakpoints, uint64_t pc);
void breakpoints_clear(struct breakpoints *breakpoints);

#endif
