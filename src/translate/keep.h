/*
 * Registers of the program that are kept aside, in slots of their own, over several of its instructions: what
 * recording puts between these needs a register for values and another one for addresses, and to borrow them
 * anew for every access would be a store and a load each time, with the program waiting for what is loaded.
 *
 * A register is kept from the first access that needs one until an instruction of the program has to do with
 * it, which then finds it in place, or until the end of the block. Where that instruction overwrites it,
 * nothing is put back. Records say so all the time, see RECORD_KEPT_A.
 */
#ifndef BUGNET_TRANSLATE_KEEP_H
#define BUGNET_TRANSLATE_KEEP_H

#include "translate/lowering.h"

/* Those that serve as [reg] without more. */
#define KEEP_ADDRESSES (1u << RAX | 1u << RCX | 1u << RDX | 1u << RBX | 1u << RSI | 1u << RDI)

/* Before an instruction: what it has to do with is put back, and all if it is not a plain one. */
void keep_settle(struct lowering *lowering, const struct instruction *instruction);
/* At the start of a block. */
void keep_enter(struct lowering *lowering);
/* Behind the instruction. */
void keep_note(struct lowering *lowering, const struct instruction *instruction);
/* At the end of the block, or wherever all is put back; `pc` is what comes then. */
void keep_end(struct lowering *lowering, uint64_t pc);

/*
 * A register that our code may use as it likes during the instruction, one of `candidates`, without those
 * that the instruction itself has to do with; asked for once more, another one. `state` is what records say
 * of everything else.
 */
uint8_t keep_register(struct lowering *lowering, const struct instruction *instruction, uint16_t candidates,
        uint32_t state);

/* Those that are kept aside now. */
uint16_t keep_registers(const struct lowering *lowering);
/* Would keep_register() find what the instruction may need, also without `reserved`? */
bool keep_has_enough(
        const struct lowering *lowering, const struct instruction *instruction, uint16_t reserved);

/* Puts back what records of this state say is kept, and keeps it all the same. */
void keep_restore(struct emitter *emitter, uint32_t state);

#endif
