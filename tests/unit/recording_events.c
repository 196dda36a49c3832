/*
 * The event coding: what was encoded is decoded again, in few bytes; what was not
 * encoded is refused, with the reason and the place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "recording/decode.h"
#include "recording/encode.h"
#include "recording_random.h"
#include "recording/columns.h"

#define COUNT 200

static struct random_events source;
static struct coder coder;
static struct dictionary_entry entries[DICTIONARY_MAXIMUM];
static struct decoder decoder;
static struct event written[COUNT];
static uint8_t bytes[COUNT * ENCODE_MAXIMUM];

static size_t make_stretch(uint64_t seed, unsigned dictionary_bits, size_t count)
{
	random_events_init(&source, seed);
	coder_init(&coder, entries, dictionary_bits);
	return random_stretch(&source, &coder, bytes, written, count);
}

/* ---- what was encoded is decoded ---- */

static void same_bytes(const uint8_t *a, uint32_t a_size, const uint8_t *b, uint32_t b_size)
{
	assert_int_equal(a_size, b_size);
	if (a_size)
		assert_memory_equal(a, b, a_size);
}

/* Compares what pointers lead to, then makes the pointers the same, so that the rest can be compared as
 * bytes. */
static void same_event(const struct event *expected, struct event *event)
{
	assert_int_equal(event->kind, expected->kind);
#define SAME_BYTES(part, pointer)                                                                            \
	(same_bytes(expected->part.pointer, expected->part.size, event->part.pointer, event->part.size),     \
	        event->part.pointer = expected->part.pointer)
	switch (event->kind) {
	case EVENT_KEYFRAME:
		SAME_BYTES(keyframe.xsave, bytes);
		break;
	case EVENT_SIGNAL:
		SAME_BYTES(signal.xsave, bytes);
		break;
	case EVENT_SIGRETURN:
		SAME_BYTES(sigreturn.xsave, bytes);
		break;
	case EVENT_OUTPUT:
		SAME_BYTES(output, bytes);
		break;
	default:
		break;
	}
	assert_memory_equal(event, expected, sizeof *event);
}

static void expect_events(size_t size, size_t count)
{
	decoder_init(&decoder, bytes, size);
	for (size_t i = 0; i < count; i++) {
		struct event event;
		memset(&event, 0, sizeof event);
		assert_int_equal(decoder_next(&decoder, &event), DECODE_EVENT);
		same_event(&written[i], &event);
	}
	struct event none;
	assert_int_equal(decoder_next(&decoder, &none), DECODE_END);
}

static void random_events_come_back(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		unsigned bits = seed % (DICTIONARY_MAXIMUM_BITS + 1);
		expect_events(make_stretch(seed, bits, COUNT), COUNT);
	}
}

/* As a recorder gets them: some now, some later, each time whole events. */
static void events_come_in_parts(void **state)
{
	size_t offsets[COUNT + 1];
	struct event event;

	(void)state;
	offsets[COUNT] = make_stretch(5, 6, COUNT);
	decoder_init(&decoder, bytes, offsets[COUNT]);
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(decoder_next(&decoder, &event), DECODE_EVENT);
		offsets[i] = decoder.event_offset;
	}
	decoder_init(&decoder, NULL, 0);
	assert_int_equal(decoder_next(&decoder, &event), DECODE_END);
	for (size_t i = 0; i < COUNT; i++) {
		decoder_continue(&decoder, bytes + offsets[i], offsets[i + 1] - offsets[i]);
		memset(&event, 0, sizeof event);
		assert_int_equal(decoder_next(&decoder, &event), DECODE_EVENT);
		same_event(&written[i], &event);
		assert_int_equal(decoder_next(&decoder, &event), DECODE_END);
	}
}

static void no_event_exceeds_its_maximum(void **state)
{
	static const size_t maximum[] = {
	        [EVENT_KEYFRAME] = ENCODE_KEYFRAME_MAXIMUM,
	        [EVENT_RESULT] = ENCODE_RESULT_MAXIMUM,
	        [EVENT_SYSCALL] = ENCODE_SYSCALL_MAXIMUM,
	        [EVENT_SIGNAL] = ENCODE_SIGNAL_MAXIMUM,
	        [EVENT_SIGRETURN] = ENCODE_SIGRETURN_MAXIMUM,
	        [EVENT_ORDER] = ENCODE_ORDER_MAXIMUM,
	        [EVENT_CODE] = ENCODE_CODE_MAXIMUM,
	        [EVENT_MAP] = ENCODE_MAP_MAXIMUM,
	        [EVENT_END] = ENCODE_END_MAXIMUM,
	        [EVENT_OUTPUT] = ENCODE_OUTPUT_MAXIMUM,
	        [EVENT_PATCH] = ENCODE_PATCH_MAXIMUM,
	};
	(void)state;
	random_events_init(&source, 1);
	coder_init(&coder, entries, DICTIONARY_DEFAULT_BITS);
	for (int i = 0; i < 20000; i++) {
		struct event event;
		random_event(&source, random_kind(&source), &event);
		size_t most = maximum[event.kind];
		memset(bytes, 0xa5, most + 64);
		size_t size = (size_t)(encode_event(&coder, bytes, &event) - bytes);
		assert_true(size <= most);
		/* nor does the encoder write beyond it on its way */
		for (size_t beyond = most; beyond < most + 64; beyond++)
			assert_int_equal(bytes[beyond], 0xa5);
	}
}

/* A stretch in the middle of a log is decoded with nothing before it. */
static void stretches_stand_alone(void **state)
{
	(void)state;
	size_t first = make_stretch(7, DICTIONARY_DEFAULT_BITS, COUNT / 2);
	size_t size = random_stretch(&source, &coder, bytes, written, COUNT);

	assert_true(first > 0);
	expect_events(size, COUNT);
}

/* ---- sizes ---- */

static uint64_t line[EVENT_LINE_WORDS];
static uint64_t here;

static void begin_log(unsigned dictionary_bits)
{
	struct event_keyframe keyframe = {0};

	coder_init(&coder, entries, dictionary_bits);
	encode_keyframe(&coder, bytes, 1000, &keyframe);
	here = 1000;
}

static size_t patch_size(uint64_t address, uint8_t mask)
{
	here += 50;
	return (size_t)(encode_patch(&coder, bytes, here, address, mask, line) - bytes);
}

static void patches_are_small(void **state)
{
	const uint64_t buffer = 0x7ffff7a00000;

	(void)state;
	begin_log(DICTIONARY_DEFAULT_BITS);
	line[3] = 0x7ffff7fb1234;
	/* head, position, far line (six bytes), word number and form, six bytes */
	assert_int_equal(patch_size(buffer, 1 << 3), 1 + 1 + 6 + 1 + 6);
	/* the same line again with the same value: the dictionary has it */
	assert_int_equal(patch_size(buffer, 1 << 3), 4);
	/* the line after it: no more */
	assert_int_equal(patch_size(buffer + 64, 1 << 3), 4);
	/* a line nearby: one byte more */
	assert_int_equal(patch_size(buffer + 64 * 100, 1 << 3), 5);
	/* a small number costs no more than the dictionary */
	line[3] = 200;
	assert_int_equal(patch_size(buffer + 64 * 101, 1 << 3), 4);
	/* a line of small numbers: head, position, three bytes of forms, eight bytes */
	for (int i = 0; i < EVENT_LINE_WORDS; i++)
		line[i] = (uint64_t)i;
	assert_int_equal(patch_size(buffer + 64 * 102, 0xff), 13);
	/* a line of what the dictionary does not have: five bytes on top of the line itself */
	for (int i = 0; i < EVENT_LINE_WORDS; i++)
		line[i] = UINT64_C(0xfedcba9876543210) + (uint64_t)i * 0x1111;
	assert_int_equal(patch_size(buffer + 64 * 103, 0xff), 64 + 5);
	/* two words of eight: one byte of mask, one of forms */
	line[0] = line[7] = 1;
	assert_int_equal(patch_size(buffer + 64 * 104, 0x81), 6);
}

static void streams_are_followed(void **state)
{
	(void)state;
	begin_log(DICTIONARY_DEFAULT_BITS);
	line[0] = 1;
	/* Eight buffers read in turn, far apart: after the first round every line is the next of its stream.
	 */
	for (uint64_t round = 0; round < 10; round++)
		for (uint64_t stream = 0; stream < CODER_LINES; stream++) {
			size_t size = patch_size((stream << 40) + 0x10000000 + round * 64, 1);
			assert_true(round == 0 ? size > 4 : size == 4);
		}
}

/* The bytes of the example in docs/format.md. */
static void example_of_the_format(void **state)
{
	static const uint8_t first[] = {
	        0xfd, 0x32, 0x80, 0x80, 0xf4, 0xfd, 0xff, 0x7f, 0x1e, 0x34, 0x12, 0xfb, 0xf7, 0xff, 0x7f};
	static const uint8_t second[] = {0x81, 0x32, 0x18, 0x06};

	(void)state;
	begin_log(DICTIONARY_DEFAULT_BITS);
	line[3] = 0x7ffff7fb1234;
	assert_int_equal(patch_size(0x7ffff7a00000, 1 << 3), sizeof first);
	assert_memory_equal(bytes, first, sizeof first);
	assert_int_equal(patch_size(0x7ffff7a00040, 1 << 3), sizeof second);
	assert_memory_equal(bytes, second, sizeof second);
}

static void other_events_are_small(void **state)
{
	struct event_result tsc = {
	        .changes = {.mask = 1 << 0 | 1 << 2, .gpr = {[0] = 0xffffffff, [2] = 0x1234}}};
	struct event_syscall write_call = {
	        .registers = {.gpr = {[0] = 1, [6] = 0x7000}, .pc = 0x10}, .result = 4096};

	(void)state;
	begin_log(DICTIONARY_DEFAULT_BITS);
	assert_int_equal(encode_result(&coder, bytes, here + 5, &tsc) - bytes, 1 + 1 + 2 + 5 + 2);
	assert_int_equal(encode_syscall(&coder, bytes, here + 9, &write_call) - bytes,
	        1 + 1 + (2 + 1 + 1 + 1 + 3) + 2);
	assert_int_equal(
	        encode_syscall(&coder, bytes, here + 9, &write_call) - bytes, 1 + 1 + (2 + 1 + 1) + 2);
	assert_true(
	        encode_order(&coder, bytes, here + 10, &(struct event_order){.stamp = 1u << 30}) - bytes <=
	        1 + 1 + 5);
	assert_int_equal(
	        encode_order(&coder, bytes, here + 30, &(struct event_order){.stamp = (1u << 30) + 100}) -
	                bytes,
	        3);
}

/* A value met often keeps its place while others pass by. */
static void frequent_values_stay(void **state)
{
	const uint64_t frequent = 0x5555deadbeef;
	struct dictionary_entry *entry;
	uint64_t other = frequent;

	(void)state;
	begin_log(DICTIONARY_DEFAULT_BITS);
	entry = &entries[dictionary_place(&coder.dictionary, frequent)];
	for (int i = 0; i < 10; i++)
		dictionary_learn(entry, frequent);
	for (int passers = 0; passers < DICTIONARY_HIGH_STRENGTH; passers++)
		assert_false(dictionary_learn(entry, ++other));
	assert_true(dictionary_learn(entry, frequent));
	for (int passers = 0; passers < 2; passers++)
		assert_false(dictionary_learn(entry, ++other));
	assert_false(dictionary_learn(entry, frequent));
}

/* ---- what was not encoded is refused ---- */

static void expect_error(
        const uint8_t *log, size_t size, enum decode_status status, size_t event, size_t error)
{
	struct event ignored;
	enum decode_status found;

	decoder_init(&decoder, log, size);
	do
		found = decoder_next(&decoder, &ignored);
	while (found == DECODE_EVENT);
	assert_string_equal(decode_status_text(found), decode_status_text(status));
	assert_int_equal(decoder.event_offset, event);
	assert_int_equal(decoder.error_offset, error);
	/* and it stays */
	assert_int_equal(decoder_next(&decoder, &ignored), status);
}

/* A keyframe, then these bytes; `error` counts from the keyframe's end. */
static void expect_error_after_keyframe(
        enum decode_status status, size_t error, const char *tail, size_t size)
{
	struct event_keyframe keyframe = {0};
	uint8_t *end;

	coder_init(&coder, entries, DICTIONARY_DEFAULT_BITS);
	end = encode_keyframe(&coder, bytes, UINT64_MAX - 1000, &keyframe);
	size_t start = (size_t)(end - bytes);
	memcpy(end, tail, size);
	expect_error(bytes, start + size, status, start, start + error);
}

static void wrong_events(void **state)
{
	(void)state;
#define EXPECT(status, error, tail) expect_error_after_keyframe(status, error, tail, sizeof tail - 1)
	EXPECT(DECODE_KIND, 0, "\x00");
	EXPECT(DECODE_KIND, 0, "\x0b\x01");
	EXPECT(DECODE_FLAGS, 0, "\x42\x01");             /* a result with a third flag */
	EXPECT(DECODE_FLAGS, 0, "\x38\x01\0\0\0\0\0\0"); /* the fourth kind of map */
	EXPECT(DECODE_FLAGS, 0, "\x59\x01\0\0\0");       /* the sixth kind of end */
	EXPECT(DECODE_POSITION, 1, "\x06\xe9\x07\x01");  /* 1001 further */
	EXPECT(DECODE_TRUNCATED, 2, "\x06\x01");
	EXPECT(DECODE_TRUNCATED, 1, "\x06\x81\x82");
	EXPECT(DECODE_OVERLONG, 1, "\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\x01");
	EXPECT(DECODE_OVERLONG, 1, "\x06\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00\x01");
	EXPECT(DECODE_LINE, 2, "\x89\x01\xff\x01\x01"); /* the line before the first one */
	EXPECT(DECODE_LINE, 2, "\x8d\x01\x80\x80\x80\x80\x80\x80\x80\x80\x08\x01\x01"); /* 2^58 */
	EXPECT(DECODE_WORDS, 2, "\x83\x01\x01\x01");                 /* no such form of patch */
	EXPECT(DECODE_WORDS, 2, "\x82\x01\x00\1\2\3\4\5\6\7\10\11"); /* no words */
	EXPECT(DECODE_WORDS, 2, "\x81\x01\x41\x01");                 /* the ninth word */
	EXPECT(DECODE_DICTIONARY, 3, "\x81\x01\x00\x40");            /* the 65th place */
	EXPECT(DECODE_RANGE, 2, "\x0a\x01\x80\x80\x80\x80\x10\x00"); /* file descriptor 2^31 */
	EXPECT(DECODE_SIZE, 3, "\x0a\x01\x02\x81\x20");              /* output of 4097 bytes */
	EXPECT(DECODE_TRUNCATED, 4, "\x0a\x01\x02\x05hell");
}

static void wrong_starts(void **state)
{
	static const uint8_t large_dictionary[] = {EVENT_KEYFRAME, 0, 0, 0, 0, 0, 0, 0, 0, 11};

	(void)state;
	expect_error((const uint8_t *)"\x06\x01\x01", 3, DECODE_NO_KEYFRAME, 0, 0);
	expect_error((const uint8_t *)"\x01\x01", 2, DECODE_TRUNCATED, 0, 1);
	expect_error(large_dictionary, sizeof large_dictionary, DECODE_DICTIONARY, 0, 9);
}

/* Cut off anywhere, a log gives its whole events and then says where it ends. */
static void truncated_logs(void **state)
{
	size_t size = make_stretch(11, DICTIONARY_DEFAULT_BITS, 30);

	(void)state;
	for (size_t cut = 0; cut < size; cut++) {
		/* a copy of its own, so that a read beyond the end is seen by the sanitizers */
		uint8_t *copy = malloc(cut ? cut : 1);
		struct event event;
		enum decode_status status;
		size_t count = 0;
		memcpy(copy, bytes, cut);
		decoder_init(&decoder, copy, cut);
		while ((status = decoder_next(&decoder, &event)) == DECODE_EVENT) {
			assert_int_equal(event.kind, written[count].kind);
			assert_int_equal(event.position, written[count].position);
			count++;
		}
		assert_true(count < 30);
		assert_true(status == DECODE_END || status == DECODE_TRUNCATED);
		assert_true(status == DECODE_END || decoder.event_offset < cut);
		free(copy);
	}
}

/* Any change of any byte: an error or other events, never more. */
static void corrupted_logs(void **state)
{
	struct rng rng = rng_stream(5, 5);

	(void)state;
	for (uint64_t seed = 0; seed < 2000; seed++) {
		size_t size = make_stretch(seed, seed % 11, 20);
		uint8_t *copy = malloc(size);
		struct event event;
		uint64_t sum = 0;
		memcpy(copy, bytes, size);
		for (int changes = 0; changes < 3; changes++)
			copy[rng_below(&rng, (uint32_t)size)] = (uint8_t)rng_next(&rng);
		decoder_init(&decoder, copy, size);
		while (decoder_next(&decoder, &event) == DECODE_EVENT) {
			/* what the event points at is inside the log */
			if (event.kind == EVENT_OUTPUT)
				for (uint32_t i = 0; i < event.output.size; i++)
					sum += event.output.bytes[i];
			if (event.kind == EVENT_PATCH)
				assert_true(event.patch.mask && event.patch.address % EVENT_LINE_BYTES == 0);
		}
		assert_true(decoder.event_offset <= size && decoder.error_offset <= size);
		assert_true(sum < UINT64_MAX);
		free(copy);
	}
}

/* ---- columns ---- */

static void columns_come_back(void **state)
{
	static uint8_t merged[sizeof bytes];

	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		size_t size = make_stretch(seed, seed % 11, 1 + seed % COUNT);
		struct buffer columns = {0};
		assert_true(columns_split(bytes, size, &columns));
		assert_true(columns.size >= size && columns.size <= COLUMNS_SIZE_LIMIT(size));
		assert_true(columns_merge(columns.bytes, columns.size, merged, size));
		assert_memory_equal(merged, bytes, size);
		assert_false(columns_merge(columns.bytes, columns.size, merged, size - 1));
		assert_false(columns_merge(columns.bytes, columns.size, merged, size + 1));
		buffer_deinit(&columns);
	}
}

static void no_columns_of_other_bytes(void **state)
{
	struct buffer columns = {0};
	size_t size = make_stretch(3, 6, 20);

	(void)state;
	assert_false(columns_split((const uint8_t *)"\x06\x01\x01", 3, &columns));
	assert_false(columns_split(bytes, size - 1, &columns));
	buffer_deinit(&columns);
}

/* Any change of any byte, or an end anywhere: not these events, and nothing worse. */
static void corrupted_columns(void **state)
{
	struct rng rng = rng_stream(6, 6);
	static uint8_t merged[sizeof bytes];

	(void)state;
	for (uint64_t seed = 0; seed < 2000; seed++) {
		size_t size = make_stretch(seed, seed % 11, 20);
		struct buffer columns = {0};
		assert_true(columns_split(bytes, size, &columns));
		size_t cut = seed % 2 ? columns.size : rng_below(&rng, (uint32_t)columns.size);
		uint8_t *copy = malloc(cut ? cut : 1), *events = malloc(size);
		memcpy(copy, columns.bytes, cut);
		for (int changes = 0; cut && changes < 3; changes++)
			copy[rng_below(&rng, (uint32_t)cut)] = (uint8_t)rng_next(&rng);
		if (columns_merge(copy, cut, events, size))
			memcpy(merged, events, size);
		else
			assert_true(cut < columns.size || memcmp(copy, columns.bytes, cut) != 0);
		free(copy);
		free(events);
		buffer_deinit(&columns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(random_events_come_back),
	        cmocka_unit_test(events_come_in_parts),
	        cmocka_unit_test(no_event_exceeds_its_maximum),
	        cmocka_unit_test(stretches_stand_alone),
	        cmocka_unit_test(patches_are_small),
	        cmocka_unit_test(streams_are_followed),
	        cmocka_unit_test(example_of_the_format),
	        cmocka_unit_test(other_events_are_small),
	        cmocka_unit_test(frequent_values_stay),
	        cmocka_unit_test(wrong_events),
	        cmocka_unit_test(wrong_starts),
	        cmocka_unit_test(truncated_logs),
	        cmocka_unit_test(corrupted_logs),
	        cmocka_unit_test(columns_come_back),
	        cmocka_unit_test(no_columns_of_other_bytes),
	        cmocka_unit_test(corrupted_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
