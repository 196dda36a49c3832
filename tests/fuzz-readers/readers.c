/*
 * Everything that reads what others may have written, for libFuzzer: `make fuzz-readers`.
 *
 * The first byte of an input chooses the reader, the rest is for it. Checksums are not
 * compared in this build, so that the fuzzer gets behind them. Events that were decoded
 * are encoded again, and must decode to the same.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recording/code_history.h"
#include "recording/codelog.h"
#include "recording/columns.h"
#include "recording/decode.h"
#include "recording/encode.h"
#include "recording/meta.h"
#include "recording/packed_file.h"
#include "recording/sorted.h"
#include "recording/stretch.h"
#include "recording/thread.h"
#include "readers.h"

#define CONTENT_LIMIT (1 << 20) /* enough for any corpus; keeps the fuzzer fast */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool truth)
{
	if (!truth)
		abort();
}

static int file_of(const uint8_t *bytes, size_t size)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	require(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	return fd;
}

/* Pointers into the two logs differ, what they lead to must not. */
static void same_bytes(const uint8_t **a, uint32_t a_size, const uint8_t **b, uint32_t b_size)
{
	require(a_size == b_size && (!a_size || !memcmp(*a, *b, a_size)));
	*a = *b = NULL;
}

static void same_event(struct event *a, struct event *b)
{
	switch (a->kind) {
	case EVENT_KEYFRAME:
		same_bytes(&a->keyframe.xsave.bytes, a->keyframe.xsave.size, &b->keyframe.xsave.bytes,
		        b->keyframe.xsave.size);
		break;
	case EVENT_SIGNAL:
		same_bytes(&a->signal.xsave.bytes, a->signal.xsave.size, &b->signal.xsave.bytes,
		        b->signal.xsave.size);
		break;
	case EVENT_SIGRETURN:
		same_bytes(&a->sigreturn.xsave.bytes, a->sigreturn.xsave.size, &b->sigreturn.xsave.bytes,
		        b->sigreturn.xsave.size);
		break;
	case EVENT_OUTPUT:
		same_bytes(&a->output.bytes, a->output.size, &b->output.bytes, b->output.size);
		break;
	default:
		break;
	}
	require(!memcmp(a, b, sizeof *a));
}

static bool next_event(struct decoder *decoder, struct event *event)
{
	memset(event, 0, sizeof *event); /* what has no meaning is to be equal too */
	enum decode_status status = decoder_next(decoder, event);
	require(decode_status_text(status) != NULL);
	return status == DECODE_EVENT;
}

/* Encode again what can be decoded. */
static void encode_again(struct decoder *decoder, struct buffer *log)
{
	static struct dictionary_entry entries[DICTIONARY_MAXIMUM];
	struct coder coder;
	struct event event;

	coder_init(&coder, entries, 0);
	while (next_event(decoder, &event)) {
		if (event.kind == EVENT_KEYFRAME)
			coder.dictionary.bits = decoder->coder.dictionary.bits;
		require(buffer_reserve(log, ENCODE_MAXIMUM));
		log->size = (size_t)(encode_event(&coder, log->bytes + log->size, &event) - log->bytes);
	}
}

static void read_events(const uint8_t *bytes, size_t size)
{
	static struct decoder decoder, again;
	struct buffer log = {0};
	struct event a, b;

	decoder_init(&decoder, bytes, size);
	encode_again(&decoder, &log);
	require(decoder.event_offset <= size && decoder.error_offset <= size);
	decoder_init(&decoder, bytes, size);
	decoder_init(&again, log.bytes, log.size);
	while (next_event(&again, &b)) {
		require(next_event(&decoder, &a));
		same_event(&a, &b);
	}
	require(again.status == DECODE_EVENT && again.cursor.at == again.cursor.end);
	buffer_deinit(&log);
}

/* Two bytes say how many bytes of events there are. Those of events that make sense are split again. */
static void read_columns(const uint8_t *bytes, size_t size)
{
	struct buffer columns = {0};

	if (size < 2)
		return;
	size_t events_size = (size_t)(bytes[0] | bytes[1] << 8);
	uint8_t *events = malloc(events_size + 1), *again = malloc(events_size + 1);
	require(events && again);
	if (columns_merge(bytes + 2, size - 2, events, events_size) &&
	        columns_split(events, events_size, &columns)) {
		require(columns.size <= COLUMNS_SIZE_LIMIT(events_size));
		require(columns_merge(columns.bytes, columns.size, again, events_size));
		require(!memcmp(events, again, events_size));
	}
	buffer_deinit(&columns);
	free(events);
	free(again);
}

/* The same. */
static void read_sorted(const uint8_t *bytes, size_t size)
{
	struct sorted sorted;

	if (size < 2)
		return;
	size_t events_size = (size_t)(bytes[0] | bytes[1] << 8);
	uint8_t *events = malloc(events_size + 1), *again = malloc(events_size + 1);
	require(events && again);
	if (sorted_merge(bytes + 2, size - 2, events, events_size)) {
		if (sorted_split(events, events_size, &sorted)) {
			require(sorted.bytes.size <= SORTED_SIZE_LIMIT(events_size));
			require(sorted_merge(sorted.bytes.bytes, sorted.bytes.size, again, events_size));
			require(!memcmp(events, again, events_size));
		}
		sorted_deinit(&sorted);
	}
	free(events);
	free(again);
}

static void read_elf(const uint8_t *bytes, size_t size)
{
	int fd = file_of(bytes, size);
	struct build_id id = build_id_of(fd);
	char text[BUILD_ID_TEXT_SIZE];

	build_id_text(&id, text);
	require(strlen(text) == 2 * id.size);
	close(fd);
}

static void read_meta(const uint8_t *bytes, size_t size)
{
	struct meta meta = {0};
	struct buffer buffer = {0};

	if (!meta_decode(&meta, bytes, size))
		meta_encode(&meta, &buffer);
	require(buffer.size <= size);
	buffer_deinit(&buffer);
	meta_deinit(&meta);
}

static void read_codelog(const uint8_t *bytes, size_t size)
{
	struct codelog log = {0}, again = {0};
	struct buffer buffer = {0};

	if (!codelog_decode(&log, bytes, size)) {
		codelog_encode(&log, &buffer);
		require(!codelog_decode(&again, buffer.bytes, buffer.size) && again.count == log.count);
	}
	buffer_deinit(&buffer);
	codelog_deinit(&again);
	codelog_deinit(&log);
}

static void read_code(const uint8_t *bytes, size_t size)
{
	struct code_history history = {0};
	struct buffer buffer = {0};

	if (!code_history_decode(&history, bytes, size)) {
		code_history_encode(&history, &buffer);
		require(buffer.size == size && !memcmp(buffer.bytes, bytes, size));
		for (uint32_t i = 0; i < history.count && i < 100; i++)
			code_history_find(&history, history.pieces[i].thread, history.pieces[i].position,
			        history.pieces[i].address);
	}
	buffer_deinit(&buffer);
	code_history_deinit(&history);
}

static void read_thread(const uint8_t *bytes, size_t size)
{
	struct thread_record record;
	struct buffer buffer = {0};

	if (thread_record_decode(&record, bytes, size))
		return;
	thread_record_encode(&record, &buffer);
	require(buffer.size <= size && !memcmp(buffer.bytes, bytes, buffer.size));
	buffer_deinit(&buffer);
}

static void read_section(struct reader *reader, const struct section *section)
{
	struct thread_record record;
	uint8_t *bytes;

	if (section->type == SECTION_THREAD) {
		thread_record_read(reader, section, &record);
	} else if (section->type == SECTION_STRETCH && !stretch_read(reader, section, &bytes)) {
		read_events(bytes, section->raw_size);
		free(bytes);
	}
}

static void read_container(const uint8_t *bytes, size_t size)
{
	struct reader reader;
	struct meta meta = {0};
	struct codelog log = {0};
	struct code_history history = {0};
	int out;

	if (reader_open_fd(&reader, file_of(bytes, size)))
		return;
	reader.limit = CONTENT_LIMIT;
	for (size_t i = 0; i < reader.count && i < 100; i++)
		read_section(&reader, &reader.sections[i]);
	meta_read(&reader, &meta);
	codelog_read(&reader, &log);
	code_history_read(&reader, &history);
	out = memfd_create("out", MFD_CLOEXEC);
	packed_file_read(&reader, 0, out);
	close(out);
	meta_deinit(&meta);
	codelog_deinit(&log);
	code_history_deinit(&history);
	reader_deinit(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static void (*const readers[READER_COUNT])(const uint8_t *bytes, size_t size) = {
	        [READER_CONTAINER] = read_container,
	        [READER_EVENTS] = read_events,
	        [READER_META] = read_meta,
	        [READER_CODELOG] = read_codelog,
	        [READER_THREAD] = read_thread,
	        [READER_ELF] = read_elf,
	        [READER_CODE] = read_code,
	        [READER_COLUMNS] = read_columns,
	        [READER_SORTED] = read_sorted,
	};

	if (size && bytes[0] < READER_COUNT)
		readers[bytes[0]](bytes + 1, size - 1);
	return 0;
}
