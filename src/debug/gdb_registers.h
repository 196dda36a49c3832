/*
 * Registers as gdb numbers them, and the description by which it knows them: the general ones, x87,
 * SSE and AVX, the bases of FS and GS, and those of AVX-512 where the program had them.
 */
#ifndef BUGNET_DEBUG_GDB_REGISTERS_H
#define BUGNET_DEBUG_GDB_REGISTERS_H

#include <stddef.h>
#include <stdint.h>

#include "replay/state.h"

enum gdb_register {
	GDB_RAX,
	GDB_RBP = 6,
	GDB_RSP = 7,
	GDB_RIP = 16,
	GDB_EFLAGS = 17,
	GDB_CS = 18,
	GDB_ST0 = 24,
	GDB_FCTRL = 32,
	GDB_XMM0 = 40,
	GDB_MXCSR = 56,
	GDB_ORIG_RAX = 57,
	GDB_FS_BASE = 58,
	GDB_GS_BASE = 59,
	GDB_YMM0H = 60,
	GDB_REGISTERS_AVX = 76, /* so many without AVX-512 */
	GDB_XMM16 = 76,
	GDB_YMM16H = 92,
	GDB_K0 = 108,
	GDB_ZMM0H = 116,
	GDB_REGISTER_COUNT = 148,
};
#define GDB_REGISTER_BYTES 32 /* at most */

/* The bytes of a register; returns how many. */
size_t gdb_register_bytes(const struct state *state, unsigned number, uint8_t bytes[GDB_REGISTER_BYTES]);

/* The other way round; what is not in the state is left out. */
void gdb_register_set(struct state *state, unsigned number, const uint8_t *bytes);

/* XML, ended by a zero, which the caller frees; of GDB_REGISTERS_AVX or GDB_REGISTER_COUNT registers. */
char *gdb_description(unsigned count);

#endif
