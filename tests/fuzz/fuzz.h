#ifndef FUZZ_H
#define FUZZ_H
/*
 * Differential fuzzing against the CPU.
 *
 *   fuzz.c      options, the loop over blocks of sequences, one digest line per block
 *   arena.c     the memory a sequence may touch, at fixed addresses; its random contents and their hash
 *   code.c      the code buffers: written then protected, rewritten in place, mapped twice
 *   state.c     random registers before a sequence; canonical form and digest of what is found after it
 *   encode.c    one random instruction, as bytes that Zydis decodes and accept.c allows
 *   accept.c    which decoded instructions may run
 *   pieces.c    several instructions that belong together: branches, loops, calls, rep, xsave,
 * self-modification generate.c  a whole sequence out of both enter.c     the way into a sequence and out
 * again, in assembly; the entry of the signal handler run.c       runs one sequence and takes down what
 * happened, faults included report.c    what --dump shows
 *
 * All addresses a sequence can see are fixed, so that results of two runs are compared as they are: nothing
 * is subtracted or masked, except the x87 error pointers where the CPU itself does not keep them (state.c).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <signal.h>
#include <Zydis/Zydis.h>
#include "random.h"

#define PAGE 4096u

/* ---- the machine state
 * -------------------------------------------------------------------------------------- */

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

/* enter.c knows these offsets. */
struct machine {
	uint64_t gpr[16]; /* in the order of their encoding */
	uint64_t rflags;
	uint64_t fs_base, gs_base;
	uint64_t pc;
	uint16_t ds, es, fs, gs;
	_Alignas(64) uint8_t fx[512]; /* FXSAVE64 image; its xmm part is not used */
	uint8_t zmm[32][64]; /* without AVX-512 only the first 32 bytes of the first 16 */
	uint64_t k[8];
};
_Static_assert(offsetof(struct machine, rflags) == 128 && offsetof(struct machine, ds) == 160 &&
                       offsetof(struct machine, fx) == 192 && offsetof(struct machine, zmm) == 704 &&
                       offsetof(struct machine, k) == 2752,
        "enter.c uses these offsets");

enum { MAX_FAULTS = 8 };

struct fault {
	int signal, code;
	uint64_t address;
	uint64_t trap, error, cr2;
	uint64_t segments;      /* cs, gs, fs, ss as the frame has them */
	uint64_t handler_flags; /* the flags the handler was entered with */
	uint32_t handler_mxcsr;
	uint16_t handler_cw;
	struct machine at;
};

/* ---- one sequence
 * -------------------------------------------------------------------------------------------- */

enum { SLOT = 1024, MAX_STARTS = 192 };

enum code_mode { CODE_PROTECTED, CODE_REWRITTEN, CODE_TWO_VIEWS };

struct sequence {
	uint64_t number;
	unsigned arena;
	enum code_mode mode;
	uint64_t address; /* where the code will run */
	unsigned length;  /* of code and literals */
	unsigned code_length;
	bool resume;       /* after a fault go on behind the faulting instruction */
	bool hidden_entry; /* jumps into instructions, or changes itself: `starts` does not hold all of them
	                    */
	unsigned start_count;
	uint16_t starts[MAX_STARTS]; /* offsets of instructions, ascending */
	struct rng memory;           /* the stream that fills the memory */
	struct machine initial;
	uint8_t code[SLOT];
};

struct outcome {
	bool completed; /* the sequence reached its end */
	bool hung;      /* it did not end, and was ended: nothing else is known of it */
	unsigned fault_count;
	struct machine final;
	struct fault faults[MAX_FAULTS];
	uint64_t memory_hash;
	uint64_t digest;
};

/* What the command line decided; the same in both runs. */
struct settings {
	uint64_t seed;
	bool far;      /* nothing else lies within 2 GB of the arenas, so displacements may be anything */
	bool wide;     /* with the registers and instructions of AVX-512 */
	bool avx512;   /* also AVX-512 and AMX instructions, which this CPU refuses */
	bool no_bases; /* leave the fs and gs bases alone (for stand-ins that cannot set them) */
	bool read_flags; /* at faults, look only at status flags that the sequence may still read */
	unsigned watchdog;
	unsigned without; /* kinds left out, while a translator is known not to have them */
};
enum {
	WITHOUT_AC = 1,
	WITHOUT_SEGMENTS = 2,
	WITHOUT_XSAVE = 4,
	WITHOUT_REWRITTEN = 8,
	WITHOUT_TWO_VIEWS = 16,
	WITHOUT_SHARING = 32 /* nothing that makes recording compare loads */
};
extern struct settings settings;

/* ---- arena.c
 * --------------------------------------------------------------------------------------------------- */

enum { ARENAS = 2 };

/*
 * Offsets in an arena. What is not named is a guard: no access.
 *
 *   guard | data: 3 pages | read-only: 1 page | guard | tail: 1 page | guard | stack: 2 pages | guard
 *   | constants: 1 page, read-only | scratch: 1 page | guard | xsave: 1 page | guard
 *   | images: 4 pages, read-only | guard | gate: 1 page | guard | code | guard
 */
enum {
	AT_DATA = 1 * PAGE,
	AT_DATA_END = 4 * PAGE,
	AT_READ_ONLY = AT_DATA_END,
	AT_TAIL = 6 * PAGE,
	AT_STACK = 8 * PAGE,
	AT_STACK_END = 10 * PAGE,
	AT_CONSTANTS = 11 * PAGE,
	AT_SCRATCH = 12 * PAGE, /* loop counters: not hashed */
	AT_XSAVE = 64 * PAGE,   /* not hashed: xsave does not always write the same */
	AT_IMAGES = 66 * PAGE,  /* for xrstor */
	AT_GATE = 128 * PAGE,   /* a jump to fuzz_exit, whose own address differs from run to run */
	AT_CODE = 1 << 20,
	CODE_SIZE = 104 * SLOT,
	REWRITTEN_SIZE = 4 * PAGE, /* as much of it as is writable and executable at once */
	ARENA_SIZE = 2 << 20,
};

/* Offsets in the constants page. */
enum {
	CONST_MXCSR = 0,      /* 8 valid values */
	CONST_CW = 32,        /* 8 valid x87 control words */
	CONST_FLOAT = 64,     /* 8 numbers as float, double, 80-bit, each in 16 bytes */
	CONST_TRAPPING = 512, /* a denormal and a signalling NaN, in the same form */
	CONST_UNMASKED = 640, /* a control word */
	CONST_FXSAVE = 1024,
	CONST_FENV = 2048,
	CONST_FNSAVE = 2560,
};

/* One in each of their pages: two with all components, two with some; as xsave and as xsavec have them. */
enum { IMAGES = 4, WHOLE_IMAGES = 2 };

/*
 * Indexes of gathers and scatters, of 32 or of 64 bits. Two short ones that are taken for a long one lead as many times
 * 4 GB from the arena, times the scale: arena_setup() makes sure that nothing lies there.
 */
enum { LEAST_INDEX = -120, MOST_INDEX = 200, MOST_SCALE = 8 };

void arena_setup(bool reserve_neighbours);
uint64_t arena_base(unsigned arena);
void arena_reset(const struct sequence *s);
uint64_t arena_hash(const struct sequence *s);
/* The contents arena_reset() gave the page at this offset of the arena: what --dump compares with. */
const uint8_t *arena_original(const struct sequence *s, unsigned offset);
extern const uint16_t arena_changing_pages[]; /* offsets of the pages that are reset and hashed; 0 ends */
/* A random address where the access usually works. */
uint64_t arena_pointer(struct rng *r, unsigned arena);

/* ---- code.c
 * ---------------------------------------------------------------------------------------------------- */

void code_setup(void);
void code_open(unsigned arena, enum code_mode mode); /* before the sequences of a block are placed */
uint64_t code_place(struct rng *r, unsigned arena, enum code_mode mode, uint64_t number);
void code_write(const struct sequence *s);
/* How many of its first bytes are there: the memory may end inside of it. */
unsigned code_written(const struct sequence *s, unsigned length);
void code_seal(unsigned arena, enum code_mode mode); /* all are written, they will now run */
void code_close(unsigned arena, enum code_mode mode);

/* ---- state.c
 * --------------------------------------------------------------------------------------------------- */

/* Which registers hold addresses of data, which hold small numbers: the operands of random instructions use
 * them. */
struct roles {
	uint16_t pointers, indexes;
	uint32_t vector_indexes;
};

/* State components, by their bits in XCR0. */
enum {
	STATE_X87 = 1,
	STATE_SSE = 2,
	STATE_AVX = 4,
	STATE_MASKS = 0x20,    /* k0 to k7 */
	STATE_ZMM_HIGH = 0x40, /* the upper halves of zmm0 to zmm15 */
	STATE_ZMM_MORE = 0x80, /* zmm16 to zmm31 */
	STATE_UP_TO_AVX = STATE_X87 | STATE_SSE | STATE_AVX,
	STATE_WIDE = STATE_UP_TO_AVX | STATE_MASKS | STATE_ZMM_HIGH | STATE_ZMM_MORE,
	STATE_HEADER = 512, /* of an XSAVE image */
};

void state_setup(void);
/* What of an XSAVE image, of the standard form, belongs to a machine; what is not `present` is initial. */
void state_from_image(struct machine *m, const uint8_t *image, uint64_t present);
/* Some components, and their bits in the header: the others stay as they are. */
void state_to_image(const struct machine *m, uint8_t *image, uint64_t components);
/* The form of xsavec, with room for the components of `form`. */
void state_to_compact_image(const struct machine *m, uint8_t *image, uint64_t form);
void state_random(struct rng *r, unsigned arena, struct machine *m, struct roles *roles);
void state_canonical(struct machine *m);
uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t size);
uint64_t outcome_digest(const struct outcome *o);

/* ---- flags.c
 * --------------------------------------------------------------------------------------------------- */

/* Status flags that the sequence overwrites before it reads them, whatever way it goes from this pc. */
uint64_t flags_unread(const struct sequence *s, uint64_t pc);

/* ---- generate.c, encode.c, accept.c, pieces.c
 * ------------------------------------------------------------------ */

enum { MAX_PENDING = 24, MAX_LITERALS = 16, NO_REFERENCE = -1 };

/* A sequence while it is made. */
struct builder {
	struct sequence *s;
	struct rng *r;
	struct roles roles;
	unsigned length;
	bool failed; /* does not fit: start again */
	bool used_xsave;
	int keep;         /* a register no instruction may write, or -1; with RSP no stack slot either */
	unsigned counter; /* next loop counter in the scratch page */
	unsigned pending_count, literal_count;
	/* Forward branches whose target comes after some more items. */
	struct pending {
		uint16_t at;
		uint8_t size, items;
	} pending[MAX_PENDING];
	/* Eight bytes behind the code; the rip-relative displacement at `at` reaches them. */
	struct literal {
		int16_t at;   /* or NO_REFERENCE: the next entry of a table */
		bool is_code; /* the value is an offset in the code */
		uint64_t value;
	} literals[MAX_LITERALS];
};

struct instruction {
	uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
	unsigned length;
	ZydisDecodedInstruction decoded;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

/* A memory operand as the encoding wants it. */
struct operand {
	uint8_t modrm, sib, rex; /* reg field left 0 */
	bool has_sib;
	int displacement_size;
	int32_t displacement;
};

void encode_setup(void);
bool decode(const uint8_t *bytes, unsigned size, struct instruction *out);
/* Appends one random instruction. */
void emit_random(struct builder *b);
unsigned encode_mnemonics(void); /* how many different ones it made */
struct operand random_memory(struct builder *b, bool segment_base);
int32_t random_immediate(struct rng *r);

enum acceptance { NEVER, RARELY, SELDOM, ALWAYS };
enum acceptance accept_instruction(const ZydisDecodedInstruction *d);
/* Byte pairs that must not appear at any offset: a jump into the middle of something must not make a system
 * call. */
bool has_forbidden_bytes(const uint8_t *bytes, unsigned size);

void mark_start(struct builder *b);
void emit(struct builder *b, const void *bytes, unsigned size);
void add_literal(struct builder *b, int at, bool is_code, uint64_t value);
void emit_relative(
        struct builder *b, uint64_t target); /* a rip-relative displacement that ends the instruction */
void patch_branch(struct builder *b, unsigned at, unsigned size, unsigned target);
void emit_piece(struct builder *b);

void generate(struct sequence *s, uint64_t number, unsigned arena, enum code_mode mode);

/* ---- enter.c, run.c, report.c
 * ----------------------------------------------------------------------------------- */

void fuzz_enter(uint64_t code);
void fuzz_exit(void);
void fuzz_recover(void);
void fuzz_on_signal(int signal, siginfo_t *info, void *context);
void enter_setup(void);

void run_setup(unsigned storm_microseconds);
void run_sequence(const struct sequence *s, struct outcome *o);
extern unsigned long run_bad_pcs; /* asynchronous signals that came with a pc inside an instruction */

void report_sequence(const struct sequence *s);
void report_outcome(const struct sequence *s, const struct outcome *o);

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
