/*
 * The emitter: one call for one instruction of output, or for a short sequence
 * that always goes together. It fills the arrays of a struct translation.
 *
 * Running out of memory sets `failed` and makes every later call harmless, so
 * that nobody has to check in between.
 */
#ifndef BUGNET_TRANSLATE_EMIT_H
#define BUGNET_TRANSLATE_EMIT_H

#include "translate/decode.h"
#include "translate/map.h"
#include "translate/translate.h"

/* A rel32 to an 8-byte literal that comes at the end of the translation. */
struct literal {
	uint32_t field;  /* offset of the rel32 */
	uint8_t end;     /* bytes from there to the end of its instruction */
	bool is_address; /* `value` is a program pc, else a plain number */
	uint64_t value;
};

/* A rel32 to code at the end of the translation that puts rax back and leaves for pc. */
struct failure {
	uint32_t field;
	uint64_t pc;
};

/* A rel32 to code at the end of the translation that stops before the block at pc. */
struct stop {
	uint32_t field;
	const struct block *block;
	bool flags; /* the program's are in ah and al, and its rax is in SLOT_RAX */
};

struct emitter {
	struct translation *out;
	uint64_t pc;     /* of the translation: addresses in the output are relative to it */
	int32_t counter; /* the slot that instructions are counted in */
	uint32_t code_capacity, fixup_capacity, site_capacity, entry_capacity, record_capacity;
	struct literal *literals;
	uint32_t literal_count, literal_capacity;
	struct failure *failures;
	uint32_t failure_count, failure_capacity;
	struct stop *stops;
	uint32_t stop_count, stop_capacity;
	/* What records say of the count, see struct record: before the current instruction, or, without one,
	 * here. */
	int32_t executed;
	bool in_instruction;
	/* What every record says besides, see keep.h; and the part of it that ends with the current
	 * instruction. */
	uint32_t kept, kept_until_behind;
	uint64_t instruction_pc;
	bool leaves; /* indirect branches look nowhere: they all go to the stub */
	bool failed;
};

void emit_init(struct emitter *emitter, struct translation *out, uint64_t pc);
/* Frees what is not part of the translation; on failure also that. Returns 0 or -ENOMEM. */
int emit_finish(struct emitter *emitter);

static inline uint32_t emit_offset(const struct emitter *emitter)
{
	return emitter->out->code_size;
}

/* -- raw ----------------------------------------------------------------- */

void emit_bytes(struct emitter *emitter, const void *bytes, size_t size);
#define EMIT(emitter, ...)                                                                                   \
	emit_bytes(emitter, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))
void emit_u32(struct emitter *emitter, uint32_t value);
void emit_u64(struct emitter *emitter, uint64_t value);
void emit_nops(struct emitter *emitter, unsigned size);   /* executed: as few as possible */
void emit_breaks(struct emitter *emitter, unsigned size); /* never executed */
void emit_fixup(struct emitter *emitter, enum fixup_kind kind, int64_t value, uint32_t offset, unsigned end);
void emit_rel32_to(struct emitter *emitter, uint32_t field, uint32_t target); /* within the translation */
void emit_rel8_here(struct emitter *emitter, uint32_t field); /* a short branch, to the current offset */

/* Says where the program's registers are from here on; `pc` absolute. */
void emit_record(struct emitter *emitter, uint64_t pc, uint32_t state);

/* -- instructions -------------------------------------------------------- */

void emit_spill(struct emitter *emitter, uint8_t reg, int slot);  /* mov gs:[slot], reg */
void emit_reload(struct emitter *emitter, uint8_t reg, int slot); /* mov reg, gs:[slot] */
void emit_slot_number(struct emitter *emitter, unsigned slot, uint32_t value);
void emit_branch_place(struct emitter *emitter, const struct instruction *branch);
/* mov gs:[SLOT_BRANCH], own place */                                      /* mov qword gs:[slot], value */
void emit_number(struct emitter *emitter, uint8_t reg, uint64_t value);    /* mov reg, imm64 */
void emit_address(struct emitter *emitter, uint8_t reg, uint64_t address); /* mov reg, program address */
void emit_negated_address(struct emitter *emitter, uint8_t reg, uint64_t address);
void emit_truncate(struct emitter *emitter, uint8_t reg);                   /* mov reg32, reg32 */
void emit_move(struct emitter *emitter, uint8_t to, uint8_t from);          /* mov to, from */
void emit_add(struct emitter *emitter, uint8_t reg, uint8_t addend);        /* lea reg, [reg+addend] */
void emit_add_number(struct emitter *emitter, uint8_t reg, int32_t number); /* lea reg, [reg+number] */
void emit_save_flags(struct emitter *emitter);                              /* status flags to SLOT_FLAGS */
void emit_restore_flags(struct emitter *emitter);                           /* and back */
void emit_literal(struct emitter *emitter, bool is_address, uint64_t value, unsigned end); /* its rel32 */

/* A jmp (opcode e9) or jcc (0f 80+condition) with a patchable rel32, padded; returns the field's offset. */
#define JMP  0x100
#define SIGN 8
uint32_t emit_patchable(struct emitter *emitter, unsigned condition);
/* The same as a site for a program pc. It is linked by emit_tail(). */
void emit_site(struct emitter *emitter, unsigned condition, uint64_t target);
void emit_routine(struct emitter *emitter, unsigned routine); /* jmp routine */
/* lea rcx, [rip+there] ; jmp routine */
void emit_leave_to(struct emitter *emitter, unsigned routine, uint32_t there);

/* -- sequences ----------------------------------------------------------- */

void emit_exit(struct emitter *emitter, uint64_t pc); /* leaves for ROUTINE_EXIT */
/* The branch table, see runtime.h; `branch` looks into it. */
void emit_probe(struct emitter *emitter, const struct instruction *branch);
void emit_jump_failure(struct emitter *emitter, uint64_t pc);
/* sub qword gs:[counter], -count */
void emit_count(struct emitter *emitter, int32_t count);
/* cmp qword gs:[counter], -longest ; jg to code that leaves for ROUTINE_STOP; `flags`: see struct stop */
void emit_jump_stop(struct emitter *emitter, const struct block *block, bool flags);
/* The same as emit_count by a register that is free, without flags. */
void emit_count_by(struct emitter *emitter, uint8_t reg, int32_t count);
/* ah, al = the program's status flags, its rax in SLOT_RAX; and back */
void emit_flags_to_rax(struct emitter *emitter);
void emit_flags_from_rax(struct emitter *emitter);
struct entry *emit_entry(struct emitter *emitter, uint64_t pc, bool wants_thunk); /* NULL: out of memory */
/* The thunk for pc, which falls into what is emitted next; *thunk: its offset. Returns the offset of its
 * rel32. */
uint32_t emit_thunk(struct emitter *emitter, uint64_t pc, bool loop_is_fast, uint32_t *thunk);

/* What comes behind the last block: exit stubs, literals; links all sites. */
void emit_tail(struct emitter *emitter, const struct region *region);

#endif
