/*
 * Decoded program code: a region is what one translation covers, a set of
 * blocks in ascending order of pc, each a run of instructions that is entered
 * at its start only and left at its end.
 *
 * An instruction is decoded once. What later steps need of it is kept here in a
 * compact form; they never see Zydis.
 */
#ifndef BUGNET_TRANSLATE_DECODE_H
#define BUGNET_TRANSLATE_DECODE_H

#include "translate/fetch.h"
#include "translate/map.h"
#include "translate/translate.h"

/* General registers by their number in the encoding. */
enum {
	RAX,
	RCX,
	RDX,
	RBX,
	RSP,
	RBP,
	RSI,
	RDI,
	R11 = 11,
	REGISTER_COUNT = 16,
	NO_REGISTER = 0xff,
};

/* What to do with an instruction; from KIND_JUMP on it ends its block. */
enum instruction_kind {
	KIND_PLAIN,         /* copy, with the memory operand rewritten where needed */
	KIND_LEA,           /* lea r, [rip+x]: no access, only an address */
	KIND_JUMP,          /* jmp rel */
	KIND_CONDITIONAL,   /* jcc rel; opcode: the condition */
	KIND_LOOP,          /* loop, loope, loopne, jrcxz, jecxz; opcode: e0-e3 */
	KIND_CALL,          /* call rel */
	KIND_CALL_INDIRECT, /* call r/m64 */
	KIND_JUMP_INDIRECT, /* jmp r/m64 */
	KIND_RETURN,        /* ret, ret n */
	KIND_SYSCALL,       /* syscall */
	KIND_EMULATE,       /* for ROUTINE_EMULATE */
	KIND_IMAGE,         /* stores x87 state: execute, then ROUTINE_EMULATE mends the image */
	KIND_STOP,          /* verbatim, never goes on to the next instruction: ud2, hlt, int n */
	KIND_UNDEFINED,     /* ud2 in its place */
	KIND_REFUSED,       /* the same, and RECORD_REFUSED */
	KIND_TOO_LONG,      /* hlt in its place: #GP */
	KIND_UNREADABLE,    /* not all of it can be read: never part of a region */
};

/* What has to be done about the memory operand. */
enum memory_kind {
	MEMORY_AS_IS,       /* none, or fine as it is */
	MEMORY_RIP,         /* [rip+x] */
	MEMORY_GS,          /* gs:[...] with modrm or moffs, gs:[rip+x] included */
	MEMORY_GS_VECTOR,   /* gs:[base+vector*scale+x] */
	MEMORY_GS_IMPLICIT, /* gs:[rsi], [rbx+al], [rdi] of string instructions, xlat, maskmov */
};

/*
 * How an instruction's memory operand is recorded, see shadow.c. Instructions that
 * fit none of these are executed natively, and the log keeps what they left.
 */
enum access_kind {
	ACCESS_NONE,      /* no memory, or none that is the program's data */
	ACCESS_LOAD,      /* into a general register, which then has all that was read */
	ACCESS_USE,       /* reads */
	ACCESS_STORE,     /* writes and does nothing else, so that it can be done twice */
	ACCESS_MODIFY,    /* reads and writes, and has a form with a register in place of memory */
	ACCESS_POP_STORE, /* x87 stores that pop */
	ACCESS_PUSH,      /* of a register or an immediate number */
	ACCESS_PUSH_MEMORY,
	ACCESS_POP,
	ACCESS_LEAVE,
};

/*
 * How all status flags that an instruction has left can be had once more, behind code of ours that has
 * overwritten them, see flags.h.
 */
enum repeat_kind {
	REPEAT_NEVER,
	REPEAT_ITSELF, /* it changes nothing but flags, or gives zero whatever there was */
	REPEAT_TEST,   /* by a test of its result, as and, or, xor leave them */
	REPEAT_UNDONE, /* by itself, once lea has taken back what it added or subtracted: `number` */
	REPEAT_SHADOW, /* by itself on the shadow of its operand */
};

/* Where the parts of an instruction are, as offsets into its bytes; 0: absent. */
struct encoding {
	uint8_t rex;      /* a REX that counts */
	bool has_rex;     /* (it may be at offset 0) */
	uint8_t vex;      /* the first byte of VEX, XOP or EVEX */
	uint8_t vex_size; /* 2, 3, or 4 for EVEX; 0: none */
	uint8_t prefix_count;
	uint8_t modrm;
	uint8_t sib;
	uint8_t disp;
	uint8_t disp_size; /* in bytes */
	uint8_t disp_unit; /* what is counted by a displacement of one byte: 1, or more with EVEX */
	uint8_t tail;      /* what follows modrm, sib and disp: immediates, or `length` */
	bool moffs;
};

/*
 * Sets of things a value can live in, as liveness sees them: one bit for each
 * general register, one for each status flag, and one more for each flag as a
 * signal handler would see it, see liveness.h.
 */
typedef uint32_t live_set;

struct instruction {
	uint64_t pc;
	uint64_t target; /* direct branches: where to; MEMORY_RIP: the operand's address */
	live_set use, kill, live_after;
	uint16_t used;    /* registers it uses other than to form the rewritten operand's address */
	uint16_t written; /* registers that it may change */
	uint16_t pop;     /* ret n: n */
	/* EMULATE_ATOMIC: the immediate operand; EMULATE_GATHER: GATHER_*; REPEAT_UNDONE: what is added */
	int32_t number;
	uint32_t detail; /* KIND_EMULATE, KIND_IMAGE: EMULATE_DETAIL() */
	uint8_t bytes[INSTRUCTION_BYTES_MAX];
	uint8_t length;  /* for UNDEFINED, TOO_LONG and UNREADABLE: as many bytes as were looked at */
	uint8_t kind;    /* enum instruction_kind */
	uint8_t memory;  /* enum memory_kind */
	uint8_t opcode;  /* the primary opcode byte */
	uint8_t width;   /* operand width in bytes */
	uint8_t base;    /* register of the memory operand that is not MEMORY_AS_IS, or NO_REGISTER */
	uint64_t callee; /* what is called before it, or 0 */
	bool leader;     /* starts a block */
	bool resumed;    /* reached by an indirect branch: after a call, a syscall, an emulated instruction */
	bool address32;  /* 67 prefix: addresses are truncated to 32 bits */
	bool x87;        /* d8 to df */
	bool bit_string; /* bt and its kind with the bit's number in a register */
	bool umip;       /* sgdt, sidt, sldt, str, smsw */
	bool fs;         /* the memory operand has an fs: override */
	bool is_memory;  /* its r/m operand is memory */
	bool overwrites; /* overwrites `destination` entirely, without reading it */
	uint8_t destination;
	bool is_pop; /* pop [mem] */
	bool xstate; /* xsave, xrstor and their kind: edx:eax says which state */
	bool may_fault;
	bool vector_index;          /* gathers and scatters: the index of its operand is a vector */
	bool wide;                  /* AVX-512: uses registers that not every program is offered */
	uint8_t access;             /* enum access_kind; only while recording */
	uint8_t access_size;        /* in bytes */
	uint8_t trace;              /* TRACE_*: what it does to memory by its operand; only in replay */
	uint16_t trace_size;        /* in bytes, or STRING_ARGUMENT() */
	uint8_t pushes;             /* bytes that it puts on the stack, besides; only in replay */
	bool writes_flags;          /* some of the status flags */
	uint8_t repeat;             /* enum repeat_kind; only while recording */
	bool has_register_form;     /* the same with a general register for its memory operand */
	uint16_t address_registers; /* that form the address of its operand in memory */
	bool approximates;          /* processors give different results: rcpps, fsin and their kind */
	bool reads_memory;          /* also the stack, as pop and ret do */
	bool writes_memory;         /* by a memory operand that is not just the stack of push and call, */
	bool writes_stack;          /* and by that */
	struct encoding encoding;
};

struct block {
	uint64_t pc;
	uint32_t first, count; /* into region.order */
	uint32_t bytes;        /* of program code */
	uint64_t next;         /* the pc that follows the last instruction */
	live_set live_in, live_out, use, kill;
	uint32_t offset; /* where other blocks of the region enter it in the emitted code */
	/* See position.h. */
	uint16_t lag;
	uint32_t longest;
	bool head;       /* has no lag */
	bool inherits;   /* its code relies on what the block before it has left, see lower.c */
	uint32_t origin; /* the block in whose slot it counts: an index into region.blocks */
	uint8_t counter;
};

/* An instruction outside the region that tells what is live where control leaves it. */
struct glance {
	uint64_t pc;
	uint8_t length;
	uint8_t bytes[INSTRUCTION_BYTES_MAX];
};

struct region {
	uint64_t pc;
	bool self_check;
	bool exact;                       /* one block, and nothing leads back to it */
	struct instruction *instructions; /* in the order of discovery */
	uint32_t instruction_count, instruction_capacity;
	struct map by_pc;     /* pc -> index of instruction */
	uint32_t *order;      /* instructions in the order of the layout */
	struct block *blocks; /* in ascending order of pc */
	uint32_t block_count;
	struct map block_by_pc;
	int64_t *callees;
	uint32_t callee_count;
	struct map beyond; /* recording and replay: pc that a block leads to outside -> live_set there */
	struct glance *glances;
	uint32_t glance_count, glance_capacity;
};

/* Does control go on to the instruction behind it without leaving translated code? */
bool instruction_falls_through(const struct instruction *instruction);

/* Returns 0, -EFAULT or -ENOMEM, like translate(). */
int region_discover(struct region *region, const struct translate_request *request);
void region_deinit(struct region *region);

/* The block that starts at pc, or NULL. */
struct block *region_block(const struct region *region, uint64_t pc);
static inline struct instruction *region_at(
        const struct region *region, const struct block *block, uint32_t i)
{
	return &region->instructions[region->order[block->first + i]];
}

/* Decodes one instruction; `size` bytes of it could be read. */
void decode_instruction(struct instruction *instruction, uint64_t pc, const uint8_t *bytes, unsigned size,
        enum translate_mode mode);

#endif
