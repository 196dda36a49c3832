#include "record/recorder.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "record/code_view.h"
#include "record/namespace.h"
#include "record/processor.h"
#include "record/scribe.h"
#include "recording/amount.h"
#include "recording/meta.h"

#define THREADS_MAXIMUM  (1u << 20)            /* a greater id is nobody's */
#define STRETCH_LARGE    (UINT64_C(32) << 20)  /* bytes of events after which a keyframe is due */
#define STRETCH_SMALL    (UINT64_C(1) << 20)   /* and that may be had however many threads there are, */
#define STRETCHES_LARGE  (UINT64_C(256) << 20) /* while all of them have this much */
#define CODE_NEWS_BYTES  (UINT64_C(1) << 20)
#define CODE_NEWS_PIECES 16384

struct recorded_thread {
	bool known, ended;
	uint64_t bytes; /* since its last keyframe */
	uint64_t since; /* when that was, as far as it is known here; ns */
};

struct recorder {
	bool executed; /* the process ended by execve */
	const struct recorder_options *options;
	pid_t pid;
	bool begun, finished;
	struct timespec start, start_realtime;
	struct writer writer;
	struct scribe *scribe;
	struct code_view view;
	uint32_t checksums_wanted;              /* files of the code log whose checksum was ordered */
	VECTOR(struct recorded_thread) threads; /* by id */
	uint32_t living;
};

/* ---- messages ---- */

/* The recording's name as the user would type it. */
static const char *name_of(const struct recorder *recorder)
{
	const char *path = recorder->options->path, *directory = recorder->options->directory;
	size_t size = strlen(directory);

	return strncmp(path, directory, size) == 0 && path[size] == '/' ? path + size + 1 : path;
}

/* In one write, so that the program's own output does not come in between. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	va_list arguments;
	char *line;

	va_start(arguments, format);
	int size = vasprintf(&line, format, arguments);
	va_end(arguments);
	if (size < 0)
		return;
	for (int i = 0; i < size - 1; i++) {
		if ((unsigned char)line[i] < ' ')
			line[i] = '?';
	}
	ssize_t ignored = write(2, line, (size_t)size);
	(void)ignored;
	free(line);
}

static void say_failed(const struct recorder *recorder, const char *consequence)
{
	char why[256];

	say("bugnet: %s: %s; %s\n", name_of(recorder),
	        recording_error_text(&recorder->writer.error, why, sizeof why), consequence);
}

/* Called once, from the scribe's thread. */
static void give_up(void *recorder)
{
	say_failed(recorder, "the program goes on without being recorded");
}

/* ---- facts ---- */

static void add_machine(struct meta *meta, const struct recorder_options *options)
{
	struct utsname system;
	char processor[PROCESSOR_NAME_SIZE], *flags;

	if (uname(&system) == 0) {
		meta_set_text(meta, META_HOST, system.nodename);
		meta_set_text(meta, META_KERNEL, system.release);
	}
	processor_name(processor);
	meta_set_text(meta, META_CPU, processor);
	meta_set_text(meta, META_CPU_LEVEL, options->cpu);
	flags = strcmp(options->cpu, "native") == 0 ? processor_flags() : NULL;
	if (flags)
		meta_set_text(meta, META_CPU_FLAGS, flags);
	free(flags);
}

static void add_segments(struct meta *meta, const struct space *space)
{
	char texts[MAX_SEGMENTS][64];
	const char *list[MAX_SEGMENTS];

	for (unsigned i = 0; i < space->segment_count; i++) {
		const struct segment_layout *layout = &space->segments[i].layout;
		snprintf(texts[i], sizeof texts[i], "%lx %lx", layout->base, layout->size);
		list[i] = texts[i];
	}
	meta_set_texts(meta, META_SEGMENTS, list, space->segment_count);
}

static uint32_t count_of(char *const *texts)
{
	uint32_t count = 0;

	while (texts[count])
		count++;
	return count;
}

static void write_meta(struct recorder *recorder, struct meta *meta)
{
	const struct section what = {.type = SECTION_META, .codec = CODEC_ZSTD};
	struct buffer content = {0};

	meta_encode(meta, &content);
	scribe_section(recorder->scribe, &what, &content);
	meta_deinit(meta);
}

static uint64_t nanoseconds(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return nanoseconds(&time);
}

/* ---- begin ---- */

struct recorder *recorder_create(const struct recorder_options *options, char *why, size_t why_size)
{
	struct recorder *recorder = calloc(1, sizeof *recorder);

	if (!recorder) {
		snprintf(why, why_size, "out of memory");
		return NULL;
	}
	recorder->options = options;
	if (writer_init(&recorder->writer, options->path, 0)) {
		char reason[256];
		snprintf(why, why_size, "cannot write %s: %s; give another path with -o", options->path,
		        recording_error_text(&recorder->writer.error, reason, sizeof reason));
		free(recorder);
		return NULL;
	}
	return recorder;
}

void recorder_begin(struct recorder *recorder, pid_t pid, const struct space *space)
{
	const struct recorder_options *options = recorder->options;
	struct meta meta = {0};

	if (recorder->begun)
		return;
	recorder->begun = true;
	recorder->pid = recorder->view.files.pid = pid;
	recorder->scribe = scribe_create(&recorder->writer, give_up, recorder);
	clock_gettime(CLOCK_MONOTONIC, &recorder->start);
	clock_gettime(CLOCK_REALTIME, &recorder->start_realtime);
	meta_set_text(&meta, META_BUGNET_VERSION, options->version);
	meta_set_text(&meta, META_PROGRAM, options->program);
	meta_set_texts(&meta, META_ARGUMENTS, (const char *const *)options->argv, count_of(options->argv));
	meta_set_text(&meta, META_DIRECTORY, options->directory);
	meta_set_number(&meta, META_UID, getuid());
	meta_set_number(&meta, META_PID, (uint64_t)pid);
	meta_set_number(&meta, META_START, nanoseconds(&recorder->start_realtime));
	meta_set_number(&meta, META_DICTIONARY, options->dictionary);
	meta_set_number(&meta, META_INTERVAL, options->interval);
	meta_set_number(&meta, META_INTERVAL_TIME, options->interval_time);
	meta_set_number(&meta, META_BOUND, options->bound);
	add_machine(&meta, options);
	add_segments(&meta, space);
	write_meta(recorder, &meta);
}

static bool is_recording(struct recorder *recorder)
{
	return recorder->begun && !recorder->finished && !scribe_has_failed(recorder->scribe);
}

/* ---- code ---- */

static void order_checksums(struct recorder *recorder)
{
	const struct mapped_files *files = &recorder->view.files;

	for (; recorder->checksums_wanted < files->log.count; recorder->checksums_wanted++) {
		const struct codelog_file *file = &files->log.files[recorder->checksums_wanted];
		scribe_checksum(recorder->scribe, file->number, mapped_files_fd(files, file->number),
		        file->size, file->modified);
	}
}

/* What a stretch needs is in the file before it: the files first, then the code. */
static void write_code(struct recorder *recorder)
{
	const struct section files = {.type = SECTION_CODELOG, .codec = CODEC_ZSTD};
	const struct section code = {.type = SECTION_CODE, .codec = CODEC_ZSTD};
	struct buffer content = {0};

	if (mapped_files_news(&recorder->view.files, &content))
		scribe_section(recorder->scribe, &files, &content);
	order_checksums(recorder);
	if (!recorder->view.news.count)
		return;
	code_history_encode(&recorder->view.news, &content);
	scribe_section(recorder->scribe, &code, &content);
	code_history_deinit(&recorder->view.news);
}

void recorder_code(struct recorder *recorder, uint32_t thread, uint64_t position, struct memory *memory,
        uint64_t address, const uint8_t *bytes, uint32_t size)
{
	if (!is_recording(recorder))
		return;
	code_view_run(&recorder->view, thread, position, memory, address, bytes, size);
	if (recorder->view.news.byte_count >= CODE_NEWS_BYTES ||
	        recorder->view.news.count >= CODE_NEWS_PIECES)
		write_code(recorder);
}

uint32_t recorder_replaced(const struct recorder *recorder)
{
	return recorder->view.replaced;
}

/* ---- logs ---- */

static struct recorded_thread *find_thread(struct recorder *recorder, uint32_t id)
{
	if (id >= THREADS_MAXIMUM)
		return NULL;
	while (id >= recorder->threads.count)
		vector_push(&recorder->threads, (struct recorded_thread){0});
	struct recorded_thread *thread = &recorder->threads.items[id];
	if (!thread->known) {
		thread->known = true;
		thread->since = now();
		recorder->living++;
	}
	return thread;
}

/* The thread waits for us, or is dead; its name can be read in the first case only. */
static void read_name(pid_t pid, pid_t tid, char name[THREAD_NAME_SIZE])
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, namespace_resolve(pid, tid));
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? 0 : read(fd, name, THREAD_NAME_SIZE - 1);
	if (fd >= 0)
		close(fd);
	name[size < 0 ? 0 : size] = 0;
	name[strcspn(name, "\n")] = 0;
}

void recorder_log(struct recorder *recorder, const struct log *log, const uint8_t *bytes, uint64_t used,
        unsigned reason)
{
	struct thread_facts facts = {.id = log->id, .parent = log->parent, .tid = log->tid};

	if (!is_recording(recorder))
		return;
	struct recorded_thread *thread = find_thread(recorder, facts.id);
	if (!thread || thread->ended)
		return;
	if (!thread->bytes || reason != LOG_FULL)
		read_name(recorder->pid, facts.tid, facts.name);
	write_code(recorder);
	scribe_events(recorder->scribe, &facts, bytes, used, log->position, reason == LOG_ENDED);
	thread->bytes += used;
	if (reason == LOG_KEYFRAME) {
		thread->bytes = 0;
		thread->since = now();
	} else if (reason == LOG_ENDED) {
		thread->ended = true;
		recorder->living--;
	}
}

uint64_t recorder_keyframe_in(struct recorder *recorder, const struct log *log)
{
	if (!is_recording(recorder))
		return UINT64_MAX;
	const struct recorded_thread *thread = find_thread(recorder, log->id);
	if (!thread || thread->ended)
		return UINT64_MAX;
	uint64_t share = STRETCHES_LARGE / recorder->living;
	uint64_t large = share < STRETCH_SMALL   ? STRETCH_SMALL
	                 : share < STRETCH_LARGE ? share
	                                         : STRETCH_LARGE;
	if (thread->bytes >= large)
		return 0;
	if (!recorder->options->interval_time)
		return UINT64_MAX;
	uint64_t passed = now() - thread->since, interval = recorder->options->interval_time;
	return passed < interval ? interval - passed : 0;
}

/* ---- the end ---- */

/* The checksums, which were not known when the files were told. */
static enum recording_status write_checksums(struct recorder *recorder)
{
	struct codelog sums = {0};
	struct codelog *log = &recorder->view.files.log;
	enum recording_status status = RECORDING_OK;

	sums.files = calloc(log->count ? log->count : 1, sizeof *sums.files);
	for (uint32_t i = 0; sums.files && i < log->count; i++) {
		struct codelog_file file = log->files[i];
		if (!scribe_checksum_of(recorder->scribe, i, &file.checksum))
			continue;
		file.has_checksum = true;
		file.mapping_count = 0;
		sums.files[sums.count++] = file;
	}
	if (sums.count)
		status = codelog_write(&recorder->writer, &sums);
	free(sums.files);
	return status;
}

static enum recording_status write_end(struct recorder *recorder, const struct scribe_result *result)
{
	struct meta meta = {0};

	meta_set_number(&meta, META_DURATION, now() - nanoseconds(&recorder->start));
	if (result->end_kind != END_UNKNOWN) {
		meta_set_number(&meta, META_END_KIND, result->end_kind);
		meta_set_number(&meta, META_END_STATUS, (uint64_t)(int64_t)result->end_status);
	}
	enum recording_status status = meta_write(&recorder->writer, &meta);
	meta_deinit(&meta);
	return status;
}

static void say_saved(const struct recorder *recorder, const struct scribe_result *result)
{
	char instructions[AMOUNT_TEXT_SIZE], size[AMOUNT_TEXT_SIZE];
	const char *name = name_of(recorder);

	say("bugnet: saved %s: %s instructions, %u thread%s, %s; open it with 'bugnet replay %s'\n", name,
	        amount_text(result->instructions, instructions), result->threads,
	        result->threads == 1 ? "" : "s", size_text(recorder->writer.size, size), name);
	if (result->damaged)
		say("bugnet: warning: what %u thread%s logged was damaged; the recording has it up to "
		    "there\n",
		        result->damaged, result->damaged == 1 ? "" : "s");
}

/* After a failure the sections that are there still make a recording. */
static bool save(struct recorder *recorder, const struct scribe_result *result)
{
	if (!scribe_has_failed(recorder->scribe)) {
		if (!write_checksums(recorder) && !write_end(recorder, result) &&
		        !writer_finish(&recorder->writer))
			return true;
		say_failed(recorder, "the recording is not complete");
	}
	if (result->instructions && !writer_keep(&recorder->writer))
		return true;
	say("bugnet: %s: nothing could be saved\n", name_of(recorder));
	return false;
}

void recorder_note_exec(struct recorder *recorder)
{
	recorder->executed = true;
}

void recorder_finish(struct recorder *recorder)
{
	struct scribe_result result;

	if (recorder->finished)
		return;
	if (recorder->begun) {
		if (is_recording(recorder))
			write_code(recorder);
		recorder->finished = true;
		scribe_stop(recorder->scribe, &result);
		if (result.end_kind == END_UNKNOWN && recorder->executed)
			result.end_kind = END_EXEC;
		if (save(recorder, &result))
			say_saved(recorder, &result);
		scribe_destroy(recorder->scribe);
	}
	recorder->finished = true;
	code_view_deinit(&recorder->view);
	writer_deinit(&recorder->writer);
	vector_free(&recorder->threads);
}

void recorder_destroy(struct recorder *recorder)
{
	recorder_finish(recorder);
	free(recorder);
}
