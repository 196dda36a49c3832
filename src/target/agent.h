/*
 * gdb's agent expressions: conditions of breakpoints as bytecode for a stack of 64-bit numbers, as the
 * chapter "Agent Expressions" of gdb's manual defines it. Freestanding: they are evaluated inside the
 * replayed process, where a breakpoint is passed a million times in a second.
 */
#ifndef BUGNET_TARGET_AGENT_H
#define BUGNET_TARGET_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where an expression's values come from. Each function returns false for what is not known. */
struct agent_world {
	/* By gdb's numbers. */
	bool (*read_register)(void *context, unsigned number, uint64_t *value);
	bool (*read_memory)(void *context, uint64_t address, void *to, size_t size);
	void *context;
};

#define AGENT_STACK 64
#define AGENT_STEPS 4096 /* instructions that are executed at most */

/* False: it cannot be told here; the expression may be wrong, or not have a value. */
bool agent_evaluate(const uint8_t *code, size_t size, const struct agent_world *world, uint64_t *value);

#endif
