/*
 * Bytes to events: see decode.h, and docs/format.md for the bytes.
 *
 * Errors are noted in decoder->status by whoever finds them; the first one counts. The
 * reading functions go on with zeros until the event is complete, which costs nothing and
 * keeps them free of exits.
 */
#include "recording/decode.h"

/* Zeros read in place of missing bytes may look wrong to later checks: those do not count. */
static void fail(struct decoder *decoder, enum decode_status status, const uint8_t *where)
{
	if (decoder->status != DECODE_EVENT || decoder->cursor.state != CURSOR_GOOD)
		return;
	decoder->status = status;
	decoder->error_offset = (size_t)(where - decoder->start);
}

static void fail_to_read(struct decoder *decoder)
{
	if (decoder->status != DECODE_EVENT)
		return;
	decoder->status = decoder->cursor.state == CURSOR_SHORT ? DECODE_TRUNCATED : DECODE_OVERLONG;
	decoder->error_offset = (size_t)(decoder->cursor.at - decoder->start);
}

/* ---- parts ---- */

static uint64_t number_up_to(struct decoder *decoder, uint64_t limit, enum decode_status otherwise)
{
	const uint8_t *where = decoder->cursor.at;
	uint64_t value = cursor_varint(&decoder->cursor);

	if (value <= limit)
		return value;
	fail(decoder, otherwise, where);
	return 0;
}

static uint32_t u32_number(struct decoder *decoder)
{
	return (uint32_t)number_up_to(decoder, UINT32_MAX, DECODE_RANGE);
}

static int32_t i32_number(struct decoder *decoder)
{
	const uint8_t *where = decoder->cursor.at;
	int64_t value = unzigzag(cursor_varint(&decoder->cursor));

	if (value == (int32_t)value)
		return (int32_t)value;
	fail(decoder, DECODE_RANGE, where);
	return 0;
}

static const uint8_t *sized_bytes(struct decoder *decoder, uint32_t limit, uint32_t *size)
{
	*size = (uint32_t)number_up_to(decoder, limit, DECODE_SIZE);
	return cursor_bytes(&decoder->cursor, *size);
}

static void registers(struct decoder *decoder, struct event_registers *to)
{
	const uint8_t *bytes = cursor_bytes(&decoder->cursor, sizeof *to);

	if (bytes)
		memcpy(to, bytes, sizeof *to);
}

static void registers_delta(struct decoder *decoder, struct event_registers *to)
{
	struct cursor *cursor = &decoder->cursor;
	struct event_registers *known = &decoder->coder.registers;
	unsigned mask = cursor_u16(cursor);

	known->pc += (uint64_t)unzigzag(cursor_varint(cursor));
	known->flags ^= cursor_varint(cursor);
	for (; mask; mask &= mask - 1)
		known->gpr[__builtin_ctz(mask)] += (uint64_t)unzigzag(cursor_varint(cursor));
	*to = *known;
}

static void signal_details(struct decoder *decoder, uint64_t details[EVENT_SIGNAL_DETAILS])
{
	for (unsigned i = 0; i < EVENT_SIGNAL_DETAILS; i++)
		details[i] = cursor_varint(&decoder->cursor);
}

static void xsave(struct decoder *decoder, struct event_xsave *to)
{
	to->bytes = sized_bytes(decoder, EVENT_XSAVE_MAXIMUM, &to->size);
}

static void changes(struct decoder *decoder, unsigned flags, struct event_changes *to)
{
	struct cursor *cursor = &decoder->cursor;

	to->mask = flags & CHANGES_REGISTERS ? cursor_u16(cursor) : 0;
	for (unsigned left = to->mask; left; left &= left - 1)
		to->gpr[__builtin_ctz(left)] = cursor_varint(cursor);
	to->has_flags = flags & CHANGES_FLAGS;
	to->flags = to->has_flags ? cursor_varint(cursor) : 0;
}

static uint64_t position(struct decoder *decoder)
{
	struct coder *coder = &decoder->coder;

	coder->position += number_up_to(decoder, UINT64_MAX - coder->position, DECODE_POSITION);
	return coder->position;
}

/* ---- patches ---- */

static uint64_t line(struct decoder *decoder, unsigned head)
{
	struct coder *coder = &decoder->coder;
	const uint8_t *where = decoder->cursor.at;
	unsigned near = head >> PATCH_LINE_SHIFT & (CODER_LINES - 1);
	enum patch_distance distance = head >> PATCH_DISTANCE_SHIFT & 3;
	int64_t delta = 0;

	if (distance == DISTANCE_NEXT)
		delta = 1;
	else if (distance == DISTANCE_NEAR)
		delta = (int8_t)cursor_u8(&decoder->cursor);
	else if (distance == DISTANCE_FAR)
		delta = unzigzag(cursor_varint(&decoder->cursor));
	uint64_t found = coder->lines[near] + (uint64_t)delta;
	if (found >= LINE_LIMIT) {
		fail(decoder, DECODE_LINE, where);
		return 0;
	}
	coder_line_used(coder, near, delta, found);
	return found;
}

static uint64_t dictionary_word(struct decoder *decoder)
{
	struct dictionary *dictionary = &decoder->coder.dictionary;
	const uint8_t *where = decoder->cursor.at;
	uint64_t place = cursor_fixed(&decoder->cursor, dictionary_index_bytes(dictionary));

	if (!dictionary->bits || place >> dictionary->bits) {
		fail(decoder, DECODE_DICTIONARY, where);
		return 0;
	}
	struct dictionary_entry *entry = &dictionary->entries[place];
	dictionary_learn(entry, entry->value);
	return entry->value;
}

static uint64_t word(struct decoder *decoder, unsigned form)
{
	struct dictionary *dictionary = &decoder->coder.dictionary;

	if (form == FORM_DICTIONARY)
		return dictionary_word(decoder);
	uint64_t value = cursor_fixed(&decoder->cursor, form == FORM_RAW ? 8 : form);
	if (dictionary_wants(dictionary, value))
		dictionary_learn(&dictionary->entries[dictionary_place(dictionary, value)], value);
	return value;
}

static void one_word(struct decoder *decoder, struct event_patch *patch)
{
	const uint8_t *where = decoder->cursor.at;
	unsigned code = cursor_u8(&decoder->cursor);
	unsigned number = code >> FORM_BITS;

	if (number >= EVENT_LINE_WORDS) {
		fail(decoder, DECODE_WORDS, where);
		return;
	}
	patch->mask = (uint8_t)(1u << number);
	patch->words[number] = word(decoder, code & FORM_MASK);
}

static void masked_words(struct decoder *decoder, struct event_patch *patch, uint8_t mask)
{
	uint64_t forms = cursor_fixed(&decoder->cursor, form_code_bytes(mask));

	patch->mask = mask;
	for (unsigned left = mask; left; left &= left - 1) {
		patch->words[__builtin_ctz(left)] = word(decoder, forms & FORM_MASK);
		forms >>= FORM_BITS;
	}
}

static void patch_words(struct decoder *decoder, enum patch_words words, struct event_patch *patch)
{
	const uint8_t *where = decoder->cursor.at;
	uint8_t mask = 0;

	switch (words) {
	case WORDS_ALL:
		masked_words(decoder, patch, 0xff);
		return;
	case WORDS_ONE:
		one_word(decoder, patch);
		return;
	case WORDS_SOME:
		mask = cursor_u8(&decoder->cursor);
		break;
	}
	if (mask)
		masked_words(decoder, patch, mask);
	else
		fail(decoder, DECODE_WORDS, where);
}

static void decode_patch(struct decoder *decoder, unsigned head, struct event *event)
{
	event->kind = EVENT_PATCH;
	event->position = position(decoder);
	event->patch.address = line(decoder, head) * EVENT_LINE_BYTES;
	patch_words(decoder, head & 3, &event->patch);
}

/* ---- the other kinds: what follows the position ---- */

/* The flags are 0: a keyframe's size and shape do not depend on any. */
static void decode_keyframe(struct decoder *decoder, unsigned flags, struct event *event)
{
	struct event_keyframe *to = &event->keyframe;
	struct cursor *cursor = &decoder->cursor;
	const uint8_t *where = cursor->at;
	unsigned bits = cursor_u8(cursor);

	(void)flags;
	if (bits > DICTIONARY_MAXIMUM_BITS) {
		fail(decoder, DECODE_DICTIONARY, where);
		return;
	}
	decoder->coder.dictionary.bits = bits;
	to->leans_on = u32_number(decoder);
	registers(decoder, &to->registers);
	coder_reset(&decoder->coder, event->position, &to->registers);
	to->fs_base = cursor_u64(cursor);
	to->gs_base = cursor_u64(cursor);
	to->realtime = cursor_u64(cursor);
	to->monotonic = cursor_u64(cursor);
	xsave(decoder, &to->xsave);
}

static void decode_result(struct decoder *decoder, unsigned flags, struct event *event)
{
	changes(decoder, flags, &event->result.changes);
}

static void decode_syscall(struct decoder *decoder, unsigned flags, struct event *event)
{
	registers_delta(decoder, &event->syscall.registers);
	event->syscall.result = unzigzag(cursor_varint(&decoder->cursor));
	event->syscall.forgets = flags & SYSCALL_FORGETS;
	changes(decoder, flags, &event->syscall.changes);
}

static void decode_signal(struct decoder *decoder, unsigned flags, struct event *event)
{
	struct event_signal *to = &event->signal;

	to->number = u32_number(decoder);
	to->code = i32_number(decoder);
	signal_details(decoder, to->details);
	to->iterations = cursor_varint(&decoder->cursor);
	to->fault = flags & SIGNAL_FAULT;
	registers(decoder, &to->registers);
	to->xsave = (struct event_xsave){0};
	if (flags & SIGNAL_XSAVE)
		xsave(decoder, &to->xsave);
}

static void decode_sigreturn(struct decoder *decoder, unsigned flags, struct event *event)
{
	event->sigreturn.call = flags & SIGRETURN_CALL;
	registers(decoder, &event->sigreturn.registers);
	event->sigreturn.has_bases = flags & SIGRETURN_BASES;
	event->sigreturn.fs_base = flags & SIGRETURN_BASES ? cursor_u64(&decoder->cursor) : 0;
	event->sigreturn.gs_base = flags & SIGRETURN_BASES ? cursor_u64(&decoder->cursor) : 0;
	event->sigreturn.xsave = (struct event_xsave){0};
	if (flags & SIGNAL_XSAVE)
		xsave(decoder, &event->sigreturn.xsave);
}

static void decode_order(struct decoder *decoder, unsigned flags, struct event *event)
{
	struct event_order *to = &event->order;

	if ((flags & ORDER_KIND_MASK) > ORDER_CLOCK)
		fail(decoder, DECODE_FLAGS, decoder->start + decoder->event_offset);
	decoder->coder.stamp += cursor_varint(&decoder->cursor);
	to->kind = (enum event_order_kind)(flags & ORDER_KIND_MASK);
	to->stamp = to->since = decoder->coder.stamp;
	to->loose = flags & ORDER_LOOSE;
	if (to->loose)
		to->since -= cursor_varint(&decoder->cursor);
}

static void decode_code(struct decoder *decoder, unsigned flags, struct event *event)
{
	(void)flags;
	event->code.pieces = u32_number(decoder);
}

static void decode_map(struct decoder *decoder, unsigned flags, struct event *event)
{
	struct event_map *to = &event->map;

	if (flags > MAP_KIND_PROTECT)
		fail(decoder, DECODE_FLAGS, decoder->start + decoder->event_offset);
	to->kind = (enum event_map_kind)flags;
	to->start = cursor_varint(&decoder->cursor);
	to->length = cursor_varint(&decoder->cursor);
	to->protection = u32_number(decoder);
	to->flags = u32_number(decoder);
	to->file = u32_number(decoder) - 1;
	to->offset = cursor_varint(&decoder->cursor);
}

static void decode_end(struct decoder *decoder, unsigned flags, struct event *event)
{
	if (flags > END_RELEASED)
		fail(decoder, DECODE_FLAGS, decoder->start + decoder->event_offset);
	event->end.kind = (enum event_end_kind)flags;
	event->end.status = i32_number(decoder);
	event->end.code = i32_number(decoder);
	signal_details(decoder, event->end.details);
	registers(decoder, &event->end.registers);
}

static void decode_output(struct decoder *decoder, unsigned flags, struct event *event)
{
	(void)flags;
	event->output.fd = i32_number(decoder);
	event->output.bytes = sized_bytes(decoder, EVENT_OUTPUT_MAXIMUM, &event->output.size);
}

/* ---- events ---- */

/* Indexed by kind; `flags` are the bits that the kind may have set. */
static const struct {
	void (*payload)(struct decoder *decoder, unsigned flags, struct event *event);
	unsigned flags;
} kinds[HEAD_KIND_MASK + 1] = {
        [EVENT_KEYFRAME] = {decode_keyframe, 0},
        [EVENT_RESULT] = {decode_result, CHANGES_REGISTERS | CHANGES_FLAGS},
        [EVENT_SYSCALL] = {decode_syscall, CHANGES_REGISTERS | CHANGES_FLAGS | SYSCALL_FORGETS},
        [EVENT_SIGNAL] = {decode_signal, SIGNAL_XSAVE | SIGNAL_FAULT},
        [EVENT_SIGRETURN] = {decode_sigreturn, SIGNAL_XSAVE | SIGRETURN_CALL | SIGRETURN_BASES},
        [EVENT_ORDER] = {decode_order, ORDER_KIND_MASK | ORDER_LOOSE},
        [EVENT_CODE] = {decode_code, 0},
        [EVENT_MAP] = {decode_map, 3},
        [EVENT_END] = {decode_end, 7},
        [EVENT_OUTPUT] = {decode_output, 0},
};

static void decode_other(struct decoder *decoder, unsigned head, struct event *event)
{
	unsigned kind = head & HEAD_KIND_MASK;
	unsigned flags = head >> HEAD_FLAGS_SHIFT & HEAD_FLAGS_MASK;
	const uint8_t *where = decoder->start + decoder->event_offset;

	if (!kinds[kind].payload) {
		fail(decoder, DECODE_KIND, where);
		return;
	}
	if (flags & ~kinds[kind].flags)
		fail(decoder, DECODE_FLAGS, where);
	event->kind = (enum event_kind)kind;
	event->position = kind == EVENT_KEYFRAME ? cursor_u64(&decoder->cursor) : position(decoder);
	kinds[kind].payload(decoder, flags, event);
}

void decoder_init(struct decoder *decoder, const uint8_t *bytes, size_t size)
{
	coder_init(&decoder->coder, decoder->entries, 0);
	decoder->begun = false;
	decoder->status = DECODE_EVENT;
	decoder_continue(decoder, bytes, size);
}

void decoder_copy(struct decoder *decoder, const struct decoder *from)
{
	*decoder = *from;
	decoder->coder.dictionary.entries = decoder->entries;
}

void decoder_continue(struct decoder *decoder, const uint8_t *bytes, size_t size)
{
	decoder->start = bytes;
	decoder->cursor = cursor_of(bytes, size);
	decoder->event_offset = 0;
	decoder->error_offset = 0;
}

enum decode_status decoder_next(struct decoder *decoder, struct event *event)
{
	struct cursor *cursor = &decoder->cursor;

	if (decoder->status != DECODE_EVENT)
		return decoder->status;
	if (cursor->at == cursor->end)
		return DECODE_END;

	decoder->event_offset = (size_t)(cursor->at - decoder->start);
	unsigned head = cursor_u8(cursor);
	if (!decoder->begun && head != EVENT_KEYFRAME)
		fail(decoder, DECODE_NO_KEYFRAME, decoder->start);
	else if (head & PATCH_HEAD)
		decode_patch(decoder, head, event);
	else
		decode_other(decoder, head, event);
	decoder->begun = true;
	if (cursor->state != CURSOR_GOOD)
		fail_to_read(decoder);
	return decoder->status;
}

const char *decode_status_text(enum decode_status status)
{
	static const char *const texts[] = {
	        [DECODE_EVENT] = "no error",
	        [DECODE_END] = "the log ends",
	        [DECODE_TRUNCATED] = "the log ends inside an event",
	        [DECODE_NO_KEYFRAME] = "the log does not begin with a keyframe",
	        [DECODE_KIND] = "no such kind of event",
	        [DECODE_FLAGS] = "flags that this kind of event does not have",
	        [DECODE_OVERLONG] = "a number of more than 64 bits",
	        [DECODE_POSITION] = "a position beyond 64 bits",
	        [DECODE_DICTIONARY] = "a place outside the dictionary",
	        [DECODE_LINE] = "a patch outside the address space",
	        [DECODE_WORDS] = "a patch of no words, or in no known form",
	        [DECODE_RANGE] = "a number beyond its field",
	        [DECODE_SIZE] = "more bytes than an event may carry",
	};

	return texts[status];
}
