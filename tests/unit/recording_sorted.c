/*
 * Events with their words sorted (sorted.h): they come back byte for byte, whatever they are and however
 * many; what cannot come back is refused, and so is what was never split.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "recording/packing.h"
#include "recording/sorted.h"
#include "recording_random.h"

#define COUNT 200
#define MANY  150000u /* patches: several pieces, the last one of an odd size */

static struct random_events source;
static struct coder coder;
static struct dictionary_entry entries[DICTIONARY_MAXIMUM];
static struct event written[COUNT];
static uint8_t bytes[COUNT * ENCODE_MAXIMUM];

static size_t make_stretch(uint64_t seed, unsigned dictionary_bits, size_t count)
{
	random_events_init(&source, seed);
	coder_init(&coder, entries, dictionary_bits);
	return random_stretch(&source, &coder, bytes, written, count);
}

static void comes_back(const uint8_t *events, size_t size)
{
	uint8_t *merged = malloc(size + 1);
	struct sorted sorted;

	assert_true(sorted_split(events, size, &sorted));
	const struct buffer *split = &sorted.bytes;
	assert_true(split->size <= SORTED_SIZE_LIMIT(size));
	assert_true(sorted.ends[SORTED_COLUMNS - 1] == split->size);
	assert_true(sorted_merge(split->bytes, split->size, merged, size));
	assert_memory_equal(merged, events, size);
	assert_false(sorted_merge(split->bytes, split->size, merged, size - 1));
	assert_false(sorted_merge(split->bytes, split->size, merged, size + 1));
	assert_false(sorted_merge(split->bytes, split->size - 1, merged, size));
	free(merged);
	sorted_deinit(&sorted);
}

static void random_events_come_back(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 400; seed++)
		comes_back(bytes, make_stretch(seed, seed % 11, 1 + seed % COUNT));
}

/* ---- words of every kind ---- */

static uint64_t near(struct rng *rng, uint64_t value)
{
	static const int64_t edges[] = {0, 0x7fff, 0x8000, -0x8000, -0x8001, 1, -1, 0xffff};

	return value + (uint64_t)edges[rng_below(rng, 8)];
}

static uint64_t word_of_a_kind(struct rng *rng, uint64_t address)
{
	static uint64_t pointer = 0x7f1234567890;

	switch (rng_below(rng, 8)) {
	case 0:
		return near(rng, address);
	case 1:
		return pointer = near(rng, pointer);
	case 2:
		return pointer = 0x550000000000 + (rng_next(rng) >> 36) * 16;
	case 3:
		return 0x2065726568740a20; /* text */
	case 4:
		return rng_next(rng) & 0x00ffffff00ffffff;
	case 5:
		return 0;
	}
	return rng_next(rng) >> rng_below(rng, 64);
}

/* A stretch of so many patches on `lines` lines from `line` on. The caller frees it. */
static uint8_t *make_patches(uint64_t seed, unsigned count, uint64_t line, uint32_t lines, size_t *size)
{
	struct rng rng = rng_stream(seed, 1);
	uint8_t *events = malloc(ENCODE_KEYFRAME_MAXIMUM + count * (size_t)ENCODE_PATCH_MAXIMUM),
	        *at = events;
	struct event_keyframe keyframe = {0};
	uint64_t words[EVENT_LINE_WORDS];

	assert_non_null(events);
	coder_init(&coder, entries, DICTIONARY_DEFAULT_BITS);
	at = encode_keyframe(&coder, at, 0, &keyframe);
	for (unsigned i = 0; i < count; i++) {
		uint64_t address = (line + rng_below(&rng, lines)) * EVENT_LINE_BYTES;
		uint8_t mask = (uint8_t)(rng_next(&rng) | 1u << rng_below(&rng, 8));
		for (unsigned word = 0; word < EVENT_LINE_WORDS; word++)
			words[word] = word_of_a_kind(&rng, address + 8 * word);
		at = encode_patch(&coder, at, i, address, mask, words);
	}
	*size = (size_t)(at - events);
	return events;
}

static void all_kinds_come_back(void **state)
{
	static const struct {
		unsigned count;
		uint64_t line;
		uint32_t lines;
	} cases[] = {
	        {1, 0, 1},                       /* at the bottom of the address space */
	        {2, LINE_LIMIT - 1, 1},          /* and at its top */
	        {1000, 0x1fc000000, 1},          /* one line again and again */
	        {65535, 0x15400000, 100000},     /* a piece less one */
	        {65536, 0x15400000, 100},        /* just a piece */
	        {65537, 0x15400000, 100},        /* and one more */
	        {MANY + 7, 0x1fd00000, 1000000}, /* hardly any line twice */
	};
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint8_t *events = make_patches(i, cases[i].count, cases[i].line, cases[i].lines, &size);
		comes_back(events, size);
		free(events);
	}
}

/* Without patches, and without anything behind the keyframe. */
static void empty_columns(void **state)
{
	size_t size;
	uint8_t *events = make_patches(0, 0, 0, 1, &size);

	(void)state;
	comes_back(events, size);
	free(events);
}

/* The largest that events become: words that are all in the dictionary. */
static void nothing_grows_beyond_the_limit(void **state)
{
	static uint8_t events[ENCODE_KEYFRAME_MAXIMUM + 1000 * ENCODE_PATCH_MAXIMUM];
	struct event_keyframe keyframe = {0};
	uint64_t words[EVENT_LINE_WORDS];
	uint8_t *at;

	(void)state;
	for (unsigned mask = 1; mask < 0x100; mask += 2) {
		coder_init(&coder, entries, DICTIONARY_DEFAULT_BITS);
		at = encode_keyframe(&coder, events, 0, &keyframe);
		for (unsigned i = 0; i < EVENT_LINE_WORDS; i++)
			words[i] = UINT64_MAX;
		for (unsigned i = 0; i < 1000; i++)
			at = encode_patch(&coder, at, i, 64 * (uint64_t)i, (uint8_t)mask, words);
		comes_back(events, (size_t)(at - events));
	}
}

/* ---- what cannot come back ---- */

/* A patch behind a keyframe with a dictionary: its bytes are right, but encode.h writes other ones. */
static void other_encoders(void **state)
{
	static const struct {
		uint8_t bytes[12];
		size_t size;
		bool comes_back;
	} patches[] = {
	        {{0x85, 0, 0x01, 0x2a}, 4, true},          /* as encode.h writes a byte in word 0 */
	        {{0x85, 0, 0x02, 0x2a, 0x00}, 5, false},   /* a byte as two */
	        {{0x86, 0, 0x01, 0x01, 0x2a}, 5, false},   /* some words, of which there is one */
	        {{0x85, 0x80, 0x00, 0x01, 0x2a}, 5, true}, /* a long position: that is kept as it is */
	};
	struct event_keyframe keyframe = {0};
	uint8_t events[ENCODE_KEYFRAME_MAXIMUM + 12];
	struct sorted sorted;

	(void)state;
	coder_init(&coder, entries, DICTIONARY_DEFAULT_BITS);
	size_t start = (size_t)(encode_keyframe(&coder, events, 0, &keyframe) - events);
	for (size_t i = 0; i < sizeof patches / sizeof patches[0]; i++) {
		memcpy(events + start, patches[i].bytes, patches[i].size);
		assert_int_equal(
		        sorted_split(events, start + patches[i].size, &sorted), patches[i].comes_back);
		sorted_deinit(&sorted);
		if (patches[i].comes_back)
			comes_back(events, start + patches[i].size);
	}
}

static void no_events(void **state)
{
	size_t size = make_stretch(3, 6, 20);
	struct sorted sorted;

	(void)state;
	assert_false(sorted_split((const uint8_t *)"\x06\x01\x01", 3, &sorted));
	sorted_deinit(&sorted);
	assert_false(sorted_split(bytes, size - 1, &sorted));
	sorted_deinit(&sorted);
}

/* They are stored all the same, in another way. */
static void others_are_stored(void **state)
{
	size_t size;
	uint8_t *events = make_patches(5, 1000, 0x1fc000000, 1000, &size);
	struct buffer room = {0};
	struct section section = {.codec = CODEC_SORTED};

	(void)state;
	section_pack(&section, events, size, 3, &room);
	assert_int_equal(section.codec, CODEC_SORTED);
	assert_true(section.stored_size < size && section.raw_size == size);
	section.codec = CODEC_SORTED;
	section_pack(&section, events, size - 1, 3, &room);
	assert_int_equal(section.codec, CODEC_ZSTD);
	section.codec = CODEC_SORTED;
	assert_ptr_equal(section_pack(&section, "abc", 3, 3, &room), "abc");
	assert_int_equal(section.codec, CODEC_NONE);
	assert_int_equal(section.stored_size, 3);
	buffer_deinit(&room);
	free(events);
}

/* Any change of any byte, or an end anywhere: not these events, and nothing worse. */
static void corrupted(void **state)
{
	struct rng rng = rng_stream(6, 6);

	(void)state;
	for (uint64_t seed = 0; seed < 4000; seed++) {
		size_t size = make_stretch(seed, seed % 11, 20);
		struct sorted sorted;
		assert_true(sorted_split(bytes, size, &sorted));
		size_t whole = sorted.bytes.size;
		size_t cut = seed % 2 ? whole : rng_below(&rng, (uint32_t)whole);
		uint8_t *copy = malloc(cut ? cut : 1), *events = malloc(size);
		memcpy(copy, sorted.bytes.bytes, cut);
		/* half of the time where the sizes are */
		uint32_t reach = (uint32_t)(seed % 4 < 2 && cut > 24 ? 24 : cut);
		for (int changes = 0; cut && changes < 3; changes++)
			copy[rng_below(&rng, reach)] = (uint8_t)rng_next(&rng);
		if (!sorted_merge(copy, cut, events, size))
			assert_true(cut < whole || memcmp(copy, sorted.bytes.bytes, cut) != 0);
		free(copy);
		free(events);
		sorted_deinit(&sorted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(random_events_come_back),
	        cmocka_unit_test(all_kinds_come_back),
	        cmocka_unit_test(empty_columns),
	        cmocka_unit_test(nothing_grows_beyond_the_limit),
	        cmocka_unit_test(other_encoders),
	        cmocka_unit_test(no_events),
	        cmocka_unit_test(others_are_stored),
	        cmocka_unit_test(corrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
