/*
 * bugnet trim: a part of a recording, as a recording that replays by itself.
 *
 * It begins at keyframes, since replay can begin nowhere else, and ends at any position: the events up to
 * there are the start of their stretch. Stretches that a keyframe leans on come with it.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/recording.h"
#include "cli/shared_options.h"
#include "recording/amount.h"
#include "recording/decode.h"
#include "recording/writer.h"

struct trim_values {
	const char *output;
	struct range_values range;
};

static const struct option_spec trim_options[] = {
        {
                .name = "output",
                .letter = 'o',
                .type = OPTION_PATH,
                .offset = offsetof(struct trim_values, output),
                .value = "FILE",
                .help = "the smaller recording",
        },
        RANGE_OPTIONS(struct trim_values, "begin with the last keyframe before this position",
                "end at this position",
                "positions are of this thread; of the others, what happened meanwhile"),
        {0},
};

/* What stays of a thread. */
struct kept_thread {
	const struct recording_thread *thread;
	size_t first, end; /* stretches [first, end) */
	uint64_t to;       /* the last one up to here */
};

struct trimming {
	struct recording recording;
	const char *output;
	struct writer writer;
	struct kept_thread *threads; /* as many as the recording has */
	uint64_t kept, dropped;      /* instructions */
	bool ends;                   /* the end of the program is in it */
};

static bool fail_to_write(const struct trimming *trimming)
{
	char text[256];

	error_print("trim", "cannot write %s: %s", trimming->output,
	        recording_error_text(&trimming->writer.error, text, sizeof text));
	return false;
}

static bool fail_to_read(const struct trimming *trimming)
{
	char text[256];

	error_print("trim", "%s: %s", trimming->recording.path,
	        recording_error_text(&trimming->recording.reader.error, text, sizeof text));
	return false;
}

/* ---- what stays ---- */

/* Reads a stretch; *bytes and the decoder are to be freed. NULL: it said why not. */
static struct decoder *open_stretch(struct trimming *trimming, const struct section *section, uint8_t **bytes)
{
	struct decoder *decoder = malloc(sizeof *decoder);

	if (!decoder)
		abort();
	if (stretch_read(&trimming->recording.reader, section, bytes)) {
		fail_to_read(trimming);
		free(decoder);
		return NULL;
	}
	decoder_init(decoder, *bytes, section->raw_size);
	return decoder;
}

static bool read_keyframe(struct trimming *trimming, const struct section *section, struct event *event)
{
	uint8_t *bytes;
	struct decoder *decoder = open_stretch(trimming, section, &bytes);

	if (!decoder)
		return false;
	bool found = decoder_next(decoder, event) == DECODE_EVENT;
	free(decoder);
	free(bytes);
	if (!found)
		error_print("trim", "%s: a stretch without a keyframe", trimming->recording.path);
	return found;
}

/* Stretches that the first one leans on stay, too. */
static bool reach_back(struct trimming *trimming, struct kept_thread *kept)
{
	struct event event;

	if (kept->first >= kept->end)
		return true;
	if (!read_keyframe(trimming, kept->thread->stretches[kept->first], &event))
		return false;
	kept->first -= event.keyframe.leans_on < kept->first ? event.keyframe.leans_on : kept->first;
	return true;
}

static void choose_by_position(struct kept_thread *kept, const struct position_range *range)
{
	const struct recording_thread *thread = kept->thread;

	kept->to = range->to;
	for (size_t i = 0; i < thread->stretch_count; i++) {
		if (thread->stretches[i]->first <= range->from)
			kept->first = i;
		if (thread->stretches[i]->first < range->to && thread->stretches[i]->last >= range->from)
			kept->end = i + 1;
	}
}

/* When the stretches of the thread begin; the caller frees it. NULL after an error. */
static uint64_t *times_of(struct trimming *trimming, const struct recording_thread *thread)
{
	uint64_t *times = calloc(thread->stretch_count + 1, sizeof *times);
	struct event event;

	if (!times)
		abort();
	for (size_t i = 0; i < thread->stretch_count; i++) {
		if (!read_keyframe(trimming, thread->stretches[i], &event)) {
			free(times);
			return NULL;
		}
		times[i] = event.keyframe.monotonic;
	}
	times[thread->stretch_count] = UINT64_MAX;
	return times;
}

static bool choose_by_time(struct trimming *trimming, struct kept_thread *kept, uint64_t from, uint64_t to)
{
	uint64_t *times = times_of(trimming, kept->thread);

	if (!times)
		return false;
	kept->to = UINT64_MAX;
	for (size_t i = 0; i < kept->thread->stretch_count; i++) {
		if (times[i] <= from)
			kept->first = i;
		if (times[i] < to)
			kept->end = i + 1;
	}
	/* it had ended before */
	if (kept->end && kept->first == kept->thread->stretch_count - 1 && kept->thread->has_record &&
	        kept->thread->record.end_time < from)
		kept->end = 0;
	free(times);
	return true;
}

static bool choose_others(struct trimming *trimming, const struct kept_thread *chosen)
{
	uint64_t *times = times_of(trimming, chosen->thread);

	if (!times)
		return false;
	uint64_t from = times[chosen->first], to = times[chosen->end];
	free(times);
	for (size_t i = 0; i < trimming->recording.thread_count; i++) {
		if (&trimming->threads[i] != chosen &&
		        !choose_by_time(trimming, &trimming->threads[i], from, to))
			return false;
	}
	return true;
}

static bool choose(struct trimming *trimming, const struct position_range *range)
{
	struct recording *recording = &trimming->recording;
	struct kept_thread *chosen = NULL;
	bool any = false;

	trimming->threads = calloc(recording->thread_count + 1, sizeof *trimming->threads);
	if (!trimming->threads)
		abort();
	for (size_t i = 0; i < recording->thread_count; i++) {
		struct kept_thread *kept = &trimming->threads[i];
		kept->thread = &recording->threads[i];
		if (range->thread == POSITION_ANY_THREAD || range->thread == kept->thread->id)
			choose_by_position(kept, range);
		any |= kept->end > 0;
		if (range->thread == kept->thread->id)
			chosen = kept;
	}
	if (!any) {
		error_print("trim",
		        "%s: nothing was recorded there; 'bugnet info' lists threads and positions",
		        recording->path);
		return false;
	}
	if (chosen && !choose_others(trimming, chosen))
		return false;
	for (size_t i = 0; i < recording->thread_count; i++) {
		if (!reach_back(trimming, &trimming->threads[i]))
			return false;
	}
	return true;
}

/* ---- writing ---- */

static bool copy_section(struct trimming *trimming, const struct section *section)
{
	uint8_t *stored;

	if (reader_load_stored(&trimming->recording.reader, section, &stored))
		return fail_to_read(trimming);
	enum recording_status status = writer_add_stored(&trimming->writer, section, stored);
	free(stored);
	return status ? fail_to_write(trimming) : true;
}

/* The events before the position. */
static bool cut_section(struct trimming *trimming, const struct section *section, uint64_t to)
{
	struct section what = *section;
	struct event event;
	uint8_t *bytes;
	struct decoder *decoder = open_stretch(trimming, section, &bytes);

	if (!decoder)
		return false;
	size_t size = section->raw_size;
	while (decoder_next(decoder, &event) == DECODE_EVENT) {
		if (event.position >= to && event.kind != EVENT_KEYFRAME) {
			size = decoder->event_offset;
			break;
		}
	}
	what.codec = CODEC_SORTED;
	what.last = to;
	enum recording_status status = writer_add(&trimming->writer, &what, bytes, size);
	free(decoder);
	free(bytes);
	return status ? fail_to_write(trimming) : true;
}

static bool write_thread(struct trimming *trimming, const struct kept_thread *kept)
{
	const struct recording_thread *thread = kept->thread;
	struct thread_record record = thread->record;
	uint64_t last = 0;

	for (size_t i = kept->first; i < kept->end; i++) {
		const struct section *section = thread->stretches[i];
		bool cut = section->last > kept->to;
		if (!(cut ? cut_section(trimming, section, kept->to) : copy_section(trimming, section)))
			return false;
		last = cut ? kept->to : section->last;
		trimming->kept += last - section->first;
	}
	if (kept->first >= kept->end || !thread->has_record)
		return true;
	record.first_position = thread->stretches[kept->first]->first;
	record.last_position = last;
	if (kept->end < thread->stretch_count || kept->to < thread->stretches[kept->end - 1]->last)
		record.end_kind = THREAD_STILL_RUNS;
	trimming->ends |= record.end_kind != THREAD_STILL_RUNS && record.end_kind != END_THREAD_EXIT;
	return thread_record_write(&trimming->writer, &record) ? fail_to_write(trimming) : true;
}

/* All that was known, but not how it ended if that is not in it. */
static bool write_meta(struct trimming *trimming)
{
	const struct meta *old = &trimming->recording.meta;
	struct meta meta = {0};
	uint64_t dropped = 0;
	char reason[256];

	for (size_t i = 0; i < old->count; i++) {
		const struct meta_entry *entry = &old->entries[i];
		if (!trimming->ends &&
		        (!strcmp(entry->key, META_END_KIND) || !strcmp(entry->key, META_END_STATUS) ||
		                !strcmp(entry->key, META_SAVE_THREAD) ||
		                !strcmp(entry->key, META_SAVE_POSITION)))
			continue;
		if (entry->type == META_NUMBER)
			meta_set_number(&meta, entry->key, entry->number);
		else if (entry->type == META_TEXT)
			meta_set_text(&meta, entry->key, entry->texts[0]);
		else
			meta_set_texts(&meta, entry->key, (const char *const *)entry->texts, entry->count);
	}
	if (!trimming->ends) {
		snprintf(reason, sizeof reason, "trimmed from %s", trimming->recording.path);
		meta_set_text(&meta, META_SAVE_KIND, "trim");
		meta_set_text(&meta, META_SAVE_REASON, reason);
	}
	meta_number(old, META_DROPPED, &dropped);
	meta_set_number(&meta, META_DROPPED, dropped + trimming->dropped);
	enum recording_status status = meta_write(&trimming->writer, &meta);
	meta_deinit(&meta);
	return status ? fail_to_write(trimming) : true;
}

/* Files and code as they are; of the rest only what stays. */
static bool write_sections(struct trimming *trimming)
{
	const struct reader *reader = &trimming->recording.reader;
	uint64_t all = 0;

	for (size_t i = 0; i < reader->count; i++) {
		const struct section *section = &reader->sections[i];
		if (section->type == SECTION_STRETCH)
			all += section->last - section->first;
		else if (section->type != SECTION_META && section->type != SECTION_THREAD &&
		         !copy_section(trimming, section))
			return false;
	}
	for (size_t i = 0; i < trimming->recording.thread_count; i++) {
		if (!write_thread(trimming, &trimming->threads[i]))
			return false;
	}
	trimming->dropped = all - trimming->kept;
	return write_meta(trimming);
}

static bool write_all(struct trimming *trimming)
{
	const struct reader *reader = &trimming->recording.reader;

	if (writer_init_required(
	            &trimming->writer, trimming->output, reader->header.required, reader->header.optional))
		return fail_to_write(trimming);
	bool done = write_sections(trimming);
	if (done && writer_finish(&trimming->writer))
		done = fail_to_write(trimming);
	writer_deinit(&trimming->writer);
	return done;
}

/* ---- the command ---- */

static bool check_output(const char *output)
{
	struct stat status;

	if (!output)
		error_print("trim", "no name for the smaller recording; give one with -o");
	else if (lstat(output, &status) == 0)
		error_print(
		        "trim", "%s: there is such a file already; remove it or give another name", output);
	else
		return true;
	return false;
}

static void report(const struct trimming *trimming)
{
	char kept[AMOUNT_TEXT_SIZE], all[AMOUNT_TEXT_SIZE], size[AMOUNT_TEXT_SIZE];

	printf("saved %s: %s of %s instructions, %s\n", trimming->output, amount_text(trimming->kept, kept),
	        amount_text(trimming->kept + trimming->dropped, all), size_text(trimming->writer.size, size));
}

static int trim_main(int argc, char **argv)
{
	struct trim_values values = {0};
	struct position_range range = {POSITION_ANY_THREAD, 0, UINT64_MAX};
	struct trimming trimming = {0};
	int status;
	const char *file = options_parse_file(&trim_command, argc, argv, &values, &status);

	if (!file)
		return status;
	if (!position_range_parse("trim", &values.range, &range) || !check_output(values.output))
		return STATUS_FAILED;
	if (!recording_open(&trimming.recording, "trim", file))
		return STATUS_FAILED;
	trimming.output = values.output;
	bool done = choose(&trimming, &range) && write_all(&trimming);
	if (done)
		report(&trimming);
	free(trimming.threads);
	recording_close(&trimming.recording);
	return done ? 0 : STATUS_FAILED;
}

const struct command trim_command = {
        .name = "trim",
        .summary = "make a smaller recording of a part of one",
        .synopsis = "trim -o FILE [--from POS] [--to POS] [--thread ID] RECORDING",
        .description =
                "Write a recording that has only a part of RECORDING and replays by itself: from the last\n"
                "keyframe before --from up to --to. Without --thread both are positions of every thread by\n"
                "itself; with it, of that thread, and of the others the stretches stay that overlap in "
                "time.\n"
                "RECORDING is not changed.\n"
                "\n"
                "Exit status: 0; or 125 when that is not possible.\n",
        .options = trim_options,
        .function = trim_main,
};
