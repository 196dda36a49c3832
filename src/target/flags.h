/*
 * Instructions whose flags are wanted just as this CPU gives them: it executes
 * them, on values of our own.
 */
#ifndef BUGNET_TARGET_FLAGS_H
#define BUGNET_TARGET_FLAGS_H

#include <stdint.h>

#define STATUS_FLAGS 0x8d5ul /* CF PF AF ZF SF OF */
#define STATUS_ZF    0x40ul

/*
 * With the flags in operand `flags` in force, and those that it leaves put there.
 * The stack is used below the red zone, which may hold values of C's: operands
 * must be in registers or in memory that a register points to.
 */
#define WITH_FLAGS(instruction)                                                                              \
	"lea -128(%%rsp), %%rsp\n\t"                                                                         \
	"push %[flags]\n\t"                                                                                  \
	"popfq\n\t" instruction "\n\t"                                                                       \
	"pushfq\n\t"                                                                                         \
	"pop %[flags]\n\t"                                                                                   \
	"lea 128(%%rsp), %%rsp"

/* Nothing but status flags may be given to the CPU, or taken from it: the others are the stub's. */
static inline uint64_t merge_status(uint64_t flags, uint64_t status)
{
	return (flags & ~STATUS_FLAGS) | (status & STATUS_FLAGS);
}

#endif
