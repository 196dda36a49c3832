/*
 * Events to bytes.
 *
 * Every function appends one event at `at`, where there must be room for the largest
 * event of its kind, ENCODE_*_MAXIMUM bytes, and returns the new end. (What lies behind the
 * new end, within that room, may have been overwritten.) Positions must not decrease
 * between keyframes, and sizes must be within the limits of event.h; nobody checks.
 *
 * Freestanding, of memcpy and memset only: the stub appends to its ring through these.
 */
#ifndef BUGNET_RECORDING_ENCODE_H
#define BUGNET_RECORDING_ENCODE_H

#include <stddef.h>

#include "recording/coder.h"

#define ENCODE_HEAD_MAXIMUM    (1 + VARINT_MAXIMUM) /* first byte and position */
#define ENCODE_REGISTERS_SIZE  (18 * 8)
#define ENCODE_CHANGES_MAXIMUM (2 + 16 * VARINT_MAXIMUM + VARINT_MAXIMUM)
#define ENCODE_XSAVE_MAXIMUM   (VARINT_MAXIMUM + EVENT_XSAVE_MAXIMUM)
#define ENCODE_PATCH_MAXIMUM   (ENCODE_HEAD_MAXIMUM + VARINT_MAXIMUM + 1 + 3 + EVENT_LINE_BYTES)
#define ENCODE_RESULT_MAXIMUM  (ENCODE_HEAD_MAXIMUM + ENCODE_CHANGES_MAXIMUM)
#define ENCODE_DELTA_MAXIMUM   (2 + 18 * VARINT_MAXIMUM)
#define ENCODE_SYSCALL_MAXIMUM                                                                               \
	(ENCODE_HEAD_MAXIMUM + ENCODE_DELTA_MAXIMUM + VARINT_MAXIMUM + ENCODE_CHANGES_MAXIMUM)
#define ENCODE_ORDER_MAXIMUM (ENCODE_HEAD_MAXIMUM + 2 * VARINT_MAXIMUM)
#define ENCODE_MAP_MAXIMUM   (ENCODE_HEAD_MAXIMUM + 6 * VARINT_MAXIMUM)
#define ENCODE_END_MAXIMUM                                                                                   \
	(ENCODE_HEAD_MAXIMUM + (2 + EVENT_SIGNAL_DETAILS) * VARINT_MAXIMUM + ENCODE_REGISTERS_SIZE)
#define ENCODE_KEYFRAME_MAXIMUM                                                                              \
	(1 + 8 + 1 + VARINT_MAXIMUM + ENCODE_REGISTERS_SIZE + 4 * 8 + ENCODE_XSAVE_MAXIMUM)
#define ENCODE_SIGRETURN_MAXIMUM (ENCODE_HEAD_MAXIMUM + ENCODE_REGISTERS_SIZE + 16 + ENCODE_XSAVE_MAXIMUM)
#define ENCODE_SIGNAL_MAXIMUM                                                                                \
	(ENCODE_HEAD_MAXIMUM + (3 + EVENT_SIGNAL_DETAILS) * VARINT_MAXIMUM + ENCODE_REGISTERS_SIZE +         \
	        ENCODE_XSAVE_MAXIMUM)
#define ENCODE_CODE_MAXIMUM   (ENCODE_HEAD_MAXIMUM + VARINT_MAXIMUM)
#define ENCODE_OUTPUT_MAXIMUM (ENCODE_HEAD_MAXIMUM + 2 * VARINT_MAXIMUM + EVENT_OUTPUT_MAXIMUM)
#define ENCODE_MAXIMUM        ENCODE_SIGNAL_MAXIMUM /* of any kind */

_Static_assert(ENCODE_MAXIMUM >= ENCODE_KEYFRAME_MAXIMUM, "a signal is the largest event");
_Static_assert(ENCODE_MAXIMUM >= ENCODE_CODE_MAXIMUM, "a signal is the largest event");
_Static_assert(ENCODE_MAXIMUM >= ENCODE_OUTPUT_MAXIMUM, "a signal is the largest event");

/* ---- parts ---- */

static inline uint8_t *encode_position(struct coder *coder, uint8_t *at, uint64_t position)
{
	at = put_varint(at, position - coder->position);
	coder->position = position;
	return at;
}

static inline uint8_t *encode_head(
        struct coder *coder, uint8_t *at, enum event_kind kind, unsigned flags, uint64_t position)
{
	at = put_u8(at, (uint8_t)(kind | flags << HEAD_FLAGS_SHIFT));
	return encode_position(coder, at, position);
}

static inline uint8_t *encode_registers(uint8_t *at, const struct event_registers *registers)
{
	_Static_assert(sizeof *registers == ENCODE_REGISTERS_SIZE, "no gaps: copied as a whole");
	memcpy(at, registers, sizeof *registers);
	return at + sizeof *registers;
}

static inline uint8_t *encode_details(uint8_t *at, const uint64_t details[EVENT_SIGNAL_DETAILS])
{
	for (unsigned i = 0; i < EVENT_SIGNAL_DETAILS; i++)
		at = put_varint(at, details[i]);
	return at;
}

static inline uint8_t *encode_bytes(uint8_t *at, const uint8_t *bytes, uint32_t size)
{
	at = put_varint(at, size);
	if (size)
		memcpy(at, bytes, size);
	return at + size;
}

static inline unsigned changes_head_flags(const struct event_changes *changes)
{
	return (changes->mask ? CHANGES_REGISTERS : 0) | (changes->has_flags ? CHANGES_FLAGS : 0);
}

static inline uint8_t *encode_changes(uint8_t *at, const struct event_changes *changes)
{
	if (changes->mask)
		at = put_u16(at, changes->mask);
	for (unsigned left = changes->mask; left; left &= left - 1)
		at = put_varint(at, changes->gpr[__builtin_ctz(left)]);
	return changes->has_flags ? put_varint(at, changes->flags) : at;
}

/* Registers, by their differences to those that were coded before. */
static inline uint8_t *encode_registers_delta(
        struct coder *coder, uint8_t *at, const struct event_registers *registers)
{
	struct event_registers *before = &coder->registers;
	uint8_t *head = at;
	uint16_t mask = 0;

	at += 2;
	at = put_varint(at, zigzag((int64_t)(registers->pc - before->pc)));
	at = put_varint(at, registers->flags ^ before->flags);
	for (unsigned i = 0; i < 16; i++) {
		if (registers->gpr[i] == before->gpr[i])
			continue;
		mask |= (uint16_t)(1u << i);
		at = put_varint(at, zigzag((int64_t)(registers->gpr[i] - before->gpr[i])));
	}
	put_u16(head, mask);
	*before = *registers;
	return at;
}

/* ---- patches ---- */

/*
 * Adds the line to the first byte and what follows it. The first recent line that is near
 * will do; the search for the nearest is for those that are far from all of them.
 */
static inline uint8_t *encode_line(struct coder *coder, uint8_t *head, uint8_t *at, uint64_t line)
{
	enum patch_distance distance = DISTANCE_FAR;
	unsigned near = 0;
	int64_t delta = 0;

	for (unsigned i = 0; i < CODER_LINES && distance == DISTANCE_FAR; i++) {
		delta = (int64_t)(line - coder->lines[i]);
		near = i;
		if (delta == (int8_t)delta)
			distance = delta == 1 ? DISTANCE_NEXT : delta == 0 ? DISTANCE_SAME : DISTANCE_NEAR;
	}
	if (distance == DISTANCE_NEAR) {
		at = put_u8(at, (uint8_t)delta);
	} else if (distance == DISTANCE_FAR) {
		for (unsigned i = 0; i < CODER_LINES; i++) {
			int64_t other = (int64_t)(line - coder->lines[i]);
			if (zigzag(other) < zigzag(delta)) {
				delta = other;
				near = i;
			}
		}
		at = put_varint(at, zigzag(delta));
	}
	*head |= (uint8_t)(near << PATCH_LINE_SHIFT | distance << PATCH_DISTANCE_SHIFT);
	coder_line_used(coder, near, delta, line);
	return at;
}

static inline unsigned number_form(uint64_t value)
{
	unsigned bytes = (71 - (unsigned)__builtin_clzll(value | 1)) / 8;

	return bytes <= 6 ? bytes : FORM_RAW;
}

/* Writes eight bytes whatever the form needs: there is room for whole words. */
static inline uint8_t *encode_word(struct coder *coder, uint8_t *at, uint64_t value, unsigned *form)
{
	struct dictionary *dictionary = &coder->dictionary;

	if (dictionary_wants(dictionary, value)) {
		uint64_t place = dictionary_place(dictionary, value);
		if (dictionary_learn(&dictionary->entries[place], value)) {
			*form = FORM_DICTIONARY;
			put_u64(at, place);
			return at + dictionary_index_bytes(dictionary);
		}
	}
	*form = number_form(value);
	put_u64(at, value);
	return at + (*form == FORM_RAW ? 8 : *form);
}

static inline uint64_t word_of_line(const void *line, unsigned number)
{
	uint64_t word;

	memcpy(&word, (const uint8_t *)line + 8 * number, sizeof word);
	return word;
}

static inline uint8_t *encode_one_word(
        struct coder *coder, uint8_t *head, uint8_t *at, unsigned number, uint64_t value)
{
	unsigned form;
	uint8_t *end = encode_word(coder, at + 1, value, &form);

	*head |= WORDS_ONE;
	*at = (uint8_t)(number << FORM_BITS | form);
	return end;
}

/* The form codes come first, three bits each, then the words. */
static inline uint8_t *encode_words(
        struct coder *coder, uint8_t *head, uint8_t *at, unsigned mask, const void *line)
{
	uint32_t forms = 0;
	unsigned shift = 0;

	if (mask == 0xff) {
		*head |= WORDS_ALL;
	} else {
		*head |= WORDS_SOME;
		at = put_u8(at, (uint8_t)mask);
	}
	uint8_t *codes = at;
	at += form_code_bytes(mask);
	uint8_t *words = at;
	for (unsigned left = mask; left; left &= left - 1) {
		unsigned form;
		at = encode_word(coder, at, word_of_line(line, (unsigned)__builtin_ctz(left)), &form);
		forms |= form << shift;
		shift += FORM_BITS;
	}
	for (; codes < words; forms >>= 8)
		*codes++ = (uint8_t)forms;
	return at;
}

/* What comes behind the line: which words, and what they are. */
static inline uint8_t *encode_changed_words(
        struct coder *coder, uint8_t *head, uint8_t *at, unsigned mask, const void *line)
{
	if (mask & (mask - 1))
		return encode_words(coder, head, at, mask, line);
	unsigned number = (unsigned)__builtin_ctz(mask);
	return encode_one_word(coder, head, at, number, word_of_line(line, number));
}

/*
 * `line` has the 64 bytes for `address`, which is a multiple of 64; `mask` is not 0. Words
 * outside the mask are not read. Nobody may change the line meanwhile: it is the thread's
 * own copy, not memory that the program shares. Room: ENCODE_PATCH_MAXIMUM.
 */
static inline uint8_t *encode_patch(
        struct coder *coder, uint8_t *at, uint64_t position, uint64_t address, uint8_t mask, const void *line)
{
	uint8_t *head = at;

	*head = PATCH_HEAD;
	at = encode_position(coder, at + 1, position);
	at = encode_line(coder, head, at, address / EVENT_LINE_BYTES);
	return encode_changed_words(coder, head, at, mask, line);
}

/* ---- the other kinds ---- */

static inline uint8_t *encode_keyframe(
        struct coder *coder, uint8_t *at, uint64_t position, const struct event_keyframe *keyframe)
{
	coder_reset(coder, position, &keyframe->registers);
	at = put_u8(at, EVENT_KEYFRAME);
	at = put_u64(at, position);
	at = put_u8(at, (uint8_t)coder->dictionary.bits);
	at = put_varint(at, keyframe->leans_on);
	at = encode_registers(at, &keyframe->registers);
	at = put_u64(at, keyframe->fs_base);
	at = put_u64(at, keyframe->gs_base);
	at = put_u64(at, keyframe->realtime);
	at = put_u64(at, keyframe->monotonic);
	return encode_bytes(at, keyframe->xsave.bytes, keyframe->xsave.size);
}

static inline uint8_t *encode_result(
        struct coder *coder, uint8_t *at, uint64_t position, const struct event_result *result)
{
	at = encode_head(coder, at, EVENT_RESULT, changes_head_flags(&result->changes), position);
	return encode_changes(at, &result->changes);
}

static inline uint8_t *encode_syscall(
        struct coder *coder, uint8_t *at, uint64_t position, const struct event_syscall *call)
{
	unsigned flags = changes_head_flags(&call->changes) | (call->forgets ? SYSCALL_FORGETS : 0);

	at = encode_head(coder, at, EVENT_SYSCALL, flags, position);
	at = encode_registers_delta(coder, at, &call->registers);
	at = put_varint(at, zigzag(call->result));
	return encode_changes(at, &call->changes);
}

static inline uint8_t *encode_signal(
        struct coder *coder, uint8_t *at, uint64_t position, const struct event_signal *signal)
{
	unsigned flags = (signal->xsave.size ? SIGNAL_XSAVE : 0) | (signal->fault ? SIGNAL_FAULT : 0);

	at = encode_head(coder, at, EVENT_SIGNAL, flags, position);
	at = put_varint(at, signal->number);
	at = put_varint(at, zigzag(signal->code));
	at = encode_details(at, signal->details);
	at = put_varint(at, signal->iterations);
	at = encode_registers(at, &signal->registers);
	return signal->xsave.size ? encode_bytes(at, signal->xsave.bytes, signal->xsave.size) : at;
}

static inline uint8_t *encode_sigreturn(
        struct coder *coder, uint8_t *at, uint64_t position, const struct event_sigreturn *sigreturn)
{
	const struct event_xsave *xsave = &sigreturn->xsave;
	unsigned flags = (xsave->size ? SIGNAL_XSAVE : 0) | (sigreturn->call ? SIGRETURN_CALL : 0) |
	                 (sigreturn->has_bases ? SIGRETURN_BASES : 0);

	at = encode_head(coder, at, EVENT_SIGRETURN, flags, position);
	at = encode_registers(at, &sigreturn->registers);
	if (sigreturn->has_bases) {
		at = put_u64(at, sigreturn->fs_base);
		at = put_u64(at, sigreturn->gs_base);
	}
	return xsave->size ? encode_bytes(at, xsave->bytes, xsave->size) : at;
}

static inline uint8_t *encode_order(
        struct coder *coder, uint8_t *at, uint64_t position, const struct event_order *order)
{
	unsigned flags = (unsigned)order->kind | (order->loose ? ORDER_LOOSE : 0);

	at = encode_head(coder, at, EVENT_ORDER, flags, position);
	at = put_varint(at, order->stamp - coder->stamp);
	coder->stamp = order->stamp;
	return order->loose ? put_varint(at, order->stamp - order->since) : at;
}

static inline uint8_t *encode_code(
        struct coder *coder, uint8_t *at, uint64_t position, const struct event_code *code)
{
	at = encode_head(coder, at, EVENT_CODE, 0, position);
	return put_varint(at, code->pieces);
}

static inline uint8_t *encode_map(
        struct coder *coder, uint8_t *at, uint64_t position, const struct event_map *map)
{
	at = encode_head(coder, at, EVENT_MAP, map->kind, position);
	at = put_varint(at, map->start);
	at = put_varint(at, map->length);
	at = put_varint(at, map->protection);
	at = put_varint(at, map->flags);
	at = put_varint(at, (uint32_t)(map->file + 1)); /* EVENT_FILE_NONE becomes 0 */
	return put_varint(at, map->offset);
}

static inline uint8_t *encode_end(
        struct coder *coder, uint8_t *at, uint64_t position, const struct event_end *end)
{
	at = encode_head(coder, at, EVENT_END, end->kind, position);
	at = put_varint(at, zigzag(end->status));
	at = put_varint(at, zigzag(end->code));
	at = encode_details(at, end->details);
	return encode_registers(at, &end->registers);
}

static inline uint8_t *encode_output(
        struct coder *coder, uint8_t *at, uint64_t position, const struct event_output *output)
{
	at = encode_head(coder, at, EVENT_OUTPUT, 0, position);
	at = put_varint(at, zigzag(output->fd));
	return encode_bytes(at, output->bytes, output->size);
}

/* Any event, as the decoder gives it. Room: ENCODE_MAXIMUM. */
static inline uint8_t *encode_event(struct coder *coder, uint8_t *at, const struct event *event)
{
	uint64_t position = event->position;

	switch (event->kind) {
	case EVENT_KEYFRAME:
		return encode_keyframe(coder, at, position, &event->keyframe);
	case EVENT_PATCH:
		return encode_patch(
		        coder, at, position, event->patch.address, event->patch.mask, event->patch.words);
	case EVENT_RESULT:
		return encode_result(coder, at, position, &event->result);
	case EVENT_SYSCALL:
		return encode_syscall(coder, at, position, &event->syscall);
	case EVENT_SIGNAL:
		return encode_signal(coder, at, position, &event->signal);
	case EVENT_SIGRETURN:
		return encode_sigreturn(coder, at, position, &event->sigreturn);
	case EVENT_ORDER:
		return encode_order(coder, at, position, &event->order);
	case EVENT_CODE:
		return encode_code(coder, at, position, &event->code);
	case EVENT_MAP:
		return encode_map(coder, at, position, &event->map);
	case EVENT_END:
		return encode_end(coder, at, position, &event->end);
	case EVENT_OUTPUT:
		return encode_output(coder, at, position, &event->output);
	}
	return at;
}

#endif
