/*
 * Registers: random ones before a sequence, the canonical form and digest of those after it.
 */
#include "fuzz.h"
#include <string.h>
#include <cpuid.h>

/*
 * AMD CPUs save the x87 error pointers (last instruction, opcode, data address) in FXSAVE and XSAVE only
 * while an exception is pending. Without one they do not survive a context switch, which may come at any
 * time.
 */
static bool keeps_error_pointers;

/* The state components of vector registers: where they are in struct machine, and in an XSAVE image. */
static struct component {
	uint8_t bit, count;
	uint16_t from, stride, size; /* of each register */
	uint32_t at;                 /* in the standard form */
} components[] = {
        {STATE_SSE, 16, offsetof(struct machine, zmm), 64, 16, 160},
        {STATE_AVX, 16, offsetof(struct machine, zmm) + 16, 64, 16, STATE_HEADER + 64},
        {STATE_MASKS, 8, offsetof(struct machine, k), 8, 8, 0},
        {STATE_ZMM_HIGH, 16, offsetof(struct machine, zmm) + 32, 64, 32, 0},
        {STATE_ZMM_MORE, 16, offsetof(struct machine, zmm) + 16 * 64, 64, 64, 0},
};
enum { COMPONENTS = sizeof components / sizeof *components };

/* The CPU says where the components of AVX-512 are in the standard form. */
static void find_components(void)
{
	for (unsigned n = 0; n < COMPONENTS && settings.wide; n++) {
		unsigned a, b = 0, c, d;
		if (components[n].at)
			continue;
		if (!__get_cpuid_count(13, (unsigned)__builtin_ctz(components[n].bit), &a, &b, &c, &d) || !b)
			fail("CPUID does not tell where XSAVE puts the registers of AVX-512");
		components[n].at = b;
	}
}

static void copy_in(struct machine *m, const struct component *c, const uint8_t *at)
{
	for (unsigned n = 0; n < c->count; n++)
		memcpy((uint8_t *)m + c->from + n * c->stride, at + n * c->size, c->size);
}

static void copy_out(const struct machine *m, const struct component *c, uint8_t *at)
{
	for (unsigned n = 0; n < c->count; n++)
		memcpy(at + n * c->size, (const uint8_t *)m + c->from + n * c->stride, c->size);
}

static bool is_used(const struct component *c)
{
	return settings.wide || c->bit & STATE_UP_TO_AVX;
}

void state_from_image(struct machine *m, const uint8_t *image, uint64_t present)
{
	memset(m->zmm, 0, sizeof m->zmm);
	memset(m->k, 0, sizeof m->k);
	memcpy(m->fx, image, 512);
	if (!(present & STATE_X87)) {
		memset(m->fx, 0, 24);
		memset(m->fx + 32, 0, 128);
		m->fx[0] = 0x7f;
		m->fx[1] = 3;
	}
	for (const struct component *c = components; c < components + COMPONENTS; c++)
		if (is_used(c) && present & c->bit)
			copy_in(m, c, image + c->at);
}

static void add_present(uint8_t *image, uint64_t bits)
{
	uint64_t present;
	memcpy(&present, image + STATE_HEADER, 8);
	present |= bits;
	memcpy(image + STATE_HEADER, &present, 8);
}

void state_to_image(const struct machine *m, uint8_t *image, uint64_t wanted)
{
	if (wanted & STATE_X87)
		memcpy(image, m->fx, 160);
	for (const struct component *c = components; c < components + COMPONENTS; c++)
		if (wanted & c->bit)
			copy_out(m, c, image + c->at);
	add_present(image, wanted);
}

void state_to_compact_image(const struct machine *m, uint8_t *image, uint64_t form)
{
	unsigned at = STATE_HEADER + 64;
	uint64_t compact = 1ull << 63 | form;
	state_to_image(m, image, form & (STATE_X87 | STATE_SSE));
	for (const struct component *c = components; c < components + COMPONENTS; c++) {
		if (c->bit == STATE_SSE || !(form & c->bit))
			continue;
		copy_out(m, c, image + at);
		at += (unsigned)c->count * c->size;
	}
	add_present(image, form);
	memcpy(image + STATE_HEADER + 8, &compact, 8);
}

void state_setup(void)
{
	find_components();
	static _Alignas(16) uint8_t image[512];
	__asm__ volatile("fninit; fld1; fxsave64 %0; fninit" : "=m"(image));
	uint64_t instruction;
	memcpy(&instruction, image + 8, 8);
	keeps_error_pointers = instruction != 0;
}

static uint64_t random_value(struct rng *r)
{
	static const uint64_t special[] = {0x8000000000000000, 0x7fffffffffffffff, 0xffffffff, 0x80000000,
	        0x7fffffff, 0x100000000, 0xff, 0x80, 0xffff, 0x8000, 1, 2, 0xffffffffffffffff,
	        0x5555555555555555};
	switch (rng_below(r, 8)) {
	case 0:
		return special[rng_below(r, sizeof special / sizeof *special)];
	case 1:
		return (uint64_t)rng_between(r, -300, 300);
	case 2:
		return (uint32_t)rng_next(r);
	case 3:
		return 0;
	case 4: /* not canonical */
		return rng_next(r) >> 1 | 0x0080000000000000;
	default:
		return rng_next(r);
	}
}

static void random_vector(struct rng *r, uint8_t *bytes, unsigned size)
{
	unsigned kind = rng_below(r, 8);
	for (unsigned n = 0; n < size; n += 8) {
		uint64_t word = rng_next(r);
		double d;
		float f[2];
		switch (kind) {
		case 0:
			word = 0;
			break;
		case 1: /* a mask */
			word = (word & 1 ? 0xffffffff : 0) | (word & 2 ? 0xffffffff00000000 : 0);
			break;
		case 2:
			d = (double)(int64_t)word / 1e15;
			memcpy(&word, &d, 8);
			break;
		case 3:
			f[0] = (float)(int32_t)word / 1e5f;
			f[1] = (float)(int32_t)(word >> 32) / 3e3f;
			memcpy(&word, f, 8);
			break;
		case 4: { /* NaN, infinity, denormal */
			static const uint64_t special[] = {0x7ff8000000000000, 0x7ff0000000000000,
			        0xfff0000000000001, 0x000fffffffffffff, 0x7fc000007f800000,
			        0xff80000100000001, 0x3f8000003f800000};
			word = special[rng_below(r, sizeof special / sizeof *special)];
			break;
		}
		default:
			break;
		}
		memcpy(bytes + n, &word, 8);
	}
}

static void random_x87(struct rng *r, uint8_t *fx)
{
	memset(fx, 0, 512);
	uint16_t control = 0x7f | (uint16_t)(rng_below(r, 16) << 8);
	uint16_t status = (uint16_t)(rng_below(r, 8) << 11);
	if (rng_chance(r, 12))
		control &= (uint16_t)(0xffc0 | rng_below(r, 64)); /* some exceptions are not masked */
	if (rng_chance(r, 20))
		status |= (uint16_t)(rng_next(r) & 0x477f);
	if (status & ~control & 0x3f)
		status |= 0x8080; /* pending */
	fx[4] = rng_chance(r, 50) ? 0 : (uint8_t)rng_next(r);
	uint32_t mxcsr = 0x1f80 | (rng_below(r, 4) << 13);
	if (rng_chance(r, 15))
		mxcsr |= 0x8000;
	if (rng_chance(r, 15))
		mxcsr |= 0x40;
	if (rng_chance(r, 30))
		mxcsr |= rng_below(r, 64);
	if (rng_chance(r, 12))
		mxcsr &= ~(rng_below(r, 64) << 7);
	memcpy(fx, &control, 2);
	memcpy(fx + 2, &status, 2);
	memcpy(fx + 24, &mxcsr, 4);
	for (unsigned n = 0; n < 8; n++) {
		uint8_t *st = fx + 32 + 16 * n;
		if (rng_chance(r, 60)) {
			long double value = (long double)(int64_t)rng_next(r) / (1u << rng_below(r, 31));
			memcpy(st, &value, 10);
		} else {
			random_vector(r, st, 8);
			uint16_t exponent = rng_chance(r, 50) ? 0x7fff : (uint16_t)rng_next(r);
			memcpy(st + 8, &exponent, 2);
		}
	}
}

/* Small numbers for gathers; now and then one that leads nowhere, behind some that can be loaded. */
static void random_vector_index(struct rng *r, uint8_t *bytes, unsigned size)
{
	bool quadwords = rng_chance(r, 50);
	for (unsigned n = 0; n < size; n += quadwords ? 8 : 4) {
		int64_t index = rng_between(r, LEAST_INDEX, MOST_INDEX);
		if (rng_chance(r, 4))
			index = (int32_t)rng_next(r);
		memcpy(bytes + n, &index, quadwords ? 8 : 4);
	}
}

/* Masks of all widths: many with none or all of the elements, or one. */
static uint64_t random_mask(struct rng *r)
{
	unsigned kind = rng_below(r, 100);
	if (kind < 12)
		return 0;
	if (kind < 24)
		return ~0ull;
	if (kind < 34)
		return 1ull << rng_below(r, 64);
	if (kind < 44) /* the first elements, or all but these */
		return (rng_chance(r, 50) ? ~0ull : 0) ^ ((1ull << rng_below(r, 64)) - 1);
	return rng_next(r) >> rng_below(r, 64);
}

/* What AVX-512 adds to registers that have been filled already. */
static void random_wide(struct rng *r, struct machine *m, struct roles *roles)
{
	for (unsigned n = 0; n < 32; n++) {
		unsigned from = n < 16 ? 32 : 0;
		if (roles->vector_indexes >> n & 1 || rng_chance(r, 12)) {
			random_vector_index(r, m->zmm[n] + from, 64 - from);
			roles->vector_indexes |= 1u << n;
		} else if (!rng_chance(r, 20)) {
			random_vector(r, m->zmm[n] + from, 64 - from);
		}
	}
	for (unsigned n = 0; n < 8; n++)
		m->k[n] = random_mask(r);
}

static uint64_t random_flags(struct rng *r)
{
	uint64_t flags = 0x202 | (rng_next(r) & 0x8d5);
	if (rng_chance(r, 15))
		flags |= 0x400; /* DF */
	if (rng_chance(r, 20))
		flags |= 0x200000; /* ID */
	if (rng_chance(r, 3) && !(settings.without & WITHOUT_AC))
		flags |= 0x40000; /* AC */
	if (rng_chance(r, 2))
		flags |= 0x4000; /* NT */
	return flags;
}

static uint64_t random_stack(struct rng *r, uint64_t base)
{
	unsigned kind = rng_below(r, 100);
	if (kind < 84)
		return base + AT_STACK + 1024 + 8 * rng_below(r, (2 * PAGE - 2048) / 8);
	if (kind < 94) /* odd */
		return base + AT_STACK + 1024 + rng_below(r, 2 * PAGE - 2048);
	if (kind < 97) /* no room to push, or nothing to pop */
		return base + AT_STACK + 8 * rng_below(r, 6);
	if (kind < 99)
		return base + AT_STACK_END - 8 * rng_below(r, 6);
	return rng_chance(r, 50) ? rng_next(r) : 0;
}

void state_random(struct rng *r, unsigned arena, struct machine *m, struct roles *roles)
{
	memset(m, 0, sizeof *m);
	*roles = (struct roles){0};
	for (unsigned n = 0; n < 16; n++) {
		unsigned kind = rng_below(r, 100);
		/* The implicit pointers of string instructions and xlat, and the count of rep and loop. */
		bool pointer = kind < (n == RSI || n == RDI ? 75 : n == RCX ? 15 : n == RBX ? 60 : 45);
		bool index = !pointer && kind < (n == RCX ? 75 : n == RBX ? 70 : 70);
		if (pointer) {
			m->gpr[n] = arena_pointer(r, arena);
			roles->pointers |= (uint16_t)(1u << n);
		} else if (index) {
			m->gpr[n] = (uint64_t)rng_between(r, n == RCX ? 0 : -64, 64);
			roles->indexes |= (uint16_t)(1u << n);
		} else {
			m->gpr[n] = random_value(r);
		}
		random_vector(r, m->zmm[n], 32);
		if (rng_chance(r, 15)) {
			random_vector_index(r, m->zmm[n], 32);
			roles->vector_indexes |= 1u << n;
		}
	}
	m->gpr[RSP] = random_stack(r, arena_base(arena));
	roles->pointers &= (uint16_t) ~(1u << RSP);
	roles->indexes &= (uint16_t) ~(1u << RSP);
	if (rng_chance(r, 20))
		m->gpr[RBP] = m->gpr[RSP] + 8 * rng_below(r, 32);
	m->rflags = random_flags(r);
	m->fs_base = arena_base(arena) + AT_DATA + 1024 + rng_below(r, 2 * PAGE);
	m->gs_base = rng_chance(r, 5) ? 0 : arena_base(arena) + AT_DATA + 1024 + rng_below(r, 2 * PAGE);
	random_x87(r, m->fx);
	if (settings.wide)
		random_wide(r, m, roles);
}

/*
 * Clears what the CPU does not promise: reserved bytes, the copies of the xmm registers, and error pointers
 * that a context switch may have cleared. The data pointer is also older than the last instruction, and so
 * not kept by these CPUs, when that instruction had no memory operand: the opcode field tells (its low byte
 * is the ModRM byte).
 */
void state_canonical(struct machine *m)
{
	/* A null selector may be 0 to 3; an interrupt makes them all 0. */
	if (m->ds <= 3)
		m->ds = 0;
	if (m->es <= 3)
		m->es = 0;
	if (m->fs <= 3)
		m->fs = 0;
	if (m->gs <= 3)
		m->gs = 0;
	uint8_t *fx = m->fx;
	bool pending = fx[2] & 0x80;
	fx[5] = 0;
	if (!keeps_error_pointers && !pending)
		memset(fx + 6, 0, 18);
	if (!keeps_error_pointers && fx[6] >= 0xc0)
		memset(fx + 16, 0, 8);
	for (unsigned n = 0; n < 8; n++)
		memset(fx + 32 + 16 * n + 10, 0, 6);
	memset(fx + 160, 0, 512 - 160);
}

uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t size)
{
	const uint8_t *p = bytes;
	for (; size >= 8; size -= 8, p += 8) {
		uint64_t word;
		memcpy(&word, p, 8);
		digest = (digest ^ word) * 0x9fb21c651e98df25u;
		digest ^= digest >> 29;
	}
	uint64_t word = 0;
	memcpy(&word, p, size);
	return mix64(digest ^ word);
}

static uint64_t digest_machine(uint64_t digest, const struct machine *m)
{
	digest = digest_bytes(digest, m, offsetof(struct machine, gs) + sizeof m->gs);
	digest = digest_bytes(digest, m->fx, 160);
	for (unsigned n = 0; n < 16; n++)
		digest = digest_bytes(digest, m->zmm[n], 32);
	if (!settings.wide)
		return digest;
	digest = digest_bytes(digest, m->zmm, sizeof m->zmm);
	return digest_bytes(digest, m->k, sizeof m->k);
}

uint64_t outcome_digest(const struct outcome *o)
{
	if (o->hung)
		return 0x68756e67;
	uint64_t digest = mix64(o->memory_hash + o->completed);
	if (o->completed)
		digest = digest_machine(digest, &o->final);
	for (unsigned n = 0; n < o->fault_count; n++) {
		const struct fault *f = &o->faults[n];
		const uint64_t words[] = {(uint64_t)f->signal, (uint64_t)f->code, f->address, f->trap,
		        f->error, f->cr2, f->segments, f->handler_flags, f->handler_mxcsr, f->handler_cw};
		digest = digest_bytes(digest, words, sizeof words);
		digest = digest_machine(digest, &f->at);
	}
	return digest;
}
