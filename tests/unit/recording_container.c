/*
 * The recording file: what was written is read; what is cut off is read up to there;
 * what is damaged or hostile is refused; what cannot be written leaves nothing behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <cmocka.h>

#include "recording/numbers.h"
#include "recording/reader.h"
#include "recording/stretch.h"
#include "recording/writer.h"

#define SECTIONS 6

static char directory[] = "/tmp/bugnet-recording-XXXXXX";
static char path[PATH_MAX];
static uint8_t content[SECTIONS][3000];
static size_t content_size[SECTIONS];
static uint8_t file[32768];
static size_t file_size;
static struct writer writer;
static struct reader reader;

/* Text, noise, nothing: what zstd makes small and what it does not. */
static void make_content(void)
{
	uint64_t noise = 1;

	for (int i = 0; i < SECTIONS; i++) {
		content_size[i] = i == 2 ? 0 : 500 * (size_t)(i + 1);
		for (size_t j = 0; j < content_size[i]; j++) {
			noise = noise * 6364136223846793005u + 1442695040888963407u;
			content[i][j] = i % 2 ? (uint8_t)(noise >> 56) : (uint8_t) "patch"[j % 5];
		}
	}
}

static void write_sections(int count)
{
	for (int i = 0; i < count; i++)
		assert_int_equal(stretch_write(&writer, 7, (uint32_t)i, (uint64_t)i * 1000,
		                         (uint64_t)i * 1000 + 999, content[i], content_size[i]),
		        RECORDING_OK);
}

static void write_recording(void)
{
	assert_int_equal(writer_init(&writer, path, CONTAINER_OPTIONAL_FILES), RECORDING_OK);
	write_sections(SECTIONS);
	assert_int_equal(writer_finish(&writer), RECORDING_OK);
	writer_deinit(&writer);
}

static void read_file(void)
{
	int fd = open(path, O_RDONLY);

	file_size = (size_t)read(fd, file, sizeof file);
	assert_true(file_size > 64 && file_size < sizeof file);
	close(fd);
}

static void write_file(const uint8_t *bytes, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
}

static int setup(void **state)
{
	(void)state;
	make_content();
	snprintf(path, sizeof path, "%s/file", directory);
	write_recording();
	read_file();
	return 0;
}

static int entries_in_directory(void)
{
	DIR *stream = opendir(directory);
	int count = -2; /* . and .. */

	while (readdir(stream))
		count++;
	closedir(stream);
	return count;
}

/* Section i of the recording has what was written. */
static void expect_section(size_t i)
{
	const struct section *section =
	        reader_find(&reader, SECTION_STRETCH, stretch_id(7, (uint32_t)i), NULL);
	uint8_t *bytes;

	assert_non_null(section);
	assert_int_equal(stretch_thread(section), 7);
	assert_int_equal(stretch_number(section), i);
	assert_int_equal(section->first, i * 1000);
	assert_int_equal(section->last, i * 1000 + 999);
	assert_int_equal(stretch_read(&reader, section, &bytes), RECORDING_OK);
	assert_int_equal(section->raw_size, content_size[i]);
	if (content_size[i])
		assert_memory_equal(bytes, content[i], content_size[i]);
	free(bytes);
}

/* ---- reading ---- */

static void sections_come_back(void **state)
{
	(void)state;
	assert_int_equal(reader_open(&reader, path), RECORDING_OK);
	assert_true(reader.indexed);
	assert_int_equal(reader.end.status, RECORDING_OK);
	assert_int_equal(reader.header.optional, CONTAINER_OPTIONAL_FILES);
	assert_int_equal(reader.count, SECTIONS);
	for (size_t i = 0; i < SECTIONS; i++)
		expect_section(i);
	assert_int_equal(reader.sections[0].codec, CODEC_ZSTD);
	assert_int_equal(reader.sections[1].codec, CODEC_NONE);
	assert_true(reader.sections[0].stored_size < 100);
	reader_deinit(&reader);
}

/* The index is an accelerator only. */
static void damaged_index(void **state)
{
	(void)state;
	for (size_t back = 1; back < 64 + INDEX_TAIL_SIZE; back += 7) {
		file[file_size - back] ^= 1;
		write_file(file, file_size);
		assert_int_equal(reader_open(&reader, path), RECORDING_OK);
		assert_false(reader.indexed);
		assert_int_equal(reader.count, SECTIONS);
		for (size_t i = 0; i < SECTIONS; i++)
			expect_section(i);
		reader_deinit(&reader);
		file[file_size - back] ^= 1;
	}
}

static void truncated_anywhere(void **state)
{
	uint64_t ends[SECTIONS + 1] = {64};

	(void)state;
	assert_int_equal(reader_open(&reader, path), RECORDING_OK);
	for (size_t i = 0; i < SECTIONS; i++)
		ends[i + 1] =
		        reader.sections[i].offset + SECTION_HEADER_SIZE + reader.sections[i].stored_size;
	reader_deinit(&reader);
	for (size_t cut = file_size - 1; cut > 0; cut--) {
		size_t whole = 0;
		assert_int_equal(truncate(path, (off_t)cut), 0);
		enum recording_status status = reader_open(&reader, path);
		if (cut < 64) {
			assert_int_equal(status, cut < 16 ? RECORDING_FOREIGN : RECORDING_TRUNCATED);
			continue;
		}
		assert_int_equal(status, RECORDING_OK);
		while (whole < SECTIONS && ends[whole + 1] <= cut)
			whole++;
		assert_int_equal(reader.count, whole);
		assert_int_equal(reader.end.status, RECORDING_TRUNCATED);
		assert_int_equal(reader.end.offset, ends[whole]);
		if (whole)
			expect_section(whole - 1);
		reader_deinit(&reader);
	}
}

/* One bit anywhere: every section is what it was, or an error, or missing; and the other sections are there.
 */
static void flipped_bits(void **state)
{
	(void)state;
	for (size_t at = 0; at < file_size; at++) {
		file[at] ^= (uint8_t)(1 << at % 8);
		write_file(file, file_size);
		file[at] ^= (uint8_t)(1 << at % 8);
		if (reader_open(&reader, path) != RECORDING_OK) {
			assert_true(at < 64);
			continue;
		}
		int good = 0;
		for (size_t i = 0; i < reader.count; i++) {
			const struct section *section = &reader.sections[i];
			uint8_t *bytes;
			if (stretch_read(&reader, section, &bytes) != RECORDING_OK) {
				assert_int_equal(reader.error.status, RECORDING_DAMAGED);
				assert_int_equal(reader.error.offset, section->offset);
				continue;
			}
			assert_memory_equal(bytes, content[stretch_number(section)], section->raw_size);
			free(bytes);
			good++;
		}
		assert_true(good >= SECTIONS - 1);
		reader_deinit(&reader);
	}
}

static void expect_open_error(const uint8_t *bytes, size_t size, enum recording_status status)
{
	write_file(bytes, size);
	assert_int_equal(reader_open(&reader, path), status);
	assert_int_equal(reader.error.status, status);
}

static void set_header(const struct container_header *header)
{
	container_header_encode(header, file);
}

static void other_files(void **state)
{
	struct container_header header = {.size = 64, .version = 9, .minimum_reader = 1};

	(void)state;
	expect_open_error((const uint8_t *)"", 0, RECORDING_FOREIGN);
	expect_open_error((const uint8_t *)"#!/bin/sh\necho this is no recording\n", 36, RECORDING_FOREIGN);
	/* newer, but older readers will do, and unknown features may be ignored */
	header.optional = UINT64_MAX;
	set_header(&header);
	write_file(file, file_size);
	assert_int_equal(reader_open(&reader, path), RECORDING_OK);
	assert_int_equal(reader.count, SECTIONS);
	reader_deinit(&reader);
	header.required = UINT64_C(1) << 63;
	set_header(&header);
	expect_open_error(file, file_size, RECORDING_FEATURES);
	header.minimum_reader = CONTAINER_VERSION + 1;
	set_header(&header);
	expect_open_error(file, file_size, RECORDING_VERSION);
	assert_int_equal(reader_open(&reader, "/dev/zero"), RECORDING_NOT_REGULAR);
	assert_int_equal(reader_open(&reader, directory), RECORDING_NOT_REGULAR);
	assert_int_equal(reader_open(&reader, "/nonexistent"), RECORDING_SYSTEM);
	assert_int_equal(reader.error.number, ENOENT);
}

/* A later version's file header may be longer. */
static void longer_header(void **state)
{
	uint8_t longer[96] = {0};
	struct container_header header = {.size = sizeof longer, .version = 2, .minimum_reader = 1};

	(void)state;
	container_header_encode(&header, longer);
	memset(longer + 56, 0x77, 32);
	put_u64(longer + 88, container_checksum(longer, 88));
	memmove(file + sizeof longer, file + 64, file_size - 64);
	memcpy(file, longer, sizeof longer);
	write_file(file, file_size + 32);
	assert_int_equal(reader_open(&reader, path), RECORDING_OK);
	assert_false(reader.indexed); /* its offsets are wrong now */
	assert_int_equal(reader.count, SECTIONS);
	expect_section(3);
	reader_deinit(&reader);
}

/* A file of one section whose header says what we want it to. */
static enum recording_status load_made_up(
        struct section section, const void *stored, size_t size, uint64_t limit)
{
	const struct container_header header = {.size = 64, .version = 1, .minimum_reader = 1};
	uint8_t *bytes;

	set_header(&header);
	section.type = SECTION_STRETCH;
	section.stored_size = size;
	section.checksum = container_checksum(stored, size);
	section_header_encode(&section, file + 64);
	memcpy(file + 128, stored, size);
	write_file(file, 128 + size);
	assert_int_equal(reader_open(&reader, path), RECORDING_OK);
	assert_int_equal(reader.count, 1);
	reader.limit = limit;
	enum recording_status status = reader_load(&reader, &reader.sections[0], &bytes);
	if (!status)
		free(bytes);
	reader_deinit(&reader);
	return status;
}

static void hostile_sizes(void **state)
{
	static const uint8_t zeros[1 << 20];
	uint8_t packed[2048];
	size_t size = ZSTD_compress(packed, sizeof packed, zeros, sizeof zeros, 1);
	const uint64_t limit = READER_DEFAULT_LIMIT;
	struct section zstd = {.codec = CODEC_ZSTD, .raw_size = sizeof zeros};
	struct section none = {.codec = CODEC_NONE, .raw_size = size};

	(void)state;
	assert_int_equal(load_made_up(zstd, packed, size, limit), RECORDING_OK);
	assert_int_equal(load_made_up(zstd, packed, size, sizeof zeros - 1), RECORDING_TOO_LARGE);
	assert_int_equal(load_made_up(zstd, packed, size - 1, limit), RECORDING_COMPRESSION);
	assert_int_equal(load_made_up(zstd, packed, size + 1, limit), RECORDING_COMPRESSION);
	assert_int_equal(load_made_up(none, packed, size, limit), RECORDING_OK);
	zstd.raw_size++;
	assert_int_equal(load_made_up(zstd, packed, size, limit), RECORDING_COMPRESSION);
	zstd.raw_size = UINT64_C(1) << 40;
	assert_int_equal(load_made_up(zstd, packed, size, UINT64_MAX), RECORDING_MALFORMED);
	zstd.raw_size = UINT64_MAX;
	assert_int_equal(load_made_up(zstd, packed, size, UINT64_MAX), RECORDING_MALFORMED);
	none.raw_size++;
	assert_int_equal(load_made_up(none, packed, size, limit), RECORDING_MALFORMED);
	none.codec = CODEC_SORTED + 1;
	assert_int_equal(load_made_up(none, packed, size, limit), RECORDING_FEATURES);
	/* a frame of columns that are none, of events that could be so large, and that could not */
	struct section columns = {.codec = CODEC_COLUMNS, .raw_size = sizeof zeros};
	assert_int_equal(load_made_up(columns, packed, size, limit), RECORDING_MALFORMED);
	columns.raw_size = sizeof zeros / 2 - 64;
	assert_int_equal(load_made_up(columns, packed, size, limit), RECORDING_COMPRESSION);
	columns.raw_size = UINT64_MAX / 2;
	assert_int_equal(load_made_up(columns, packed, size, UINT64_MAX), RECORDING_MALFORMED);
	/* the same in several frames, which one codec only may have */
	struct section sorted = {.codec = CODEC_SORTED, .raw_size = sizeof zeros};
	memcpy(packed + size, packed, size);
	assert_int_equal(load_made_up(sorted, packed, size, limit), RECORDING_MALFORMED);
	assert_int_equal(load_made_up(sorted, packed, 2 * size, limit), RECORDING_MALFORMED);
	assert_int_equal(load_made_up(sorted, packed, 2 * size - 1, limit), RECORDING_COMPRESSION);
	assert_int_equal(load_made_up(sorted, packed, 2 * size, 2 * sizeof zeros - 1), RECORDING_TOO_LARGE);
	sorted.raw_size = sizeof zeros / 6 - 256;
	assert_int_equal(load_made_up(sorted, packed, size, limit), RECORDING_COMPRESSION);
	columns.raw_size = 2 * sizeof zeros;
	assert_int_equal(load_made_up(columns, packed, 2 * size, limit), RECORDING_COMPRESSION);
}

/* ---- writing ---- */

static void writing_is_atomic(void **state)
{
	struct stat before, after;

	(void)state;
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(before.st_mode & 0777, 0600);
	assert_int_equal(entries_in_directory(), 1);
	assert_int_equal(writer_init(&writer, path, 0), RECORDING_OK);
	write_sections(2);
	assert_int_equal(entries_in_directory(), 2);
	writer_deinit(&writer);
	assert_int_equal(entries_in_directory(), 1);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

static void link_is_followed(void **state)
{
	char link[PATH_MAX];
	struct stat status;

	(void)state;
	snprintf(link, sizeof link, "%s/link", directory);
	assert_int_equal(symlink("file", link), 0);
	unlink(path);
	write_file(file, 1);
	assert_int_equal(writer_init(&writer, link, 0), RECORDING_OK);
	assert_int_equal(writer_finish(&writer), RECORDING_OK);
	writer_deinit(&writer);
	assert_int_equal(lstat(link, &status), 0);
	assert_true(S_ISLNK(status.st_mode));
	assert_int_equal(stat(path, &status), 0);
	assert_true(status.st_size > 64);
	unlink(link);
}

static void longest_name(void **state)
{
	char longest[PATH_MAX];
	size_t length = strlen(directory);

	(void)state;
	snprintf(longest, sizeof longest, "%s/%0*d", directory, NAME_MAX, 0);
	assert_int_equal(strlen(longest), length + 1 + NAME_MAX);
	assert_int_equal(writer_init(&writer, longest, 0), RECORDING_OK);
	assert_int_equal(writer_finish(&writer), RECORDING_OK);
	writer_deinit(&writer);
	assert_int_equal(unlink(longest), 0);
}

static void places_that_cannot_be_written(void **state)
{
	struct stat status;

	(void)state;
	assert_int_equal(writer_init(&writer, "/nonexistent/file", 0), RECORDING_SYSTEM);
	assert_int_equal(writer.error.number, ENOENT);
	assert_int_equal(writer_init(&writer, directory, 0), RECORDING_NOT_REGULAR);
	assert_int_equal(writer_init(&writer, "/dev/null", 0), RECORDING_NOT_REGULAR);
	assert_int_equal(stat("/dev/null", &status), 0);
	assert_true(S_ISCHR(status.st_mode));
}

/* Let files grow to this size only; RLIM_INFINITY to let them be. */
static void limit_file_size(rlim_t size)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A full disk, as far as the writer can tell: sections 0 to 2 fit, half of 3 does. */
static void write_until_full(void)
{
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(writer_init(&writer, path, 0), RECORDING_OK);
	write_sections(3);
	limit_file_size(writer.size + 1000);
	assert_int_equal(
	        stretch_write(&writer, 7, 3, 3000, 3999, content[3], content_size[3]), RECORDING_SYSTEM);
	assert_int_equal(writer.error.number, EFBIG);
}

static void full_disk_and_nothing_kept(void **state)
{
	struct stat before, after;

	(void)state;
	assert_int_equal(stat(path, &before), 0);
	write_until_full();
	limit_file_size(writer.size + 100);
	assert_int_equal(writer_finish(&writer), RECORDING_SYSTEM);
	writer_deinit(&writer);
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(entries_in_directory(), 1);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

static void full_disk_and_what_is_whole_is_kept(void **state)
{
	(void)state;
	write_until_full();
	assert_int_equal(writer_keep(&writer), RECORDING_OK);
	writer_deinit(&writer);
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(entries_in_directory(), 1);
	assert_int_equal(reader_open(&reader, path), RECORDING_OK);
	assert_int_equal(reader.end.status, RECORDING_TRUNCATED);
	assert_int_equal(reader.count, 3);
	expect_section(0);
	expect_section(1);
	reader_deinit(&reader);
}

/* What is too large for the disk does not keep smaller things out. */
static void full_disk_and_something_smaller(void **state)
{
	(void)state;
	write_until_full();
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(stretch_write(&writer, 7, 4, 4000, 4999, content[4], content_size[4]), RECORDING_OK);
	assert_int_equal(writer_finish(&writer), RECORDING_OK);
	writer_deinit(&writer);
	assert_int_equal(reader_open(&reader, path), RECORDING_OK);
	assert_true(reader.indexed);
	assert_int_equal(reader.count, 4);
	expect_section(4);
	reader_deinit(&reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup(sections_come_back, setup),
	        cmocka_unit_test_setup(damaged_index, setup),
	        cmocka_unit_test_setup(truncated_anywhere, setup),
	        cmocka_unit_test_setup(flipped_bits, setup),
	        cmocka_unit_test_setup(other_files, setup),
	        cmocka_unit_test_setup(longer_header, setup),
	        cmocka_unit_test_setup(hostile_sizes, setup),
	        cmocka_unit_test_setup(writing_is_atomic, setup),
	        cmocka_unit_test_setup(link_is_followed, setup),
	        cmocka_unit_test_setup(longest_name, setup),
	        cmocka_unit_test_setup(places_that_cannot_be_written, setup),
	        cmocka_unit_test_setup(full_disk_and_nothing_kept, setup),
	        cmocka_unit_test_setup(full_disk_and_what_is_whole_is_kept, setup),
	        cmocka_unit_test_setup(full_disk_and_something_smaller, setup),
	};

	if (!mkdtemp(directory))
		return 1;
	int status = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(directory);
	return status;
}
