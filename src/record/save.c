#include "record/save.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "recording/writer.h"

#define NUMBERS 100000 /* of files with one name that are tried */

void save_request_deinit(struct save_request *request)
{
	meta_deinit(&request->meta);
	codelog_deinit(&request->files);
	for (uint32_t i = 0; i < request->threads.count; i++)
		buffer_deinit(&request->threads.items[i].events);
	vector_free(&request->threads);
}

/* ---- names ---- */

void save_numbered(const char *path, unsigned number, char numbered[PATH_MAX])
{
	size_t size = strlen(path);
	size_t stem = size > 4 && !strcmp(path + size - 4, ".bug") ? size - 4 : size;

	if (number < 2)
		snprintf(numbered, PATH_MAX, "%s", path);
	else
		snprintf(numbered, PATH_MAX, "%.*s-%u%s", (int)stem, path, number, path + stem);
}

/* The next name behind `number` that nobody has. */
static unsigned find_name(const char *path, unsigned number, char found[PATH_MAX])
{
	struct stat status;

	do
		save_numbered(path, ++number, found);
	while (lstat(found, &status) == 0 && number < NUMBERS);
	return number;
}

/* Somebody else may take the name meanwhile: then it is the next one. */
static enum recording_status publish(
        struct writer *writer, const char *path, unsigned number, struct save_outcome *outcome)
{
	enum recording_status status = writer_finish(writer);

	while (status == RECORDING_SYSTEM && writer->error.number == EEXIST && number < NUMBERS) {
		number = find_name(path, number, outcome->path);
		free(writer->path);
		writer->path = strdup(outcome->path);
		if (!writer->path)
			abort();
		status = writer_keep(writer);
	}
	return status;
}

/* ---- files and code ---- */

/* Numbers of files in this recording, by their numbers in the request; EVENT_FILE_NONE: not needed. */
static uint32_t *choose_files(const struct save_source *source, uint32_t count)
{
	uint32_t *numbers = malloc((count + 1) * sizeof *numbers), next = 0;

	if (!numbers)
		abort();
	for (uint32_t i = 0; i < count; i++)
		numbers[i] = EVENT_FILE_NONE;
	for (uint32_t i = 0; i < source->code->count; i++) {
		uint32_t file = source->code->pieces[i].file;
		if (file < count)
			numbers[file] = 0;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (numbers[i] != EVENT_FILE_NONE)
			numbers[i] = next++;
	}
	return numbers;
}

static bool find_sum(const struct save_source *source, uint32_t number, uint64_t *checksum)
{
	for (uint32_t i = 0; i < source->sum_count; i++) {
		if (source->sums[i].number == number) {
			*checksum = source->sums[i].checksum;
			return true;
		}
	}
	return false;
}

static enum recording_status write_files(struct writer *writer, const struct save_source *source,
        const struct codelog *files, const uint32_t *numbers)
{
	struct codelog chosen = {.files = calloc(files->count + 1, sizeof *chosen.files)};

	if (!chosen.files)
		abort();
	for (uint32_t i = 0; i < files->count; i++) {
		struct codelog_file file = files->files[i];
		if (numbers[i] == EVENT_FILE_NONE)
			continue;
		file.has_checksum = find_sum(source, i, &file.checksum);
		file.number = numbers[i];
		chosen.files[chosen.count++] = file;
	}
	enum recording_status status = chosen.count ? codelog_write(writer, &chosen) : RECORDING_OK;
	free(chosen.files); /* what is in it belongs to the request */
	return status;
}

static enum recording_status write_code(
        struct writer *writer, struct code_history *code, uint32_t count, const uint32_t *numbers)
{
	uint32_t *before = malloc((code->count + 1) * sizeof *before);

	if (!before)
		abort();
	for (uint32_t i = 0; i < code->count; i++) {
		before[i] = code->pieces[i].file;
		if (before[i] < count)
			code->pieces[i].file = numbers[before[i]];
	}
	enum recording_status status = code_history_write(writer, code);
	for (uint32_t i = 0; i < code->count; i++)
		code->pieces[i].file = before[i];
	free(before);
	return status;
}

/* ---- threads ---- */

/* What goes into the file, and what it comes to. */
struct filing {
	struct writer *writer;
	const struct ring *ring;
	const struct save_request *request;
	struct save_outcome *outcome;
};

static enum recording_status file_stretch(void *context, const struct finished_stretch *stretch)
{
	struct filing *filing = context;

	enum recording_status status =
	        writer_add(filing->writer, &stretch->what, stretch->events->bytes, stretch->events->size);
	if (!status)
		filing->outcome->instructions += stretch->what.last - stretch->what.first;
	return status;
}

/* What the ring has lost was not kept. */
static enum recording_status file_thread(void *context, const struct thread_record *record)
{
	const struct filing *filing = context;
	struct thread_record kept = *record;

	for (uint32_t i = 0; i < filing->ring->stretches.count; i++) {
		const struct ring_stretch *stretch = &filing->ring->stretches.items[i];
		if (stretch->stored && stretch_thread(&stretch->section) == record->id) {
			kept.first_position = stretch->section.first;
			break;
		}
	}
	return thread_record_write(filing->writer, &kept);
}

static enum recording_status write_records(struct filing *filing)
{
	const struct ring *ring = filing->ring;
	enum recording_status status = RECORDING_OK;

	for (uint32_t i = 0; i < ring->threads.count && !status; i++) {
		status = file_thread(filing, &ring->threads.items[i].record);
		filing->outcome->threads++;
	}
	return status;
}

/* The last ones first: if there is no room for all, these are worth more. */
static enum recording_status write_ring(struct filing *filing)
{
	const struct ring *ring = filing->ring;
	const struct save_request *request = filing->request;
	enum recording_status status = RECORDING_OK;

	for (uint32_t i = ring->stretches.count; i-- > 0 && !status;) {
		const struct ring_stretch *stretch = &ring->stretches.items[i];
		if (!stretch->stored)
			continue;
		status = writer_add_stored(filing->writer, &stretch->section, stretch->stored);
		if (!status)
			filing->outcome->instructions += stretch->section.last - stretch->section.first;
		if (request->progress)
			request->progress(request->argument, filing->writer->size, ring->used);
	}
	return status;
}

static const struct thread_log *find_log(const struct save_source *source, uint32_t id)
{
	for (uint32_t i = 0; i < source->log_count; i++) {
		if (source->logs[i]->record.id == id)
			return source->logs[i];
	}
	return NULL;
}

static bool is_in_ring(const struct ring *ring, uint32_t id)
{
	for (uint32_t i = 0; i < ring->threads.count; i++) {
		if (ring->threads.items[i].record.id == id)
			return true;
	}
	return false;
}

/* A thread that goes on: its stretch so far. */
static enum recording_status write_living(struct filing *filing, const struct save_source *source,
        const struct save_thread *thread, uint64_t now)
{
	const struct log_sink sink = {file_stretch, file_thread, filing};
	const struct thread_log *log = find_log(source, thread->facts.id);
	struct thread_log *fresh = log ? NULL : thread_log_create(thread->facts.id);

	if (!log && !fresh)
		return RECORDING_MEMORY;
	enum recording_status status = thread_log_snapshot(log ? log : fresh, &sink, &thread->facts,
	        thread->events.bytes, thread->events.size, thread->position, now);
	thread_log_destroy(fresh);
	if (!is_in_ring(source->ring, thread->facts.id))
		filing->outcome->threads++;
	return status;
}

static enum recording_status write_threads(
        struct filing *filing, const struct save_source *source, const struct save_request *request)
{
	struct timespec time;
	enum recording_status status = write_records(filing);

	clock_gettime(CLOCK_MONOTONIC, &time);
	uint64_t now = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
	for (uint32_t i = 0; i < request->threads.count && !status; i++)
		status = write_living(filing, source, &request->threads.items[i], now);
	return status ? status : write_ring(filing);
}

/* ---- all of it ---- */

static enum recording_status write_all(struct writer *writer, const struct save_source *source,
        struct save_request *request, struct save_outcome *outcome)
{
	struct filing filing = {writer, source->ring, request, outcome};
	uint32_t *numbers = choose_files(source, request->files.count);

	meta_set_number(&request->meta, META_DROPPED, source->ring->dropped_executed);
	enum recording_status status = meta_write(writer, &request->meta);

	if (!status)
		status = write_files(writer, source, &request->files, numbers);
	if (!status)
		status = write_code(writer, source->code, request->files.count, numbers);
	free(numbers);
	return status ? status : write_threads(&filing, source, request);
}

void save_write(const struct save_source *source, struct save_request *request, struct save_outcome *outcome)
{
	uint64_t required = code_history_is_whole(source->code) ? 0 : CONTAINER_REQUIRED_GAPS;
	struct writer writer;

	*outcome = (struct save_outcome){0};
	unsigned number = find_name(request->path, 0, outcome->path);
	if (writer_init_required(&writer, outcome->path, required, 0)) {
		outcome->error = writer.error;
		return;
	}
	writer.careful = true;
	writer.level = source->level;
	enum recording_status status = write_all(&writer, source, request, outcome);
	if (!status)
		status = publish(&writer, request->path, number, outcome);
	if (status)
		outcome->error =
		        writer.error.status ? writer.error : (struct recording_error){.status = status};
	/* What there was room for is a recording, too. */
	if (status && outcome->instructions)
		outcome->partial = !writer_keep(&writer);
	outcome->size = writer.size;
	writer_deinit(&writer);
}
