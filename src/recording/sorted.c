/*
 * Patches are taken by pieces of PIECE_PATCHES. Within a piece their words are in the order of
 * addresses; what a reader needs for that order, the lines, is not sorted and comes first. Where a
 * line comes several times, as in a buffer that is filled again and again, all lines come
 * for the first time before any comes for the second: so the contents of such a buffer stay whole.
 *
 * The dictionary is undone: what it has saved in the ring the compressor saves better, as it sees that
 * the values are the same. So merging is encoding the words again (encode.h), and splitting makes sure
 * that this gives the same bytes.
 */
#include "recording/sorted.h"

#include <stdlib.h>
#include <zstd.h>

#include "recording/decode.h"
#include "recording/encode.h"
#include "recording/parts.h"

#define PIECE_PATCHES 65536u
#define HEAD_WORDS    3u /* the bits of a patch's first byte that its kinds tell */

/* What a word looks like: how it is told. From 1 to 6: a number of so many bytes. */
enum {
	KIND_NONE, /* it did not change */
	KIND_POINTER = 6,
	KIND_WORD,  /* eight bytes */
	KIND_TEXT,  /* the same, in a line that has nothing but 7-bit characters in such words */
	KIND_PAIR,  /* two numbers of three bytes, each in four bytes of the word */
	KIND_OWN,   /* the distance from where the word is, 16 bits */
	KIND_AGAIN, /* a recent pointer, by its number */
	KIND_NEAR,  /* the number of a recent pointer, and the distance from it, 16 bits */
	KIND_COUNT,
};

_Static_assert(SORTED_COLUMNS == SORTED_VALUES + KIND_COUNT - 1, "one for each kind");

static const uint8_t widths[KIND_COUNT] = {0, 1, 2, 3, 4, 5, 6, 8, 8, 6, 2, 1, 3};

/* The column of a kind's values, and the other way round. */
#define VALUES_OF(kind)         (SORTED_VALUES - 1 + (kind))
#define WIDTH_OF_COLUMN(column) ((column) < SORTED_VALUES ? 1u : widths[(column)-SORTED_VALUES + 1])

#define KINDS_BYTES (EVENT_LINE_WORDS / 2)

struct patch {
	uint64_t line;
	uint64_t mask;
	uint64_t words[EVENT_LINE_WORDS];
};

/* ---- order ---- */

struct place {
	uint64_t key;
	uint64_t index; /* of the patch in its piece */
};

/* One pass for each byte of the keys that is not the same in all of them; equal ones stay in their order. */
static void sort_places(struct place *places, struct place *spare, size_t count)
{
	uint32_t starts[8][256] = {0};
	struct place *from = places, *to = spare;

	for (size_t i = 0; i < count; i++) {
		for (unsigned digit = 0; digit < 8; digit++)
			starts[digit][places[i].key >> 8 * digit & 0xff]++;
	}
	for (unsigned digit = 0; digit < 8; digit++) {
		uint32_t *start = starts[digit], sum = 0;
		if (start[from[0].key >> 8 * digit & 0xff] == count)
			continue;
		for (unsigned i = 0; i < 256; i++) {
			uint32_t here = start[i];
			start[i] = sum;
			sum += here;
		}
		for (size_t i = 0; i < count; i++)
			to[start[from[i].key >> 8 * digit & 0xff]++] = from[i];
		struct place *other = from;
		from = to;
		to = other;
	}
	if (from != places)
		memcpy(places, from, count * sizeof *places);
}

/*
 * The order in which the words of a piece are stored: first all lines in ascending order, of those that
 * come more than once the first time, then the second times, and so on. The caller frees it.
 */
static struct place *order_of(const struct patch *patches, size_t count)
{
	struct place *places = malloc(2 * count * sizeof *places);
	uint64_t line = 0, times = 0;
	bool again = false;

	if (!places)
		return NULL;
	for (size_t i = 0; i < count; i++)
		places[i] = (struct place){patches[i].line, i};
	sort_places(places, places + count, count);
	for (size_t i = 0; i < count; i++) {
		times = i && places[i].key == line ? times + 1 : 0;
		line = places[i].key;
		places[i].key = times;
		again |= times > 0;
	}
	if (again)
		sort_places(places, places + count, count);
	return places;
}

/* ---- recent pointers ---- */

#define RECENTS 8

struct recents {
	uint64_t values[RECENTS];
	unsigned oldest;
};

static void recents_add(struct recents *recents, uint64_t value)
{
	recents->values[recents->oldest] = value;
	recents->oldest = (recents->oldest + 1) % RECENTS;
}

/* ---- to columns ---- */

struct splitter {
	struct buffer columns[SORTED_COLUMNS];
	struct patch *patches; /* of the piece */
	size_t count, capacity;
	struct recents recents;
	/* what encodes again */
	struct coder coder;
	struct dictionary_entry entries[DICTIONARY_MAXIMUM];
	struct decoder decoder;
};

static unsigned pointer_kind(struct recents *recents, uint64_t value, uint64_t *told)
{
	for (unsigned i = 0; i < RECENTS; i++) {
		uint64_t distance = value - recents->values[i];
		if (distance + 0x8000 > 0xffff)
			continue;
		*told = i | (distance & 0xffff) << 8;
		recents->values[i] = value;
		return distance ? KIND_NEAR : KIND_AGAIN;
	}
	recents_add(recents, value);
	*told = value;
	return KIND_POINTER;
}

/* Of those that take more than six bytes. */
static bool is_pair(uint64_t value)
{
	return !(value & 0xff000000ff000000);
}

static unsigned word_kind(
        struct recents *recents, uint64_t value, uint64_t address, bool text, uint64_t *told)
{
	unsigned form = number_form(value);
	uint64_t distance = value - address;

	*told = value;
	if (distance + 0x8000 <= 0xffff && form > 2) {
		*told = distance;
		return KIND_OWN;
	}
	if (form == KIND_POINTER)
		return pointer_kind(recents, value, told);
	if (form != FORM_RAW)
		return form;
	if (is_pair(value)) {
		*told = (value & 0xffffff) | value >> 32 << 24;
		return KIND_PAIR;
	}
	return text ? KIND_TEXT : KIND_WORD;
}

/* Is there no other character in those of its words that take more than six bytes, and are no pairs? */
static bool is_text(const struct patch *patch)
{
	uint64_t bits = 0;

	for (unsigned left = (unsigned)patch->mask; left; left &= left - 1) {
		uint64_t value = patch->words[__builtin_ctz(left)];
		bits |= value >> 48 && !is_pair(value) ? value : 0;
	}
	return !(bits & 0x8080808080808080);
}

static void put_value(struct buffer *column, uint64_t value, unsigned width)
{
	if (column->capacity - column->size < sizeof value && !buffer_reserve(column, sizeof value))
		return;
	put_u64(column->bytes + column->size, value);
	column->size += width;
}

static void split_words(struct splitter *splitter, const struct patch *patch)
{
	bool text = is_text(patch);
	uint32_t kinds = 0;

	for (unsigned left = (unsigned)patch->mask; left; left &= left - 1) {
		unsigned number = (unsigned)__builtin_ctz(left);
		uint64_t address = patch->line * EVENT_LINE_BYTES + 8 * number, told;
		unsigned kind = word_kind(&splitter->recents, patch->words[number], address, text, &told);
		put_value(&splitter->columns[VALUES_OF(kind)], told, widths[kind]);
		kinds |= kind << 4 * number;
	}
	put_value(&splitter->columns[SORTED_KINDS], kinds, KINDS_BYTES);
}

static bool split_piece(struct splitter *splitter)
{
	if (!splitter->count)
		return true;
	struct place *places = order_of(splitter->patches, splitter->count);
	if (!places)
		return false;
	for (size_t i = 0; i < splitter->count; i++)
		split_words(splitter, &splitter->patches[places[i].index]);
	free(places);
	splitter->count = 0;
	return true;
}

static bool keep_patch(struct splitter *splitter, const struct event_patch *event)
{
	if (splitter->count == splitter->capacity) {
		size_t larger = splitter->capacity ? 2 * splitter->capacity : 64;
		struct patch *patches = realloc(splitter->patches, larger * sizeof *patches);
		if (!patches)
			return false;
		splitter->patches = patches;
		splitter->capacity = larger;
	}
	struct patch *patch = &splitter->patches[splitter->count++];
	patch->line = event->address / EVENT_LINE_BYTES;
	patch->mask = event->mask;
	memcpy(patch->words, event->words, sizeof patch->words);
	return splitter->count < PIECE_PATCHES || split_piece(splitter);
}

/* Would the words be encoded as they are here, so that merging can do so? */
static bool comes_back(
        struct splitter *splitter, unsigned head, const struct cursor *words, const struct event_patch *patch)
{
	uint8_t again[ENCODE_PATCH_MAXIMUM], first = 0;
	uint8_t *end = encode_changed_words(&splitter->coder, &first, again, patch->mask, patch->words);
	size_t size = cursor_left(words);

	return first == (head & HEAD_WORDS) && size == (size_t)(end - again) &&
	       memcmp(words->at, again, size) == 0;
}

static bool split_patch(struct splitter *splitter, struct cursor *cursor, const struct event_patch *patch)
{
	size_t size;
	unsigned head = cursor_u8(cursor);
	const uint8_t *part = varint_bytes(cursor, &size);

	put_value(&splitter->columns[SORTED_HEADS], head & ~HEAD_WORDS, 1);
	buffer_bytes(&splitter->columns[SORTED_POSITIONS], part, size);
	part = line_bytes(cursor, head, &size);
	buffer_bytes(&splitter->columns[SORTED_LINES], part, size);
	return comes_back(splitter, head, cursor, patch) && keep_patch(splitter, patch);
}

static bool split_event(struct splitter *splitter, const uint8_t *at, const struct event *event)
{
	struct cursor cursor = cursor_of(at, (size_t)(splitter->decoder.cursor.at - at));

	if (event->kind == EVENT_PATCH)
		return split_patch(splitter, &cursor, &event->patch);
	if (event->kind == EVENT_KEYFRAME) {
		coder_init(&splitter->coder, splitter->entries, splitter->decoder.coder.dictionary.bits);
		dictionary_reset(&splitter->coder.dictionary);
	}
	put_value(&splitter->columns[SORTED_HEADS], *at, 1);
	put_size(&splitter->columns[SORTED_OTHERS], cursor_left(&cursor) - 1);
	buffer_bytes(&splitter->columns[SORTED_OTHERS], at + 1, cursor_left(&cursor) - 1);
	return true;
}

static bool split_events(struct splitter *splitter, const uint8_t *events, size_t size)
{
	struct event event;
	enum decode_status status;

	decoder_init(&splitter->decoder, events, size);
	while ((status = decoder_next(&splitter->decoder, &event)) == DECODE_EVENT) {
		if (!split_event(splitter, events + splitter->decoder.event_offset, &event))
			return false;
	}
	return status == DECODE_END && split_piece(splitter);
}

/* ---- planes ---- */

#define SAMPLES      4
#define SAMPLE_BYTES 4096u

/* First all first bytes of the values, then all second ones. */
static void put_planes(uint8_t *to, const uint8_t *from, size_t size, unsigned width)
{
	for (unsigned byte = 0; byte < width; byte++) {
		for (size_t i = byte; i < size; i += width)
			*to++ = from[i];
	}
}

static size_t packed_size(ZSTD_CCtx *context, const uint8_t *bytes, size_t size)
{
	uint8_t packed[ZSTD_COMPRESSBOUND(SAMPLES * SAMPLE_BYTES)];

	return ZSTD_compressCCtx(context, packed, sizeof packed, bytes, size, 1);
}

/* Samples from everywhere tell, since different things are in different places. */
static bool samples_pay(ZSTD_CCtx *context, const struct buffer *column, unsigned width)
{
	uint8_t sample[SAMPLES * SAMPLE_BYTES], planes[SAMPLES * SAMPLE_BYTES];
	size_t size = column->size;

	if (size <= sizeof sample) {
		memcpy(sample, column->bytes, size);
	} else {
		size_t step = (size - SAMPLE_BYTES) / (SAMPLES - 1) / width * width;
		for (unsigned i = 0; i < SAMPLES; i++)
			memcpy(sample + i * SAMPLE_BYTES, column->bytes + i * step, SAMPLE_BYTES);
		size = sizeof sample;
	}
	put_planes(planes, sample, size, width);
	return packed_size(context, planes, size) < packed_size(context, sample, size);
}

/*
 * Does it get smaller by planes? Numbers do, text does not. Words of eight bytes may be anything, and
 * what leads to its own neighbourhood leads to the same places again and again in some programs.
 */
static bool planes_pay(ZSTD_CCtx *context, unsigned kind, const struct buffer *column)
{
	if (!column->size)
		return false;
	if (kind == KIND_WORD || kind == KIND_OWN)
		return samples_pay(context, column, widths[kind]);
	return kind != KIND_TEXT && widths[kind] > 1;
}

/* ---- all of it ---- */

static bool put_columns(const struct buffer columns[SORTED_COLUMNS], struct sorted *sorted)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	struct buffer *to = &sorted->bytes;
	bool planes[SORTED_COLUMNS] = {0};

	if (!context)
		return false;
	for (unsigned kind = 1; kind < KIND_COUNT; kind++)
		planes[VALUES_OF(kind)] = planes_pay(context, kind, &columns[VALUES_OF(kind)]);
	ZSTD_freeCCtx(context);
	for (unsigned i = 0; i < SORTED_COLUMNS; i++)
		put_size(to, (uint64_t)columns[i].size << 1 | planes[i]);
	for (unsigned i = 0; i < SORTED_COLUMNS; i++) {
		if (planes[i] && buffer_reserve(to, columns[i].size)) {
			put_planes(
			        to->bytes + to->size, columns[i].bytes, columns[i].size, WIDTH_OF_COLUMN(i));
			to->size += columns[i].size;
		} else {
			buffer_bytes(to, columns[i].bytes, columns[i].size);
		}
		sorted->ends[i] = to->size;
		to->failed |= columns[i].failed;
	}
	return !to->failed;
}

bool sorted_split(const uint8_t *events, size_t size, struct sorted *sorted)
{
	struct splitter *splitter = calloc(1, sizeof *splitter);

	*sorted = (struct sorted){0};
	if (!splitter)
		return false;
	bool done = split_events(splitter, events, size) && put_columns(splitter->columns, sorted);
	for (unsigned i = 0; i < SORTED_COLUMNS; i++)
		buffer_deinit(&splitter->columns[i]);
	free(splitter->patches);
	free(splitter);
	return done;
}

void sorted_deinit(struct sorted *sorted)
{
	buffer_deinit(&sorted->bytes);
}

/* ---- from columns ---- */

/* Values of one width, one behind the other or in planes. */
struct values {
	const uint8_t *bytes;
	size_t count, next;
	unsigned width;
	bool planes;
};

struct merger {
	struct merged merged;
	struct cursor columns[SORTED_VALUES];
	struct values values[KIND_COUNT];
	struct recents recents;
	struct patch *patches; /* of the piece */
	size_t room, count, next;
	/* heads and lines are read twice: here a piece ahead */
	struct cursor heads, lines;
	struct coder ahead;
	/* what encodes the words */
	struct coder coder;
	struct dictionary_entry entries[DICTIONARY_MAXIMUM];
};

static uint64_t next_value(struct merger *merger, unsigned kind)
{
	struct values *values = &merger->values[kind];
	uint64_t value = 0;
	size_t at = values->next;

	if (at == values->count) {
		merger->merged.failed = true;
		return 0;
	}
	values->next++;
	if (!values->planes) {
		memcpy(&value, values->bytes + at * values->width, values->width);
		return value;
	}
	for (unsigned byte = 0; byte < values->width; byte++)
		value |= (uint64_t)values->bytes[byte * values->count + at] << 8 * byte;
	return value;
}

static uint64_t recent_word(struct merger *merger, uint64_t told)
{
	uint64_t *recent = &merger->recents.values[told % RECENTS];

	if ((told & 0xff) >= RECENTS)
		merger->merged.failed = true;
	*recent += (uint64_t)(int16_t)(told >> 8);
	return *recent;
}

static uint64_t merge_word(struct merger *merger, unsigned kind, uint64_t address)
{
	if (kind >= KIND_COUNT) {
		merger->merged.failed = true;
		return 0;
	}
	uint64_t told = next_value(merger, kind);
	switch (kind) {
	case KIND_POINTER:
		recents_add(&merger->recents, told);
		return told;
	case KIND_PAIR:
		return (told & 0xffffff) | told >> 24 << 32;
	case KIND_OWN:
		return address + (uint64_t)(int16_t)told;
	case KIND_AGAIN:
	case KIND_NEAR:
		return recent_word(merger, told);
	}
	return told;
}

static void merge_words(struct merger *merger, struct patch *patch)
{
	uint32_t kinds = cursor_u32(&merger->columns[SORTED_KINDS]);

	patch->mask = 0;
	for (unsigned i = 0; i < EVENT_LINE_WORDS; i++) {
		unsigned kind = kinds >> 4 * i & 0xf;
		if (kind == KIND_NONE)
			continue;
		patch->mask |= 1u << i;
		patch->words[i] = merge_word(merger, kind, patch->line * EVENT_LINE_BYTES + 8 * i);
	}
	if (!patch->mask)
		merger->merged.failed = true;
}

static uint64_t next_line(struct coder *coder, struct cursor *lines, unsigned head)
{
	unsigned near = head >> PATCH_LINE_SHIFT & (CODER_LINES - 1);
	enum patch_distance distance = head >> PATCH_DISTANCE_SHIFT & 3;
	int64_t delta = distance == DISTANCE_NEXT;

	if (distance == DISTANCE_NEAR)
		delta = (int8_t)cursor_u8(lines);
	else if (distance == DISTANCE_FAR)
		delta = unzigzag(cursor_varint(lines));
	uint64_t line = coder->lines[near] + (uint64_t)delta;
	coder_line_used(coder, near, delta, line);
	return line;
}

/* The lines of the next piece, and the words that this order gives them. */
static void merge_piece(struct merger *merger)
{
	merger->count = merger->next = 0;
	while (merger->count < merger->room && cursor_left(&merger->heads)) {
		unsigned head = cursor_u8(&merger->heads);
		if (head & PATCH_HEAD)
			merger->patches[merger->count++].line =
			        next_line(&merger->ahead, &merger->lines, head);
		else if (head == EVENT_KEYFRAME)
			coder_init(&merger->ahead, NULL, 0);
	}
	struct place *places = order_of(merger->patches, merger->count);
	if (!places)
		merger->merged.failed = true;
	for (size_t i = 0; i < merger->count && !merger->merged.failed; i++)
		merge_words(merger, &merger->patches[places[i].index]);
	free(places);
}

static void merge_patch(struct merger *merger, unsigned head)
{
	uint8_t words[ENCODE_PATCH_MAXIMUM], first = (uint8_t)head;
	struct merged *merged = &merger->merged;
	const uint8_t *part;
	size_t size;

	if (merger->next == merger->count)
		merge_piece(merger);
	merged->failed |= (head & HEAD_WORDS) != 0;
	if (merged->failed)
		return;
	const struct patch *patch = &merger->patches[merger->next++];
	uint8_t *end =
	        encode_changed_words(&merger->coder, &first, words, (unsigned)patch->mask, patch->words);
	put_part(merged, &first, 1);
	part = varint_bytes(&merger->columns[SORTED_POSITIONS], &size);
	put_part(merged, part, size);
	part = line_bytes(&merger->columns[SORTED_LINES], head, &size);
	put_part(merged, part, size);
	put_part(merged, words, (size_t)(end - words));
}

static void merge_other(struct merger *merger, uint8_t head)
{
	uint64_t size = cursor_varint(&merger->columns[SORTED_OTHERS]);
	const uint8_t *rest = cursor_bytes(&merger->columns[SORTED_OTHERS], size);

	put_part(&merger->merged, &head, 1);
	put_part(&merger->merged, rest, size);
	if (!rest || head != EVENT_KEYFRAME)
		return;
	unsigned bits = size > KEYFRAME_DICTIONARY ? rest[KEYFRAME_DICTIONARY] : 0;
	if (bits > DICTIONARY_MAXIMUM_BITS) {
		merger->merged.failed = true;
		return;
	}
	coder_init(&merger->coder, merger->entries, bits);
	dictionary_reset(&merger->coder.dictionary);
}

/* ---- all of it ---- */

static bool open_values(
        struct values *values, const uint8_t *bytes, uint64_t size, bool planes, unsigned width)
{
	*values = (struct values){.bytes = bytes, .count = size / width, .width = width, .planes = planes};
	return size % width == 0;
}

static bool open_columns(struct merger *merger, const uint8_t *bytes, size_t size)
{
	struct cursor all = cursor_of(bytes, size);
	uint64_t sizes[SORTED_COLUMNS];
	bool good = true;

	for (unsigned i = 0; i < SORTED_COLUMNS; i++)
		sizes[i] = cursor_varint(&all);
	for (unsigned i = 0; i < SORTED_COLUMNS; i++) {
		const uint8_t *column = cursor_bytes(&all, sizes[i] >> 1);
		if (!column)
			return false;
		if (i >= SORTED_VALUES)
			good &= open_values(&merger->values[i - SORTED_VALUES + 1], column, sizes[i] >> 1,
			        sizes[i] & 1, WIDTH_OF_COLUMN(i));
		else
			merger->columns[i] = cursor_of(column, sizes[i] >> 1);
		good &= i >= SORTED_VALUES || !(sizes[i] & 1);
	}
	merger->heads = merger->columns[SORTED_HEADS];
	merger->lines = merger->columns[SORTED_LINES];
	return good && !cursor_left(&all);
}

/* Room for the largest piece there is. */
static bool make_room(struct merger *merger)
{
	const struct cursor *heads = &merger->columns[SORTED_HEADS];

	for (const uint8_t *head = heads->at; head < heads->end && merger->room < PIECE_PATCHES; head++)
		merger->room += *head >> 7;
	merger->patches = calloc(merger->room ? merger->room : 1, sizeof *merger->patches);
	return merger->patches;
}

static bool is_used_up(const struct merger *merger)
{
	bool all = true;

	for (unsigned i = 0; i < SORTED_VALUES; i++)
		all &= merger->columns[i].state == CURSOR_GOOD && !cursor_left(&merger->columns[i]);
	for (unsigned kind = 1; kind < KIND_COUNT; kind++)
		all &= merger->values[kind].next == merger->values[kind].count;
	return all;
}

static bool merge_events(struct merger *merger)
{
	struct cursor *heads = &merger->columns[SORTED_HEADS];

	while (cursor_left(heads) && !merger->merged.failed) {
		uint8_t head = cursor_u8(heads);
		if (head & PATCH_HEAD)
			merge_patch(merger, head);
		else
			merge_other(merger, head);
	}
	return !merger->merged.failed && merger->merged.at == merger->merged.end && is_used_up(merger);
}

bool sorted_merge(const uint8_t *bytes, size_t size, uint8_t *events, size_t events_size)
{
	struct merger *merger = calloc(1, sizeof *merger);

	if (!merger)
		return false;
	merger->merged = (struct merged){events, events + events_size, false};
	bool done = open_columns(merger, bytes, size) && make_room(merger) && merge_events(merger);
	free(merger->patches);
	free(merger);
	return done;
}
