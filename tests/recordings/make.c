/*
 * make-recording KIND FILE [PROGRAM]: writes a recording to test the commands that read
 * them: a whole one, or one that is wrong in the way that KIND says. PROGRAM is the file
 * that its code is said to have come from.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recording/code_history.h"
#include "recording/codelog.h"
#include "recording/encode.h"
#include "recording/meta.h"
#include "recording/stretch.h"
#include "recording/thread.h"

#define START UINT64_C(1700000000123456789) /* 2023-11-14 22:13:20 UTC */

static struct writer writer;
static const char *kind, *program = "/nonexistent/program";

static bool is(const char *name)
{
	return strcmp(kind, name) == 0;
}

static void must(enum recording_status status)
{
	char text[128];

	if (status)
		errx(1, "%s", recording_error_text(&writer.error, text, sizeof text));
}

/* ---- events ---- */

struct stretch {
	struct coder coder;
	struct dictionary_entry entries[DICTIONARY_MAXIMUM];
	uint8_t bytes[64 * ENCODE_MAXIMUM], *at;
};

static void begin(struct stretch *s, uint64_t position)
{
	const struct event_keyframe keyframe = {.realtime = START + position, .monotonic = position};

	coder_init(&s->coder, s->entries, 6);
	s->at = encode_keyframe(&s->coder, s->bytes, position, &keyframe);
}

static void call(struct stretch *s, uint64_t position, uint64_t number, int64_t result)
{
	const struct event_syscall event = {.registers.gpr[0] = number, .result = result};

	s->at = encode_syscall(&s->coder, s->at, position, &event);
}

static void patch(struct stretch *s, uint64_t position)
{
	const uint64_t line[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	s->at = encode_patch(&s->coder, s->at, position, 0x7f0000000040, 0x0f, line);
}

static void signal_at(struct stretch *s, uint64_t position, uint32_t number, int32_t code, uint64_t address)
{
	const struct event_signal event = {.number = number, .code = code, .details = {address}};

	s->at = encode_signal(&s->coder, s->at, position, &event);
}

static void sigreturn(struct stretch *s, uint64_t position, bool is_call)
{
	const struct event_sigreturn event = {.call = is_call};

	s->at = encode_sigreturn(&s->coder, s->at, position, &event);
}

static void end(struct stretch *s, uint64_t position, const struct event_end *event)
{
	s->at = encode_end(&s->coder, s->at, position, event);
}

static void put(struct stretch *s, uint32_t thread, uint32_t number, uint64_t first, uint64_t last)
{
	must(stretch_write(&writer, thread, number, first, last, s->bytes, (size_t)(s->at - s->bytes)));
}

static void put_thread(uint32_t id, uint64_t last, uint32_t end_kind, int32_t status)
{
	const struct thread_record record = {
	        .id = id,
	        .tid = 4711 + (int)id,
	        .parent = id ? 0 : THREAD_NO_PARENT,
	        .end_kind = end_kind,
	        .end_status = status,
	        .last_position = last,
	        .name = "pro\033gram",
	};

	must(thread_record_write(&writer, &record));
}

/* Thread 0: two stretches, with a signal that is handled in the second one. */
static void write_thread_0(void)
{
	static struct stretch s;
	struct event_end killed = {
	        .kind = END_KILLED, .status = 11, .code = 1, .registers = {.pc = 0x401010}};
	struct event_end exited = {.kind = END_EXIT, .status = 3};

	begin(&s, 0);
	call(&s, 100, SYS_openat, -2);
	patch(&s, 110);
	patch(&s, 120);
	call(&s, 200, SYS_mmap, 0x7f0012340000);
	call(&s, 300, SYS_write, 17);
	put(&s, 0, 0, 0, 1000);
	begin(&s, 1000);
	signal_at(&s, 1100, 14, 0x80, 0);
	call(&s, 1110, 9999, 0);
	sigreturn(&s, 1120, false);
	sigreturn(&s, 1130, true);
	if (is("malformed"))
		*s.at++ = 0x0f;
	end(&s, 1500, is("killed") ? &killed : &exited);
	put(&s, 0, 1, 1000, 1500);
	put_thread(0, 1500, is("killed") ? END_KILLED : END_EXIT, is("killed") ? 11 : 3);
}

static void write_thread_1(void)
{
	static struct stretch s;

	begin(&s, 0);
	call(&s, 10, SYS_futex, -11);
	end(&s, 50, &(struct event_end){.kind = END_THREAD_EXIT});
	put(&s, 1, 0, 0, 50);
	put_thread(1, 50, END_THREAD_EXIT, 0);
}

/* ---- the rest ---- */

static void write_meta(void)
{
	static const char *const arguments[] = {"program", "one two", "\033[31m"};
	struct meta meta = {0};

	meta_set_text(&meta, META_PROGRAM, program);
	meta_set_texts(&meta, META_ARGUMENTS, arguments, 3);
	meta_set_text(&meta, META_HOST, "host\033[2J");
	meta_set_number(&meta, META_START, START);
	meta_set_number(&meta, META_DURATION, 2500000);
	must(meta_write(&writer, &meta));
	meta_deinit(&meta);
}

static void write_code(void)
{
	const struct code_piece piece = {.address = 0x401000, .size = 0x1000, .file = 0, .offset = 0x1000};
	struct codelog_mapping mapping = {0x401000, 0x1000, 0x1000, 0, PROT_READ | PROT_EXEC};
	struct codelog_file file = {.path = (char *)program, .mappings = &mapping, .mapping_count = 1};
	struct codelog log = {0};
	struct code_history history = {0};
	struct stat status;
	int fd = open(program, O_RDONLY);

	if (fd >= 0 && fstat(fd, &status) == 0) {
		file.size = (uint64_t)status.st_size;
		file.build_id = build_id_of(fd);
		file.has_checksum = !is("no-checksum") && file_checksum(fd, &file.checksum);
	}
	codelog_add(&log, &file);
	code_history_add(&history, &piece);
	must(codelog_write(&writer, &log));
	must(code_history_write(&writer, &history));
	codelog_deinit(&log);
	code_history_deinit(&history);
}

/* Change the file that was written. */
static void spoil(const char *path, off_t offset, uint8_t byte)
{
	int fd = open(path, O_RDWR);

	if (fd < 0 || pwrite(fd, &byte, 1, offset) != 1)
		err(1, "%s", path);
	close(fd);
}

static void write_header(const char *path, uint32_t minimum_reader, uint64_t required)
{
	const struct container_header header = {.size = CONTAINER_HEADER_SIZE,
	        .version = 99,
	        .minimum_reader = minimum_reader,
	        .required = required};
	uint8_t bytes[CONTAINER_HEADER_SIZE];
	int fd = open(path, O_RDWR);

	container_header_encode(&header, bytes);
	if (fd < 0 || pwrite(fd, bytes, sizeof bytes, 0) != sizeof bytes)
		err(1, "%s", path);
	close(fd);
}

/* The second section is the code log if there is one; what matters is that it is some section's content. */
static void finish(const char *path, uint64_t stretch_offset)
{
	if (is("no-index") || is("cut"))
		must(writer_keep(&writer));
	else
		must(writer_finish(&writer));
	if (is("cut") && truncate(path, (off_t)writer.size - 20))
		err(1, "%s", path);
	if (is("damaged"))
		spoil(path, (off_t)stretch_offset + SECTION_HEADER_SIZE + 5, 0xee);
	if (is("newer"))
		write_header(path, 99, 0);
	if (is("features"))
		write_header(path, 1, UINT64_C(1) << 63);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		errx(2, "usage: make-recording "
		        "whole|threads|killed|cut|no-index|damaged|malformed|newer|features|empty|"
		        "no-meta|no-checksum FILE [PROGRAM]");
	kind = argv[1];
	if (argc > 3)
		program = argv[3];
	must(writer_init(&writer, argv[2], 0));
	if (!is("empty") && !is("no-meta"))
		write_meta();
	if (!is("empty"))
		write_code();
	uint64_t stretches = writer.size;
	if (!is("empty"))
		write_thread_0();
	if (is("threads"))
		write_thread_1();
	finish(argv[2], stretches);
	writer_deinit(&writer);
	return 0;
}
