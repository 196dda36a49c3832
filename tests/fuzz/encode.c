/*
 * One random instruction: random bytes with the shape of an encoding (prefixes, opcode map, opcode, ModRM,
 * SIB, displacement, immediate) which Zydis then judges. Only the memory operand is made with care, so that
 * most accesses reach the arena: its base and index come from registers that still hold addresses and small
 * numbers.
 */
#include "fuzz.h"
#include <string.h>

static ZydisDecoder decoder;
static bool mnemonics_seen[ZYDIS_MNEMONIC_MAX_VALUE + 1];

void encode_setup(void)
{
	if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		fail("this libZydis cannot decode 64-bit code");
}

bool decode(const uint8_t *bytes, unsigned size, struct instruction *out)
{
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, size, &out->decoded, out->operands)))
		return false;
	out->length = out->decoded.length;
	if (out->bytes != bytes)
		memcpy(out->bytes, bytes, out->length);
	return true;
}

/* ---- operands
 * ------------------------------------------------------------------------------------------------- */

static int pick_among(struct rng *r, unsigned count, uint32_t set, unsigned percent)
{
	if (!set || !rng_chance(r, percent))
		return (int)rng_below(r, count);
	unsigned n = rng_below(r, (unsigned)__builtin_popcount(set));
	while (n--)
		set &= set - 1;
	return __builtin_ctz(set);
}

static int pick_register(struct rng *r, uint16_t set, unsigned percent)
{
	return pick_among(r, 16, set, percent);
}

static int32_t random_displacement(struct builder *b)
{
	if (settings.far && rng_chance(b->r, 4))
		return (int32_t)rng_next(b->r);
	return (int32_t)rng_between(b->r, -600, 600);
}

int32_t random_immediate(struct rng *r)
{
	return rng_chance(r, 50) ? (int32_t)rng_between(r, -128, 127) : (int32_t)rng_next(r);
}

/* A random place for rip-relative operands. */
static uint64_t random_target(struct builder *b, bool writes)
{
	unsigned kind = rng_below(b->r, 100);
	/* Random stores into code that can be written would run as random code: pieces.c does that better. */
	if (kind < 4 && !(writes && b->s->mode == CODE_REWRITTEN))
		return b->s->address + rng_below(b->r, b->length + 1);
	if (kind < 5)
		return arena_base(b->s->arena) + AT_TAIL - 16;
	return arena_pointer(b->r, b->s->arena);
}

/* With a segment base that points to data, the rest of the address must be small. */
struct operand random_memory(struct builder *b, bool segment_base)
{
	struct operand o = {0};
	struct rng *r = b->r;
	uint16_t bases = segment_base ? b->roles.indexes : b->roles.pointers;
	unsigned kind = rng_below(r, 100);
	int base = pick_register(r, bases, 92), index = pick_register(r, b->roles.indexes, 92);
	if (!segment_base && rng_chance(r, 8))
		base = RSP;
	bool has_index = kind < 30 && index != RSP;
	if (kind >= 84 && kind < 95 &&
	        !segment_base) { /* [rip + d]: the displacement is set when the length is known */
		o.modrm = 5;
		o.displacement_size = 4;
		return o;
	}
	if (kind >= 95 || (segment_base && kind >= 80)) { /* [d] or [index * scale + d] */
		o.has_sib = true;
		o.modrm = 4;
		o.sib = 0x25;
		o.displacement_size = 4;
		o.displacement =
		        segment_base ? random_displacement(b)
		                     : (int32_t)arena_pointer(r, b->s->arena); /* right in the low arena */
		if (rng_chance(r, 40) && index != RSP) {
			o.sib = (uint8_t)(5 | (index & 7) << 3 | rng_below(r, 4) << 6);
			o.rex = index & 8 ? 2 : 0;
		}
		return o;
	}
	o.rex = base & 8 ? 1 : 0;
	o.has_sib = has_index || (base & 7) == RSP || rng_chance(r, 3);
	if (o.has_sib) {
		o.modrm = 4;
		o.sib = (uint8_t)(base & 7) | 4 << 3;
		if (has_index) {
			o.sib = (uint8_t)((base & 7) | (index & 7) << 3 | rng_below(r, 4) << 6);
			o.rex |= index & 8 ? 2 : 0;
		}
	} else {
		o.modrm = (uint8_t)(base & 7);
	}
	o.displacement = random_displacement(b);
	unsigned size = rng_below(r, 10);
	if (size < 3 && (base & 7) != RBP) {
		o.displacement_size = 0;
	} else if (size < 8) {
		o.displacement_size = 1;
		o.modrm |= 0x40;
		o.displacement = (int8_t)o.displacement;
	} else {
		o.displacement_size = 4;
		o.modrm |= 0x80;
	}
	return o;
}

static struct operand random_operand(struct builder *b, bool segment_base)
{
	if (rng_chance(b->r, 58))
		return random_memory(b, segment_base);
	unsigned reg = rng_below(b->r, 16);
	return (struct operand){.modrm = (uint8_t)(0xc0 | (reg & 7)), .rex = reg & 8 ? 1 : 0};
}

/* ---- encodings
 * -------------------------------------------------------------------------------------------------- */

enum map { MAP_ONE_BYTE, MAP_0F, MAP_0F38, MAP_0F3A, MAP_X87, MAP_VEX, MAP_XOP, MAP_EVEX, MAP_MASK };

static enum map random_map(struct rng *r)
{
	if (settings.wide && rng_chance(r, 90))
		return rng_chance(r, 97) ? MAP_EVEX : MAP_MASK;
	unsigned n = rng_below(r, 1000);
	if (n < 330)
		return MAP_ONE_BYTE;
	if (n < 560)
		return MAP_0F;
	if (n < 650)
		return MAP_0F38;
	if (n < 710)
		return MAP_0F3A;
	if (n < 780)
		return MAP_X87;
	if (n < 984)
		return MAP_VEX;
	return n < 990 || !settings.avx512 ? MAP_XOP : MAP_EVEX;
}

struct bytes {
	uint8_t at[40];
	unsigned size;
};

static void put(struct bytes *p, unsigned byte)
{
	p->at[p->size++] = (uint8_t)byte;
}

static void put_prefixes(struct builder *b, enum map map, struct bytes *p, bool *segment_base)
{
	static const uint8_t segments[] = {0x64, 0x65, 0x64, 0x65, 0x26, 0x2e, 0x36, 0x3e};
	struct rng *r = b->r;
	bool vector = map == MAP_VEX || map == MAP_XOP || map == MAP_EVEX || map == MAP_MASK;
	bool multi_byte = map == MAP_0F || map == MAP_0F38 || map == MAP_0F3A;
	uint8_t prefixes[6];
	unsigned count = 0;
	*segment_base = false;
	if (!vector) {
		unsigned n = rng_below(r, 100);
		if (n < (multi_byte ? 35 : 13))
			prefixes[count++] = 0x66;
		n = rng_below(r, 100);
		if (n < (multi_byte ? 20 : 6))
			prefixes[count++] = 0xf3;
		else if (n < (multi_byte ? 32 : 10))
			prefixes[count++] = 0xf2;
		if (rng_chance(r, 4))
			prefixes[count++] = 0xf0;
	}
	if (rng_chance(r, 7)) {
		uint8_t segment = segments[rng_below(r, sizeof segments)];
		*segment_base = (segment == 0x64 || segment == 0x65) && !settings.no_bases;
		prefixes[count++] = segment;
	}
	if (rng_chance(r, b->s->arena == 0 ? 8 : 1))
		prefixes[count++] = 0x67;
	while (count) { /* in any order */
		unsigned n = rng_below(r, count);
		put(p, prefixes[n]);
		prefixes[n] = prefixes[--count];
	}
}

/* 62, then: R X B R' 0 map, W vvvv 1 pp, z LL b V' aaa. The high bits of register numbers are inverted. */
struct evex {
	unsigned rex, map, width, pp, length;
	unsigned reg_high, vvvv, mask;
	bool zeroing, broadcast;
};

static void put_evex(struct bytes *p, const struct evex *e)
{
	put(p, 0x62);
	put(p, (~e->rex & 7) << 5 | (e->reg_high ? 0 : 0x10) | e->map);
	put(p, e->width << 7 | (~e->vvvv & 15) << 3 | 4 | e->pp);
	put(p, (e->zeroing ? 0x80u : 0) | e->length << 5 | (e->broadcast ? 0x10u : 0) | (e->vvvv & 16 ? 0 : 8) |
	                e->mask);
}

/* What masks make of memory operands: expand and compress, moves, narrowing stores. */
static const struct favourite {
	uint8_t map, pp, opcode;
} favourites[] = {{2, 1, 0x62}, {2, 1, 0x63}, {2, 1, 0x88}, {2, 1, 0x89}, {2, 1, 0x8a}, {2, 1, 0x8b}, {1, 0, 0x10},
        {1, 0, 0x11}, {1, 1, 0x28}, {1, 1, 0x29}, {1, 2, 0x10}, {1, 3, 0x11}, {1, 1, 0x6f}, {1, 1, 0x7f},
        {1, 2, 0x6f}, {1, 2, 0x7f}, {1, 3, 0x6f}, {1, 3, 0x7f}, {2, 2, 0x11}, {2, 2, 0x33}, {2, 2, 0x25}};

static void put_random_evex(struct rng *r, struct bytes *p, unsigned rex, bool is_register)
{
	struct evex e = {.rex = rex, .width = rng_below(r, 2), .pp = rng_below(r, 4)};
	unsigned opcode = rng_below(r, 256);
	e.map = rng_chance(r, 3) ? 5 + rng_below(r, 2) : 1 + rng_below(r, 3); /* 5 and 6: FP16 */
	bool favoured = rng_chance(r, 5);
	if (favoured) {
		const struct favourite *f = &favourites[rng_below(r, sizeof favourites / sizeof *favourites)];
		e.map = f->map;
		e.pp = f->pp;
		opcode = f->opcode;
	}
	e.reg_high = rng_chance(r, 40);
	if (is_register && rng_chance(r, 40))
		e.rex |= 2; /* X is the highest bit of a vector register here */
	e.vvvv = favoured || rng_chance(r, 30) ? 0 : rng_below(r, 32);
	e.mask = rng_chance(r, 40) ? 0 : rng_below(r, 8);
	e.zeroing = rng_chance(r, e.mask ? 40 : 1);
	e.broadcast = !favoured && rng_chance(r, 25); /* with registers: rounding, and the length is the mode of it */
	e.length = rng_below(r, is_register && e.broadcast ? 4 : 3);
	put_evex(p, &e);
	put(p, opcode);
}

/* Of mask registers: kand and its kind, with three; kmov, kortest, ktest; shifts. */
static void put_mask_opcode(struct rng *r, struct bytes *p, unsigned rex)
{
	static const uint8_t with_three[] = {0x41, 0x42, 0x44, 0x45, 0x46, 0x47, 0x4a, 0x4b},
	                     with_two[] = {0x44, 0x90, 0x90, 0x91, 0x91, 0x92, 0x93, 0x98, 0x99};
	unsigned kind = rng_below(r, 3), vvvv = 15, pp = kind == 2 ? 1 : rng_below(r, 4), opcode;
	if (kind == 0) {
		opcode = with_three[rng_below(r, sizeof with_three)];
		vvvv = 8 + rng_below(r, 8);
	} else if (kind == 1) {
		opcode = with_two[rng_below(r, sizeof with_two)];
	} else {
		opcode = 0x30 + rng_below(r, 4);
	}
	if (kind < 2 && (rex & 3) == 0 && rng_chance(r, 25)) {
		put(p, 0xc5);
		put(p, (rex & 4 ? 0 : 0x80) | vvvv << 3 | (kind == 0 ? 4 : 0) | pp);
	} else {
		put(p, 0xc4);
		put(p, (~rex & 7) << 5 | (kind == 2 ? 3 : 1));
		put(p, rng_below(r, 2) << 7 | vvvv << 3 | (kind == 0 ? 4 : 0) | pp);
	}
	put(p, opcode);
}

static void put_opcode(struct rng *r, enum map map, struct bytes *p, uint8_t rex, bool is_register)
{
	unsigned opcode = (unsigned)rng_next(r) & 0xff;
	unsigned width = rng_chance(r, 35), not_rxb = (~rex & 7u) << 5;
	unsigned vvvv = rng_chance(r, 40) ? 15 : rng_below(r, 16), l = rng_below(r, 2), pp = rng_below(r, 4);
	switch (map) {
	case MAP_VEX:
		if ((rex & 3) == 0 && rng_chance(r, 25)) {
			put(p, 0xc5);
			put(p, (rex & 4 ? 0 : 0x80) | vvvv << 3 | l << 2 | pp);
		} else {
			put(p, 0xc4);
			put(p, not_rxb | (1 + rng_below(r, 3)));
			put(p, width << 7 | vvvv << 3 | l << 2 | pp);
		}
		break;
	case MAP_XOP:
		put(p, 0x8f);
		put(p, not_rxb | (8 + rng_below(r, 3)));
		put(p, width << 7 | vvvv << 3 | l << 2);
		break;
	case MAP_MASK:
		put_mask_opcode(r, p, rex);
		return;
	case MAP_EVEX:
		if (settings.wide) {
			put_random_evex(r, p, rex, is_register);
			return;
		}
		put(p, 0x62);
		put(p, not_rxb | 0x10 | (1 + rng_below(r, 3)));
		put(p, width << 7 | vvvv << 3 | 4 | pp);
		put(p, rng_below(r, 4) << 5 | 8 | rng_below(r, 8));
		break;
	default:
		if (rex || width || rng_chance(r, 8))
			put(p, 0x40 | width << 3 | rex);
		if (map != MAP_ONE_BYTE && map != MAP_X87)
			put(p, 0x0f);
		if (map == MAP_0F38)
			put(p, 0x38);
		if (map == MAP_0F3A)
			put(p, 0x3a);
		if (map == MAP_X87)
			opcode = 0xd8 | (opcode & 7);
	}
	put(p, opcode);
}

/* vpgather..: a vector as index, three different registers. */
static void put_gather(struct builder *b, struct bytes *p)
{
	struct rng *r = b->r;
	int base = pick_register(r, b->roles.pointers, 97),
	    index = pick_register(r, b->roles.vector_indexes, 97);
	unsigned reg = rng_below(r, 16), vvvv = rng_below(r, 16);
	put(p, 0xc4);
	put(p, (reg & 8 ? 0 : 0x80) | (index & 8 ? 0 : 0x40) | (base & 8 ? 0 : 0x20) | 2);
	put(p, rng_below(r, 2) << 7 | (15 - vvvv) << 3 | rng_below(r, 2) << 2 | 1);
	put(p, 0x90 + rng_below(r, 4));
	put(p, 0x44 | (reg & 7) << 3);
	put(p, rng_below(r, 4) << 6 | (unsigned)(index & 7) << 3 | (unsigned)(base & 7));
	put(p, (unsigned)rng_next(r) & 0xff);
}

/* vpgather.., vpscatter.. with a mask; the index is one of 32. */
static void put_wide_gather(struct builder *b, struct bytes *p)
{
	struct rng *r = b->r;
	bool segment_base;
	put_prefixes(b, MAP_EVEX, p, &segment_base);
	int base = pick_register(r, segment_base ? b->roles.indexes : b->roles.pointers, 97),
	    index = pick_among(r, 32, b->roles.vector_indexes, 97);
	unsigned reg = rng_below(r, 32);
	struct evex e = {.map = 2, .pp = 1, .width = rng_below(r, 2), .length = rng_below(r, 3)};
	e.rex = (reg & 8 ? 4u : 0) | (index & 8 ? 2u : 0) | (base & 8 ? 1u : 0);
	e.reg_high = reg >> 4;
	e.vvvv = index & 16; /* its V' belongs to the index */
	e.mask = 1 + rng_below(r, 7);
	put_evex(p, &e);
	put(p, (rng_chance(r, 50) ? 0x90 : 0xa0) + rng_below(r, 4));
	put(p, 0x44 | (reg & 7) << 3);
	put(p, rng_below(r, 4) << 6 | (unsigned)(index & 7) << 3 | (unsigned)(base & 7));
	put(p, (unsigned)rng_between(r, -16, 16) & 0xff);
}

/* A displacement of one byte counts units of up to 64. */
static void count_units(struct rng *r, struct operand *o)
{
	if (o->displacement_size == 1)
		o->displacement = (int32_t)rng_between(r, -9, 9);
}

static void put_random(struct builder *b, struct bytes *p)
{
	struct rng *r = b->r;
	enum map map = random_map(r);
	bool segment_base;
	if (map == MAP_VEX && rng_chance(r, 3)) {
		put_gather(b, p);
		return;
	}
	if (map == MAP_EVEX && settings.wide && rng_below(r, 150) == 0) {
		put_wide_gather(b, p);
		return;
	}
	put_prefixes(b, map, p, &segment_base);
	struct operand o = random_operand(b, segment_base);
	unsigned reg = rng_below(r, rng_chance(r, 50) || map == MAP_MASK ? 8 : 16);
	if (map == MAP_EVEX && settings.wide)
		count_units(r, &o);
	put_opcode(r, map, p, o.rex | (reg & 8 ? 4 : 0), o.modrm >= 0xc0);
	put(p, o.modrm | (reg & 7) << 3);
	if (o.has_sib)
		put(p, o.sib);
	for (int n = 0; n < o.displacement_size; n++)
		put(p, (uint32_t)o.displacement >> (8 * n) & 0xff);
	int64_t immediate = random_immediate(r);
	if (rng_chance(r, 30))
		immediate = (int64_t)rng_next(r);
	for (unsigned n = 0; n < 8; n++)
		put(p, (uint64_t)immediate >> (8 * n) & 0xff);
}

/* Sets displacements that depend on where the instruction lies, and absolute addresses. */
static void aim(struct builder *b, struct instruction *i)
{
	const ZydisDecodedInstruction *d = &i->decoded;
	uint8_t *at = i->bytes + d->raw.disp.offset;
	if (d->raw.disp.size == 64) { /* mov rax, [address of 8 bytes] */
		uint64_t target = arena_pointer(b->r, b->s->arena);
		if (d->attributes & (ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS))
			target = rng_below(b->r, 512);
		memcpy(at, &target, 8);
	} else if (d->raw.disp.size == 32 && d->raw.modrm.mod == 0 && d->raw.modrm.rm == 5) {
		bool writes = false;
		for (unsigned n = 0; n < d->operand_count; n++)
			writes |= i->operands[n].type == ZYDIS_OPERAND_TYPE_MEMORY &&
			          i->operands[n].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
		uint64_t target = random_target(b, writes);
		int32_t displacement = (int32_t)(target - (b->s->address + b->length + i->length));
		memcpy(at, &displacement, 4);
	}
}

static int written_register(const ZydisDecodedOperand *o)
{
	if (o->type != ZYDIS_OPERAND_TYPE_REGISTER || !(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return -1;
	ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, o->reg.value);
	return full >= ZYDIS_REGISTER_RAX && full <= ZYDIS_REGISTER_R15 ? (int)(full - ZYDIS_REGISTER_RAX)
	                                                                : -1;
}

static bool writes_stack(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
	       (o->mem.base == ZYDIS_REGISTER_RSP || o->mem.base == ZYDIS_REGISTER_ESP);
}

/* By its kind: the operands are not decoded yet. */
static bool kind_allowed(struct builder *b, const ZydisDecodedInstruction *decoded)
{
	switch (accept_instruction(decoded)) {
	case NEVER:
		return false;
	case RARELY:
		return rng_chance(b->r, 5);
	case SELDOM:
		return rng_chance(b->r, 30);
	default:
		return true;
	}
}

/*
 * EVEX.X (inverted), the fifth bit of vector registers, with rsp: it means nothing there, but with it AMD's Zen 4 takes the
 * register as it was before the latest pushes.
 */
static bool reads_old_stack_pointer(const struct instruction *i)
{
	if (i->decoded.encoding != ZYDIS_INSTRUCTION_ENCODING_EVEX || i->decoded.raw.evex.X)
		return false;
	for (unsigned n = 0; n < i->decoded.operand_count; n++)
		if (i->operands[n].encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM &&
		        (i->operands[n].reg.value == ZYDIS_REGISTER_RSP ||
		                i->operands[n].reg.value == ZYDIS_REGISTER_ESP))
			return true;
	return false;
}

static bool allowed(struct builder *b, const struct instruction *i)
{
	if (has_forbidden_bytes(i->bytes, i->length) || reads_old_stack_pointer(i))
		return false;
	for (unsigned n = 0; b->keep >= 0 && n < i->decoded.operand_count; n++)
		if (written_register(&i->operands[n]) == b->keep ||
		        (b->keep == RSP && writes_stack(&i->operands[n])))
			return false;
	return true;
}

/* Registers that are overwritten lose their role, except where the new value is near the old one. */
static void forget_roles(struct builder *b, const struct instruction *i)
{
	if (i->decoded.meta.category == ZYDIS_CATEGORY_STRINGOP ||
	        i->decoded.mnemonic == ZYDIS_MNEMONIC_INC || i->decoded.mnemonic == ZYDIS_MNEMONIC_DEC)
		return;
	for (unsigned n = 0; n < i->decoded.operand_count; n++) {
		int reg = written_register(&i->operands[n]);
		if (reg >= 0) {
			b->roles.pointers &= (uint16_t) ~(1u << reg);
			b->roles.indexes &= (uint16_t) ~(1u << reg);
		}
	}
}

void emit_random(struct builder *b)
{
	struct instruction i;
	for (;;) {
		struct bytes p = {.size = 0};
		ZydisDecoderContext context;
		put_random(b, &p);
		memset(p.at + p.size, 0, sizeof p.at - p.size);
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
		            &decoder, &context, p.at, sizeof i.bytes, &i.decoded)) ||
		        !kind_allowed(b, &i.decoded) ||
		        !ZYAN_SUCCESS(ZydisDecoderDecodeOperands(
		                &decoder, &context, &i.decoded, i.operands, i.decoded.operand_count)))
			continue;
		i.length = i.decoded.length;
		memcpy(i.bytes, p.at, sizeof i.bytes);
		aim(b, &i);
		if (allowed(b, &i))
			break;
	}
	mnemonics_seen[i.decoded.mnemonic] = true;
	forget_roles(b, &i);
	mark_start(b);
	emit(b, i.bytes, i.length);
}

unsigned encode_mnemonics(void)
{
	unsigned count = 0;
	for (unsigned n = 0; n <= ZYDIS_MNEMONIC_MAX_VALUE; n++)
		count += mnemonics_seen[n];
	return count;
}
