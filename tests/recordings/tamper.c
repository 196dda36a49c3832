/*
 * tamper-recording IN OUT VALUE: copies a recording, with the word VALUE changed in every patch that has it.
 * tamper-recording IN OUT KEY TEXT: copies it with another text in its facts.
 * Every checksum is right again, so nothing but a replay can find out.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording/decode.h"
#include "recording/encode.h"
#include "recording/meta.h"
#include "recording/stretch.h"

static struct reader reader;
static struct writer writer;
static uint64_t value;
static bool changed;

static void must(enum recording_status status, const struct recording_error *error)
{
	char text[128];

	if (status)
		errx(1, "%s", recording_error_text(error, text, sizeof text));
}

static void change(struct event_patch *patch)
{
	for (unsigned i = 0; i < EVENT_LINE_WORDS; i++) {
		if (!(patch->mask >> i & 1) || patch->words[i] != value)
			continue;
		patch->words[i] ^= 1;
		changed = true;
	}
}

/* Decoded and encoded again, event by event. */
static void copy_stretch(const struct section *section)
{
	static struct decoder decoder;
	static struct dictionary_entry entries[DICTIONARY_MAXIMUM];
	struct buffer buffer = {0};
	struct coder coder;
	struct event event;
	enum decode_status status;
	uint8_t *bytes;

	must(stretch_read(&reader, section, &bytes), &reader.error);
	decoder_init(&decoder, bytes, section->raw_size);
	while ((status = decoder_next(&decoder, &event)) == DECODE_EVENT) {
		if (event.kind == EVENT_KEYFRAME)
			coder_init(&coder, entries, decoder.coder.dictionary.bits);
		if (event.kind == EVENT_PATCH)
			change(&event.patch);
		if (!buffer_reserve(&buffer, ENCODE_MAXIMUM))
			errx(1, "out of memory");
		buffer.size =
		        (size_t)(encode_event(&coder, buffer.bytes + buffer.size, &event) - buffer.bytes);
	}
	if (status != DECODE_END)
		errx(1, "%s", decode_status_text(status));
	must(stretch_write(&writer, stretch_thread(section), stretch_number(section), section->first,
	             section->last, buffer.bytes, buffer.size),
	        &writer.error);
	buffer_deinit(&buffer);
	free(bytes);
}

static void copy_section(const struct section *section)
{
	uint8_t *stored;

	must(reader_load_stored(&reader, section, &stored), &reader.error);
	must(writer_add_stored(&writer, section, stored), &writer.error);
	free(stored);
}

/* What comes later counts. */
static void add_fact(const char *key, const char *text)
{
	struct meta meta = {0};

	meta_set_text(&meta, key, text);
	must(meta_write(&writer, &meta), &writer.error);
	meta_deinit(&meta);
}

int main(int argc, char **argv)
{
	if (argc != 4 && argc != 5)
		errx(2, "usage: tamper-recording IN OUT VALUE | IN OUT KEY TEXT");
	if (argc == 4)
		value = strtoull(argv[3], NULL, 0);
	must(reader_open(&reader, argv[1]), &reader.error);
	must(writer_init_required(&writer, argv[2], reader.header.required, reader.header.optional),
	        &writer.error);
	for (size_t i = 0; i < reader.count; i++) {
		const struct section *section = &reader.sections[i];
		if (section->type == SECTION_STRETCH && argc == 4)
			copy_stretch(section);
		else
			copy_section(section);
	}
	if (argc == 5)
		add_fact(argv[3], argv[4]);
	else if (!changed)
		errx(1, "no patch has %#lx", value);
	must(writer_finish(&writer), &writer.error);
	writer_deinit(&writer);
	reader_deinit(&reader);
	return 0;
}
