/* From threads' logs and translated code to a recording, with made-up logs and real files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "../fuzz/random.h"
#include "record/recorder.h"
#include "recording/code_history.h"
#include "recording/codelog.h"
#include "recording/decode.h"
#include "recording/encode.h"
#include "recording/meta.h"
#include "recording/stretch.h"
#include "recording/thread.h"

#define PAGES      4
#define FILE_BYTES (PAGES * 4096 - 1000) /* the last page is not full */

static char directory[] = "/tmp/bugnet-recorder-XXXXXX";
static char path[64], library[64];
static char *arguments[] = {"program", "-x", NULL};
static struct recorder_options options;
static uint64_t ring_size;
static struct recorder *recorder;
static struct memory memory;
static struct space space;
static struct reader reader;

/* ---- a recording ---- */

static int begin(void **state)
{
	char why[256];

	(void)state;
	options = (struct recorder_options){
	        .version = "1.2",
	        .path = path,
	        .directory = directory,
	        .program = "/usr/bin/program",
	        .argv = arguments,
	        .cpu = "native",
	        .dictionary = 64,
	        .interval = 1000,
	        .ring = ring_size,
	};
	space.segment_count = 2;
	space.segments[0].layout = (struct segment_layout){.base = 0x7f0000000000, .size = 0x10000000};
	space.segments[1].layout = (struct segment_layout){.base = 0x550000000000, .size = 0x20000000};
	recorder = recorder_create(&options, why, sizeof why);
	assert_non_null(recorder);
	recorder_begin(recorder, getpid(), &space);
	assert_int_equal(memory_open(&memory, getpid()), 0);
	return 0;
}

static int begin_ring(void **state)
{
	ring_size = 1 << 20;
	int result = begin(state);
	ring_size = 0;
	return result;
}

static int end(void **state)
{
	(void)state;
	reader_deinit(&reader);
	memory_close(&memory);
	unlink(path);
	return 0;
}

/* What is said on stderr while recorder_finish runs. */
static void finish(char *said, size_t size)
{
	int out = memfd_create("stderr", 0), old = dup(2);

	dup2(out, 2);
	recorder_destroy(recorder);
	dup2(old, 2);
	close(old);
	ssize_t got = pread(out, said, size - 1, 0);
	said[got < 0 ? 0 : got] = 0;
	close(out);
}

static void finish_and_open(void)
{
	char said[1024];

	finish(said, sizeof said);
	assert_non_null(strstr(said, "bugnet: saved recording.bug: "));
	assert_int_equal(reader_open(&reader, path), RECORDING_OK);
	assert_int_equal(reader.end.status, RECORDING_OK);
}

static uint32_t count_files(void)
{
	DIR *here = opendir(directory);
	uint32_t count = 0;

	for (struct dirent *entry; (entry = readdir(here));)
		count += entry->d_name[0] != '.';
	closedir(here);
	return count;
}

/* ---- logs ---- */

static struct dictionary_entry entries[2][DICTIONARY_MAXIMUM];
static struct coder coders[2];
static uint8_t bytes[1 << 20];

static uint8_t *leaning_keyframe(uint8_t *at, unsigned thread, uint64_t position, uint32_t leans_on)
{
	const struct event_keyframe event = {
	        .leans_on = leans_on,
	        .registers = {.pc = 0x401000},
	        .monotonic = 5000 + position,
	        .realtime = 1,
	};

	coder_init(&coders[thread], entries[thread], 6);
	return encode_keyframe(&coders[thread], at, position, &event);
}

static uint8_t *keyframe(uint8_t *at, unsigned thread, uint64_t position)
{
	return leaning_keyframe(at, thread, position, 0);
}

static uint8_t *call(uint8_t *at, unsigned thread, uint64_t position, uint64_t number)
{
	const struct event_syscall event = {.registers.gpr[0] = number, .result = -2};

	return encode_syscall(&coders[thread], at, position, &event);
}

static uint8_t *end_of(uint8_t *at, unsigned thread, uint64_t position, enum event_end_kind kind, int status)
{
	const struct event_end event = {.kind = kind, .status = status, .code = 1, .details = {0x10}};

	return encode_end(&coders[thread], at, position, &event);
}

static void give(unsigned thread, const uint8_t *to, uint64_t position, unsigned reason)
{
	const struct log log = {
	        .id = thread,
	        .parent = thread ? 0 : THREAD_NO_PARENT,
	        .tid = getpid(),
	        .position = position,
	};

	recorder_log(recorder, &log, bytes, (uint64_t)(to - bytes), log.position, reason);
}

static void expect_stretch(unsigned thread, uint32_t number, uint64_t first, uint64_t last, size_t events)
{
	const struct section *section =
	        reader_find(&reader, SECTION_STRETCH, stretch_id(thread, number), NULL);
	static struct decoder decoder;
	struct event event;
	uint8_t *content;

	assert_non_null(section);
	assert_int_equal(section->first, first);
	assert_int_equal(section->last, last);
	assert_int_equal(stretch_read(&reader, section, &content), RECORDING_OK);
	decoder_init(&decoder, content, section->raw_size);
	for (; events; events--)
		assert_int_equal(decoder_next(&decoder, &event), DECODE_EVENT);
	assert_int_equal(decoder_next(&decoder, &event), DECODE_END);
	free(content);
}

static struct thread_record thread_record(uint32_t id)
{
	const struct section *section = NULL, *last = NULL;
	struct thread_record record = {0};

	while ((section = reader_find(&reader, SECTION_THREAD, id, section)))
		last = section;
	assert_non_null(last);
	assert_int_equal(thread_record_read(&reader, last, &record), RECORDING_OK);
	return record;
}

static void expect_number(const struct meta *meta, const char *key, uint64_t expected)
{
	uint64_t number;

	assert_true(meta_number(meta, key, &number));
	assert_int_equal(number, expected);
}

static void stretches_are_collected(void **state)
{
	uint8_t *at;

	(void)state;
	/* thread 0: a stretch in three parts, then another; thread 1 in between */
	at = call(keyframe(bytes, 0, 0), 0, 10, 1);
	give(0, at, 10, LOG_FULL);
	give(1, call(keyframe(bytes, 1, 0), 1, 5, 2), 5, LOG_FULL);
	give(0, call(bytes, 0, 20, 1), 20, LOG_FULL);
	give(0, call(bytes, 0, 30, 1), 30, LOG_KEYFRAME);
	give(0, call(keyframe(bytes, 0, 1000), 0, 1010, 1), 1010, LOG_FULL);
	give(1, end_of(bytes, 1, 50, END_THREAD_EXIT, 0), 50, LOG_ENDED);
	give(1, bytes, 50, LOG_ENDED); /* once more, by whoever buries it */
	give(0, end_of(bytes, 0, 1500, END_KILLED, 11), 1500, LOG_ENDED);
	finish_and_open();
	expect_stretch(0, 0, 0, 1000, 4);
	expect_stretch(0, 1, 1000, 1500, 3);
	expect_stretch(1, 0, 0, 50, 3);
	assert_null(reader_find(&reader, SECTION_STRETCH, stretch_id(1, 1), NULL));
	struct thread_record record = thread_record(0);
	assert_int_equal(record.end_kind, END_KILLED);
	assert_int_equal(record.end_status, 11);
	assert_int_equal(record.parent, THREAD_NO_PARENT);
	assert_int_equal(record.tid, getpid());
	assert_int_equal(record.first_position, 0);
	assert_int_equal(record.last_position, 1500);
	assert_int_equal(record.start_time, 5000);
	assert_true(strlen(record.name) > 0);
	record = thread_record(1);
	assert_int_equal(record.end_kind, END_THREAD_EXIT);
	assert_int_equal(record.parent, 0);
	assert_int_equal(record.last_position, 50);
}

static void facts_are_there(void **state)
{
	struct meta meta = {0};
	uint32_t count;

	(void)state;
	give(0, end_of(keyframe(bytes, 0, 0), 0, 7, END_EXIT, 3), 7, LOG_ENDED);
	finish_and_open();
	assert_int_equal(meta_read(&reader, &meta), RECORDING_OK);
	assert_string_equal(meta_text(&meta, META_PROGRAM), "/usr/bin/program");
	assert_string_equal(meta_text(&meta, META_BUGNET_VERSION), "1.2");
	assert_string_equal(meta_text(&meta, META_DIRECTORY), directory);
	assert_string_equal(meta_texts(&meta, META_ARGUMENTS, &count)[1], "-x");
	assert_int_equal(count, 2);
	char *const *segments = meta_texts(&meta, META_SEGMENTS, &count);
	assert_int_equal(count, 2);
	assert_string_equal(segments[0], "7f0000000000 10000000");
	assert_string_equal(segments[1], "550000000000 20000000");
	expect_number(&meta, META_PID, (uint64_t)getpid());
	expect_number(&meta, META_END_KIND, END_EXIT);
	expect_number(&meta, META_END_STATUS, 3);
	expect_number(&meta, META_DICTIONARY, 64);
	expect_number(&meta, META_INTERVAL, 1000);
	assert_non_null(meta_text(&meta, META_HOST));
	assert_non_null(meta_text(&meta, META_CPU));
	assert_string_equal(meta_text(&meta, META_CPU_LEVEL), "native");
	assert_non_null(strstr(meta_text(&meta, META_CPU_FLAGS), "sse2"));
	meta_deinit(&meta);
}

/* Nobody logs an end, and what was logged last is all there is; the process, which is this one, goes on. */
static void no_end(void **state)
{
	struct meta meta = {0};

	(void)state;
	give(0, call(keyframe(bytes, 0, 0), 0, 100, 1), 100, LOG_FULL);
	give(1, call(keyframe(bytes, 1, 0), 1, 200, 1), 200, LOG_ENDED);
	finish_and_open();
	expect_stretch(0, 0, 0, 100, 2);
	expect_stretch(1, 0, 0, 200, 2);
	assert_int_equal(thread_record(0).end_kind, THREAD_STILL_RUNS);
	assert_int_equal(meta_read(&reader, &meta), RECORDING_OK);
	expect_number(&meta, META_END_KIND, END_RELEASED);
	meta_deinit(&meta);
}

/* The program overwrote its own log: what comes before is kept, and what follows the next keyframe. */
static void damaged_log(void **state)
{
	char said[1024];
	uint8_t *at;

	(void)state;
	at = call(keyframe(bytes, 0, 0), 0, 10, 1);
	*at++ = 0x0f; /* no such event */
	at = call(at, 0, 20, 1);
	give(0, at, 20, LOG_FULL);
	give(0, call(bytes, 0, 30, 1), 30, LOG_KEYFRAME);
	give(0, end_of(keyframe(bytes, 0, 1000), 0, 1100, END_EXIT, 0), 1100, LOG_ENDED);
	finish(said, sizeof said);
	assert_non_null(strstr(said, "warning: what 1 thread logged was damaged"));
	assert_int_equal(reader_open(&reader, path), RECORDING_OK);
	const struct section *first = reader_find(&reader, SECTION_STRETCH, stretch_id(0, 0), NULL);
	assert_non_null(first);
	expect_stretch(0, 0, 0, first->last, 2);
	expect_stretch(0, 1, 1000, 1100, 2);
}

/* Nor can it be replayed what leans on what was damaged. */
static void damaged_log_is_leaned_on(void **state)
{
	char said[1024];
	uint8_t *at;

	(void)state;
	at = call(keyframe(bytes, 0, 0), 0, 10, 1);
	*at++ = 0x0f; /* no such event */
	give(0, at, 10, LOG_KEYFRAME);
	give(0, call(leaning_keyframe(bytes, 0, 1000, 1), 0, 1010, 1), 1010, LOG_KEYFRAME);
	give(0, call(leaning_keyframe(bytes, 0, 2000, 2), 0, 2010, 1), 2010, LOG_KEYFRAME);
	give(0, call(keyframe(bytes, 0, 3000), 0, 3010, 1), 3010, LOG_KEYFRAME);
	give(0, end_of(leaning_keyframe(bytes, 0, 4000, 1), 0, 4100, END_EXIT, 0), 4100, LOG_ENDED);
	finish(said, sizeof said);
	assert_int_equal(reader_open(&reader, path), RECORDING_OK);
	expect_stretch(0, 1, 3000, 4000, 2);
	expect_stretch(0, 2, 4000, 4100, 2);
	assert_null(reader_find(&reader, SECTION_STRETCH, stretch_id(0, 3), NULL));
}

static void keyframes_are_due(void **state)
{
	struct log log = {.id = 0};

	(void)state;
	give(0, call(keyframe(bytes, 0, 0), 0, 10, 1), 10, LOG_FULL);
	assert_true(recorder_keyframe_in(recorder, &log) == UINT64_MAX);
	options.interval_time = 1;
	assert_true(recorder_keyframe_in(recorder, &log) == 0);
	options.interval_time = UINT64_C(1) << 62;
	assert_in_range(recorder_keyframe_in(recorder, &log), UINT64_C(1) << 61, UINT64_C(1) << 62);
	uint8_t *at = bytes;
	while (at < bytes + sizeof bytes - ENCODE_SYSCALL_MAXIMUM)
		at = call(at, 0, 10, 1);
	for (int i = 0; i < 40; i++)
		give(0, at, 10, LOG_FULL);
	assert_true(recorder_keyframe_in(recorder, &log) == 0);
	give(0, bytes, 10, LOG_KEYFRAME);
	assert_true(recorder_keyframe_in(recorder, &log) > 0);
	log.id = UINT32_MAX;
	assert_true(recorder_keyframe_in(recorder, &log) == UINT64_MAX);
	finish_and_open();
}

/* ---- code ---- */

static uint8_t content[FILE_BYTES];

/* A file of random bytes, mapped: all of it but the first page. */
static uint8_t *map_library(void)
{
	struct rng rng = rng_stream(1, 2);
	int fd = open(library, O_RDWR | O_CREAT | O_TRUNC, 0600);

	for (size_t i = 0; i < sizeof content; i++)
		content[i] = (uint8_t)rng_next(&rng);
	assert_int_equal(write(fd, content, sizeof content), sizeof content);
	uint8_t *at = mmap(NULL, (PAGES - 1) * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 4096);
	assert_ptr_not_equal(at, MAP_FAILED);
	close(fd);
	memory_changed(&memory);
	return at;
}

static void run(uint64_t position, const void *at, uint32_t size)
{
	recorder_code(recorder, 0, position, &memory, (uint64_t)(uintptr_t)at, at, size);
}

static struct code_history finished_code(void)
{
	struct code_history history = {0};

	give(0, end_of(keyframe(bytes, 0, 0), 0, 1000, END_EXIT, 3), 1000, LOG_ENDED);
	finish_and_open();
	assert_int_equal(code_history_read(&reader, &history), RECORDING_OK);
	return history;
}

static void expect_piece(const struct code_piece *piece, uint64_t position, const uint8_t *at, uint64_t size)
{
	assert_int_equal(piece->position, position);
	assert_int_equal(piece->address, (uintptr_t)at);
	assert_int_equal(piece->size, size);
}

static void file_code_is_one_piece(void **state)
{
	uint8_t *at = map_library();
	struct codelog log = {0};
	struct stat status;

	(void)state;
	run(1, at + 100, 50);
	run(2, at + 4000, 500);
	run(3, at, FILE_BYTES - 4096);
	assert_int_equal(stat(library, &status), 0);
	struct code_history history = finished_code();
	assert_int_equal(history.count, 1);
	expect_piece(&history.pieces[0], 1, at, FILE_BYTES - 4096);
	assert_int_equal(history.pieces[0].file, 0);
	assert_int_equal(history.pieces[0].offset, 4096);
	assert_int_equal(codelog_read(&reader, &log), RECORDING_OK);
	assert_int_equal(log.count, 1);
	assert_string_equal(log.files[0].path, library);
	assert_int_equal(log.files[0].inode, status.st_ino);
	assert_int_equal(log.files[0].size, FILE_BYTES);
	assert_true(log.files[0].has_checksum);
	assert_true(log.files[0].checksum == container_checksum(content, FILE_BYTES));
	assert_int_equal(log.files[0].mapping_count, 1);
	assert_int_equal(log.files[0].mappings[0].address, (uintptr_t)at);
	assert_int_equal(log.files[0].mappings[0].length, (PAGES - 1) * 4096);
	assert_int_equal(log.files[0].mappings[0].offset, 4096);
	assert_int_equal(log.files[0].mappings[0].protection, PROT_READ | PROT_WRITE);
	codelog_deinit(&log);
	code_history_deinit(&history);
	munmap(at, (PAGES - 1) * 4096);
}

/* A program changes its code and changes it back. */
static void patched_code_is_bytes(void **state)
{
	uint8_t *at = map_library();

	(void)state;
	run(1, at, 64);
	at[10] ^= 1;
	at[12] ^= 1;
	run(2, at, 64);
	run(3, at, 64); /* nothing new */
	at[10] ^= 1;
	at[12] ^= 1;
	run(4, at, 64);
	struct code_history history = finished_code();
	assert_int_equal(history.count, 3);
	expect_piece(&history.pieces[1], 2, at + 10, 3);
	expect_piece(&history.pieces[2], 4, at + 10, 3);
	assert_memory_equal(history.pieces[2].bytes, content + 4096 + 10, 3);
	assert_int_equal(history.pieces[1].bytes[0], content[4096 + 10] ^ 1);
	code_history_deinit(&history);
	munmap(at, (PAGES - 1) * 4096);
}

/* Code that differs comes first: the file's piece, when it comes, must not hide it. */
static void patches_outlive_the_file(void **state)
{
	uint8_t *at = map_library();

	(void)state;
	at[10] ^= 1;
	run(1, at, 16);
	run(2, at + 4096, 16);
	struct code_history history = finished_code();
	assert_int_equal(history.count, 3);
	expect_piece(&history.pieces[0], 1, at, 16);
	expect_piece(&history.pieces[1], 2, at, FILE_BYTES - 4096);
	expect_piece(&history.pieces[2], 2, at, 16);
	assert_int_equal(history.pieces[2].bytes[10], at[10]);
	code_history_deinit(&history);
	munmap(at, (PAGES - 1) * 4096);
}

/* Behind the end of the file the last page has zeros, which the file has not. */
static void end_of_file(void **state)
{
	uint8_t *at = map_library();
	uint8_t *tail = at + FILE_BYTES - 4096;

	(void)state;
	run(1, tail - 4, 8);
	run(2, at, 16);
	struct code_history history = finished_code();
	assert_int_equal(history.count, 3);
	expect_piece(&history.pieces[0], 1, tail - 4, 8);
	assert_int_equal(history.pieces[0].file, EVENT_FILE_NONE);
	expect_piece(&history.pieces[1], 2, at, FILE_BYTES - 4096);
	expect_piece(&history.pieces[2], 2, tail - 4, 8);
	code_history_deinit(&history);
	munmap(at, (PAGES - 1) * 4096);
}

static void expect_bytes_only(const uint8_t *at)
{
	struct codelog log = {0};

	run(1, at, 40);
	run(2, at + 20, 40);
	struct code_history history = finished_code();
	assert_int_equal(history.count, 2);
	expect_piece(&history.pieces[0], 1, at, 40);
	expect_piece(&history.pieces[1], 2, at + 40, 20);
	assert_int_equal(history.pieces[0].file, EVENT_FILE_NONE);
	assert_memory_equal(history.pieces[0].bytes, at, 40);
	assert_int_equal(codelog_read(&reader, &log), RECORDING_MISSING);
	code_history_deinit(&history);
}

static void code_of_no_file(void **state)
{
	uint8_t *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	memset(at, 0x90, 4096);
	memory_changed(&memory);
	expect_bytes_only(at);
	munmap(at, 4096);
}

static void code_of_the_vdso(void **state)
{
	(void)state;
	expect_bytes_only((const uint8_t *)getauxval(AT_SYSINFO_EHDR)); // NOLINT
}

static void code_of_a_deleted_file(void **state)
{
	uint8_t *at = map_library();

	(void)state;
	unlink(library);
	memory_changed(&memory);
	expect_bytes_only(at);
	munmap(at, (PAGES - 1) * 4096);
}

/* Another file of the same name is not the one that is mapped. */
static void code_of_a_replaced_file(void **state)
{
	uint8_t *at = map_library();

	(void)state;
	unlink(library);
	int fd = open(library, O_RDWR | O_CREAT, 0600);
	assert_int_equal(write(fd, content, sizeof content), sizeof content);
	close(fd);
	memory_changed(&memory);
	expect_bytes_only(at);
	munmap(at, (PAGES - 1) * 4096);
}

static void code_of_a_shared_file(void **state)
{
	uint8_t *at = map_library();
	int fd = open(library, O_RDONLY);

	(void)state;
	munmap(at, (PAGES - 1) * 4096);
	at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	memory_changed(&memory);
	expect_bytes_only(at);
	munmap(at, 4096);
	close(fd);
}

/* A library goes and another comes in its place. */
static void another_file_in_its_place(void **state)
{
	uint8_t *at = map_library();
	int self = open("/proc/self/exe", O_RDONLY);

	(void)state;
	run(1, at, 32);
	mmap(at, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, self, 0);
	memory_changed(&memory);
	run(2, at, 32);
	run(3, at + 4096, 32); /* the rest of the first one */
	struct code_history history = finished_code();
	assert_int_equal(history.count, 2);
	expect_piece(&history.pieces[1], 2, at, 4096);
	assert_int_equal(history.pieces[1].file, 1);
	assert_int_equal(history.pieces[1].offset, 0);
	code_history_deinit(&history);
	munmap(at, (PAGES - 1) * 4096);
	close(self);
}

/* ---- what goes wrong ---- */

static void unwritable(void **state)
{
	struct recorder_options wrong = {.path = "/nonexistent/x.bug", .directory = "/"};
	char why[256];

	(void)state;
	assert_null(recorder_create(&wrong, why, sizeof why));
	assert_string_equal(
	        why, "cannot write /nonexistent/x.bug: No such file or directory; give another path with -o");
	wrong.path = "/dev/null";
	assert_null(recorder_create(&wrong, why, sizeof why));
	assert_string_equal(why, "cannot write /dev/null: not a regular file; give another path with -o");
}

static void never_begun(void **state)
{
	char why[256], said[64];

	(void)state;
	recorder = recorder_create(&options, why, sizeof why);
	assert_non_null(recorder);
	assert_int_equal(count_files(), 1);
	finish(said, sizeof said);
	assert_string_equal(said, "");
	assert_int_equal(count_files(), 0);
}

/* A disk that is full, or a limit on the size of files. */
static void disk_full(void **state)
{
	struct rlimit old, low;
	struct rng rng = rng_stream(3, 4);
	char said[1024];

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	give(0, call(keyframe(bytes, 0, 0), 0, 10, 1), 10, LOG_KEYFRAME);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = (struct rlimit){64 << 10, old.rlim_max};
	uint8_t *at = keyframe(bytes, 0, 1000);
	for (int i = 0; i < 2000; i++) {
		uint64_t line[8];
		for (int w = 0; w < 8; w++)
			line[w] = rng_next(&rng);
		at = encode_patch(
		        &coders[0], at, 1000, 0x7f0000000000 + 64 * rng_below(&rng, 100000), 0xff, line);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	give(0, at, 1000, LOG_KEYFRAME);
	give(0, end_of(keyframe(bytes, 0, 2000), 0, 2500, END_EXIT, 0), 2500, LOG_ENDED);
	finish(said, sizeof said);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_non_null(strstr(said, "recording.bug: File too large; the program goes on"));
	assert_non_null(strstr(said, "bugnet: saved recording.bug: 1000 instructions, 1 thread"));
	assert_int_equal(reader_open(&reader, path), RECORDING_OK);
	assert_int_equal(reader.end.status, RECORDING_TRUNCATED);
	expect_stretch(0, 0, 0, 1000, 2);
	assert_int_equal(count_files(), 1);
}

/* ---- a thread's share of a ring ---- */

/* At least so many bytes of events, with values that nothing can predict. */
static uint8_t *many(uint8_t *at, uint64_t position, uint64_t size)
{
	static uint64_t number = 1;

	for (const uint8_t *start = at; at < start + size;) {
		uint64_t words[8];
		for (unsigned i = 0; i < 8; i++)
			words[i] = number = number * 6364136223846793005u + 1442695040888963407u;
		at = encode_patch(&coders[0], at, position, (number >> 20) << 6, 0xff, words);
	}
	return at;
}

/* A stretch of so many instructions, at the end of which the thread has just used up its share. */
static void take_stretch(uint64_t *position, uint64_t executed, uint64_t share)
{
	const struct log log = {.id = 0};

	give(0, many(keyframe(bytes, 0, *position), *position, share - 0x2000), *position, LOG_FULL);
	assert_int_not_equal(recorder_keyframe_in(recorder, &log), 0);
	give(0, many(bytes, *position, 0x2000), *position, LOG_FULL);
	assert_int_equal(recorder_keyframe_in(recorder, &log), 0);
	*position += executed;
	give(0, call(bytes, 0, *position, 1), *position, LOG_KEYFRAME);
}

/* What is logged again behind each keyframe is given room, up to half of the ring; in vain it is not kept. */
static void share_grows(void **state)
{
	uint64_t position = 0;
	char said[1024];

	(void)state;
	take_stretch(&position, 50000, 128 << 10);
	take_stretch(&position, 50000, 256 << 10);
	take_stretch(&position, 50000, 512 << 10);
	take_stretch(&position, 50000, 128 << 10);
	take_stretch(&position, 50000, 128 << 10);
	/* It was not in vain any more. */
	take_stretch(&position, 2000000, 128 << 10);
	take_stretch(&position, 50000, 128 << 10);
	take_stretch(&position, 5000000, 256 << 10);
	take_stretch(&position, 5000000, 256 << 10);
	/* A small stretch takes it back. */
	position += 1000;
	give(0, call(keyframe(bytes, 0, position), 0, position, 1), position, LOG_KEYFRAME);
	take_stretch(&position, 5000000, 128 << 10);
	finish(said, sizeof said);
	assert_null(strstr(said, "too small"));
}

static void crowded_ring_is_told(void **state)
{
	int out = memfd_create("stderr", 0), old = dup(2);
	char said[1024];
	uint64_t position = 0;

	(void)state;
	dup2(out, 2);
	take_stretch(&position, 50000, 128 << 10);
	take_stretch(&position, 50000, 256 << 10);
	take_stretch(&position, 50000, 512 << 10);
	for (unsigned i = 0; i < 40; i++)
		take_stretch(&position, 50000, 128 << 10);
	dup2(old, 2);
	close(old);
	ssize_t got = pread(out, said, sizeof said - 1, 0);
	said[got < 0 ? 0 : got] = 0;
	close(out);
	const char *line = strstr(said, "bugnet: --ring 1.00 MB is too small");
	assert_non_null(line);
	assert_null(strstr(strchr(line, '\n'), "too small"));
	finish(said, sizeof said);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(share_grows, begin_ring, end),
	        cmocka_unit_test_setup_teardown(crowded_ring_is_told, begin_ring, end),
	        TEST(stretches_are_collected),
	        TEST(facts_are_there),
	        TEST(no_end),
	        TEST(damaged_log),
	        TEST(damaged_log_is_leaned_on),
	        TEST(keyframes_are_due),
	        TEST(file_code_is_one_piece),
	        TEST(patched_code_is_bytes),
	        TEST(patches_outlive_the_file),
	        TEST(end_of_file),
	        TEST(code_of_no_file),
	        TEST(code_of_the_vdso),
	        TEST(code_of_a_deleted_file),
	        TEST(code_of_a_replaced_file),
	        TEST(code_of_a_shared_file),
	        TEST(another_file_in_its_place),
	        cmocka_unit_test(unwritable),
	        cmocka_unit_test(never_begun),
	        TEST(disk_full),
	};

	if (!mkdtemp(directory))
		return 1;
	snprintf(path, sizeof path, "%s/recording.bug", directory);
	snprintf(library, sizeof library, "%s/.library", directory);
	int status = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(library);
	rmdir(directory);
	return status;
}
