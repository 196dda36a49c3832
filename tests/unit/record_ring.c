/* The ring: what goes when it is full, and which code what is left needs; and which ends are saved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "record/index.h"
#include "record/kept_code.h"
#include "record/ring.h"
#include "record/save.h"
#include "record/save_policy.h"
#include "recording/event.h"
#include "recording/stretch.h"

/* ---- the ring ---- */

#define BYTES 1000

static struct ring ring;
static uint32_t numbers[8];

static void add_leaning(uint32_t thread, uint32_t leans_on)
{
	static uint8_t bytes[BYTES];
	uint32_t number = numbers[thread]++;
	struct ring_stretch stretch = {
	        .section = {.type = SECTION_STRETCH,
	                .id = stretch_id(thread, number),
	                .first = number * 100,
	                .last = number * 100 + 100,
	                .stored_size = BYTES},
	        .stored = bytes,
	        .leans_on = leans_on,
	};

	ring_add(&ring, &stretch);
}

static void add(uint32_t thread)
{
	add_leaning(thread, 0);
}

static void note(uint32_t thread, bool living, bool leans)
{
	const struct thread_record record = {.id = thread};

	ring_note_thread(&ring, &record, living, leans);
}

/* Shrinks to `count` stretches, and tells what is left as "thread.number ...". */
static const char *left_of(uint32_t count)
{
	static char text[1024];
	uint64_t each = ring.used / (ring.stretches.count - ring.gone);
	size_t size = 0;

	ring_shrink(&ring, count * each);
	*text = 0;
	for (uint32_t i = 0; i < ring.stretches.count; i++) {
		const struct section *section = &ring.stretches.items[i].section;
		if (ring.stretches.items[i].stored)
			size += (size_t)snprintf(text + size, sizeof text - size, "%s%u.%u", size ? " " : "",
			        stretch_thread(section), stretch_number(section));
	}
	return text;
}

static int empty(void **state)
{
	(void)state;
	ring_deinit(&ring);
	memset(&ring, 0, sizeof ring);
	memset(numbers, 0, sizeof numbers);
	return 0;
}

static void oldest_goes_first(void **state)
{
	(void)state;
	note(0, true, false);
	note(1, true, false);
	for (int i = 0; i < 3; i++) {
		add(0);
		add(1);
	}
	assert_string_equal(left_of(5), "1.0 0.1 1.1 0.2 1.2");
	assert_string_equal(left_of(3), "1.1 0.2 1.2");
	assert_int_equal(ring.dropped, 3);
	assert_int_equal(ring.dropped_executed, 300);
}

/* One that sleeps keeps what it did last, as long as a busy one has more than that. */
static void a_sleeper_keeps_its_last(void **state)
{
	(void)state;
	note(0, true, false);
	note(1, true, false);
	add(0);
	for (int i = 0; i < 50; i++) {
		add(1);
		left_of(4);
	}
	assert_string_equal(left_of(4), "0.0 1.47 1.48 1.49");
	assert_string_equal(left_of(2), "0.0 1.49");
	/* In a ring that is too small even for that, the thread's open stretch is what is left. */
	assert_string_equal(left_of(1), "1.49");
}

static void ended_threads_are_forgotten(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		note(i, true, false);
		add(i);
		note(i, false, false);
	}
	assert_int_equal(ring.threads.count, 4);
	assert_string_equal(left_of(2), "2.0 3.0");
	assert_int_equal(ring.threads.count, 2);
	assert_int_equal(ring.threads_forgotten, 2);
	assert_string_equal(left_of(0), "");
	assert_int_equal(ring.threads.count, 0);
}

/* What leans on others goes with them. */
static void groups_go_together(void **state)
{
	(void)state;
	note(0, true, false);
	for (int i = 0; i < 2; i++) {
		add_leaning(0, 0);
		add_leaning(0, 1);
		add_leaning(0, 2);
	}
	assert_string_equal(left_of(5), "0.3 0.4 0.5");
	/* The open stretch leans on these. */
	note(0, true, true);
	assert_string_equal(left_of(1), "0.3 0.4 0.5");
	note(0, true, false);
	assert_string_equal(left_of(1), "");
}

static void many_are_kept_in_order(void **state)
{
	(void)state;
	note(0, true, false);
	for (int i = 0; i < 1000; i++) {
		add(0);
		if (i >= 10)
			left_of(10);
	}
	assert_string_equal(left_of(3), "0.997 0.998 0.999");
	assert_true(ring.stretches.count < 64);
}

/* ---- code ---- */

static struct kept_code code;

static void piece(uint64_t address, uint64_t size, char byte)
{
	uint8_t bytes[64];
	struct code_history news = {0};
	struct code_piece added = {.address = address,
	        .size = size,
	        .file = size > sizeof bytes ? 0 : EVENT_FILE_NONE,
	        .bytes = bytes};

	memset(bytes, byte, sizeof bytes);
	assert_true(code_history_add(&news, &added));
	kept_code_add(&code, &(struct code_news){.pieces = &news});
	code_history_deinit(&news);
}

/* What was in [start, end) is unmapped; that takes a number. */
static void gone(uint64_t start, uint64_t end)
{
	struct code_history news = {0};
	struct code_gone what = {start, end, code.history.next + 1};

	code_history_skip(&news, 1);
	kept_code_add(&code, &(struct code_news){.pieces = &news, .gone = &what, .gone_count = 1});
}

static const char *pieces_left(void)
{
	static char text[1024];
	size_t size = 0;

	*text = 0;
	for (uint32_t i = 0; i < code.history.count; i++)
		size += (size_t)snprintf(text + size, sizeof text - size, "%s%u", size ? " " : "",
		        code.history.pieces[i].number);
	return text;
}

static int empty_code(void **state)
{
	(void)state;
	kept_code_deinit(&code);
	memset(&code, 0, sizeof code);
	return 0;
}

/* What was unmapped before all keyframes goes, also if nothing ever came to its place. */
static void unmapped_code_goes(void **state)
{
	(void)state;
	piece(0x1000, 16, 1); /* 0 */
	piece(0x2000, 16, 1);
	piece(0x3000, 16, 1);
	gone(0x2000, 0x3000); /* takes 3 */
	piece(0x4000, 16, 1); /* 4 */
	piece(0x2000, 16, 2); /* 5: not what went */
	kept_code_drop(&code, (struct code_need[]){{3, CODE_NEED_ALL}}, 1);
	assert_string_equal(pieces_left(), "0 1 2 4 5"); /* a keyframe before it needs it */
	assert_int_equal(code.gone.count, 1);
	kept_code_drop(&code, (struct code_need[]){{4, CODE_NEED_ALL}}, 1);
	assert_string_equal(pieces_left(), "0 2 4 5");
	assert_int_equal(code.gone.count, 0);
}

/* Two needs, one from before; and a piece of which only a part went. */
static void unmapped_code_is_needed(void **state)
{
	(void)state;
	piece(0x1000, 16, 1);
	piece(0x2000, 0x2000, 1); /* of a file */
	gone(0x1000, 0x3000);
	piece(0x5000, 16, 1); /* 3 */
	gone(0x5000, 0x6000);
	piece(0x6000, 16, 1); /* 5 */
	kept_code_drop(&code, (struct code_need[]){{1, 2}, {5, CODE_NEED_ALL}}, 2);
	assert_string_equal(pieces_left(), "0 1 5");
	kept_code_drop(&code, (struct code_need[]){{5, CODE_NEED_ALL}}, 1);
	assert_string_equal(pieces_left(), "1 5");
}

/* Who sleeps needs what was there when it fell asleep, and nothing of what came and went since; nor its
 * mappings. */
static void sleep_pins_nothing_unmapped(void **state)
{
	(void)state;
	struct codelog log = {0};
	struct code_history none = {0};
	struct codelog_file file = {.path = "library"};

	assert_true(codelog_add(&log, &file));
	piece(0x1000, 16, 1);
	piece(0x2000, 16, 1);
	gone(0x1000, 0x2000); /* takes 2: somebody fell asleep before */
	for (unsigned i = 0; i < 100; i++) {
		uint64_t start = 0x10000 + i * 0x1000;
		piece(start, 16, 1);
		gone(start, start + 0x1000);
		struct gone_mapping mapping = {
		        0, {.address = start, .length = 0x1000, .order = i}, code.history.next};
		kept_code_add(&code,
		        &(struct code_news){.pieces = &none, .mappings = &mapping, .mapping_count = 1});
	}
	uint32_t now = code.history.next;
	kept_code_drop(&code, (struct code_need[]){{2, 2}, {now - 2, CODE_NEED_ALL}}, 2);
	assert_string_equal(pieces_left(), "0 1 201");
	assert_int_equal(code.gone.count, 2);
	assert_int_equal(code.mappings.count, 1);
	kept_code_add_mappings(&code, &log);
	assert_int_equal(log.files[0].mapping_count, 1);
	assert_int_equal(log.files[0].mappings[0].order, 99);
	codelog_deinit(&log);
}

/* ---- the index that pages are found by ---- */

static void index_forgets(void **state)
{
	(void)state;
	enum { KEYS = 4000 };
	static bool there[KEYS];
	struct index index = {0};
	uint64_t random = 1;

	for (unsigned turn = 0; turn < 100000; turn++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		unsigned key = (unsigned)(random >> 33) % KEYS;
		assert_int_equal(index_find(&index, key * 4096ul), there[key] ? key + 7 : INDEX_NONE);
		if (there[key])
			index_remove(&index, key * 4096ul);
		else
			index_add(&index, key * 4096ul, key);
		there[key] = !there[key];
		if (there[key])
			index_change(&index, key * 4096ul, key + 7);
	}
	for (unsigned key = 0; key < KEYS; key++)
		assert_int_equal(index_find(&index, key * 4096ul), there[key] ? key + 7 : INDEX_NONE);
	assert_true(index.capacity <= 4 * KEYS);
	index_deinit(&index);
}

static void covered_code_goes(void **state)
{
	struct code_need needs[] = {{4, CODE_NEED_ALL}};

	(void)state;
	piece(0x10000, 0x4000, 0); /* 0: a file */
	piece(0x10010, 8, 'a');    /* 1 */
	piece(0x10010, 8, 'b');    /* 2: over it */
	piece(0x10014, 8, 'c');    /* 3: over half of that */
	piece(0x10010, 8, 'd');    /* 4: over the other half, but later than what is needed */
	kept_code_drop(&code, needs, 1);
	assert_string_equal(pieces_left(), "0 2 3 4");
	assert_int_equal(code.history.next, 5);
	assert_int_equal(code_history_index(&code.history, 2), 1);
	assert_int_equal(code_history_index(&code.history, 5), 4);
	needs[0] = (struct code_need){5, CODE_NEED_ALL};
	kept_code_drop(&code, needs, 1);
	assert_string_equal(pieces_left(), "0 3 4");
	piece(0x10000, 0x4000, 0); /* 5: a file over all of it */
	needs[0] = (struct code_need){6, CODE_NEED_ALL};
	kept_code_drop(&code, needs, 1);
	assert_string_equal(pieces_left(), "5");
}

/* Somebody slept while others replaced much: what came and went meanwhile is nobody's. */
static void sleep_pins_nothing(void **state)
{
	struct code_need needs[] = {{90, CODE_NEED_ALL}, {0, 3}, {95, 98}, {1, 0}};

	(void)state;
	for (char i = 0; i < 100; i++)
		piece(0x10000, 8, i);
	kept_code_drop(&code, needs, 4);
	assert_string_equal(pieces_left(), "0 1 2 89 90 91 92 93 94 95 96 97 98 99");
	assert_int_equal(code.history.next, 100);
	for (uint32_t i = 0; i < code.history.count; i++)
		assert_int_equal(code.history.pieces[i].bytes[7], code.history.pieces[i].number);
}

/* What is left out comes back from a file with the same numbers. */
static void gaps_are_coded(void **state)
{
	struct code_need needs[] = {{90, CODE_NEED_ALL}, {2, 3}};
	struct code_history read = {0};
	struct buffer buffer = {0};

	(void)state;
	for (char i = 0; i < 100; i++)
		piece(0x10000, 8, i);
	kept_code_drop(&code, needs, 2);
	assert_string_equal(pieces_left(), "1 2 89 90 91 92 93 94 95 96 97 98 99");
	assert_false(code_history_is_whole(&code.history));
	code_history_encode(&code.history, &buffer);
	assert_int_equal(code_history_decode(&read, buffer.bytes, buffer.size), RECORDING_OK);
	assert_int_equal(read.count, code.history.count);
	assert_int_equal(read.next, 100);
	for (uint32_t i = 0; i < read.count; i++)
		assert_int_equal(read.pieces[i].number, code.history.pieces[i].number);
	code_history_deinit(&read);
	buffer_deinit(&buffer);
}

/* ---- names ---- */

static void files_are_numbered(void **state)
{
	char path[PATH_MAX];

	(void)state;
	save_numbered("/tmp/a.bug", 1, path);
	assert_string_equal(path, "/tmp/a.bug");
	save_numbered("/tmp/a.bug", 12, path);
	assert_string_equal(path, "/tmp/a-12.bug");
	save_numbered("/tmp/a.b/c", 2, path);
	assert_string_equal(path, "/tmp/a.b/c-2");
}

/* ---- ends ---- */

static bool wants(const char *text, uint32_t kind, int32_t status)
{
	struct save_policy policy;
	char why[256];

	assert_true(save_policy_parse(&policy, text, why, sizeof why));
	return save_policy_wants(&policy, kind, status);
}

#define UNKNOWN UINT32_MAX

static void ends_are_told_apart(void **state)
{
	(void)state;
	assert_true(wants("always", END_EXIT, 0));
	assert_false(wants("never", END_KILLED, SIGSEGV));
	assert_true(wants("signal", END_KILLED, SIGTERM));
	assert_true(wants("signal", UNKNOWN, 0)); /* SIGKILL */
	assert_false(wants("signal", END_EXIT, 1));
	assert_true(wants("error", END_EXIT, 1));
	assert_true(wants("error", END_KILLED, SIGABRT));
	assert_false(wants("error", END_EXIT, 0));
	assert_false(wants("error", END_EXIT, 256)); /* the status is 0 */
	assert_true(wants("SIGTERM,exit=3", END_KILLED, SIGTERM));
	assert_true(wants("segv", END_KILLED, SIGSEGV));
	assert_false(wants("SIGTERM,exit=3", END_KILLED, SIGSEGV));
	assert_true(wants("SIGTERM,exit=3", END_EXIT, 3));
	assert_false(wants("SIGTERM,exit=3", END_EXIT, 4));
	assert_true(wants("SIGKILL", UNKNOWN, 0));
	assert_false(wants("error", END_EXEC, 0));
}

static void wrong_ends_are_named(void **state)
{
	static const char *const wrong[] = {
	        "", "sometimes", "exit=", "exit=256", "exit=x", "signal,", "SIGNONE"};
	struct save_policy policy;
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_false(save_policy_parse(&policy, wrong[i], why, sizeof why));
		assert_non_null(strstr(why, "no end of a program"));
	}
}

#define RING(name) cmocka_unit_test_teardown(name, empty)
#define CODE(name) cmocka_unit_test_teardown(name, empty_code)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        RING(oldest_goes_first),
	        RING(a_sleeper_keeps_its_last),
	        RING(ended_threads_are_forgotten),
	        RING(groups_go_together),
	        RING(many_are_kept_in_order),
	        CODE(covered_code_goes),
	        CODE(unmapped_code_goes),
	        CODE(unmapped_code_is_needed),
	        CODE(sleep_pins_nothing_unmapped),
	        cmocka_unit_test(index_forgets),
	        CODE(sleep_pins_nothing),
	        CODE(gaps_are_coded),
	        cmocka_unit_test(files_are_numbered),
	        cmocka_unit_test(ends_are_told_apart),
	        cmocka_unit_test(wrong_ends_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
