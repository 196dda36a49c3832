/*
 * Pieces of code that random bytes would not give: branches with targets that exist, loops that end, calls
 * and returns, and instructions that need something set up before them.
 */
#include "fuzz.h"
#include <string.h>

/* One instruction that is complete as it stands. */
#define INSTRUCTION(b, bytes) (mark_start(b), emit(b, bytes, sizeof(bytes) - 1))

static void emit_byte(struct builder *b, unsigned byte)
{
	uint8_t c = (uint8_t)byte;
	emit(b, &c, 1);
}

static void emit_32(struct builder *b, uint32_t value)
{
	emit(b, &value, 4);
}

/* A register other than rsp. */
static unsigned any_register(struct builder *b)
{
	unsigned reg = rng_below(b->r, 15);
	reg += reg >= RSP;
	b->roles.pointers &= (uint16_t) ~(1u << reg);
	b->roles.indexes &= (uint16_t) ~(1u << reg);
	return reg;
}

/* mov r32, imm32 */
static void emit_mov(struct builder *b, unsigned reg, uint32_t value)
{
	mark_start(b);
	if (reg & 8)
		emit_byte(b, 0x41);
	emit_byte(b, 0xb8 + (reg & 7));
	emit_32(b, value);
}

/* mov r64, imm32 with sign, or mov r64, imm64 */
static void emit_mov_64(struct builder *b, unsigned reg, uint64_t value)
{
	mark_start(b);
	emit_byte(b, 0x48 | (reg >> 3));
	if ((uint64_t)(int32_t)value == value && rng_chance(b->r, 50)) {
		emit_byte(b, 0xc7);
		emit_byte(b, 0xc0 + (reg & 7));
		emit_32(b, (uint32_t)value);
	} else {
		emit_byte(b, 0xb8 + (reg & 7));
		emit(b, &value, 8);
	}
}

/* lea r64, [rip + target] */
static void emit_lea(struct builder *b, unsigned reg, uint64_t target)
{
	mark_start(b);
	emit_byte(b, 0x48 | (reg & 8 ? 4 : 0));
	emit_byte(b, 0x8d);
	emit_byte(b, 5 | (reg & 7) << 3);
	emit_relative(b, target);
}

/* The same for code that comes later: returns where the displacement goes. */
static unsigned emit_lea_forward(struct builder *b, unsigned reg)
{
	emit_lea(b, reg, 0);
	return b->length - 4;
}

/* An instruction with a memory operand: prefixes and opcode given, REX where needed, /reg. */
static void emit_memory(struct builder *b, const char *prefixes, unsigned rex_w, const char *opcode,
        unsigned opcode_size, unsigned reg, struct operand o)
{
	mark_start(b);
	emit(b, prefixes, (unsigned)strlen(prefixes));
	unsigned rex = (rex_w ? 8u : 0) | o.rex | (reg & 8 ? 4u : 0);
	if (rex)
		emit_byte(b, 0x40 | rex);
	emit(b, opcode, opcode_size);
	emit_byte(b, o.modrm | (reg & 7) << 3);
	if (o.has_sib)
		emit_byte(b, o.sib);
	if (o.modrm == 5)
		emit_relative(b, arena_pointer(b->r, b->s->arena));
	else
		emit(b, &o.displacement, (unsigned)o.displacement_size);
}

/* With a rip-relative operand. */
static void emit_memory_at(struct builder *b, const char *encoding, unsigned size, uint64_t target)
{
	mark_start(b);
	emit(b, encoding, size);
	emit_relative(b, target);
}
#define AT(b, encoding, target) emit_memory_at(b, encoding, sizeof(encoding) - 1, target)

static uint64_t aligned_data(struct builder *b, unsigned alignment)
{
	return arena_base(b->s->arena) + AT_DATA + (rng_below(b->r, 3 * PAGE - 512) & ~(alignment - 1));
}

static uint64_t constant(struct builder *b, unsigned at)
{
	return arena_base(b->s->arena) + AT_CONSTANTS + at;
}

/* ---- branches
 * ------------------------------------------------------------------------------------------------- */

static void add_pending(struct builder *b, unsigned size)
{
	if (b->pending_count == MAX_PENDING) {
		b->failed = true;
		return;
	}
	b->pending[b->pending_count++] =
	        (struct pending){(uint16_t)b->length, (uint8_t)size, (uint8_t)(2 + rng_below(b->r, 3))};
	emit(b, "\0\0\0\0", size);
}

static void branch_hint(struct builder *b)
{
	static const uint8_t hints[] = {0x2e, 0x3e, 0xf2};
	if (rng_chance(b->r, 10))
		emit_byte(b, hints[rng_below(b->r, 3)]);
}

static void jump_forward(struct builder *b)
{
	mark_start(b);
	branch_hint(b);
	unsigned condition = rng_below(b->r, 18);
	if (condition >= 16) {
		bool is_short = rng_chance(b->r, 50);
		emit_byte(b, is_short ? 0xeb : 0xe9);
		add_pending(b, is_short ? 1 : 4);
	} else if (rng_chance(b->r, 60)) {
		emit_byte(b, 0x70 | condition);
		add_pending(b, 1);
	} else {
		emit_byte(b, 0x0f);
		emit_byte(b, 0x80 | condition);
		add_pending(b, 4);
	}
}

/* loopne, loope, loop, jrcxz; with 67 they use ecx */
static void jump_on_rcx(struct builder *b)
{
	mark_start(b);
	if (rng_chance(b->r, 25))
		emit_byte(b, 0x67);
	emit_byte(b, 0xe0 + rng_below(b->r, 4));
	add_pending(b, 1);
}

static void jump_back(struct builder *b, unsigned opcode_short, unsigned target)
{
	if (rng_chance(b->r, 60) && b->length + 2 - target < 128) {
		emit_byte(b, opcode_short);
		emit_byte(b, 0);
		patch_branch(b, b->length - 1, 1, target);
	} else {
		emit_byte(b, 0x0f);
		emit_byte(b, opcode_short + 0x10);
		emit_32(b, 0);
		patch_branch(b, b->length - 4, 4, target);
	}
}

static void body(struct builder *b, unsigned most)
{
	for (unsigned n = 1 + rng_below(b->r, most); n; n--)
		emit_random(b);
}

static void loop_in_memory(struct builder *b)
{
	uint64_t counter = arena_base(b->s->arena) + AT_SCRATCH + 4 * (b->counter++ % 64);
	mark_start(b);
	emit(b, "\xc7\x05", 2); /* mov dword [rip + counter], n */
	int32_t displacement = (int32_t)(counter - (b->s->address + b->length + 8));
	emit(b, &displacement, 4);
	emit_32(b, 1 + rng_below(b->r, 6));
	unsigned start = b->length;
	body(b, 3);
	AT(b, "\xff\x0d", counter); /* dec dword [rip + counter] */
	mark_start(b);
	jump_back(b, 0x75, start);
}

static void loop_in_register(struct builder *b)
{
	bool use_loop = rng_chance(b->r, 50);
	unsigned reg = use_loop ? RCX : any_register(b);
	emit_mov(b, reg, 1 + rng_below(b->r, 6));
	b->keep = (int)reg;
	unsigned start = b->length;
	body(b, 3);
	b->keep = -1;
	if (use_loop) {
		mark_start(b);
		emit_byte(b, 0xe0 + rng_below(b->r, 3));
		emit_byte(b, 0);
		patch_branch(b, b->length - 1, 1, start);
		return;
	}
	mark_start(b); /* dec r32 or sub r32, 1 */
	if (reg & 8)
		emit_byte(b, 0x41);
	if (rng_chance(b->r, 50)) {
		emit_byte(b, 0xff);
		emit_byte(b, 0xc8 + (reg & 7));
	} else {
		emit_byte(b, 0x83);
		emit_byte(b, 0xe8 + (reg & 7));
		emit_byte(b, 1);
	}
	mark_start(b);
	jump_back(b, 0x75, start);
}

/* call/jmp r64 */
static void emit_indirect(struct builder *b, unsigned extension, unsigned reg)
{
	mark_start(b);
	branch_hint(b);
	if (reg & 8)
		emit_byte(b, 0x41);
	emit_byte(b, 0xff);
	emit_byte(b, 0xc0 | extension << 3 | (reg & 7));
}

static void emit_return(struct builder *b)
{
	unsigned reg;
	switch (rng_below(b->r, 8)) {
	case 0:
		INSTRUCTION(b, "\xf3\xc3"); /* repz ret */
		return;
	case 1: /* ret n */
		mark_start(b);
		emit_byte(b, 0xc2);
		emit_byte(b, 8 * rng_below(b->r, 8));
		emit_byte(b, 0);
		return;
	case 2: /* the return address is taken off by hand */
		reg = any_register(b);
		mark_start(b);
		if (reg & 8)
			emit_byte(b, 0x41);
		emit_byte(b, 0x58 + (reg & 7)); /* pop r */
		emit_indirect(b, 4, reg);
		return;
	case 3: /* not back to the caller at all: the address on the stack stays */
		INSTRUCTION(b, "\x48\x8d\x64\x24\x08"); /* lea rsp, [rsp + 8] */
		return;
	default:
		INSTRUCTION(b, "\xc3");
	}
}

/*
 *       call f           (or through a register, through memory, or push and jump)
 *       jmp  end
 *   f:  ...
 *       ret
 *   end:
 */
static void call_function(struct builder *b)
{
	unsigned reg, to_function = 0, to_back = 0, to_literal = 0;
	switch (rng_below(b->r, 4)) {
	case 0:
		reg = any_register(b);
		to_function = emit_lea_forward(b, reg);
		emit_indirect(b, 2, reg);
		break;
	case 1:
		mark_start(b);
		emit(b, "\xff\x15", 2); /* call [rip + literal] */
		emit_32(b, 0);
		to_literal = b->length - 4;
		break;
	case 2:
		reg = any_register(b);
		to_back = emit_lea_forward(b, reg);
		mark_start(b);
		if (reg & 8)
			emit_byte(b, 0x41);
		emit_byte(b, 0x50 + (reg & 7)); /* push r */
		mark_start(b);
		emit_byte(b, 0xe9);
		emit_32(b, 0);
		to_function = b->length - 4;
		patch_branch(b, to_back, 4, b->length);
		break;
	default:
		mark_start(b);
		if (rng_chance(b->r, 10))
			emit(b, "\x66\x48", 2); /* as in the code for thread-local variables */
		emit_byte(b, 0xe8);
		emit_32(b, 0);
		to_function = b->length - 4;
	}
	if (rng_chance(b->r, 30))
		emit_random(b);
	mark_start(b);
	emit_byte(b, 0xe9);
	emit_32(b, 0);
	unsigned over = b->length - 4;
	if (to_literal)
		add_literal(b, (int)to_literal, true, b->length);
	if (to_function)
		patch_branch(b, to_function, 4, b->length);
	/* With an address of code in a register, push and ret would make a loop without end. */
	b->keep = RSP;
	body(b, 2);
	b->keep = -1;
	emit_return(b);
	patch_branch(b, over, 4, b->length);
}

/* call $+5; pop r */
static void call_pop(struct builder *b)
{
	unsigned reg = any_register(b);
	INSTRUCTION(b, "\xe8\0\0\0\0");
	mark_start(b);
	if (reg & 8)
		emit_byte(b, 0x41);
	emit_byte(b, 0x58 + (reg & 7));
}

/*
 *       and  index, 1
 *       lea  r, [rip + table]
 *       jmp  [r + index * 8]     (or call, and the return address stays on the stack)
 *   a:  ...
 *       jmp  end
 *   b:  ...
 *   end:
 */
static void jump_table(struct builder *b)
{
	unsigned reg = any_register(b), index = any_register(b);
	if (index == reg)
		return;
	mark_start(b); /* and r32, 1 */
	if (index & 8)
		emit_byte(b, 0x41);
	emit_byte(b, 0x83);
	emit_byte(b, 0xe0 | (index & 7));
	emit_byte(b, 1);
	unsigned to_table = emit_lea_forward(b, reg);
	mark_start(b);
	unsigned rex = (reg & 8 ? 1u : 0) | (index & 8 ? 2u : 0);
	if (rex)
		emit_byte(b, 0x40 | rex);
	emit_byte(b, 0xff);
	emit_byte(b, 0x44 | (rng_chance(b->r, 20) ? 2 : 4) << 3);
	emit_byte(b, 0xc0 | (index & 7) << 3 | (reg & 7));
	emit_byte(b, 0);
	add_literal(b, (int)to_table, true, b->length);
	body(b, 1);
	mark_start(b);
	emit_byte(b, 0xe9);
	emit_32(b, 0);
	unsigned over = b->length - 4;
	add_literal(b, NO_REFERENCE, true, b->length);
	body(b, 1);
	patch_branch(b, over, 4, b->length);
}

/* Into the middle of an instruction. */
static void jump_into_middle(struct builder *b)
{
	struct rng *r = b->r;
	b->s->hidden_entry = true;
	if (rng_chance(r, 40)) { /* eb ff c0: jmp to the ff, which with the c0 is inc eax */
		mark_start(b);
		emit(b, "\xeb\xff", 2);
		emit_byte(b, 0xc0 + rng_below(r, 4));
		return;
	}
	if (rng_chance(r, 40)) { /* over the lock prefix, as old C libraries do: jcc +1; lock xadd [m], r */
		struct operand o = random_memory(b, false);
		mark_start(b);
		emit_byte(b, 0x70 | rng_below(r, 16));
		emit_byte(b, 1);
		emit_memory(b, "\xf0", rng_chance(r, 50), rng_chance(r, 50) ? "\x0f\xc1" : "\x0f\xb1", 2,
		        rng_below(r, 16), o);
		return;
	}
	/* jcc +1; mov r32, (an instruction of two bytes; jmp +0) */
	mark_start(b);
	emit_byte(b, 0x70 | rng_below(r, 16));
	emit_byte(b, 1);
	static const uint8_t operations[] = {0x01, 0x29, 0x31, 0x21, 0x89, 0x11, 0x19, 0x85};
	mark_start(b);
	emit_byte(b, 0xb8 + any_register(b) % 4);
	emit_byte(b, operations[rng_below(r, sizeof operations)]);
	emit_byte(b, 0xc0 | rng_below(r, 4) << 3 | rng_below(r, 4));
	emit(b, "\xeb\x00", 2);
}

/* To where no code is. The fault belongs to the target, or to the branch when the address is not canonical.
 */
static void jump_wild(struct builder *b)
{
	struct rng *r = b->r;
	const uint64_t targets[] = {arena_pointer(r, b->s->arena),
	        arena_base(b->s->arena) + AT_TAIL - 1 - rng_below(r, 64), 0, rng_below(r, 4096),
	        rng_next(r) | 1ul << 63, 0xffffffff80000000 + rng_below(r, 4096),
	        rng_next(r) >> 1 | 1ul << 56, 0x7ffffffff000, 0x800000000000,
	        arena_base(b->s->arena) + AT_STACK + 512};
	unsigned reg = any_register(b);
	emit_mov_64(b, reg, targets[rng_below(r, sizeof targets / sizeof *targets)]);
	unsigned kind = rng_below(r, 3);
	if (kind < 2) {
		emit_indirect(b, kind ? 2 : 4, reg);
		return;
	}
	mark_start(b);
	if (reg & 8)
		emit_byte(b, 0x41);
	emit_byte(b, 0x50 + (reg & 7));
	INSTRUCTION(b, "\xc3");
}

/* ---- set-ups
 * ------------------------------------------------------------------------------------------------------ */

static void rep_string(struct builder *b)
{
	static const uint8_t operations[] = {0xa4, 0xa5, 0xa6, 0xa7, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf};
	struct rng *r = b->r;
	if (rng_chance(r, 30))
		INSTRUCTION(b, "\xfd");
	else if (rng_chance(r, 50))
		INSTRUCTION(b, "\xfc");
	unsigned kind = rng_below(r, 10);
	emit_mov_64(b, RCX, kind < 7 ? rng_below(r, 64) : kind < 8 ? 0 : rng_next(r));
	b->roles.indexes |= 1u << RCX;
	b->roles.pointers &= (uint16_t) ~(1u << RCX);
	uint64_t from = arena_pointer(r, b->s->arena);
	if (rng_chance(r, 60))
		emit_lea(b, RSI, from);
	if (rng_chance(r, 60)) /* overlapping now and then */
		emit_lea(b, RDI,
		        rng_chance(r, 30) ? from + (uint64_t)rng_between(r, -9, 9)
		                          : arena_pointer(r, b->s->arena));
	mark_start(b);
	if (rng_chance(r, 20))
		emit_byte(b, 0x66);
	if (rng_chance(r, 6) && !settings.no_bases)
		emit_byte(b, 0x64 + rng_below(r, 2));
	if (b->s->arena == 0 && rng_chance(r, 8))
		emit_byte(b, 0x67);
	emit_byte(b, rng_chance(r, 65) ? 0xf3 : 0xf2);
	if (rng_chance(r, 30))
		emit_byte(b, 0x48);
	emit_byte(b, operations[rng_below(r, sizeof operations)]);
}

/* push flags; popf. TF stays clear: directed tests set it. */
static void pop_flags(struct builder *b)
{
	uint32_t flags = (uint32_t)rng_next(b->r) & 0x204ed5;
	if (rng_chance(b->r, 10) && !(settings.without & WITHOUT_AC))
		flags |= 0x40000; /* AC: accesses that are not aligned fault from here on */
	if (rng_chance(b->r, 20)) {
		mark_start(b);
		emit(b, "\x66\x68", 2);
		emit(b, &flags, 2);
		INSTRUCTION(b, "\x66\x9d");
	} else {
		mark_start(b);
		emit_byte(b, 0x68);
		emit_32(b, flags);
		INSTRUCTION(b, "\x9d");
	}
	if (rng_chance(b->r, 30))
		INSTRUCTION(b, "\x9c");
}

/*
 * The x87 environment. Its error pointers survive a context switch on some CPUs only while an exception is
 * pending, so one is made: fldcw (nothing masked); fld of a denormal or a signalling NaN; then the
 * instruction that stores. The selectors beside the pointers do not survive on any, and are cleared.
 */
static void store_x87(struct builder *b)
{
	struct rng *r = b->r;
	if (b->s->mode == CODE_REWRITTEN &&
	        b->s->address >= arena_base(b->s->arena) + AT_CODE + REWRITTEN_SIZE - 64)
		return; /* the code ends in the middle */
	uint64_t number = constant(b, CONST_TRAPPING + 48 * rng_below(r, 2));
	INSTRUCTION(b, "\xdb\xe3");                     /* fninit */
	AT(b, "\xd9\x2d", constant(b, CONST_UNMASKED)); /* fldcw */
	if (rng_chance(r, 50))
		AT(b, "\xd9\x05", number); /* fld dword */
	else
		AT(b, "\xdd\x05", number + 16); /* fld qword */
	static const struct {
		const char *prefix, *opcode;
		uint8_t opcode_size, reg, cs, ds; /* where the selectors are */
	} stores[] = {{"", "\xd9", 1, 6, 16, 24}, {"\x66", "\xd9", 1, 6, 8, 12}, {"", "\xdd", 1, 6, 16, 24},
	        {"\x66", "\xdd", 1, 6, 8, 12}, {"", "\x0f\xae", 2, 0, 12, 20}};
	unsigned kind = rng_below(r, 6);
	if (kind == 5) { /* fxsave64: no selectors */
		AT(b, "\x48\x0f\xae\x05", aligned_data(b, 16));
		return;
	}
	struct operand o = random_memory(b, false);
	if (o.modrm == 5 || kind == 4) { /* [rip + d], or the alignment of fxsave: through a register */
		unsigned reg = any_register(b);
		emit_lea(b, reg, kind == 4 ? aligned_data(b, 16) : arena_pointer(r, b->s->arena));
		o = (struct operand){.modrm = reg & 7, .rex = (uint8_t)(reg >> 3)};
		if ((reg & 7) == RSP) {
			o.has_sib = true;
			o.sib = 0x24;
		}
	}
	bool has_base = !(o.modrm == 4 && (o.sib & 7) == 5);
	o.modrm = (uint8_t)((has_base ? 0x80 : 0) | (o.modrm & 7)); /* with a displacement of four bytes */
	if (o.displacement_size == 0)
		o.displacement = 0;
	o.displacement_size = 4;
	emit_memory(b, stores[kind].prefix, 0, stores[kind].opcode, stores[kind].opcode_size,
	        stores[kind].reg, o);
	for (unsigned n = 0; n < 2; n++) { /* mov word [m + at], 0 */
		struct operand selector = o;
		selector.displacement += n ? stores[kind].ds : stores[kind].cs;
		emit_memory(b, "\x66", 0, "\xc7", 1, 0, selector);
		emit(b, "\0", 2);
	}
}

static void load_control(struct builder *b)
{
	struct rng *r = b->r;
	switch (rng_below(r, 6)) {
	case 0:
		AT(b, "\x0f\xae\x15", constant(b, CONST_MXCSR + 4 * rng_below(r, 8))); /* ldmxcsr */
		break;
	case 1:
		AT(b, "\xc5\xf8\xae\x15", constant(b, CONST_MXCSR + 4 * rng_below(r, 8)));
		break;
	case 2: /* fnclex; fldcw: unmasking an old exception would make the error pointers of that time matter
	         */
		INSTRUCTION(b, "\xdb\xe2");
		if (rng_chance(r, 60))
			AT(b, "\xd9\x2d", constant(b, CONST_CW + 2 * rng_below(r, 8)));
		else
			emit_memory(b, "", 0, "\xd9", 1, 5, random_memory(b, false));
		break;
	case 3:
		AT(b, "\xd9\x25", constant(b, CONST_FENV)); /* fldenv */
		break;
	case 4:
		AT(b, "\xdd\x25", constant(b, CONST_FNSAVE)); /* frstor */
		break;
	default:
		if (rng_chance(r, 50))
			AT(b, "\x0f\xae\x0d", constant(b, CONST_FXSAVE)); /* fxrstor */
		else
			AT(b, "\x48\x0f\xae\x0d", constant(b, CONST_FXSAVE));
	}
}

/*
 * What xsave leaves in memory depends on what the CPU thinks is in use, so its area is not compared: what
 * xrstor makes of it is. Once per sequence: the area must be fresh.
 */
static void save_and_restore(struct builder *b)
{
	/* xsave, xsaveopt, xsavec; with 32-bit and with 64-bit error pointers, and xrstor must be of the same
	 * kind */
	static const char *const saves[] = {"\x0f\xae\x25", "\x0f\xae\x35", "\x0f\xc7\x25",
	        "\x48\x0f\xae\x25", "\x48\x0f\xae\x35", "\x48\x0f\xc7\x25"};
	if (b->used_xsave || settings.without & WITHOUT_XSAVE)
		return;
	b->used_xsave = true;
	uint64_t area = arena_base(b->s->arena) + AT_XSAVE;
	unsigned kind = rng_below(b->r, 6);
	uint32_t all = settings.wide ? STATE_WIDE : STATE_UP_TO_AVX;
	uint32_t mask = rng_chance(b->r, 60) ? all : rng_below(b->r, all + 1) & all;
	any_register(b);
	emit_mov(b, RAX, mask);
	emit_mov(b, RDX, 0);
	b->roles.pointers &= (uint16_t) ~(1u << RAX | 1u << RDX);
	b->roles.indexes &= (uint16_t) ~(1u << RAX | 1u << RDX);
	emit_memory_at(b, saves[kind], kind < 3 ? 3 : 4, area);
	body(b, 3);
	emit_mov(b, RAX, mask);
	emit_mov(b, RDX, 0);
	if (kind < 3)
		AT(b, "\x0f\xae\x2d", area);
	else
		AT(b, "\x48\x0f\xae\x2d", area);
}

/*
 * xrstor of an image that is there: some components become initial.
 *
 * Not the upper halves of the ymm registers (STATE_AVX) while those of the zmm registers are in use: AMD's Zen 4
 * may find the old ones again, natively too, when context switches come before xrstor, before the next SSE
 * instruction, and after it (XSAVES then says that they are in use, and does not write them).
 */
static void restore_image(struct builder *b)
{
	if (settings.without & WITHOUT_XSAVE)
		return;
	unsigned which = rng_below(b->r, IMAGES);
	uint64_t image = arena_base(b->s->arena) + AT_IMAGES + PAGE * which;
	uint32_t components = (uint32_t)rng_next(b->r) & STATE_WIDE;
	if (which >= WHOLE_IMAGES && components & STATE_AVX)
		components |= STATE_ZMM_HIGH;
	b->roles.pointers &= (uint16_t) ~(1u << RAX | 1u << RDX);
	b->roles.indexes &= (uint16_t) ~(1u << RAX | 1u << RDX);
	emit_mov(b, RAX, components);
	emit_mov(b, RDX, 0);
	if (rng_chance(b->r, 50))
		AT(b, "\x0f\xae\x2d", image);
	else
		AT(b, "\x48\x0f\xae\x2d", image);
}

/* mov rax, [p]; mov rdx, [p + 8]; lock cmpxchg16b [p], so that it may succeed */
static void compare_exchange(struct builder *b)
{
	uint64_t at = aligned_data(b, 16);
	bool wide = rng_chance(b->r, 60), aligned = rng_chance(b->r, 85);
	if (!aligned)
		at += 1 + rng_below(b->r, 15);
	AT(b, "\x48\x8b\x05", at);
	if (wide)
		AT(b, "\x48\x8b\x15", at + 8);
	else
		AT(b, "\x8b\x15", at + 4);
	b->roles.pointers &= (uint16_t) ~(1u << RAX | 1u << RDX);
	b->roles.indexes &= (uint16_t) ~(1u << RAX | 1u << RDX);
	if (rng_chance(b->r, 30))
		emit_random(b);
	if (wide && rng_chance(b->r, 80))
		AT(b, "\xf0\x48\x0f\xc7\x0d", at);
	else if (wide)
		AT(b, "\x48\x0f\xc7\x0d", at);
	else if (rng_chance(b->r, 50))
		AT(b, "\xf0\x0f\xc7\x0d", at); /* cmpxchg8b */
	else
		AT(b, "\xf0\x48\x0f\xb1\x0d", at); /* cmpxchg [p], rcx */
}

/* A dividend that fits more often than not. */
static void divide(struct builder *b)
{
	bool is_signed = rng_chance(b->r, 50);
	b->roles.pointers &= (uint16_t) ~(1u << RAX | 1u << RDX);
	b->roles.indexes &= (uint16_t) ~(1u << RAX | 1u << RDX);
	if (is_signed)
		INSTRUCTION(b, "\x48\x99"); /* cqo */
	else
		emit_mov(b, RDX, rng_below(b->r, 3));
	if (rng_chance(b->r, 50)) {
		emit_memory(
		        b, "", rng_chance(b->r, 50), "\xf7", 1, is_signed ? 7 : 6, random_memory(b, false));
		return;
	}
	mark_start(b);
	unsigned reg = rng_below(b->r, 16);
	emit_byte(b, 0x40 | rng_below(b->r, 2) << 3 | (reg >> 3));
	emit_byte(b, 0xf7);
	emit_byte(b, (is_signed ? 0xf8 : 0xf0) | (reg & 7));
}

/* bt, bts, btr, btc with a bit number that moves the address */
static void bit_string(struct builder *b)
{
	static const char *const operations[] = {"\x0f\xa3", "\x0f\xab", "\x0f\xb3", "\x0f\xbb"};
	unsigned reg = any_register(b), operation = rng_below(b->r, 4);
	emit_mov_64(b, reg, (uint64_t)rng_between(b->r, -16000, 16000));
	const char *prefix = operation && rng_chance(b->r, 30) ? "\xf0" : rng_chance(b->r, 20) ? "\x66" : "";
	emit_memory(b, prefix, rng_chance(b->r, 40), operations[operation], 2, reg, random_memory(b, false));
}

/* push/pop with memory operands, rsp as base among them */
static void push_pop_memory(struct builder *b)
{
	struct operand o = random_memory(b, false);
	if (rng_chance(b->r, 50))
		o = (struct operand){.modrm = 0x44,
		        .sib = 0x24,
		        .has_sib = true,
		        .displacement_size = 1,
		        .displacement = (int32_t)rng_between(b->r, -16, 15) * 8};
	const char *prefix = rng_chance(b->r, 20) ? "\x66" : "";
	if (rng_chance(b->r, 50))
		emit_memory(b, prefix, 0, "\xff", 1, 6, o);
	else
		emit_memory(b, prefix, 0, "\x8f", 1, 0, o);
}

/* What no CPU runs, or what this mode does not have. */
static void illegal(struct builder *b)
{
	static const char *const encodings[] = {"\x06", "\x0e", "\x16", "\x1e", "\x27", "\x2f", "\x37",
	        "\x3f", "\x60", "\x61", "\x82\xc0\x01", "\x9a", "\xce", "\xd4\x0a", "\xd6", "\xea",
	        "\x0f\x0b", "\x0f\xb9\xc0", "\x0f\xff\xc0", "\x0f\x04", "\x0f\x0a", "\xf0\x89\xc0",
	        "\xf0\x01\xc0", "\xf0\x90", "\xf0\x8b\x00", "\x66\xc5\xf8\x28\xc0", "\xf2\xc5\xf8\x28\xc0",
	        "\xf0\xc5\xf8\x28\xc0", "\x48\xc5\xf8\x28\xc0", "\x0f\xae\xc0\x90", "\xfe\xd0", "\xff\xf8",
	        "\xc6\xc8\x01", "\x8f\xc8\x01", "\xd9\xd1", "\xdb\xe8\x26"};
	const char *encoding = encodings[rng_below(b->r, sizeof encodings / sizeof *encodings)];
	if (rng_chance(b->r, 6)) /* longer than an instruction may be */
		encoding = "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90\x90";
	mark_start(b);
	b->s->hidden_entry = true;
	emit(b, encoding, (unsigned)strlen(encoding));
}

/* ---- code that changes itself
 * ---------------------------------------------------------------------------------- */

/* A store to `at`, which is only known later: returns where its displacement is; `tail` bytes follow that. */
static unsigned emit_code_store(struct builder *b, unsigned *tail)
{
	unsigned place;
	mark_start(b);
	switch (rng_below(b->r, 4)) {
	case 0: /* mov dword [rip + x], imm32 */
		emit(b, "\xc7\x05\0\0\0\0", 6);
		place = b->length - 4;
		emit_32(b, rng_below(b->r, 0x1000000) << 8 | 0x55);
		*tail = 4;
		break;
	case 1: /* mov byte [rip + x], imm8 */
		emit(b, "\xc6\x05\0\0\0\0", 6);
		place = b->length - 4;
		emit_byte(b, rng_below(b->r, 256));
		*tail = 1;
		break;
	case 2: /* add dword [rip + x], imm8 */
		emit(b, "\x83\x05\0\0\0\0", 6);
		place = b->length - 4;
		emit_byte(b, rng_below(b->r, 128));
		*tail = 1;
		break;
	default: /* mov [rip + x], r32 */
		emit_byte(b, 0x89);
		emit_byte(b, 5 | rng_below(b->r, 8) << 3);
		emit_32(b, 0);
		place = b->length - 4;
		*tail = 0;
	}
	return place;
}

static void aim_code_store(struct builder *b, unsigned place, unsigned tail, unsigned target)
{
	int32_t displacement = (int32_t)target - (int32_t)(place + 4 + tail);
	if (place + 4 <= SLOT)
		memcpy(b->s->code + place, &displacement, 4);
}

/* A store into the immediate of a mov that follows, at once or after some instructions. */
static void change_ahead(struct builder *b)
{
	unsigned tail, place = emit_code_store(b, &tail);
	for (unsigned n = rng_below(b->r, 3); n; n--)
		emit_random(b);
	emit_mov(b, any_register(b), 0x11111111);
	aim_code_store(b, place, tail, b->length - 4);
}

/* The opcode of the next instruction changes: add eax, ecx becomes something else. */
static void change_opcode(struct builder *b)
{
	static const uint8_t operations[] = {0x29, 0x31, 0x21, 0x09, 0x39, 0x89};
	mark_start(b);
	emit(b, "\xc6\x05\0\0\0\0", 6);
	unsigned place = b->length - 4;
	emit_byte(b, operations[rng_below(b->r, sizeof operations)]);
	if (rng_chance(b->r, 50))
		emit_random(b);
	aim_code_store(b, place, 1, b->length);
	INSTRUCTION(b, "\x01\xc8");
}

/* A loop whose body changes in every round. */
static void change_in_loop(struct builder *b)
{
	unsigned reg = any_register(b);
	emit_mov(b, RCX, 2 + rng_below(b->r, 4));
	b->roles.pointers &= (uint16_t) ~(1u << RCX);
	b->keep = RCX;
	unsigned start = b->length;
	if (reg == RCX)
		reg = RBX;
	emit_mov(b, reg, 0x01010101);
	unsigned immediate = b->length - 4, tail;
	if (rng_chance(b->r, 50))
		emit_random(b);
	unsigned place = emit_code_store(b, &tail);
	aim_code_store(b, place, tail, immediate);
	b->keep = -1;
	mark_start(b);
	emit(b, "\xe2\x00", 2);
	patch_branch(b, b->length - 1, 1, start);
}

void emit_piece(struct builder *b)
{
	static const struct {
		void (*emit)(struct builder *b);
		unsigned weight;
	} pieces[] = {{jump_forward, 22}, {jump_on_rcx, 4}, {loop_in_memory, 8}, {loop_in_register, 8},
	        {call_function, 12}, {call_pop, 3}, {jump_table, 4}, {jump_into_middle, 4}, {jump_wild, 2},
	        {rep_string, 9}, {pop_flags, 4}, {store_x87, 3}, {load_control, 4}, {save_and_restore, 3},
	        {compare_exchange, 4}, {divide, 4}, {bit_string, 4}, {push_pop_memory, 5}, {illegal, 1}};
	static void (*const changes[])(struct builder *) = {change_ahead, change_opcode, change_in_loop};
	if (b->s->mode == CODE_REWRITTEN && rng_chance(b->r, 15)) {
		b->s->hidden_entry = true;
		changes[rng_below(b->r, 3)](b);
		return;
	}
	if (settings.wide && rng_chance(b->r, 4)) {
		restore_image(b);
		return;
	}
	unsigned total = 0, n = 0;
	for (unsigned k = 0; k < sizeof pieces / sizeof *pieces; k++)
		total += pieces[k].weight;
	unsigned choice = rng_below(b->r, total);
	while (choice >= pieces[n].weight)
		choice -= pieces[n++].weight;
	pieces[n].emit(b);
}
