/*
 * Memory operands that cannot stay as the program wrote them: [rip+x], which
 * means something else at another place, and gs:[...], as the GS base is ours.
 */
#ifndef BUGNET_TRANSLATE_OPERAND_H
#define BUGNET_TRANSLATE_OPERAND_H

#include "translate/emit.h"

/* Does rel32 reach the address from everywhere the code may be placed? */
bool operand_is_near(const struct translate_request *request, uint64_t address);

/* The displacement from the operand's base. */
int32_t operand_displacement(const struct instruction *instruction);
/* Its displacement is a byte that counts units of the operand's size: it means something else elsewhere. */
bool operand_counts_units(const struct instruction *instruction);

/* The register in the r/m field of an instruction whose operand is not memory. */
uint8_t operand_register(const struct instruction *instruction);

/* The register that a mov from memory loads, as the encoding has it: ah is 4. */
uint8_t operand_loaded(const struct instruction *instruction);

/* A register out of rax, rcx, rdx, rbx, rsi, rdi that is not in the set: these serve as plain [reg]. */
uint8_t operand_pick(uint16_t avoid);

/* The instruction as it is; with the rel32 of a near [rip+x] mended. */
void operand_copy(struct emitter *emitter, const struct instruction *instruction);
/* Without any segment override. */
void operand_copy_flat(struct emitter *emitter, const struct instruction *instruction);
/* The instruction with [reg] for its memory operand; without the segment override where `flat`. */
void operand_replace(struct emitter *emitter, const struct instruction *instruction, uint8_t reg, bool flat);
/* The same for a gather: reg in place of its base register, no segment override. */
void operand_replace_base(struct emitter *emitter, const struct instruction *instruction, uint8_t reg);

/* With gs: for its segment override. */
void operand_copy_shadow(struct emitter *emitter, const struct instruction *instruction);
/* The instruction with [number] for its memory operand: an absolute address of 31 bits; its own segment. */
void operand_replace_absolute(
        struct emitter *emitter, const struct instruction *instruction, uint32_t number);
/* The instruction with gs:[rip+x] for its memory operand, x leading to the program address. */
void operand_replace_shadow(struct emitter *emitter, const struct instruction *instruction, uint64_t address);
/* The instruction with [reg+offset] for its memory operand, flat; reg as from operand_pick. */
void operand_replace_offset(
        struct emitter *emitter, const struct instruction *instruction, uint8_t reg, int32_t offset);
/* The instruction with a register, one that operand_registers() has, in place of its memory operand. */
uint16_t operand_registers(const struct instruction *instruction);
void operand_to_register(struct emitter *emitter, const struct instruction *instruction, uint8_t reg);

/* reg = the operand's address, without its segment's base, and without an index that is a vector. Registers
 * must still be the program's. */
void operand_offset(struct emitter *emitter, const struct instruction *instruction, uint8_t reg);
/* mov reg, [operand], 64 bits. Not for gs: and not for a far [rip+x]. */
void operand_load(struct emitter *emitter, const struct instruction *instruction, uint8_t reg);
/* reg = base of the operand's segment; only for operands with an fs: or gs: override */
void operand_segment_base(struct emitter *emitter, const struct instruction *instruction, uint8_t reg);
bool operand_has_segment(const struct instruction *instruction);

#endif
