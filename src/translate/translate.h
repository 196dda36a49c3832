/*
 * The translator: x86-64 machine code in, relocatable x86-64 machine code out.
 *
 * It knows nothing of processes. It asks for code bytes through a callback and
 * returns a struct translation: code with fixups, so that the same translation
 * can be placed at any address, for any load address of the program it came
 * from. What the code expects around it is in runtime.h.
 *
 * All program addresses inside a translation are relative to translation.pc.
 */
#ifndef BUGNET_TRANSLATE_TRANSLATE_H
#define BUGNET_TRANSLATE_TRANSLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "translate/runtime.h"

enum fixup_kind {
	FIXUP_SLOT,       /* rel32 to slot `value` */
	FIXUP_ROUTINE,    /* rel32 to routine `value` */
	FIXUP_TABLE_BASE, /* rel32 to the quadword that holds branch table / 8; value: see TABLE_OF_JUMPS */
	FIXUP_NEAR,       /* rel32 to program address pc + value */
	FIXUP_ABSOLUTE,   /* 64 bits: pc + value */
	FIXUP_NEGATED,    /* 64 bits: -(pc + value) */
	FIXUP_PLACE,      /* 32 bits: this field's own place in the code cache, PLACE(); value: as before */
};

/* What these two have for a value: the relative pc of a return, or this: the table of jumps and calls. */
#define TABLE_OF_JUMPS INT64_MIN

struct fixup {
	uint32_t offset; /* of the field */
	uint8_t kind;
	uint8_t end; /* rel32: bytes from the field's start to the end of its instruction */
	int64_t value;
};

/*
 * A direct branch whose rel32 can be changed while other threads run through it:
 * the field never crosses a 32-byte boundary of the placed code (translations are
 * placed 32-byte aligned).
 */
struct site {
	uint32_t offset; /* of the rel32; the instruction ends 4 bytes later */
	uint32_t exit;   /* offset of the code that leaves to ROUTINE_EXIT with this target;
	                    0: none, as the target is an entry of this translation */
	int64_t target;  /* program pc, relative */
};

/* A place where translated code may be entered for a program pc, with the whole program state in place. */
struct entry {
	int64_t pc; /* relative */
	uint32_t offset;
	uint32_t thunk;      /* offset of its inline thunk, or 0: none */
	uint32_t thunk_next; /* offset of the thunk's rel32 to the next thunk of the chain: like a site's */
	bool wants_thunk; /* expected to be reached by an indirect branch (a return, a resumption by the stub)
	                   */
	int64_t callee;   /* expected to be returned to from the function at this pc, relative; or
	                     TABLE_OF_JUMPS: not known */
};

/* A stretch of program bytes that was translated, for checking later that it is unchanged. */
struct source {
	int64_t pc; /* relative */
	uint32_t size;
	uint32_t bytes; /* offset into translation.source_bytes */
};

struct translation {
	uint64_t pc;
	uint8_t *code;
	uint32_t code_size;
	struct fixup *fixups;
	uint32_t fixup_count;
	struct site *sites;
	uint32_t site_count;
	struct entry *entries; /* entries[0] is for pc itself */
	uint32_t entry_count;
	struct record *records;
	uint32_t record_count;
	struct source *sources;
	uint32_t source_count;
	uint8_t *source_bytes;
	uint32_t source_byte_count;
	int64_t *callees; /* relative pcs of direct call targets outside it: worth translating soon */
	uint32_t callee_count;
	uint32_t instruction_count;
	uint32_t block_count;
	bool approximates; /* has instructions whose results differ from processor to processor */
};

/* What the code is for. */
enum translate_mode {
	TRANSLATE_RUN,
	TRANSLATE_RECORD, /* loads are checked against the shadow behind GS, stores are mirrored there */
	TRANSLATE_REPLAY, /* stops at positions, and asks the log where recording asked the world */
};

struct translate_request {
	uint64_t pc;
	/* Copies up to `size` bytes of executable program memory at pc; returns how many there are. */
	size_t (*read)(void *context, uint64_t pc, uint8_t *bytes, size_t size);
	/* Is there a translation with an entry for pc already? Then branch to it instead of doing it again.
	 */
	bool (*known)(void *context, uint64_t pc);
	void *context;
	/* The code, its slots, its routines and its table will all lie within [reach_low, reach_high):
	 * a program address is near when rel32 reaches it from everywhere in there. */
	uint64_t reach_low, reach_high;
	unsigned max_instructions;
	/* pc is reached by an indirect branch: give it a thunk right in front of its code. */
	bool indirect;
	/* This CPU executes loop as fast as other branches (AMD does). */
	bool loop_is_fast;
	/* Check at the start of every block that its bytes are still what was translated, and end blocks
	 * after every instruction that writes memory: for code that may change unnoticed. */
	bool self_check;
	/* Count the program's instructions; recording and replay do anyway. */
	bool count;
	/* The first of POSITION_SLOTS slots to count them in; 0: SLOT_POSITION only. */
	unsigned counter;
	enum translate_mode mode;
	/* Replay: count the instructions that load, in SLOT_LOADS. */
	bool count_loads;
	/* So many instructions from pc on, or to the end of the block, then ROUTINE_EXIT or, but for replay,
	 * ROUTINE_MISS; without a stop, and nothing leads there but entry[0]. 0: as much as there is. */
	unsigned exact;
	/* Replay: looked at when all code has been read; keep flags where the program does not read them,
	 * too: some of that code may become another one, which does. NULL: there is no need to. */
	const bool *keep_flags;
	/* Replay: the address of the filter for accesses to memory that are traced, see runtime.h; 0: none
	 * is. */
	uint64_t trace_filter;
	/* Replay: accesses are noted by way of this table, see KNOWN_TABLE; 0: they are not. */
	uint64_t known_table;
	/* Accesses of push and call are traced, too. */
	bool trace_stack;
	/* Replay: is it to be told that the instruction at pc is executed? Or NULL. */
	bool (*probed)(void *context, uint64_t pc);
	/* Looked at when all code has been read: a store may make another instruction of the one behind it,
	 * so that nobody knows which flags will be read. NULL: none does. */
	const bool *writable;
	/* Everything is the program's own between any two instructions, also what it does not read any more:
	 * somebody may want to look at it. */
	bool whole_state;
	/* Recording: the program has memory below 2^46, whose shadow is that of the address with bit 46 set.
	 */
	bool low_memory;
	bool low_stack; /* the stack may be there, too */
	/* Recording: loads are not checked, and nothing is mirrored: whole pages are logged. */
	bool pages;
	/* xsave and its family must not touch state components outside this mask; 0: no need to mask. */
	uint64_t xstate_mask;
	bool wide_vectors; /* AVX-512 is offered; else its instructions are refused */
};

static inline bool request_counts(const struct translate_request *request)
{
	return request->count || request->mode != TRANSLATE_RUN;
}

/* Returns 0, -EFAULT when not a single byte at pc can be read, or -ENOMEM. */
int translate(const struct translate_request *request, struct translation *out);

/* Small pieces that a code cache needs besides. Each has one entry or none, and a record for every address.
 */
int translate_thunk(uint64_t pc, bool loop_is_fast,
        struct translation *out);                         /* entry[0]: the thunk; its hit branch is site[0] */
int translate_exit(uint64_t pc, struct translation *out); /* leaves to ROUTINE_EXIT with rcx = pc */
/* jmp [rip+literal], literal right behind it at *literal_offset, 8-byte aligned: a link to another segment.
 */
int translate_bridge(uint64_t pc, struct translation *out, uint32_t *literal_offset);
/* Code for ROUTINE_* of a segment that is far from the stub: moves the slots' contents from this segment's
 * slots page to the stub's (at slots_address) and jumps to `routine_address`. `routine` decides what to move.
 */
int translate_veneer(
        unsigned routine, uint64_t slots_address, uint64_t routine_address, struct translation *out);

void translation_free(struct translation *translation);

#endif
