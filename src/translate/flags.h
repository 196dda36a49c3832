/*
 * The program's status flags while recording. A compare with the shadow overwrites them; where the program
 * still reads them they are given back behind it, in the cheapest of several ways:
 *
 *   repeated   the instruction of this block that has set them can be executed once more to the same end
 *              (enum repeat_kind), as what it needs is still where it was. They are in place again right
 *              behind each compare, so that nothing else has to know.
 *   added      `add rsp, n` in front of the pops and the return of an epilogue: lea is executed in its
 *              place, and the addition in front of the return. Records say so meanwhile (RECORD_ADDED),
 *              and whoever looks can compute the flags.
 *   in a slot  SLOT_FLAGS, from the first compare until an instruction needs them in place or has new ones.
 *              That is ten instructions of ours.
 */
#ifndef BUGNET_TRANSLATE_FLAGS_H
#define BUGNET_TRANSLATE_FLAGS_H

#include "translate/lowering.h"

/* At the start of a block. */
void flags_enter(struct lowering *lowering);
/* Before an instruction, or with NULL at the end of the block: puts flags back that are needed in place now.
 */
void flags_settle(struct lowering *lowering, const struct instruction *instruction, uint64_t pc);
/* Behind an instruction of the program. */
void flags_note(struct lowering *lowering, const struct instruction *instruction);

/*
 * Before the first compare of the instruction; `overwritten`: registers of the program that are changed
 * before the last one is done. What is still in place stays so until the first compare.
 */
void flags_begin(struct lowering *lowering, const struct instruction *instruction, uint16_t overwritten);
/* Behind the last one. */
void flags_end(struct lowering *lowering);
/* Would they be repeated if, and only if, the instruction did not change its registers before? */
bool flags_need_registers(const struct lowering *lowering, const struct instruction *instruction);
/* Has flags_begin() left them to be repeated? Then nothing may overwrite them before the first compare. */
bool flags_are_repeated(const struct lowering *lowering);

/* What records say of them. */
uint32_t flags_state(const struct lowering *lowering);
/* Now, before the instruction at pc. */
void flags_in_place(struct lowering *lowering, uint64_t pc);
/* Right before the program's own instruction, whose compares are done; `state` without the flags. */
void flags_place(struct lowering *lowering, const struct instruction *instruction, uint32_t state);
/* Right behind it. */
void flags_renewed(struct lowering *lowering, const struct instruction *instruction);

/* Does the program read them before the instruction, or behind it, as they are before it? */
bool flags_live(const struct instruction *instruction);

/* In place of `add rsp, n`: if all that comes behind it in the block is pops and a return, and so on. */
bool flags_defer(struct lowering *lowering, const struct instruction *instruction);
/* One more pop was executed. */
void flags_popped(struct lowering *lowering);

/*
 * Before a return or a jump, and with rcx and r11 borrowed: are they somewhere from where flags_restore()
 * brings them back, so that they may be overwritten until then?
 */
bool flags_can_restore(struct lowering *lowering, const struct instruction *instruction);
/* With `dropped` bytes more gone from the stack than at the start of the instruction. */
void flags_restore(struct lowering *lowering, int32_t dropped);
/* In the code of a compare that has failed, when everything else is as it was. */
void flags_restore_missed(struct lowering *lowering, const struct miss *miss);

#endif
