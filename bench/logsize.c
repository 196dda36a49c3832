/*
 * How large a recording's log is, for parts of it and for other codings. Prints CSV.
 *
 *	logsize prefix FILE N...      what the N instructions after a keyframe take
 *	logsize tail FILE N...        what is needed to replay the last N instructions
 *	logsize dictionary FILE N...  the log as it would be with a dictionary of N places
 *	logsize codec FILE N...       the log compressed by zstd at level N, as it is, in columns and sorted,
 *and the ns that packing a byte of it takes
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "recording/decode.h"
#include "recording/encode.h"
#include "recording/packing.h"
#include "recording/stretch.h"

static struct reader reader;
static struct decoder decoder;
static const char *path;

/* ---- the recording ---- */

static void open_recording(void)
{
	char text[256];

	if (reader_open(&reader, path))
		errx(1, "%s: %s", path, recording_error_text(&reader.error, text, sizeof text));
	if (reader.end.status)
		errx(1, "%s: %s", path, recording_error_text(&reader.end, text, sizeof text));
}

/* Ready to be decoded. */
static uint8_t *load(const struct section *section)
{
	char text[256];
	uint8_t *bytes;

	if (stretch_read(&reader, section, &bytes))
		errx(1, "%s: %s", path, recording_error_text(&reader.error, text, sizeof text));
	decoder_init(&decoder, bytes, section->raw_size);
	return bytes;
}

static bool next_event(struct event *event)
{
	enum decode_status status = decoder_next(&decoder, event);

	if (status != DECODE_EVENT && status != DECODE_END)
		errx(1, "%s: %s", path, decode_status_text(status));
	return status == DECODE_EVENT;
}

static const struct section *next_stretch(const struct section *section)
{
	const struct section *end = reader.sections + reader.count;

	section = section ? section + 1 : reader.sections;
	while (section < end && section->type != SECTION_STRETCH)
		section++;
	return section < end ? section : NULL;
}

/* Of events, as a recorder stores them that begins with this codec. */
static size_t packed_size(const uint8_t *bytes, size_t size, enum section_codec codec, int level)
{
	static struct buffer room;
	struct section section = {.codec = codec};

	section_pack(&section, bytes, size, level, &room);
	return section.stored_size;
}

static size_t compressed_size(const uint8_t *bytes, size_t size)
{
	return packed_size(bytes, size, CODEC_SORTED, WRITER_DEFAULT_LEVEL);
}

/* ---- the first instructions after a keyframe ---- */

/* Offset of the first event at or behind the position: what is before it is the log of what is before it. */
static size_t offset_of(const struct section *section, uint64_t position)
{
	struct event event;

	while (next_event(&event)) {
		if (event.position >= position && event.kind != EVENT_KEYFRAME)
			return decoder.event_offset;
	}
	return section->raw_size;
}

static void print_prefix(uint64_t instructions)
{
	uint64_t count = 0, sum = 0, largest = 0;

	for (const struct section *section = next_stretch(NULL); section; section = next_stretch(section)) {
		struct event event;
		if (section->last - section->first < instructions)
			continue;
		uint8_t *bytes = load(section);
		bool alone = next_event(&event) && event.keyframe.leans_on == 0;
		if (alone) {
			uint64_t size =
			        SECTION_HEADER_SIZE +
			        compressed_size(bytes, offset_of(section, section->first + instructions));
			count++;
			sum += size;
			largest = size > largest ? size : largest;
		}
		free(bytes);
	}
	printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", instructions, count,
	        count ? sum / count : 0, largest);
}

/* ---- the last instructions ---- */

static uint32_t leans_on(const struct section *section)
{
	struct event event;
	uint8_t *bytes = load(section);

	if (!next_event(&event))
		errx(1, "%s: an empty stretch", path);
	free(bytes);
	return event.keyframe.leans_on;
}

static uint64_t last_position(uint32_t thread)
{
	uint64_t last = 0;

	for (const struct section *section = next_stretch(NULL); section; section = next_stretch(section)) {
		if (stretch_thread(section) == thread && section->last > last)
			last = section->last;
	}
	return last;
}

/* Number of the stretch where replay has to begin to get to all of a thread from `position` on. */
static uint32_t first_needed(uint32_t thread, uint64_t position)
{
	const struct section *found = NULL;

	for (const struct section *section = next_stretch(NULL); section; section = next_stretch(section)) {
		if (stretch_thread(section) == thread && section->first <= position &&
		        (!found || stretch_number(section) > stretch_number(found)))
			found = section;
	}
	return found ? stretch_number(found) - leans_on(found) : 0;
}

/* Of every thread. Instructions that were not executed need no log: a short run is needed as a whole. */
static void print_tail(uint64_t instructions)
{
	uint64_t bytes = 0, stretches = 0, replayed = 0;
	uint32_t known = UINT32_MAX, first = 0;

	for (const struct section *section = next_stretch(NULL); section; section = next_stretch(section)) {
		uint32_t thread = stretch_thread(section);
		if (thread != known) {
			uint64_t last = last_position(thread);
			first = first_needed(thread, last > instructions ? last - instructions : 0);
			known = thread;
		}
		if (stretch_number(section) < first)
			continue;
		stretches++;
		bytes += SECTION_HEADER_SIZE + section->stored_size;
		replayed += section->last - section->first;
	}
	printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", instructions, stretches, replayed, bytes);
}

/* ---- other dictionaries ---- */

struct coding {
	uint64_t words, looked_up, hits;
	uint64_t value_bytes; /* of the words, as coded */
	uint64_t log_bytes, stored_bytes;
};

static struct dictionary_entry entries[DICTIONARY_MAXIMUM], shown[DICTIONARY_MAXIMUM];

/* A dictionary of its own sees what the encoder's sees, and tells what was found. */
static void count_words(struct coding *coding, struct dictionary *dictionary, const struct event_patch *patch)
{
	for (unsigned left = patch->mask; left; left &= left - 1) {
		uint64_t value = patch->words[__builtin_ctz(left)];
		unsigned form = number_form(value);
		coding->words++;
		if (dictionary_wants(dictionary, value)) {
			coding->looked_up++;
			if (dictionary_learn(
			            &dictionary->entries[dictionary_place(dictionary, value)], value)) {
				coding->hits++;
				coding->value_bytes += dictionary_index_bytes(dictionary);
				continue;
			}
		}
		coding->value_bytes += form == FORM_RAW ? 8 : form;
	}
}

static void code_again(struct coding *coding, const struct section *section, unsigned bits)
{
	struct dictionary dictionary = {.entries = shown, .bits = bits};
	uint8_t *bytes = load(section), *again = NULL;
	size_t used = 0, room = 0;
	struct coder coder;
	struct event event;

	coder_init(&coder, entries, bits);
	dictionary_reset(&dictionary);
	while (next_event(&event)) {
		if (room - used < ENCODE_MAXIMUM) {
			room = 2 * room + (1 << 20);
			again = realloc(again, room);
			if (!again)
				errx(1, "out of memory");
		}
		used = (size_t)(encode_event(&coder, again + used, &event) - again);
		if (event.kind == EVENT_PATCH)
			count_words(coding, &dictionary, &event.patch);
	}
	coding->log_bytes += used;
	coding->stored_bytes += compressed_size(again, used);
	free(again);
	free(bytes);
}

static void print_dictionary(uint64_t places)
{
	struct coding coding = {0};
	unsigned bits = 0;

	while (bits < DICTIONARY_MAXIMUM_BITS && (UINT64_C(1) << bits) < places)
		bits++;
	if (places && (places != UINT64_C(1) << bits || !bits))
		errx(2, "%" PRIu64 " places: give 0, or a power of two from 2 to %u", places,
		        DICTIONARY_MAXIMUM);
	for (const struct section *section = next_stretch(NULL); section; section = next_stretch(section))
		code_again(&coding, section, bits);
	/* As if nobody had coded the values: eight bytes for each word. */
	uint64_t plain_bytes = coding.log_bytes - coding.value_bytes + 8 * coding.words;
	printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
	        places, coding.words, coding.looked_up, coding.hits, plain_bytes, coding.log_bytes,
	        coding.stored_bytes);
}

/* ---- other codecs ---- */

static uint64_t processor_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void print_codec(uint64_t level)
{
	static const enum section_codec codecs[] = {CODEC_ZSTD, CODEC_COLUMNS, CODEC_SORTED};
	uint64_t events = 0, sizes[3] = {0}, times[3] = {0};

	for (const struct section *section = next_stretch(NULL); section; section = next_stretch(section)) {
		uint8_t *bytes = load(section);
		events += section->raw_size;
		for (unsigned i = 0; i < 3; i++) {
			uint64_t start = processor_time();
			sizes[i] += packed_size(bytes, section->raw_size, codecs[i], (int)level);
			times[i] += processor_time() - start;
		}
		free(bytes);
	}
	printf("%" PRIu64 ",%" PRIu64, level, events);
	for (unsigned i = 0; i < 3; i++)
		printf(",%" PRIu64, sizes[i]);
	for (unsigned i = 0; i < 3; i++)
		printf(",%.1f", events ? (double)times[i] / (double)events : 0);
	printf("\n");
}

/* ---- command line ---- */

static const struct mode {
	const char *name;
	const char *header;
	void (*print)(uint64_t number);
} modes[] = {
        {"prefix", "instructions,keyframes,mean_bytes,largest_bytes", print_prefix},
        {"tail", "window,stretches,replayed,bytes", print_tail},
        {"codec", "level,event_bytes,zstd_bytes,columns_bytes,sorted_bytes,zstd_ns,columns_ns,sorted_ns",
                print_codec},
        {"dictionary", "places,words,looked_up,hits,plain_bytes,log_bytes,stored_bytes", print_dictionary},
};

int main(int argc, char **argv)
{
	const struct mode *mode = NULL;

	for (size_t i = 0; argc > 3 && i < sizeof modes / sizeof modes[0]; i++) {
		if (strcmp(argv[1], modes[i].name) == 0)
			mode = &modes[i];
	}
	if (!mode)
		errx(2, "usage: logsize prefix|tail|dictionary|codec FILE N...");
	path = argv[2];
	open_recording();
	printf("%s\n", mode->header);
	for (int i = 3; i < argc; i++)
		mode->print(strtoull(argv[i], NULL, 10));
	reader_deinit(&reader);
	return 0;
}
