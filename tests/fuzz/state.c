/*
 * Registers: random ones before a sequence, the canonical form and digest of those after it.
 */
#include "fuzz.h"
#include <string.h>

/*
 * AMD CPUs save the x87 error pointers (last instruction, opcode, data address) in FXSAVE and XSAVE only
 * while an exception is pending. Without one they do not survive a context switch, which may come at any
 * time.
 */
static bool keeps_error_pointers;

void state_setup(void)
{
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
static void random_vector_index(struct rng *r, uint8_t *bytes)
{
	bool quadwords = rng_chance(r, 50);
	for (unsigned n = 0; n < 32; n += quadwords ? 8 : 4) {
		int64_t index = rng_between(r, -120, 200);
		if (rng_chance(r, 4))
			index = (int32_t)rng_next(r);
		memcpy(bytes + n, &index, quadwords ? 8 : 4);
	}
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
		random_vector(r, m->ymm[n], 32);
		if (rng_chance(r, 15)) {
			random_vector_index(r, m->ymm[n]);
			roles->vector_indexes |= (uint16_t)(1u << n);
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
	return digest_bytes(digest, m->ymm, sizeof m->ymm);
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
