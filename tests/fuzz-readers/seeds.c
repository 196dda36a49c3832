/*
 * Writes the corpus that the fuzzer starts from: one good input for each reader and
 * option. Needed again when the format changes: build/tests/fuzz-seeds DIRECTORY.
 */
#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../unit/recording_random.h"
#include "recording/code_history.h"
#include "recording/codelog.h"
#include "recording/columns.h"
#include "recording/meta.h"
#include "recording/packed_file.h"
#include "recording/sorted.h"
#include "recording/stretch.h"
#include "recording/thread.h"
#include "readers.h"

#define EVENTS 12 /* of a stretch: small inputs are worth more than large ones */

static const char *directory;

static void write_seed(const char *name, uint8_t reader, const void *bytes, size_t size)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	FILE *file = fopen(path, "w");
	if (!file || fputc(reader, file) == EOF || fwrite(bytes, 1, size, file) != size || fclose(file))
		err(1, "%s", path);
}

/* A keyframe without XSAVE image, and random events that are not long. */
static size_t short_stretch(unsigned dictionary_bits, uint64_t seed, uint8_t *bytes)
{
	static struct random_events source;
	static struct dictionary_entry entries[DICTIONARY_MAXIMUM];
	struct coder coder;
	struct event event;
	uint8_t *at = bytes;

	random_events_init(&source, seed);
	coder_init(&coder, entries, dictionary_bits);
	random_event(&source, EVENT_KEYFRAME, &event);
	event.keyframe.xsave.size = 0;
	at = encode_event(&coder, at, &event);
	for (int i = 0; i < EVENTS;) {
		struct coder before = coder;
		enum event_kind kind = i < EVENTS / 2 ? EVENT_PATCH : random_kind(&source);
		if (kind == EVENT_KEYFRAME) /* it would empty the dictionary, which nothing brings back */
			continue;
		random_event(&source, kind, &event);
		uint8_t *end = encode_event(&coder, at, &event);
		if (end - at > 300) {
			coder = before;
			continue;
		}
		at = end;
		i++;
	}
	return (size_t)(at - bytes);
}

static void column_seed(void)
{
	static uint8_t bytes[64 * ENCODE_MAXIMUM];
	size_t size = short_stretch(6, 5, bytes);
	struct buffer columns = {0};

	buffer_u8(&columns, (uint8_t)size);
	buffer_u8(&columns, (uint8_t)(size >> 8));
	if (!columns_split(bytes, size, &columns))
		errx(1, "no columns");
	write_seed("columns", READER_COLUMNS, columns.bytes, columns.size);
	buffer_deinit(&columns);
}

static void sorted_seed(void)
{
	static uint8_t bytes[64 * ENCODE_MAXIMUM];
	size_t size = short_stretch(6, 7, bytes);
	struct buffer buffer = {0};
	struct sorted sorted;

	if (!sorted_split(bytes, size, &sorted))
		errx(1, "not sorted");
	buffer_u8(&buffer, (uint8_t)size);
	buffer_u8(&buffer, (uint8_t)(size >> 8));
	buffer_bytes(&buffer, sorted.bytes.bytes, sorted.bytes.size);
	write_seed("sorted", READER_SORTED, buffer.bytes, buffer.size);
	buffer_deinit(&buffer);
	sorted_deinit(&sorted);
}

static void event_seeds(void)
{
	static const unsigned bits[] = {0, 1, 6, 10};
	static uint8_t bytes[64 * ENCODE_MAXIMUM];
	char name[32];

	for (unsigned i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "events-%u", bits[i]);
		write_seed(name, READER_EVENTS, bytes, short_stretch(bits[i], i, bytes));
	}
}

static struct meta facts(void)
{
	static const char *const arguments[] = {"sort", "-n"};
	struct meta meta = {0};

	meta_set_text(&meta, META_PROGRAM, "/usr/bin/sort");
	meta_set_texts(&meta, META_ARGUMENTS, arguments, 2);
	meta_set_number(&meta, META_PID, 4711);
	return meta;
}

static struct codelog files(void)
{
	struct codelog_mapping mapping = {0x400000, 0x1000, 0, 1, 5};
	struct codelog_file file = {
	        .path = "/usr/bin/sort",
	        .build_id = {{1, 2, 3, 4}, 4},
	        .has_checksum = true,
	        .mappings = &mapping,
	        .mapping_count = 1,
	};
	struct codelog log = {0};

	codelog_add(&log, &file);
	file.number = 1;
	codelog_add(&log, &file);
	return log;
}

static struct code_history code(void)
{
	struct code_piece piece = {.address = 0x400000, .size = 0x1000, .offset = 0x2000};
	struct code_history history = {0};

	code_history_add(&history, &piece);
	piece = (struct code_piece){
	        1, 77, 0x7f0000000000, 4, EVENT_FILE_NONE, 0, (const uint8_t *)"\x90\x90\x0f\x0b", 0};
	code_history_add(&history, &piece);
	return history;
}

static const struct thread_record thread = {.id = 0, .tid = 4711, .parent = THREAD_NO_PARENT, .name = "sort"};

static void section_seeds(void)
{
	struct buffer buffer = {0};
	struct meta meta = facts();
	struct codelog log = files();
	struct code_history history = code();

	meta_encode(&meta, &buffer);
	write_seed("meta", READER_META, buffer.bytes, buffer.size);
	buffer.size = 0;
	codelog_encode(&log, &buffer);
	write_seed("codelog", READER_CODELOG, buffer.bytes, buffer.size);
	buffer.size = 0;
	code_history_encode(&history, &buffer);
	write_seed("code", READER_CODE, buffer.bytes, buffer.size);
	buffer.size = 0;
	thread_record_encode(&thread, &buffer);
	write_seed("thread", READER_THREAD, buffer.bytes, buffer.size);
	buffer_deinit(&buffer);
	meta_deinit(&meta);
	codelog_deinit(&log);
	code_history_deinit(&history);
}

static void container_seed(const char *name, bool compressed, bool finished)
{
	static uint8_t bytes[64 * ENCODE_MAXIMUM];
	struct section stretch = {.type = SECTION_STRETCH, .codec = compressed ? CODEC_SORTED : CODEC_NONE};
	struct writer writer;
	struct meta meta = facts();
	struct codelog log = files();
	struct code_history history = code();
	char path[] = "/tmp/bugnet-seed-XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0 || writer_init(&writer, path, CONTAINER_OPTIONAL_FILES))
		errx(1, "cannot write a recording");
	meta_write(&writer, &meta);
	codelog_write(&writer, &log);
	code_history_write(&writer, &history);
	packed_file_write(&writer, 0, fd);
	thread_record_write(&writer, &thread);
	writer_add(&writer, &stretch, bytes, short_stretch(6, 9, bytes));
	if (finished ? writer_finish(&writer) : writer_keep(&writer))
		errx(1, "cannot write a recording");
	writer_deinit(&writer);
	close(fd);
	fd = open(path, O_RDONLY);
	ssize_t size = read(fd, bytes, sizeof bytes);
	write_seed(name, READER_CONTAINER, bytes, (size_t)size);
	close(fd);
	unlink(path);
	meta_deinit(&meta);
	codelog_deinit(&log);
	code_history_deinit(&history);
}

static void elf_seed(void)
{
	const struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
		Elf64_Nhdr note;
		char name[4];
		uint8_t id[20];
	} elf = {
	        .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	                .e_phoff = sizeof(Elf64_Ehdr),
	                .e_phentsize = sizeof(Elf64_Phdr),
	                .e_phnum = 1},
	        .segment = {.p_type = PT_NOTE,
	                .p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
	                .p_filesz = 36,
	                .p_align = 4},
	        .note = {4, 20, NT_GNU_BUILD_ID},
	        .name = "GNU",
	        .id = "twenty bytes of id.",
	};

	write_seed("elf", READER_ELF, &elf, sizeof elf);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		errx(2, "usage: fuzz-seeds DIRECTORY");
	directory = argv[1];
	event_seeds();
	column_seed();
	sorted_seed();
	section_seeds();
	container_seed("container", true, true);
	container_seed("container-raw", false, true);
	container_seed("container-no-index", false, false);
	elf_seed();
	return 0;
}
