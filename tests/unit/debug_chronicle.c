/*
 * The time of threads, on a log made by hand: what it tells, and what is counted besides.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "debug/chronicle.h"
#include "recording/encode.h"
#include "recording/stretch.h"
#include "replay/timeline.h"

#define SECOND 1000 /* where a second stretch begins */

static uint8_t bytes[2][8 * ENCODE_MAXIMUM], *ends[2];
static char directory[] = "/tmp/bugnet-chronicle-XXXXXX", path[64];
static struct recorded recorded;
static struct chronicle chronicle;

static uint8_t *put_order(
        struct coder *coder, uint8_t *at, uint64_t position, enum event_order_kind kind, uint64_t stamp)
{
	const struct event_order order = {.kind = kind, .stamp = stamp};

	return encode_order(coder, at, position, &order);
}

/*
 * A call at 10, stamped 5 and 6. Locked instructions at 20 and 30, of which nothing is told, and at 40, which
 * is told to be 20; a signal at 50, stamped 22, since there is one at 45, before another one. Then a keyframe
 * where the clock is 23, and the end.
 */
static void make(void)
{
	static struct dictionary_entry entries[DICTIONARY_MAXIMUM];
	const struct event_keyframe keyframe = {0};
	const struct event_syscall call = {0};
	const struct event_signal signal = {.number = 10};
	const struct event_end end = {.kind = END_THREAD_EXIT};
	struct coder coder;
	uint8_t *at;

	coder_init(&coder, entries, 6);
	at = encode_keyframe(&coder, bytes[0], 0, &keyframe);
	at = put_order(&coder, at, 10, ORDER_OPERATION, 5);
	at = encode_syscall(&coder, at, 10, &call);
	at = put_order(&coder, at, 40, ORDER_OPERATION, 20);
	at = put_order(&coder, at, 50, ORDER_OPERATION, 22);
	ends[0] = encode_signal(&coder, at, 50, &signal);
	at = encode_keyframe(&coder, bytes[1], SECOND, &keyframe);
	at = put_order(&coder, at, SECOND, ORDER_CLOCK, 23);
	ends[1] = encode_end(&coder, at, 1100, &end);
}

static void open_made(void)
{
	struct writer writer;

	make();
	snprintf(path, sizeof path, "%s/made.bug", directory);
	assert_int_equal(writer_init(&writer, path, 0), RECORDING_OK);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(stretch_write(&writer, 0, i, i * SECOND, i ? 1100 : SECOND, bytes[i],
		                         (size_t)(ends[i] - bytes[i])),
		        RECORDING_OK);
	assert_int_equal(writer_finish(&writer), RECORDING_OK);
	writer_deinit(&writer);
	assert_int_equal(reader_open(&recorded.reader, path), RECORDING_OK);
	assert_true(timeline_read(&recorded.timeline, &recorded.reader));
	chronicle_open(&chronicle, &recorded);
}

static void close_made(void)
{
	chronicle_close(&chronicle);
	timeline_deinit(&recorded.timeline);
	reader_deinit(&recorded.reader);
	unlink(path);
}

static uint64_t time_at(uint64_t position)
{
	return chronicle_time(&chronicle, 0, (struct place){position, 0});
}

static uint64_t at_time(uint64_t time)
{
	return chronicle_at(&chronicle, 0, time).position;
}

/* Time stands still between what the log tells. */
static void test_log(void **state)
{
	(void)state;
	open_made();
	assert_int_equal(time_at(10), 4);
	assert_int_equal(time_at(11), 6);
	assert_int_equal(time_at(40), 6);
	assert_int_equal(time_at(41), 20);
	assert_int_equal(at_time(4), 10);
	assert_int_equal(at_time(5), 10);
	assert_int_equal(at_time(6), 40);
	assert_int_equal(at_time(20), 50);
	assert_int_equal(time_at(SECOND + 1), 23);
	close_made();
}

static void test_counted(void **state)
{
	static const uint64_t positions[] = {20, 30, 40, 45, 50, 1050};

	(void)state;
	open_made();
	for (unsigned i = 0; i < sizeof positions / sizeof *positions; i++)
		chronicle_note_operation(&chronicle, 0, positions[i]);
	chronicle_stamp_operations(&chronicle, true);

	/* Each has the next number, unless the log has another for it. */
	static const struct {
		uint64_t position, time;
	} times[] = {{10, 4}, {11, 6}, {20, 6}, {21, 7}, {30, 7}, {31, 8}, {40, 8}, {41, 20}, {46, 21},
	        {50, 21}, {51, 23}, {SECOND, 23}, {1050, 23}, {1051, 24}};
	for (unsigned i = 0; i < sizeof times / sizeof *times; i++) {
		if (time_at(times[i].position) != times[i].time)
			fail_msg("at %lu it is %lu instead of %lu", times[i].position,
			        time_at(times[i].position), times[i].time);
	}

	/* A thread stands before the first thing that comes later. */
	assert_int_equal(at_time(5), 10);
	assert_int_equal(at_time(6), 20);
	assert_int_equal(at_time(7), 30);
	assert_int_equal(at_time(8), 40);
	assert_int_equal(at_time(19), 40);
	assert_int_equal(at_time(20), 45);
	assert_int_equal(at_time(21), 50);
	assert_int_equal(at_time(23), 1050);
	assert_int_equal(at_time(24), 1100);

	close_made();
}

/* Some of them are worse than none. */
static void test_given_up(void **state)
{
	(void)state;
	open_made();
	chronicle_note_operation(&chronicle, 0, 20);
	chronicle_stamp_operations(&chronicle, false);
	assert_int_equal(time_at(40), 6);
	assert_int_equal(at_time(6), 40);
	close_made();
}

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	(void)state;
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_log),
	        cmocka_unit_test(test_counted),
	        cmocka_unit_test(test_given_up),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
