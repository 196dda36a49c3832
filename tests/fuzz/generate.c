/*
 * A sequence: up to 12 items, each a random instruction or a piece, forward branches resolved on the way,
 * then the jump to the exit and the literals.
 */
#include "fuzz.h"
#include <string.h>

void mark_start(struct builder *b)
{
	if (b->s->start_count == MAX_STARTS)
		b->failed = true;
	else
		b->s->starts[b->s->start_count++] = (uint16_t)b->length;
}

void emit(struct builder *b, const void *bytes, unsigned size)
{
	if (b->length + size > SLOT) {
		b->failed = true;
		return;
	}
	memcpy(b->s->code + b->length, bytes, size);
	b->length += size;
}

void add_literal(struct builder *b, int at, bool is_code, uint64_t value)
{
	if (b->literal_count == MAX_LITERALS)
		b->failed = true;
	else
		b->literals[b->literal_count++] = (struct literal){(int16_t)at, is_code, value};
}

void emit_relative(struct builder *b, uint64_t target)
{
	int32_t displacement = (int32_t)(target - (b->s->address + b->length + 4));
	emit(b, &displacement, 4);
}

void patch_branch(struct builder *b, unsigned at, unsigned size, unsigned target)
{
	int32_t distance = (int32_t)target - (int32_t)(at + size);
	if ((size == 1 && distance != (int8_t)distance) || at + size > SLOT)
		b->failed = true;
	else
		memcpy(b->s->code + at, &distance, size);
}

static void resolve_pending(struct builder *b, bool all)
{
	unsigned kept = 0;
	for (unsigned n = 0; n < b->pending_count; n++) {
		struct pending p = b->pending[n];
		bool far_enough = p.size == 1 && b->length - p.at > 36; /* a long item may follow */
		if (all || far_enough || --p.items == 0)
			patch_branch(b, p.at, p.size, b->length);
		else
			b->pending[kept++] = p;
	}
	b->pending_count = kept;
}

static void finish(struct builder *b)
{
	struct sequence *s = b->s;
	resolve_pending(b, true);
	uint64_t gate = arena_base(s->arena) + AT_GATE;
	mark_start(b);
	if (rng_chance(b->r, 50)) {
		emit(b, "\xff\x25\0\0\0", 6); /* jmp [rip + literal] */
		add_literal(b, (int)b->length - 4, false, gate);
	} else {
		emit(b, "\xe9", 1); /* jmp gate */
		emit_relative(b, gate);
	}
	s->code_length = b->length;
	while ((s->address + b->length) % 8)
		emit(b, "\xcc", 1);
	for (unsigned n = 0; n < b->literal_count && !b->failed; n++) {
		struct literal l = b->literals[n];
		uint64_t value = l.is_code ? s->address + l.value : l.value;
		if (l.at != NO_REFERENCE)
			patch_branch(b, (unsigned)l.at, 4, b->length);
		emit(b, &value, 8);
	}
	s->length = b->length;
}

static bool try_generate(struct builder *b)
{
	struct sequence *s = b->s;
	struct rng *r = b->r;
	s->start_count = 0;
	s->hidden_entry = false;
	s->address = code_place(r, s->arena, s->mode, s->number);
	s->resume = rng_chance(r, 60);
	state_random(r, s->arena, &s->initial, &b->roles);
	for (unsigned items = 1 + rng_below(r, 12); items && b->length < 600; items--) {
		if (rng_chance(r, 25))
			emit_piece(b);
		else
			emit_random(b);
		resolve_pending(b, false);
	}
	finish(b);
	return !b->failed && !has_forbidden_bytes(s->code, s->length);
}

void generate(struct sequence *s, uint64_t number, unsigned arena, enum code_mode mode)
{
	struct rng r = rng_stream(settings.seed, number);
	s->number = number;
	s->arena = arena;
	s->mode = mode;
	s->memory = rng_stream(~settings.seed, number);
	struct builder b;
	do
		b = (struct builder){.s = s, .r = &r, .keep = -1};
	while (!try_generate(&b));
}
