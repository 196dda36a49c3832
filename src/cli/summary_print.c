/* A recording's summary as text and as JSON. Nothing from the file reaches a terminal as it is. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/summary.h"
#include "cli/json.h"
#include "recording/amount.h"
#include "recording/names.h"

#define KEYFRAMES_SHOWN 20
#define FILES_SHOWN     40
#define TIME_TEXT_SIZE  64
#define BILLION         UINT64_C(1000000000)

static const char *const end_names[] = {
        [END_EXIT] = "exit",
        [END_KILLED] = "signal",
        [END_THREAD_EXIT] = "thread-exit",
        [END_EXEC] = "exec",
        [END_RELEASED] = "released",
};

/* ---- calls, most frequent first ---- */

struct call_count {
	uint64_t number, count;
};

static int compare_counts(const void *a, const void *b)
{
	const struct call_count *first = a, *second = b;

	if (first->count != second->count)
		return first->count > second->count ? -1 : 1;
	return first->number < second->number ? -1 : first->number > second->number;
}

static const char *call_name(uint64_t number, char text[NAME_TEXT_SIZE])
{
	return number < SUMMARY_CALLS - 1 ? syscall_name(number, text) : strcpy(text, "others");
}

static size_t sorted_calls(const struct summary *summary, struct call_count calls[SUMMARY_CALLS])
{
	size_t count = 0;

	for (uint64_t i = 0; i < SUMMARY_CALLS; i++) {
		if (summary->calls_by_number[i])
			calls[count++] = (struct call_count){i, summary->calls_by_number[i]};
	}
	qsort(calls, count, sizeof *calls, compare_counts);
	return count;
}

/* ---- text ---- */

static void print_label(FILE *out, const char *label)
{
	fprintf(out, "%-15s", label);
}

static void print_quoted(FILE *out, const char *text)
{
	char *quoted = recording_quoted(text);

	fputs(quoted ? quoted : "?", out);
	free(quoted);
}

/* As it is, but for control characters. */
static void print_plain(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, out);
}

static void print_text(FILE *out, const char *label, const char *text)
{
	if (!text)
		return;
	print_label(out, label);
	print_plain(out, text);
	fputc('\n', out);
}

static const char *time_text(uint64_t realtime, char text[TIME_TEXT_SIZE])
{
	time_t seconds = (time_t)(realtime / BILLION);
	struct tm parts;

	if (!localtime_r(&seconds, &parts) || !strftime(text, TIME_TEXT_SIZE, "%F %T", &parts))
		strcpy(text, "?");
	return text;
}

static void print_arguments(const struct summary *summary, FILE *out)
{
	uint32_t count = 0;
	char *const *arguments = meta_texts(&summary->recording->meta, META_ARGUMENTS, &count);

	if (!arguments)
		return;
	print_label(out, "arguments");
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			fputc(' ', out);
		print_quoted(out, arguments[i]);
	}
	fputc('\n', out);
}

static void print_times(const struct summary *summary, FILE *out)
{
	char text[TIME_TEXT_SIZE], duration[AMOUNT_TEXT_SIZE];
	uint64_t number;

	if (!meta_number(&summary->recording->meta, META_START, &number))
		return;
	print_label(out, "date");
	fputs(time_text(number, text), out);
	if (meta_number(&summary->recording->meta, META_DURATION, &number))
		fprintf(out, ", lasted %s", duration_text(number, duration));
	fputc('\n', out);
}

static void print_killed(const struct summary_end *end, FILE *out)
{
	const struct event_end *event = &end->event;
	char name[NAME_TEXT_SIZE], info[SIGNAL_INFO_TEXT_SIZE];
	char *symbol = end->has_symbol ? symbol_text(&end->symbol) : NULL;

	fprintf(out, "killed by %s %s\n", signal_name((uint32_t)event->status, name),
	        signal_info_text((uint32_t)event->status, event->code, event->details, info));
	print_label(out, "");
	fprintf(out, "thread %u, position %" PRIu64 ", pc 0x%" PRIx64 ": ", end->thread, end->position,
	        event->registers.pc);
	print_plain(out, symbol ? symbol : "no code is there");
	fputc('\n', out);
	free(symbol);
}

/* Was it saved because somebody asked for it, not because the program had ended? */
static bool was_running(const struct summary *summary)
{
	const char *kind = meta_text(&summary->recording->meta, META_SAVE_KIND);

	return kind && strcmp(kind, "end") != 0;
}

static void print_save(const struct summary *summary, FILE *out)
{
	const struct meta *meta = &summary->recording->meta;
	const char *reason = meta_text(meta, META_SAVE_REASON);
	char text[TIME_TEXT_SIZE];
	uint64_t time = 0, thread, position;

	if (!reason)
		return;
	meta_number(meta, META_SAVE_TIME, &time);
	print_label(out, "saved");
	fprintf(out, "%s: ", time_text(time, text));
	print_plain(out, reason);
	if (meta_number(meta, META_SAVE_THREAD, &thread) && meta_number(meta, META_SAVE_POSITION, &position))
		fprintf(out, "; thread %" PRIu64 ", position %" PRIu64, thread, position);
	fputc('\n', out);
}

/* How much of the run this is. */
static void print_window(const struct summary *summary, FILE *out)
{
	const struct meta *meta = &summary->recording->meta;
	char size[AMOUNT_TEXT_SIZE], kept[AMOUNT_TEXT_SIZE], all[AMOUNT_TEXT_SIZE];
	uint64_t ring, dropped = 0;

	if (!meta_number(meta, META_RING, &ring))
		return;
	meta_number(meta, META_DROPPED, &dropped);
	print_label(out, "window");
	if (dropped)
		fprintf(out, "the last %s of %s instructions, in a ring of %s\n",
		        amount_text(summary->instructions, kept),
		        amount_text(summary->instructions + dropped, all), size_text(ring, size));
	else
		fprintf(out, "everything, in a ring of %s\n", size_text(ring, size));
}

static void print_end(const struct summary *summary, FILE *out)
{
	const struct summary_end *end = &summary->end;
	char text[NAME_TEXT_SIZE];

	print_label(out, "end");
	if (!end->known) {
		fputs(was_running(summary) ? "none yet: the program went on when this was saved\n"
		                           : "not recorded: the recording was cut off\n",
		        out);
		return;
	}
	if (end->event.kind == END_KILLED && !end->untold)
		print_killed(end, out);
	else
		fprintf(out, "%s\n", end_text(end->event.kind, end->event.status, text));
}

static void print_amount(FILE *out, const char *label, uint64_t number)
{
	print_label(out, label);
	fprintf(out, "%" PRIu64 "\n", number);
}

static void print_sizes(const struct summary *summary, FILE *out)
{
	char text[AMOUNT_TEXT_SIZE];

	print_amount(out, "instructions", summary->instructions);
	if (summary->has_loads)
		print_amount(out, "loads", summary->loads);
	else
		print_text(out, "loads", "not counted; --loads counts them, by a replay");
	print_label(out, "logged loads");
	fprintf(out, "%" PRIu64 " (%" PRIu64 " words)\n", summary->logged_loads, summary->words);
	print_amount(out, "results", summary->results);
	print_amount(out, "signals", summary->signals);
	print_label(out, "events");
	fprintf(out, "%s, ", size_text(summary->raw_size, text));
	fprintf(out, "%s compressed\n", size_text(summary->stored_size, text));
	print_label(out, "file");
	fprintf(out, "%s", size_text(summary->recording->reader.size, text));
	if (summary->packed_size)
		fprintf(out, ", of which packed files %s", size_text(summary->packed_size, text));
	if (summary->instructions)
		fprintf(out, ", %.4g bits per instruction", summary_bits_per_instruction(summary));
	fputc('\n', out);
}

static void print_threads(const struct summary *summary, FILE *out)
{
	const struct recording *recording = summary->recording;
	uint64_t unrecorded;

	fprintf(out, "\nthreads: %zu", recording->thread_count);
	if (meta_number(&recording->meta, META_UNRECORDED, &unrecorded))
		fprintf(out, "; %" PRIu64 " ran unrecorded, for want of room", unrecorded);
	fputc('\n', out);
	if (!recording->thread_count)
		return;
	fprintf(out, "%6s %8s  %-16s %18s %10s  %s\n", "thread", "tid", "name", "instructions", "keyframes",
	        "end");
	for (size_t i = 0; i < recording->thread_count; i++) {
		const struct recording_thread *thread = &recording->threads[i];
		const struct thread_record *record = &thread->record;
		char *name = recording_quoted(thread->has_record ? record->name : "?");
		uint32_t kind = thread->has_record ? record->end_kind : THREAD_STILL_RUNS;
		fprintf(out, "%6u %8d  %-16s %18" PRIu64 " %10zu  ", thread->id, record->tid,
		        name ? name : "", thread->instructions, thread->stretch_count);
		if (kind <= END_RELEASED)
			fprintf(out, "%s %d\n", end_names[kind], record->end_status);
		else
			fputs("-\n", out);
		free(name);
	}
}

static void print_keyframes(const struct summary *summary, FILE *out)
{
	char text[TIME_TEXT_SIZE], raw[AMOUNT_TEXT_SIZE], stored[AMOUNT_TEXT_SIZE];

	fprintf(out, "\nkeyframes: %zu\n", summary->keyframe_count);
	if (!summary->keyframe_count)
		return;
	fprintf(out, "%6s %18s  %-26s %12s %12s\n", "thread", "position", "time", "events", "compressed");
	for (size_t i = 0; i < summary->keyframe_count && i < KEYFRAMES_SHOWN; i++) {
		const struct summary_keyframe *keyframe = &summary->keyframes[i];
		fprintf(out, "%6u %18" PRIu64 "  %s.%06" PRIu64 " %12s %12s\n", keyframe->thread,
		        keyframe->position, time_text(keyframe->realtime, text),
		        keyframe->realtime % BILLION / 1000, size_text(keyframe->raw_size, raw),
		        size_text(keyframe->stored_size, stored));
	}
	if (summary->keyframe_count > KEYFRAMES_SHOWN)
		fprintf(out, "   and %zu more; --json lists them\n",
		        summary->keyframe_count - KEYFRAMES_SHOWN);
}

static bool is_packed(const struct summary *summary, uint32_t number)
{
	return reader_find(&summary->recording->reader, SECTION_FILE, number, NULL);
}

static void print_files(const struct summary *summary, FILE *out)
{
	const struct codelog *log = &summary->recording->codelog;
	char id[BUILD_ID_TEXT_SIZE];

	fprintf(out, "\nfiles: %u\n", log->count);
	for (uint32_t i = 0; i < log->count && i < FILES_SHOWN; i++) {
		build_id_text(&log->files[i].build_id, id);
		fputs("  ", out);
		print_quoted(out, log->files[i].path);
		if (*id)
			fprintf(out, " build id %s", id);
		fputs(is_packed(summary, i) ? ", packed\n" : "\n", out);
	}
	if (log->count > FILES_SHOWN)
		fprintf(out, "  and %u more; --json lists them\n", log->count - FILES_SHOWN);
}

static void print_calls(const struct summary *summary, FILE *out)
{
	static struct call_count calls[SUMMARY_CALLS];
	size_t count = sorted_calls(summary, calls);
	char name[NAME_TEXT_SIZE];

	fprintf(out, "\nsystem calls: %" PRIu64 "\n", summary->calls);
	for (size_t i = 0; i < count; i++)
		fprintf(out, "%12" PRIu64 " %s\n", calls[i].count, call_name(calls[i].number, name));
}

void summary_print(const struct summary *summary, FILE *out)
{
	const struct meta *meta = &summary->recording->meta;

	print_text(out, "program", meta_text(meta, META_PROGRAM));
	print_arguments(summary, out);
	print_text(out, "directory", meta_text(meta, META_DIRECTORY));
	print_text(out, "host", meta_text(meta, META_HOST));
	print_text(out, "kernel", meta_text(meta, META_KERNEL));
	print_text(out, "cpu", meta_text(meta, META_CPU));
	print_text(out, "cpu level", meta_text(meta, META_CPU_LEVEL));
	print_text(out, "bugnet", meta_text(meta, META_BUGNET_VERSION));
	print_times(summary, out);
	print_end(summary, out);
	print_save(summary, out);
	print_window(summary, out);
	print_sizes(summary, out);
	print_threads(summary, out);
	print_keyframes(summary, out);
	print_files(summary, out);
	print_calls(summary, out);
}

/* ---- JSON ---- */

static void json_meta_text(struct json *json, const char *key, const struct meta *meta, const char *meta_key)
{
	if (meta_text(meta, meta_key))
		json_text(json, key, meta_text(meta, meta_key));
}

static void json_meta_number(
        struct json *json, const char *key, const struct meta *meta, const char *meta_key)
{
	uint64_t number;

	if (meta_number(meta, meta_key, &number))
		json_number(json, key, number);
}

/* 2026-11-16T02:06:11Z */
static void json_date(struct json *json, const char *key, uint64_t realtime)
{
	time_t seconds = (time_t)(realtime / BILLION);
	char text[TIME_TEXT_SIZE];
	struct tm parts;

	if (gmtime_r(&seconds, &parts) && strftime(text, sizeof text, "%FT%TZ", &parts))
		json_text(json, key, text);
}

static void json_facts(struct json *json, const struct meta *meta)
{
	uint32_t count = 0;
	char *const *arguments = meta_texts(meta, META_ARGUMENTS, &count);
	uint64_t start;

	json_meta_text(json, "program", meta, META_PROGRAM);
	json_open(json, "arguments", '[');
	for (uint32_t i = 0; i < count; i++)
		json_text(json, NULL, arguments[i]);
	json_close(json, ']');
	json_meta_text(json, "directory", meta, META_DIRECTORY);
	json_meta_text(json, "host", meta, META_HOST);
	json_meta_text(json, "kernel", meta, META_KERNEL);
	json_meta_text(json, "cpu", meta, META_CPU);
	json_meta_text(json, "cpu_level", meta, META_CPU_LEVEL);
	json_meta_text(json, "bugnet_version", meta, META_BUGNET_VERSION);
	json_meta_number(json, "uid", meta, META_UID);
	json_meta_number(json, "pid", meta, META_PID);
	json_meta_number(json, "forked_from", meta, META_FORKED_FROM);
	if (meta_number(meta, META_START, &start))
		json_date(json, "date", start);
	json_meta_number(json, "start_ns", meta, META_START);
	json_meta_number(json, "duration_ns", meta, META_DURATION);
	json_meta_number(json, "dictionary", meta, META_DICTIONARY);
	json_meta_number(json, "interval", meta, META_INTERVAL);
	json_meta_number(json, "interval_ns", meta, META_INTERVAL_TIME);
	json_meta_number(json, "bound", meta, META_BOUND);
}

static void json_save(struct json *json, const struct meta *meta)
{
	json_meta_number(json, "ring", meta, META_RING);
	json_meta_number(json, "dropped_instructions", meta, META_DROPPED);
	json_meta_number(json, "unrecorded_threads", meta, META_UNRECORDED);
	if (!meta_text(meta, META_SAVE_KIND))
		return;
	json_open(json, "saved", '{');
	json_meta_text(json, "kind", meta, META_SAVE_KIND);
	json_meta_text(json, "reason", meta, META_SAVE_REASON);
	json_meta_number(json, "time_ns", meta, META_SAVE_TIME);
	json_meta_number(json, "thread", meta, META_SAVE_THREAD);
	json_meta_number(json, "position", meta, META_SAVE_POSITION);
	json_close(json, '}');
}

static void json_symbol(struct json *json, const struct symbol *symbol)
{
	json_text(json, "file", symbol->file);
	if (symbol->file)
		json_number(json, "file_offset", symbol->offset);
	json_text(json, "symbol", symbol->name);
	if (symbol->name)
		json_number(json, "symbol_offset", symbol->name_offset);
	json_text(json, "source", symbol->source);
	if (symbol->source)
		json_signed(json, "line", symbol->line);
}

static void json_end(struct json *json, const struct summary_end *end)
{
	const struct event_end *event = &end->event;
	char text[NAME_TEXT_SIZE], info[SIGNAL_INFO_TEXT_SIZE];

	json_open(json, "end", '{');
	json_text(json, "kind", end->known ? end_names[event->kind] : "unknown");
	if (end->known)
		json_signed(json, "status", event->status);
	if (end->known && !end->untold) {
		json_number(json, "thread", end->thread);
		json_number(json, "position", end->position);
	}
	if (end->known && event->kind == END_KILLED)
		json_text(json, "signal", signal_name((uint32_t)event->status, text));
	if (end->known && event->kind == END_KILLED && !end->untold) {
		json_text(json, "code", signal_code_name((uint32_t)event->status, event->code, text));
		json_hex(json, "address", event->details[0]);
		json_text(json, "siginfo",
		        signal_info_text((uint32_t)event->status, event->code, event->details, info));
		json_hex(json, "pc", event->registers.pc);
		if (end->has_symbol)
			json_symbol(json, &end->symbol);
	}
	json_close(json, '}');
}

static void json_sizes(struct json *json, const struct summary *summary)
{
	json_number(json, "instructions", summary->instructions);
	if (summary->has_loads)
		json_number(json, "loads", summary->loads);
	else
		json_text(json, "loads", NULL);
	json_number(json, "logged_loads", summary->logged_loads);
	json_number(json, "logged_words", summary->words);
	json_number(json, "results", summary->results);
	json_number(json, "signals", summary->signals);
	json_number(json, "bytes", summary->recording->reader.size);
	json_number(json, "event_bytes", summary->raw_size);
	json_number(json, "event_bytes_compressed", summary->stored_size);
	json_number(json, "packed_bytes", summary->packed_size);
	json_real(json, "bits_per_instruction", summary_bits_per_instruction(summary));
}

static void json_thread(struct json *json, const struct recording_thread *thread)
{
	const struct thread_record *record = &thread->record;

	json_open(json, NULL, '{');
	json_number(json, "id", thread->id);
	if (thread->has_record) {
		json_signed(json, "tid", record->tid);
		json_text(json, "name", record->name);
		if (record->parent != THREAD_NO_PARENT)
			json_number(json, "parent", record->parent);
		json_number(json, "start_ns", record->start_time);
		json_number(json, "end_ns", record->end_time);
		if (record->end_kind <= END_RELEASED) {
			json_text(json, "end", end_names[record->end_kind]);
			json_signed(json, "status", record->end_status);
		}
	}
	json_number(json, "instructions", thread->instructions);
	if (thread->stretch_count) {
		json_number(json, "first_position", thread->stretches[0]->first);
		json_number(json, "last_position", thread->stretches[thread->stretch_count - 1]->last);
	}
	json_number(json, "keyframes", thread->stretch_count);
	json_close(json, '}');
}

static void json_threads(struct json *json, const struct summary *summary)
{
	json_open(json, "threads", '[');
	for (size_t i = 0; i < summary->recording->thread_count; i++)
		json_thread(json, &summary->recording->threads[i]);
	json_close(json, ']');
}

static void json_keyframes(struct json *json, const struct summary *summary)
{
	json_open(json, "keyframes", '[');
	for (size_t i = 0; i < summary->keyframe_count; i++) {
		const struct summary_keyframe *keyframe = &summary->keyframes[i];
		json_open(json, NULL, '{');
		json_number(json, "thread", keyframe->thread);
		json_number(json, "position", keyframe->position);
		json_number(json, "time_ns", keyframe->realtime);
		json_number(json, "leans_on", keyframe->leans_on);
		json_number(json, "event_bytes", keyframe->raw_size);
		json_number(json, "event_bytes_compressed", keyframe->stored_size);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void json_files(struct json *json, const struct summary *summary)
{
	const struct codelog *log = &summary->recording->codelog;
	char id[BUILD_ID_TEXT_SIZE];

	json_open(json, "files", '[');
	for (uint32_t i = 0; i < log->count; i++) {
		build_id_text(&log->files[i].build_id, id);
		json_open(json, NULL, '{');
		json_text(json, "path", log->files[i].path);
		json_text(json, "build_id", *id ? id : NULL);
		json_number(json, "size", log->files[i].size);
		if (log->files[i].has_checksum)
			json_hex(json, "checksum", log->files[i].checksum);
		json_bool(json, "packed", is_packed(summary, i));
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void json_calls(struct json *json, const struct summary *summary)
{
	static struct call_count calls[SUMMARY_CALLS];
	size_t count = sorted_calls(summary, calls);
	char name[NAME_TEXT_SIZE];

	json_open(json, "system_calls", '{');
	for (size_t i = 0; i < count; i++)
		json_number(json, call_name(calls[i].number, name), calls[i].count);
	json_close(json, '}');
}

void summary_print_json(const struct summary *summary, FILE *out)
{
	struct json json = {.out = out};

	json_open(&json, NULL, '{');
	json_facts(&json, &summary->recording->meta);
	json_save(&json, &summary->recording->meta);
	json_end(&json, &summary->end);
	json_sizes(&json, summary);
	json_bool(&json, "whole", !summary->recording->damaged);
	json_threads(&json, summary);
	json_keyframes(&json, summary);
	json_files(&json, summary);
	json_calls(&json, summary);
	json_close(&json, '}');
}
