/*
 * The state that encoder and decoder of a thread's log keep in step, and the bits of an
 * event's first byte. A keyframe resets all of the state. Freestanding.
 */
#ifndef BUGNET_RECORDING_CODER_H
#define BUGNET_RECORDING_CODER_H

#include <stdint.h>
#include <string.h>

#include "recording/dictionary.h"
#include "recording/event.h"
#include "recording/numbers.h"

#define CODER_LINES  8
#define CODER_STREAM (1u << 14) /* as a zigzag number, in lines: half a megabyte to either side */

struct coder {
	uint64_t position;                /* of the event before */
	uint64_t stamp;                   /* of the order event before */
	struct event_registers registers; /* at the system call before, or else of the keyframe */
	uint64_t lines[CODER_LINES];      /* address / 64 of recent patches, one for each stream */
	unsigned oldest;                  /* the one that a line far from all of them replaces */
	struct dictionary dictionary;
};

/* First byte of a patch: 1 | number of a recent line (3) | distance from it (2) | which words (2). */
#define PATCH_HEAD           0x80
#define PATCH_LINE_SHIFT     4
#define PATCH_DISTANCE_SHIFT 2

enum patch_distance {
	DISTANCE_NEXT, /* the line after it */
	DISTANCE_SAME,
	DISTANCE_NEAR, /* a signed byte follows */
	DISTANCE_FAR,  /* a zigzag varint follows */
};

enum patch_words {
	WORDS_ALL,  /* form codes follow */
	WORDS_ONE,  /* a byte follows: number of the word and form code */
	WORDS_SOME, /* the mask follows, then form codes */
};

/* A word's form code: FORM_DICTIONARY, a number of bytes from 1 to 6, or FORM_RAW for all eight. */
#define FORM_DICTIONARY 0
#define FORM_RAW        7
#define FORM_BITS       3
#define FORM_MASK       7u

/* Three bits for each word of the mask. (__builtin_popcount would call libgcc, which the stub has not.) */
static inline unsigned form_code_bytes(unsigned mask)
{
	const uint64_t ones_in_nibble = 0x4332322132212110u;
	unsigned words = (ones_in_nibble >> (mask & 15) * 4 & 15) + (ones_in_nibble >> (mask >> 4) * 4 & 15);

	return (words * FORM_BITS + 7) / 8;
}

/* First byte of the other kinds: 0 | flags (3) | kind (4). */
#define HEAD_KIND_MASK   0x0f
#define HEAD_FLAGS_SHIFT 4
#define HEAD_FLAGS_MASK  0x7

/* Flags of result and system call */
#define CHANGES_REGISTERS 1
#define CHANGES_FLAGS     2
#define ORDER_KIND_MASK   3
#define ORDER_LOOSE       4
#define SYSCALL_FORGETS   4
/* Flags of signal and sigreturn; the last two of sigreturn only */
#define SIGNAL_XSAVE      1
#define SIGNAL_FAULT      2
#define SIGRETURN_CALL    2
#define SIGRETURN_BASES   4

/* Lines are numbered by 58 bits. */
#define LINE_LIMIT (UINT64_C(1) << 58)

/* `entries` has room for 1 << bits of them; bits 0 means no dictionary. */
static inline void coder_init(struct coder *coder, struct dictionary_entry *entries, unsigned bits)
{
	memset(coder, 0, sizeof *coder);
	coder->dictionary.entries = entries;
	coder->dictionary.bits = bits;
}

static inline void coder_reset(
        struct coder *coder, uint64_t position, const struct event_registers *registers)
{
	coder->position = position;
	coder->stamp = 0;
	coder->registers = *registers;
	memset(coder->lines, 0, sizeof coder->lines);
	coder->oldest = 0;
	dictionary_reset(&coder->dictionary);
}

/*
 * The line that a patch used becomes a recent one: instead of the one it was counted
 * from, or, further away than a stream of accesses jumps, instead of the oldest.
 */
static inline void coder_line_used(struct coder *coder, unsigned near, int64_t delta, uint64_t line)
{
	if (zigzag(delta) < CODER_STREAM) {
		coder->lines[near] = line;
		return;
	}
	coder->lines[coder->oldest] = line;
	coder->oldest = (coder->oldest + 1) % CODER_LINES;
}

#endif
