/* What is in the sections: the list of facts, the code log, threads, packed files; and what identifies a
 * file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "recording/build_id.h"
#include "recording/code_history.h"
#include "recording/codelog.h"
#include "recording/meta.h"
#include "recording/packed_file.h"
#include "recording/thread.h"

static char path[] = "/tmp/bugnet-sections-XXXXXX";
static struct writer writer;
static struct reader reader;

static int begin(void **state)
{
	(void)state;
	assert_int_equal(writer_init(&writer, path, 0), RECORDING_OK);
	return 0;
}

static void end_writing(void)
{
	assert_int_equal(writer_finish(&writer), RECORDING_OK);
	writer_deinit(&writer);
	assert_int_equal(reader_open(&reader, path), RECORDING_OK);
}

static int end(void **state)
{
	(void)state;
	reader_deinit(&reader);
	return 0;
}

/* ---- meta ---- */

static struct meta some_facts(void)
{
	static const char *const arguments[] = {"sort", "", "-n"};
	struct meta meta = {0};

	assert_true(meta_set_text(&meta, META_PROGRAM, "/usr/bin/sort"));
	assert_true(meta_set_texts(&meta, META_ARGUMENTS, arguments, 3));
	assert_true(meta_set_texts(&meta, META_ENVIRONMENT, NULL, 0));
	assert_true(meta_set_number(&meta, META_PID, UINT64_MAX));
	return meta;
}

static void facts_come_back(void **state)
{
	struct meta meta = some_facts();
	struct meta later = {0}, read = {0};
	uint64_t number;
	uint32_t count;

	(void)state;
	assert_int_equal(meta_write(&writer, &meta), RECORDING_OK);
	/* what is known only later is added, and replaces what was said before */
	assert_true(meta_set_number(&later, META_DURATION, 5));
	assert_true(meta_set_text(&later, META_PROGRAM, "/bin/sort"));
	assert_int_equal(meta_write(&writer, &later), RECORDING_OK);
	end_writing();
	assert_int_equal(meta_read(&reader, &read), RECORDING_OK);
	assert_string_equal(meta_text(&read, META_PROGRAM), "/bin/sort");
	assert_true(meta_number(&read, META_PID, &number));
	assert_true(number == UINT64_MAX);
	assert_true(meta_number(&read, META_DURATION, &number));
	assert_int_equal(number, 5);
	char *const *arguments = meta_texts(&read, META_ARGUMENTS, &count);
	assert_int_equal(count, 3);
	assert_string_equal(arguments[0], "sort");
	assert_string_equal(arguments[1], "");
	assert_string_equal(arguments[2], "-n");
	assert_non_null(meta_texts(&read, META_ENVIRONMENT, &count));
	assert_int_equal(count, 0);
	/* another type, or not there */
	assert_null(meta_text(&read, META_PID));
	assert_false(meta_number(&read, META_PROGRAM, &number));
	assert_null(meta_text(&read, META_HOST));
	meta_deinit(&meta);
	meta_deinit(&later);
	meta_deinit(&read);
}

static void no_facts(void **state)
{
	struct meta meta = {0};

	(void)state;
	end_writing();
	assert_int_equal(meta_read(&reader, &meta), RECORDING_MISSING);
}

static void expect_meta(const char *bytes, size_t size, enum recording_status status)
{
	struct meta meta = {0};

	assert_int_equal(meta_decode(&meta, (const uint8_t *)bytes, size), status);
	meta_deinit(&meta);
}

static void wrong_facts(void **state)
{
	struct meta meta = some_facts();
	struct buffer buffer = {0};

	(void)state;
#define META(status, bytes) expect_meta(bytes, sizeof bytes - 1, status)
	META(RECORDING_OK, "\0\0\0\0");
	META(RECORDING_OK, "\1\0\0\0\1\1k\1\2\3\4\5\6\7\10");
	META(RECORDING_MALFORMED, "\1\0\0\0\1\1k\1\2\3\4\5\6\7\10x"); /* more behind it */
	META(RECORDING_MALFORMED, "\1\0\0\0\4\1k\1\2\3\4\5\6\7\10");  /* no such type */
	META(RECORDING_MALFORMED, "\1\0\0\0\1\0\1\2\3\4\5\6\7\10");   /* no key */
	META(RECORDING_MALFORMED, "\1\0\0\0\2\1k\2\0\0\0a\0");        /* a zero in a text */
	META(RECORDING_MALFORMED, "\1\0\0\0\3\1k\377\377\377\377");   /* a huge list */
	META(RECORDING_MALFORMED, "\377\377\377\377");
	/* cut off anywhere */
	meta_encode(&meta, &buffer);
	for (size_t cut = 0; cut < buffer.size; cut++)
		expect_meta((const char *)buffer.bytes, cut, RECORDING_MALFORMED);
	buffer_deinit(&buffer);
	meta_deinit(&meta);
}

/* ---- code log ---- */

static struct codelog some_files(void)
{
	struct codelog log = {0};
	struct codelog_mapping text = {0x400000, 0x1000, 0, 1, 5};
	struct codelog_mapping data = {0x401000, 0x2000, 0x1000, 2, 3};
	struct codelog_file program = {
	        .number = 0,
	        .path = "/usr/bin/sort",
	        .device = 0xfd01,
	        .inode = 77,
	        .size = 12345,
	        .modified = -5,
	        .build_id = {{1, 2, 3}, 3},
	        .has_checksum = true,
	        .checksum = UINT64_MAX,
	};
	struct codelog_file deleted = {.number = 1, .path = "/tmp/x (deleted)"};

	assert_true(codelog_add(&log, &program));
	assert_true(codelog_add(&log, &deleted));
	assert_true(codelog_add_mapping(codelog_find(&log, 0), &text));
	assert_true(codelog_add_mapping(codelog_find(&log, 0), &data));
	return log;
}

static void code_log_comes_back(void **state)
{
	struct codelog log = some_files(), later = {0}, read = {0};
	struct codelog_mapping again = {0x7f0000000000, 0x1000, 0, 3, 1};
	struct codelog_file known = {.number = 1,
	        .path = "",
	        .has_checksum = true,
	        .checksum = 99,
	        .mappings = &again,
	        .mapping_count = 1};

	(void)state;
	assert_int_equal(codelog_write(&writer, &log), RECORDING_OK);
	/* the same list, grown: what is known gains mappings */
	assert_true(codelog_add(&later, &log.files[0]));
	later.files[0].mapping_count = 0;
	assert_true(codelog_add(&later, &known));
	assert_int_equal(codelog_write(&writer, &later), RECORDING_OK);
	end_writing();
	assert_int_equal(codelog_read(&reader, &read), RECORDING_OK);
	assert_int_equal(read.count, 2);
	struct codelog_file *program = codelog_find(&read, 0);
	assert_string_equal(program->path, "/usr/bin/sort");
	assert_int_equal(program->device, 0xfd01);
	assert_int_equal(program->inode, 77);
	assert_int_equal(program->size, 12345);
	assert_int_equal(program->modified, -5);
	assert_int_equal(program->build_id.size, 3);
	assert_memory_equal(program->build_id.bytes, "\1\2\3", 3);
	assert_true(program->has_checksum && program->checksum == UINT64_MAX);
	assert_int_equal(program->mapping_count, 2);
	assert_int_equal(program->mappings[1].address, 0x401000);
	assert_int_equal(program->mappings[1].length, 0x2000);
	assert_int_equal(program->mappings[1].offset, 0x1000);
	assert_int_equal(program->mappings[1].order, 2);
	assert_int_equal(program->mappings[1].protection, 3);
	struct codelog_file *deleted = codelog_find(&read, 1);
	assert_string_equal(deleted->path, "/tmp/x (deleted)");
	assert_true(deleted->has_checksum && deleted->checksum == 99);
	assert_int_equal(deleted->build_id.size, 0);
	assert_int_equal(deleted->mapping_count, 1);
	assert_int_equal(deleted->mappings[0].address, again.address);
	assert_null(codelog_find(&read, 2));
	codelog_deinit(&log);
	codelog_deinit(&later);
	codelog_deinit(&read);
}

static enum recording_status decode_log(const uint8_t *bytes, size_t size)
{
	struct codelog log = {0};
	enum recording_status status = codelog_decode(&log, bytes, size);

	codelog_deinit(&log);
	return status;
}

static void wrong_code_logs(void **state)
{
	struct codelog log = some_files();
	struct buffer buffer = {0};
	const size_t record = 4, number = 8, build_id_size = 56;

	(void)state;
	codelog_encode(&log, &buffer);
	assert_int_equal(decode_log(buffer.bytes, buffer.size), RECORDING_OK);
	for (size_t cut = 0; cut < buffer.size; cut++)
		assert_int_equal(decode_log(buffer.bytes, cut), RECORDING_MALFORMED);
	buffer.bytes[number] = 1; /* a number left out */
	assert_int_equal(decode_log(buffer.bytes, buffer.size), RECORDING_MALFORMED);
	buffer.bytes[number] = 0;
	buffer.bytes[build_id_size] = BUILD_ID_MAXIMUM + 1;
	assert_int_equal(decode_log(buffer.bytes, buffer.size), RECORDING_MALFORMED);
	buffer.bytes[build_id_size] = 3;
	buffer.bytes[record]--; /* the record is shorter than what is in it */
	assert_int_equal(decode_log(buffer.bytes, buffer.size), RECORDING_MALFORMED);
	buffer_deinit(&buffer);
	codelog_deinit(&log);
}

/* ---- code history ---- */

static struct code_history some_code(void)
{
	struct code_history history = {0};
	const struct code_piece pieces[] = {
	        {0, 0, 0x400000, 0x3000, 2, 0x1000, NULL, 0},
	        {0, 50, 0x7f0000, 4, EVENT_FILE_NONE, 0, (const uint8_t *)"abcd", 0},
	        {1, 10, 0x7f0000, 4, EVENT_FILE_NONE, 0, (const uint8_t *)"efgh", 0},
	        {0, 90, 0x7f0002, 1, EVENT_FILE_NONE, 0, (const uint8_t *)"x", 0},
	        {2, 5, 0x9f0000, 1, EVENT_FILE_NONE, 0, (const uint8_t *)"y", 0},
	};

	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
		assert_true(code_history_add(&history, &pieces[i]));
	return history;
}

static void code_comes_back(void **state)
{
	struct code_history history = some_code(), read = {0};

	(void)state;
	assert_int_equal(code_history_write(&writer, &history), RECORDING_OK);
	assert_int_equal(code_history_write(&writer, &history), RECORDING_OK);
	end_writing();
	assert_int_equal(code_history_read(&reader, &read), RECORDING_OK);
	assert_int_equal(read.count, 2 * history.count);
	assert_int_equal(read.pieces[0].address, 0x400000);
	assert_int_equal(read.pieces[0].size, 0x3000);
	assert_int_equal(read.pieces[0].file, 2);
	assert_int_equal(read.pieces[0].offset, 0x1000);
	assert_null(read.pieces[0].bytes);
	assert_int_equal(read.pieces[7].thread, 1);
	assert_int_equal(read.pieces[7].position, 10);
	assert_int_equal(read.pieces[7].file, EVENT_FILE_NONE);
	assert_memory_equal(read.pieces[7].bytes, "efgh", 4);
	assert_int_equal(read.byte_count, 20);
	code_history_deinit(&history);
	code_history_deinit(&read);
}

/* More than a section, and a piece larger than pieces are. */
static void much_code_comes_back(void **state)
{
	const size_t size = 10 * CODE_PIECE_MAXIMUM + 77;
	uint8_t *bytes = malloc(size);
	struct code_piece piece = {3, 9, 0x10000, size, EVENT_FILE_NONE, 0, bytes, 0};
	struct code_history history = {0}, read = {0};

	(void)state;
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(i ^ i >> 8 ^ i >> 16);
	assert_true(code_history_add(&history, &piece));
	assert_int_equal(history.count, 11);
	assert_int_equal(code_history_write(&writer, &history), RECORDING_OK);
	end_writing();
	assert_int_equal(code_history_read(&reader, &read), RECORDING_OK);
	for (size_t at = 0; at < size; at += 4099) {
		const struct code_piece *found = code_history_find(&read, 3, 9, 0x10000 + at);
		assert_non_null(found);
		assert_int_equal(found->bytes[0x10000 + at - found->address], bytes[at]);
	}
	code_history_deinit(&read);
	reader.limit = size / 2;
	assert_int_equal(code_history_read(&reader, &read), RECORDING_TOO_LARGE);
	code_history_deinit(&read);
	code_history_deinit(&history);
	free(bytes);
}

static void no_code(void **state)
{
	struct code_history read = {0};

	(void)state;
	end_writing();
	assert_int_equal(code_history_read(&reader, &read), RECORDING_OK);
	assert_int_equal(read.count, 0);
}

static void expect_code(const struct code_history *history, uint32_t thread, uint64_t position,
        uint64_t address, int expected)
{
	const struct code_piece *piece = code_history_find(history, thread, position, address);

	assert_int_equal(piece ? piece - history->pieces : -1, expected);
}

static void code_is_found(void **state)
{
	struct code_history history = some_code();

	(void)state;
	expect_code(&history, 0, 0, 0x400000, 0);
	expect_code(&history, 0, 0, 0x402fff, 0);
	expect_code(&history, 0, 0, 0x403000, -1);
	expect_code(&history, 0, 0, 0x3fffff, -1);
	/* its own from their position on, others' that came before its next one */
	expect_code(&history, 0, 49, 0x7f0000, 2); /* only another thread has said what is there */
	expect_code(&history, 0, 50, 0x7f0000, 2);
	expect_code(&history, 0, 89, 0x7f0002, 2);
	expect_code(&history, 0, 90, 0x7f0002, 3);
	expect_code(&history, 0, 90, 0x7f0003, 2);
	expect_code(&history, 1, 9, 0x7f0000, 1);
	expect_code(&history, 1, 10, 0x7f0002, 3);
	expect_code(&history, 2, 0, 0x7f0001, 2);
	expect_code(&history, 2, 4, 0x9f0000, -1); /* not its own from before */
	expect_code(&history, 3, 0, 0x9f0000, 4);
	code_history_deinit(&history);
}

static enum recording_status decode_code(const uint8_t *bytes, size_t size)
{
	struct code_history history = {0};
	enum recording_status status = code_history_decode(&history, bytes, size);

	code_history_deinit(&history);
	return status;
}

static void wrong_code(void **state)
{
	struct code_history history = some_code();
	struct buffer buffer = {0};
	const size_t address = 16, size = 24, file = 32, offset = 36;

	(void)state;
	code_history_encode(&history, &buffer);
	assert_int_equal(decode_code(buffer.bytes, buffer.size), RECORDING_OK);
	for (size_t cut = 0; cut < buffer.size; cut++)
		assert_int_equal(decode_code(buffer.bytes, cut), RECORDING_MALFORMED);
#define WRONG_CODE(where, count, byte)                                                                       \
	do {                                                                                                 \
		struct buffer wrong = {0};                                                                   \
		buffer_bytes(&wrong, buffer.bytes, buffer.size);                                             \
		memset(wrong.bytes + (where), byte, count);                                                  \
		assert_int_equal(decode_code(wrong.bytes, wrong.size), RECORDING_MALFORMED);                 \
		buffer_deinit(&wrong);                                                                       \
	} while (0)
	WRONG_CODE(0, 4, 0xff);
	WRONG_CODE(address, 8, 0xff);
	WRONG_CODE(offset, 8, 0xff);
	WRONG_CODE(size, 8, 0);
	WRONG_CODE(size, 8, 0xff);
	WRONG_CODE(file, 4, 0xff); /* now the bytes would have to be here */
	buffer_u8(&buffer, 0);
	assert_int_equal(decode_code(buffer.bytes, buffer.size), RECORDING_MALFORMED);
	buffer_deinit(&buffer);
	code_history_deinit(&history);
}

/* ---- threads ---- */

static void threads_come_back(void **state)
{
	const struct thread_record record = {
	        .id = 3,
	        .tid = -1,
	        .parent = 0,
	        .end_kind = END_KILLED,
	        .end_status = 11,
	        .start_time = 1,
	        .end_time = UINT64_MAX,
	        .first_position = 1000,
	        .last_position = 2000,
	        .name = "worker",
	};
	struct thread_record read;

	(void)state;
	memset(&read, 0, sizeof read);
	assert_int_equal(thread_record_write(&writer, &record), RECORDING_OK);
	end_writing();
	const struct section *section = reader_find(&reader, SECTION_THREAD, 3, NULL);
	assert_non_null(section);
	assert_int_equal(thread_record_read(&reader, section, &read), RECORDING_OK);
	assert_int_equal(read.tid, -1);
	assert_int_equal(read.end_kind, END_KILLED);
	assert_true(read.end_time == UINT64_MAX);
	assert_string_equal(read.name, "worker");
	struct buffer written = {0}, again = {0};
	thread_record_encode(&record, &written);
	thread_record_encode(&read, &again);
	assert_int_equal(written.size, again.size);
	assert_memory_equal(written.bytes, again.bytes, written.size);
	for (size_t cut = 0; cut < written.size; cut++)
		assert_int_equal(thread_record_decode(&read, written.bytes, cut), RECORDING_MALFORMED);
	buffer_deinit(&written);
	buffer_deinit(&again);
}

/* ---- packed files ---- */

static int file_of(const void *bytes, size_t size)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	assert_int_equal(write(fd, bytes, size), size);
	return fd;
}

static void pack_and_unpack(uint32_t number, size_t size)
{
	uint8_t *bytes = malloc(size + 1), *unpacked = malloc(size + 1);
	int out = memfd_create("out", MFD_CLOEXEC);

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(i ^ i >> 8 ^ i >> 16);
	int in = file_of(bytes, size);
	assert_int_equal(writer_init(&writer, path, CONTAINER_OPTIONAL_FILES), RECORDING_OK);
	assert_int_equal(packed_file_write(&writer, number, in), RECORDING_OK);
	end_writing();
	assert_int_equal(packed_file_read(&reader, number + 1, out), RECORDING_MISSING);
	assert_int_equal(packed_file_read(&reader, number, out), RECORDING_OK);
	assert_int_equal(pread(out, unpacked, size + 1, 0), size);
	assert_memory_equal(bytes, unpacked, size);
	reader_deinit(&reader);
	close(in);
	close(out);
	free(bytes);
	free(unpacked);
}

static void files_come_back(void **state)
{
	(void)state;
	pack_and_unpack(5, 0);
	pack_and_unpack(5, 1);
	pack_and_unpack(5, PACKED_FILE_PIECE);
	pack_and_unpack(5, 2 * PACKED_FILE_PIECE + 12345);
}

/* The last piece is missing: not a shorter file, but none. */
static void cut_off_file(void **state)
{
	struct section what = {.type = SECTION_FILE, .codec = CODEC_ZSTD, .id = 1, .last = PACKED_FILE_PIECE};
	void *piece = calloc(1, PACKED_FILE_PIECE);
	int out = memfd_create("out", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(writer_add(&writer, &what, piece, PACKED_FILE_PIECE), RECORDING_OK);
	end_writing();
	assert_int_equal(packed_file_read(&reader, 1, out), RECORDING_MISSING);
	close(out);
	free(piece);
}

/* ---- build ids ---- */

struct elf {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	struct {
		Elf64_Nhdr header;
		char name[4];
		uint8_t bytes[8];
	} other, build_id;
};

static struct elf elf_with_build_id(void)
{
	struct elf elf = {
	        .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	                .e_phoff = offsetof(struct elf, segments),
	                .e_phentsize = sizeof(Elf64_Phdr),
	                .e_phnum = 2},
	        .segments = {{.p_type = PT_LOAD},
	                {.p_type = PT_NOTE,
	                        .p_align = 4,
	                        .p_offset = offsetof(struct elf, other),
	                        .p_filesz = sizeof(struct elf) - offsetof(struct elf, other)}},
	        .other = {{4, 8, NT_GNU_ABI_TAG}, "GNU", {9}},
	        .build_id = {{4, 8, NT_GNU_BUILD_ID}, "GNU", {0xde, 0xad, 1, 2, 3, 4, 5, 0xff}},
	};

	return elf;
}

static uint32_t build_id_size(const void *bytes, size_t size)
{
	int fd = file_of(bytes, size);
	struct build_id id = build_id_of(fd);

	close(fd);
	return id.size;
}

static void build_id_is_found(void **state)
{
	struct elf elf = elf_with_build_id();
	int fd = file_of(&elf, sizeof elf);
	struct build_id id = build_id_of(fd);
	char text[BUILD_ID_TEXT_SIZE];

	(void)state;
	build_id_text(&id, text);
	assert_string_equal(text, "dead0102030405ff");
	close(fd);
	id.size = 0;
	build_id_text(&id, text);
	assert_string_equal(text, "");
}

static void malformed_elf(void **state)
{
	struct elf elf;

	(void)state;
#define NO_BUILD_ID(field, value)                                                                            \
	(elf = elf_with_build_id(), elf.field = value, assert_int_equal(build_id_size(&elf, sizeof elf), 0))
	NO_BUILD_ID(header.e_ident[0], 'E');
	NO_BUILD_ID(header.e_ident[EI_CLASS], ELFCLASS32);
	NO_BUILD_ID(header.e_phentsize, 8);
	NO_BUILD_ID(header.e_phoff, UINT64_MAX);
	NO_BUILD_ID(header.e_phoff, INT64_MAX);
	NO_BUILD_ID(header.e_phoff, sizeof elf);
	NO_BUILD_ID(header.e_phnum, 1);
	NO_BUILD_ID(segments[1].p_offset, UINT64_MAX);
	NO_BUILD_ID(segments[1].p_offset, sizeof elf);
	NO_BUILD_ID(segments[1].p_filesz, UINT64_MAX);
	NO_BUILD_ID(segments[1].p_filesz, 30);
	NO_BUILD_ID(other.header.n_namesz, UINT32_MAX);
	NO_BUILD_ID(other.header.n_descsz, UINT32_MAX);
	NO_BUILD_ID(build_id.header.n_descsz, 9);
	NO_BUILD_ID(build_id.header.n_descsz, BUILD_ID_MAXIMUM + 1);
	NO_BUILD_ID(build_id.name[3], 'X');
	elf = elf_with_build_id();
	for (size_t cut = 0; cut < sizeof elf; cut++)
		assert_int_equal(build_id_size(&elf, cut), 0);
	assert_int_equal(build_id_size(&elf, sizeof elf), 8);
}

static void checksums(void **state)
{
	uint64_t checksum;
	int fd = file_of("", 0);

	(void)state;
	assert_true(file_checksum(fd, &checksum));
	assert_true(checksum == 0xef46db3751d8e999u); /* of nothing, as everybody's xxh64 gives it */
	close(fd);
	uint8_t *bytes = calloc(1, 200000);
	fd = file_of(bytes, 200000);
	assert_true(file_checksum(fd, &checksum));
	assert_true(checksum == container_checksum(bytes, 200000));
	free(bytes);
	close(fd);
	assert_false(file_checksum(-1, &checksum));
	assert_int_equal(errno, EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(facts_come_back, begin, end),
	        cmocka_unit_test_setup_teardown(no_facts, begin, end),
	        cmocka_unit_test(wrong_facts),
	        cmocka_unit_test_setup_teardown(code_log_comes_back, begin, end),
	        cmocka_unit_test(wrong_code_logs),
	        cmocka_unit_test_setup_teardown(code_comes_back, begin, end),
	        cmocka_unit_test_setup_teardown(much_code_comes_back, begin, end),
	        cmocka_unit_test_setup_teardown(no_code, begin, end),
	        cmocka_unit_test(code_is_found),
	        cmocka_unit_test(wrong_code),
	        cmocka_unit_test_setup_teardown(threads_come_back, begin, end),
	        cmocka_unit_test(files_come_back),
	        cmocka_unit_test_setup_teardown(cut_off_file, begin, end),
	        cmocka_unit_test(build_id_is_found),
	        cmocka_unit_test(malformed_elf),
	        cmocka_unit_test(checksums),
	};
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	int status = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return status;
}
