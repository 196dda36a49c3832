/*
 * Which status flags the code of a sequence does not read any more: for --read-flags, see README.md.
 *
 * A flag is unread at a pc when on every way from there some instruction overwrites it before any reads it
 * and before control leaves the sequence, returns or goes to where only the CPU knows. The instruction
 * at the pc counts: a fault came before it did anything.
 */
#include "fuzz.h"
#include <string.h>

enum {
	STATUS = ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF |
	         ZYDIS_CPUFLAG_OF
};

/* The ways not followed yet, and for each offset the flags it was reached with. */
struct search {
	const struct sequence *s;
	unsigned length;
	uint32_t reached[SLOT], read;
	uint16_t waiting[SLOT];
	unsigned count;
	bool waits[SLOT];
};

static void reach(struct search *search, uint64_t pc, uint32_t flags)
{
	uint64_t offset = pc - search->s->address;
	if (offset >= search->length) {
		search->read |= flags;
		return;
	}
	if (!(flags & ~search->reached[offset]))
		return;
	search->reached[offset] |= flags;
	if (!search->waits[offset])
		search->waiting[search->count++] = (uint16_t)offset;
	search->waits[offset] = true;
}

/* With a count of zero a shift changes nothing, and string instructions with rep do nothing. */
static bool may_do_nothing(const struct instruction *i)
{
	const ZydisDecodedInstruction *d = &i->decoded;
	if (d->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
		return true;
	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SAR:
		if (d->opcode == 0xc0 || d->opcode == 0xc1)
			return !(d->raw.imm[0].value.u & 0x1f);
		return d->opcode == 0xd2 || d->opcode == 0xd3;
	case ZYDIS_MNEMONIC_ROL:
	case ZYDIS_MNEMONIC_ROR:
	case ZYDIS_MNEMONIC_RCL:
	case ZYDIS_MNEMONIC_RCR:
	case ZYDIS_MNEMONIC_SHLD:
	case ZYDIS_MNEMONIC_SHRD:
		return true;
	default:
		return false;
	}
}

/* Flags that manuals leave undefined do not count, but for AF, which logical instructions clear everywhere. */
static uint32_t overwritten(const struct instruction *i)
{
	const ZydisAccessedFlags *flags = i->decoded.cpu_flags;
	if (!flags || may_do_nothing(i))
		return 0;
	switch (i->decoded.mnemonic) {
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_TEST:
		return STATUS;
	default:
		return (flags->modified | flags->set_0 | flags->set_1) & ~flags->undefined & STATUS;
	}
}

static void follow(struct search *search, uint64_t pc, uint32_t flags)
{
	struct instruction i;
	unsigned size = (unsigned)(search->s->address + search->length - pc);
	if (!decode((const uint8_t *)pc, size, &i)) { /* NOLINT */
		search->read |= flags;
		return;
	}
	uint64_t next = pc + i.length, target = next + i.decoded.raw.imm[0].value.u;
	if (i.decoded.cpu_flags)
		search->read |= flags & i.decoded.cpu_flags->tested;
	flags &= ~overwritten(&i);
	switch (i.decoded.meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		reach(search, next, flags);
		reach(search, target, flags);
		break;
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_CALL:
		if (i.decoded.raw.imm[0].is_relative)
			reach(search, target, flags);
		else
			search->read |= flags;
		break;
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
		search->read |= flags;
		break;
	default:
		reach(search, next, flags);
	}
}

uint64_t flags_unread(const struct sequence *s, uint64_t pc)
{
	static struct search search;
	memset(&search, 0, sizeof search);
	search.s = s;
	search.length = code_written(s, s->code_length);
	reach(&search, pc, STATUS);
	while (search.count && search.read != STATUS) {
		uint16_t offset = search.waiting[--search.count];
		search.waits[offset] = false;
		follow(&search, s->address + offset, search.reached[offset]);
	}
	return STATUS & ~search.read;
}
