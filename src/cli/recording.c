#include "cli/recording.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/error.h"
#include "recording/decode.h"

#define ERROR_SIZE 128

void recording_warn(struct recording *recording, const char *format, ...)
{
	char message[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	error_print(recording->command, "warning: %s: %s", recording->path, message);
	recording->damaged = true;
}

/* ---- threads ---- */

/* By thread, then by number; of two that say the same, the one that comes first in the file. */
static int compare_stretches(const void *a, const void *b)
{
	const struct section *first = *(const struct section *const *)a;
	const struct section *second = *(const struct section *const *)b;

	if (first->id != second->id)
		return first->id < second->id ? -1 : 1;
	return first < second ? -1 : first > second;
}

static int compare_threads(const void *a, const void *b)
{
	const struct recording_thread *first = a, *second = b;

	if (first->id != second->id)
		return first->id < second->id ? -1 : 1;
	return first->rank > second->rank ? -1 : first->rank < second->rank;
}

static size_t collect_stretches(struct recording *recording)
{
	size_t count = 0;

	for (size_t i = 0; i < recording->reader.count; i++) {
		const struct section *section = &recording->reader.sections[i];
		if (section->type == SECTION_STRETCH)
			recording->stretches[count++] = section;
	}
	if (count)
		qsort(recording->stretches, count, sizeof *recording->stretches, compare_stretches);
	return count;
}

/* Those that have a stretch, in the order of the stretches. */
static void add_threads_of_stretches(struct recording *recording, size_t count)
{
	struct recording_thread *thread = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct section *stretch = recording->stretches[i];
		if (!thread || thread->id != stretch_thread(stretch)) {
			thread = &recording->threads[recording->thread_count++];
			*thread = (struct recording_thread){
			        .id = stretch_thread(stretch), .stretches = &recording->stretches[i]};
		}
		thread->stretch_count++;
		if (stretch->last > stretch->first)
			thread->instructions += stretch->last - stretch->first;
	}
}

static struct recording_thread *find_thread(struct recording *recording, uint32_t id, size_t count)
{
	const struct recording_thread key = {.id = id};

	return count ? bsearch(&key, recording->threads, count, sizeof key, compare_threads) : NULL;
}

/* Those that have a record; the last one of each counts. */
static void add_records(struct recording *recording)
{
	size_t with_stretches = recording->thread_count;

	for (size_t i = recording->reader.count; i-- > 0;) {
		const struct section *section = &recording->reader.sections[i];
		struct thread_record record;
		if (section->type != SECTION_THREAD)
			continue;
		struct recording_thread *thread =
		        find_thread(recording, (uint32_t)section->id, with_stretches);
		if (thread && thread->has_record)
			continue;
		if (thread_record_read(&recording->reader, section, &record))
			continue;
		if (!thread) {
			thread = &recording->threads[recording->thread_count++];
			*thread = (struct recording_thread){.id = record.id, .rank = i};
		}
		thread->has_record = true;
		thread->record = record;
	}
}

/* A thread without stretches may have come several times, once for each of its records: the last one counts.
 */
static void sort_threads(struct recording *recording)
{
	size_t kept = 0;

	if (recording->thread_count)
		qsort(recording->threads, recording->thread_count, sizeof *recording->threads,
		        compare_threads);
	for (size_t i = 0; i < recording->thread_count; i++) {
		if (!kept || recording->threads[kept - 1].id != recording->threads[i].id)
			recording->threads[kept++] = recording->threads[i];
	}
	recording->thread_count = kept;
}

static bool find_threads(struct recording *recording)
{
	size_t most = recording->reader.count + 1;

	recording->stretches = calloc(most, sizeof *recording->stretches);
	recording->threads = calloc(most, sizeof *recording->threads);
	if (!recording->stretches || !recording->threads)
		return false;
	add_threads_of_stretches(recording, collect_stretches(recording));
	add_records(recording);
	sort_threads(recording);
	return true;
}

/* ---- opening ---- */

static void warn_of(struct recording *recording, const char *what)
{
	char text[ERROR_SIZE];

	recording_warn(
	        recording, "%s: %s", what, recording_error_text(&recording->reader.error, text, sizeof text));
}

static void read_sections(struct recording *recording)
{
	struct reader *reader = &recording->reader;
	enum recording_status status = meta_read(reader, &recording->meta);

	if (status)
		warn_of(recording, "what was recorded is not known");
	status = codelog_read(reader, &recording->codelog);
	if (status && status != RECORDING_MISSING)
		warn_of(recording, "not all files are known");
	if (code_history_read(reader, &recording->code))
		warn_of(recording, "not all code is known");
}

bool recording_open(struct recording *recording, const char *command, const char *path)
{
	char text[ERROR_SIZE];

	*recording = (struct recording){.command = command, .path = path};
	if (reader_open(&recording->reader, path)) {
		const struct recording_error *error = &recording->reader.error;
		error_print(command, "%s: %s%s", path, recording_error_text(error, text, sizeof text),
		        recording_next_step(error));
		return false;
	}
	if (recording->reader.end.status)
		recording_warn(recording, "%s; what comes before is used",
		        recording_error_text(&recording->reader.end, text, sizeof text));
	read_sections(recording);
	if (find_threads(recording))
		return true;
	error_print(command, "%s: out of memory", path);
	recording_close(recording);
	return false;
}

void recording_close(struct recording *recording)
{
	free(recording->stretches);
	free(recording->threads);
	code_history_deinit(&recording->code);
	codelog_deinit(&recording->codelog);
	meta_deinit(&recording->meta);
	reader_deinit(&recording->reader);
}

/* ---- events ---- */

static void visit_stretch(struct recording *recording, const struct recording_thread *thread,
        const struct section *stretch, const struct position_range *range, recording_visitor *visit,
        void *context)
{
	static struct decoder decoder; /* large, and nobody visits while visiting */
	char text[ERROR_SIZE];
	struct event event;
	enum decode_status status;
	uint8_t *bytes;

	if (stretch_read(&recording->reader, stretch, &bytes)) {
		recording_warn(recording, "thread %u, positions %" PRIu64 " to %" PRIu64 " are lost: %s",
		        thread->id, stretch->first, stretch->last,
		        recording_error_text(&recording->reader.error, text, sizeof text));
		return;
	}
	decoder_init(&decoder, bytes, stretch->raw_size);
	while ((status = decoder_next(&decoder, &event)) == DECODE_EVENT) {
		if (event.position >= range->from && event.position <= range->to)
			visit(context, thread, stretch, &event);
	}
	if (status != DECODE_END)
		recording_warn(recording, "thread %u, from position %" PRIu64 " on: %s", thread->id,
		        decoder.coder.position, decode_status_text(status));
	free(bytes);
}

void recording_visit(struct recording *recording, const struct recording_thread *thread,
        const struct position_range *range, recording_visitor *visit, void *context)
{
	for (size_t i = 0; i < thread->stretch_count; i++) {
		const struct section *stretch = thread->stretches[i];
		if (stretch->first <= range->to && stretch->last >= range->from)
			visit_stretch(recording, thread, stretch, range, visit, context);
	}
}

/* ---- text ---- */

static bool needs_quotes(const char *text)
{
	if (!*text)
		return true;
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c < 0x80 &&
		        !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_^",
		                c))
			return true;
	}
	return false;
}

static bool has_control(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	}
	return false;
}

char *recording_quoted(const char *text)
{
	char *quoted = NULL;
	size_t size;
	FILE *out = needs_quotes(text) ? open_memstream(&quoted, &size) : NULL;

	if (!out)
		return needs_quotes(text) ? NULL : strdup(text);
	bool control = has_control(text);
	fputs(control ? "$'" : "'", out);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c < 0x20 || *c == 0x7f)
			fprintf(out, "\\x%02x", *c);
		else if (*c == '\'')
			fputs(control ? "\\'" : "'\\''", out);
		else if (*c == '\\' && control)
			fputs("\\\\", out);
		else
			fputc(*c, out);
	}
	fputc('\'', out);
	return fclose(out) == 0 ? quoted : NULL;
}

bool recording_untold_end(const struct recording *recording, struct event_end *end)
{
	uint64_t kind, status = 0;

	for (size_t i = 0; i < recording->thread_count; i++) {
		const struct recording_thread *thread = &recording->threads[i];
		if (thread->has_record && thread->record.end_kind != THREAD_STILL_RUNS &&
		        thread->record.end_kind != END_THREAD_EXIT)
			return false;
	}
	if (!meta_number(&recording->meta, META_END_KIND, &kind) ||
	        (kind != END_EXEC && kind != END_KILLED && kind != END_RELEASED))
		return false;
	meta_number(&recording->meta, META_END_STATUS, &status);
	*end = (struct event_end){.kind = (enum event_end_kind)kind, .status = (int32_t)status};
	return true;
}
