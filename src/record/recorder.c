#include "record/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "record/code_view.h"
#include "record/namespace.h"
#include "record/oom.h"
#include "record/process_facts.h"
#include "record/processor.h"
#include "record/scribe.h"
#include "recording/amount.h"
#include "recording/decode.h"
#include "recording/meta.h"
#include "recording/names.h"
#include "recording/progress.h"

#define THREADS_MAXIMUM   (2 * MAX_RECORDED_THREADS) /* at a time; more are somebody's mistake */
#define ENDED_REMEMBERED  64
#define STRETCH_LARGE     (UINT64_C(32) << 20)  /* bytes of events after which a keyframe is due */
#define STRETCH_SMALL     (UINT64_C(1) << 20)   /* and that may be had however many threads there are, */
#define STRETCHES_LARGE   (UINT64_C(256) << 20) /* while all of them have this much */
/* The same with a ring: parts of it. */
#define RING_SHARE(size)  ((size) / 8)
#define RING_SHARES(size) ((size) / 2)
#define RING_SHARE_LEAST  (UINT64_C(64) << 10)
/* Who logs more than a byte for so many instructions does little else than log again what it uses. */
#define CROWDED(executed) ((executed) / 8)
#define CROWDED_OFTEN     16 /* before the user is told */
#define CODE_NEWS_BYTES   (UINT64_C(1) << 20)
#define CODE_NEWS_PIECES  16384
/* Saving that takes longer than this is shown, so often. */
#define SAVING_PATIENCE   1000000000
#define SAVING_APART      200000000

/* A thread that lives. */
struct recorded_thread {
	uint32_t id;
	uint64_t bytes;   /* since its last keyframe */
	uint64_t leaning; /* since its last one that leans on nothing */
	uint64_t since;   /* when the last one was, as far as it is known here; ns */
	bool told;        /* its log was taken at least once */
	uint64_t began;   /* position of that keyframe */
	unsigned grown;   /* times that its share of the ring was doubled, see end_stretch */
	bool crowded;     /* that did not help */

	/* What it may run since that keyframe, see struct stretch_code. */
	uint32_t low;
	struct code_need slept; /* what was told between these two was told while it slept */
	/* When it was last looked at: */
	uint64_t position;
	bool waits;
	uint32_t pieces; /* of the code history that there were */
};

struct recorder {
	bool executed;       /* the process ended by execve */
	uint32_t unrecorded; /* threads that were not recorded, or not to their ends */
	const struct recorder_options *options;
	pid_t pid;
	bool begun, finished;
	bool untold; /* none of its threads could say how it ended */
	struct timespec start, start_realtime;
	struct writer writer; /* without a ring */
	struct meta facts;    /* with one: what was known at the start */
	struct scribe *scribe;
	struct code_view view;
	struct oom_watch oom;
	int pidfd;                 /* or -1 */
	uint32_t checksums_wanted; /* files of the code log whose checksum was ordered */
	VECTOR(struct recorded_thread) threads;
	uint32_t places[MAX_RECORDED_THREADS]; /* where among them the one with such an id was last */
	uint32_t ended[ENDED_REMEMBERED];      /* ids of the last threads that ended, + 1 */
	uint32_t ended_count;
	uint32_t look_low;   /* pieces that had replaced others when the look at the threads began */
	uint32_t unseen_low; /* threads that nobody has seen yet run code as of these, or later */
	uint64_t due_since;  /* who made no keyframe since then is due */
	unsigned doublings;  /* see recorder_lengthen */
	unsigned crowded; /* stretches that had all they may have of the ring, and were too short all the same
	                   */
	struct decoder keyframes;
	uint64_t next_shown; /* when to tell how far saving is */
	bool has_shown;
};

/* ---- messages ---- */

/* The recording's name as the user would type it. */
static const char *name_of(const struct recorder *recorder, const char *path)
{
	const char *directory = recorder->options->directory;
	size_t size = strlen(directory);

	return *directory && strncmp(path, directory, size) == 0 && path[size] == '/' ? path + size + 1
	                                                                              : path;
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

static bool any_failed;

bool recorder_any_failed(void)
{
	return __atomic_load_n(&any_failed, __ATOMIC_SEQ_CST);
}

static void note_failure(void)
{
	__atomic_store_n(&any_failed, true, __ATOMIC_SEQ_CST);
}

static void say_failed(const struct recorder *recorder, const char *consequence)
{
	char why[256];

	note_failure();

	say("bugnet: %s: %s; %s\n", name_of(recorder, recorder->options->path),
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
	enum recording_status status = writer_init(&recorder->writer, options->path, 0);
	int number = recorder->writer.error.number;
	if (status && options->ring && (number == ENOSPC || number == EDQUOT)) {
		/* Nothing is written before something happens, and then there may be room. */
		say("bugnet: warning: %s: %s; what is recorded can only be saved when there is room\n",
		        name_of(recorder, options->path), strerror(number));
		return recorder;
	}
	if (status) {
		char reason[256];
		snprintf(why, why_size, "cannot write %s: %s; give another path with -o", options->path,
		        recording_error_text(&recorder->writer.error, reason, sizeof reason));
		free(recorder);
		return NULL;
	}
	if (options->ring)
		writer_deinit(&recorder->writer); /* there can be such a file, but there is none yet */
	return recorder;
}

void recorder_begin(struct recorder *recorder, pid_t pid, const struct space *space)
{
	const struct recorder_options *options = recorder->options;
	struct meta meta = {0};

	if (recorder->begun)
		return;
	recorder->begun = true;
	recorder->view.keeps_gone = options->ring != 0;
	recorder->pid = recorder->view.files.pid = pid;
	recorder->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	oom_watch_begin(&recorder->oom, pid);
	recorder->scribe = options->ring ? scribe_create_ring(options->ring)
	                                 : scribe_create(&recorder->writer, give_up, recorder);
	clock_gettime(CLOCK_MONOTONIC, &recorder->start);
	clock_gettime(CLOCK_REALTIME, &recorder->start_realtime);
	meta_set_text(&meta, META_BUGNET_VERSION, options->version);
	meta_set_text(&meta, META_PROGRAM, options->program);
	meta_set_texts(&meta, META_ARGUMENTS, (const char *const *)options->argv, count_of(options->argv));
	meta_set_text(&meta, META_DIRECTORY, options->started_in ? options->started_in : options->directory);
	if (options->forked)
		meta_set_number(&meta, META_FORKED_FROM, (uint64_t)options->forked);
	meta_set_number(&meta, META_UID, getuid());
	meta_set_number(&meta, META_PID, (uint64_t)pid);
	meta_set_number(&meta, META_START, nanoseconds(&recorder->start_realtime));
	meta_set_number(&meta, META_DICTIONARY, options->dictionary);
	meta_set_number(&meta, META_INTERVAL, options->interval);
	meta_set_number(&meta, META_INTERVAL_TIME, options->interval_time);
	meta_set_number(&meta, META_BOUND, options->bound);
	add_machine(&meta, options);
	add_segments(&meta, space);
	if (options->ring) {
		meta_set_number(&meta, META_RING, options->ring);
		recorder->facts = meta;
	} else {
		write_meta(recorder, &meta);
	}
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

/* What the thread's stretch needs, being told so far. */
static struct stretch_code code_of(const struct recorded_thread *thread, uint32_t high)
{
	if (thread->slept.high <= thread->slept.low)
		return (struct stretch_code){{{thread->low, high}, {1, 0}}};
	return (struct stretch_code){{{thread->low, thread->slept.low}, {thread->slept.high, high}}};
}

static void keep_code(struct recorder *recorder)
{
	struct code_view *view = &recorder->view;
	VECTOR(struct code_need) needs = {0};

	order_checksums(recorder);
	if (!view->news.count && !view->gone.count)
		return;
	vector_push(&needs, (struct code_need){recorder->unseen_low, CODE_NEED_ALL});
	for (uint32_t i = 0; i < recorder->threads.count; i++) {
		struct stretch_code code = code_of(&recorder->threads.items[i], CODE_NEED_ALL);
		vector_push(&needs, code.needs[0]);
		vector_push(&needs, code.needs[1]);
	}
	struct code_news news = {.pieces = &view->news,
	        .gone = view->gone.items,
	        .gone_count = view->gone.count,
	        .mappings = view->files.gone.items,
	        .mapping_count = view->files.gone.count};
	scribe_code(recorder->scribe, &news, needs.items, needs.count);
	view->gone.count = view->files.gone.count = 0;
	vector_free(&needs);
}

/* What a stretch needs is in the file before it: the files first, then the code. */
static void write_code(struct recorder *recorder)
{
	const struct section files = {.type = SECTION_CODELOG, .codec = CODEC_ZSTD};
	const struct section code = {.type = SECTION_CODE, .codec = CODEC_ZSTD};
	struct buffer content = {0};

	if (recorder->options->ring) {
		keep_code(recorder);
		return;
	}
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

void recorder_unmapped(struct recorder *recorder, uint64_t start, uint64_t end)
{
	if (is_recording(recorder))
		code_view_gone(&recorder->view, start, end);
}

uint32_t recorder_replaced(const struct recorder *recorder)
{
	return recorder->view.replaced;
}

/* ---- logs ---- */

static bool has_ended(const struct recorder *recorder, uint32_t id)
{
	for (unsigned i = 0; i < ENDED_REMEMBERED; i++) {
		if (recorder->ended[i] == id + 1)
			return true;
	}
	return false;
}

/* NULL: it has ended; or there are too many, which no program can have. */
static struct recorded_thread *find_thread(struct recorder *recorder, uint32_t id)
{
	uint32_t *place = &recorder->places[id % MAX_RECORDED_THREADS];

	if (*place < recorder->threads.count && recorder->threads.items[*place].id == id)
		return &recorder->threads.items[*place];
	for (uint32_t i = 0; i < recorder->threads.count; i++) {
		if (recorder->threads.items[i].id != id)
			continue;
		*place = i;
		return &recorder->threads.items[i];
	}
	if (recorder->threads.count >= THREADS_MAXIMUM || has_ended(recorder, id))
		return NULL;
	struct recorded_thread thread = {.id = id, .since = now(), .low = recorder->unseen_low};
	*place = vector_push(&recorder->threads, thread);
	return &recorder->threads.items[*place];
}

static void forget_thread(struct recorder *recorder, struct recorded_thread *thread)
{
	recorder->ended[recorder->ended_count++ % ENDED_REMEMBERED] = thread->id + 1;
	*thread = recorder->threads.items[--recorder->threads.count];
}

/* The thread waits for us, or is dead; its name can be read in the first case only. */
static void read_name(const struct recorder *recorder, struct thread_facts *facts)
{
	process_thread_name(
	        recorder->pid, namespace_resolve(recorder->pid, facts->tid), facts->name, sizeof facts->name);
}

/* Does the stretch that begins with these bytes stand alone? */
static bool stands_alone(struct recorder *recorder, const uint8_t *bytes, uint64_t used)
{
	struct event event;

	decoder_init(&recorder->keyframes, bytes, used);
	return decoder_next(&recorder->keyframes, &event) == DECODE_EVENT && event.kind == EVENT_KEYFRAME &&
	       !event.keyframe.leans_on;
}

/* Bytes of events after which a keyframe is due, with a share of the ring that was doubled so often. */
static uint64_t large_stretch(const struct recorder *recorder, unsigned grown)
{
	uint64_t ring = recorder->options->ring, living = recorder->threads.count;
	uint64_t share = (ring ? RING_SHARES(ring) : STRETCHES_LARGE) / living;
	uint64_t least = ring ? RING_SHARE_LEAST : STRETCH_SMALL;
	uint64_t one = RING_SHARE(ring) << grown;
	uint64_t most = ring && one < STRETCH_LARGE ? one : STRETCH_LARGE;

	return share < least ? least : share < most ? share : most;
}

static void note_crowded(struct recorder *recorder, uint64_t executed)
{
	char size[AMOUNT_TEXT_SIZE], instructions[AMOUNT_TEXT_SIZE];

	if (++recorder->crowded != CROWDED_OFTEN || recorder->options->silent)
		return;
	say("bugnet: --ring %s is too small for what process %d uses at a time: it is full after %s "
	    "instructions, and all is logged again; a larger one records faster and keeps more\n",
	        size_text(recorder->options->ring, size), recorder->pid, amount_text(executed, instructions));
}

/*
 * Behind a keyframe all that is in use is logged again. Where that is more than the thread's share of the
 * ring, there is no end of it, so it has a larger one: fewer and longer stretches. Without need it shrinks
 * again; and where the largest does not do, the small one keeps more stretches that are whole.
 */
static void end_stretch(struct recorder *recorder, struct recorded_thread *thread, uint64_t position)
{
	uint64_t share = large_stretch(recorder, thread->grown), executed = position - thread->began;

	if (!recorder->options->ring)
		return;
	if (thread->grown && thread->bytes < share / 4)
		thread->grown--;
	if (thread->bytes < share || thread->bytes <= CROWDED(executed)) {
		thread->crowded = false;
		return;
	}
	if (!thread->crowded && large_stretch(recorder, thread->grown + 1) > share) {
		thread->grown++;
		return;
	}
	thread->crowded = true;
	thread->grown = 0;
	note_crowded(recorder, executed);
}

static void begin_stretch(struct recorder *recorder, struct recorded_thread *thread, uint64_t position)
{
	thread->bytes = 0;
	thread->began = position;
	thread->since = now();
	thread->low = recorder->view.replaced;
	thread->slept = (struct code_need){0};
}

void recorder_facts(struct recorder *recorder, const struct log *log, struct thread_facts *facts)
{
	const struct recorded_thread *thread = find_thread(recorder, log->id);

	*facts = (struct thread_facts){.id = log->id, .parent = log->parent, .tid = log->tid};
	read_name(recorder, facts);
	if (thread)
		facts->code = code_of(thread, recorder->view.count);
}

void recorder_log(struct recorder *recorder, const struct log *log, const uint8_t *bytes, uint64_t used,
        uint64_t position, unsigned reason)
{
	struct thread_facts facts = {.id = log->id, .parent = log->parent, .tid = log->tid};

	if (!is_recording(recorder))
		return;
	struct recorded_thread *thread = find_thread(recorder, facts.id);
	if (!thread)
		return;
	if (!thread->bytes || reason != LOG_FULL)
		read_name(recorder, &facts);
	write_code(recorder);
	facts.code = code_of(thread, recorder->view.count);
	scribe_events(recorder->scribe, &facts, bytes, used, position, reason == LOG_ENDED);
	if (recorder->options->bound && !thread->bytes && stands_alone(recorder, bytes, used))
		thread->leaning = 0;
	thread->bytes += used;
	thread->leaning += used;
	thread->told = true;
	if (reason == LOG_KEYFRAME) {
		end_stretch(recorder, thread, position);
		begin_stretch(recorder, thread, position);
	} else if (reason == LOG_ENDED) {
		forget_thread(recorder, thread);
	}
}

/* ---- keyframes ---- */

uint64_t recorder_keyframe_in(struct recorder *recorder, const struct log *log)
{
	if (!is_recording(recorder))
		return UINT64_MAX;
	const struct recorded_thread *thread = find_thread(recorder, log->id);
	if (!thread)
		return UINT64_MAX;
	if (thread->bytes >= large_stretch(recorder, thread->grown) || thread->since < recorder->due_since)
		return 0;
	if (!recorder->options->interval_time)
		return UINT64_MAX;
	uint64_t passed = now() - thread->since;
	uint64_t interval = recorder->options->interval_time << recorder->doublings;
	return passed < interval ? interval - passed : 0;
}

/* What leans on each other goes as one: it must not become as large as the ring. */
void recorder_ask_keyframe(struct recorder *recorder, struct log *log)
{
	const struct recorded_thread *thread = find_thread(recorder, log->id);
	bool alone = recorder->options->ring && thread &&
	             thread->leaning >= large_stretch(recorder, thread->grown);

	log->wanted = alone ? LOG_WANTED_ALONE : LOG_WANTED;
}

/* ---- looking at threads ---- */

void recorder_look_begins(struct recorder *recorder)
{
	recorder->look_low = recorder->view.replaced;
}

void recorder_look_ends(struct recorder *recorder)
{
	recorder->unseen_low = recorder->look_low;
}

/*
 * One that has not moved from one look to the next ran nothing that was told in between, and
 * will know what replaced what when it goes on. Of several sleeps the longest counts.
 */
void recorder_look_at(struct recorder *recorder, const struct log *log, uint64_t position, bool waits)
{
	struct recorded_thread *thread = is_recording(recorder) ? find_thread(recorder, log->id) : NULL;

	if (!thread)
		return;
	if (waits && thread->waits && position == thread->position) {
		if (recorder->view.replaced - thread->pieces > thread->slept.high - thread->slept.low &&
		        recorder->view.replaced > thread->pieces)
			thread->slept = (struct code_need){thread->pieces, recorder->view.replaced};
		return;
	}
	thread->position = position;
	thread->waits = waits;
	thread->pieces = recorder->view.count;
}

/* ---- the end of a file ---- */

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
	meta_set_number(&meta, META_END_KIND, result->end_kind);
	meta_set_number(&meta, META_END_STATUS, (uint64_t)(int64_t)result->end_status);
	if (recorder->unrecorded)
		meta_set_number(&meta, META_UNRECORDED, recorder->unrecorded);
	enum recording_status status = meta_write(&recorder->writer, &meta);
	meta_deinit(&meta);
	return status;
}

/* The command that opens it, as a shell takes it; to be freed. NULL: no memory. */
static char *command_for(const char *name)
{
	static const char plain[] =
	        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
	char *text = malloc(4 * strlen(name) + 64), *end = text;

	if (!text)
		return NULL;
	if (*name != '-' && !name[strspn(name, plain)]) {
		sprintf(text, "'bugnet replay %s'", name);
		return text;
	}
	end += sprintf(end, "bugnet replay '%s", *name == '-' ? "./" : "");
	for (; *name; name++)
		end += sprintf(end, *name == '\'' ? "'\\''" : "%c", *name);
	sprintf(end, "'");
	return text;
}

static void say_saved(const struct recorder *recorder, const struct save_outcome *outcome)
{
	char instructions[AMOUNT_TEXT_SIZE], size[AMOUNT_TEXT_SIZE];
	const char *name = name_of(recorder, outcome->path);
	char *command = command_for(name);

	say("bugnet: saved %s: %s instructions, %u thread%s, %s; open it with %s\n", name,
	        amount_text(outcome->instructions, instructions), outcome->threads,
	        outcome->threads == 1 ? "" : "s", size_text(outcome->size, size),
	        command ? command : "'bugnet replay'");
	free(command);
}

static void say_damaged(const struct scribe_result *result)
{
	say("bugnet: warning: what %u thread%s logged was damaged; the recording has it up to "
	    "there\n",
	        result->damaged, result->damaged == 1 ? "" : "s");
}

/* After a failure the sections that are there still make a recording. */
static bool finish_file(struct recorder *recorder, const struct scribe_result *result)
{
	if (!scribe_has_failed(recorder->scribe)) {
		if (!write_checksums(recorder) && !write_end(recorder, result) &&
		        !writer_finish(&recorder->writer))
			return true;
		say_failed(recorder, "the recording is not complete");
	}
	if (result->instructions && !writer_keep(&recorder->writer))
		return true;
	note_failure();
	say("bugnet: %s: nothing could be saved\n", name_of(recorder, recorder->options->path));
	return false;
}

static void save_file(struct recorder *recorder, const struct scribe_result *result)
{
	struct save_outcome outcome = {.instructions = result->instructions, .threads = result->threads};

	if (!finish_file(recorder, result))
		return;
	outcome.size = recorder->writer.size;
	snprintf(outcome.path, sizeof outcome.path, "%s", recorder->options->path);
	say_saved(recorder, &outcome);
}

/* ---- saving a ring ---- */

static void copy_codelog(struct codelog *copy, const struct codelog *log)
{
	for (uint32_t i = 0; i < log->count; i++) {
		if (!codelog_add(copy, &log->files[i]))
			abort();
	}
}

static void copy_meta(struct meta *copy, const struct meta *meta)
{
	struct buffer content = {0};

	meta_encode(meta, &content);
	if (content.failed || meta_decode(copy, content.bytes, content.size))
		abort();
	buffer_deinit(&content);
}

static void fill_request(
        struct recorder *recorder, const struct save_reason *reason, struct save_request *request)
{
	struct meta *meta = &request->meta;
	struct timespec time;

	snprintf(request->path, sizeof request->path, "%s",
	        reason->path ? reason->path : recorder->options->path);
	copy_codelog(&request->files, &recorder->view.files.log);
	copy_meta(meta, &recorder->facts);
	clock_gettime(CLOCK_REALTIME, &time);
	meta_set_number(meta, META_DURATION, now() - nanoseconds(&recorder->start));
	meta_set_text(meta, META_SAVE_KIND, reason->kind);
	meta_set_text(meta, META_SAVE_REASON, reason->text);
	meta_set_number(meta, META_SAVE_TIME, nanoseconds(&time));
	if (reason->thread != THREAD_NO_PARENT) {
		meta_set_number(meta, META_SAVE_THREAD, reason->thread);
		meta_set_number(meta, META_SAVE_POSITION, reason->position);
	}
}

/* On a terminal, if it takes long. */
static void show_saving(void *argument, uint64_t written, uint64_t total)
{
	struct recorder *recorder = argument;
	char done[AMOUNT_TEXT_SIZE], all[AMOUNT_TEXT_SIZE];
	uint64_t time = now();

	if (time < recorder->next_shown)
		return;
	recorder->next_shown = time + SAVING_APART;
	recorder->has_shown = true;
	progress_show("bugnet: saving, %s of %s", size_text(written, done), size_text(total, all));
}

/* The file is there, or not. Nobody else waits to be told. */
static void say_outcome(void *argument, const struct save_outcome *outcome)
{
	struct recorder *recorder = argument;
	char why[256];

	if (outcome->error.status)
		note_failure();
	if (recorder->options->silent)
		return;
	if (recorder->has_shown)
		progress_clear();
	recorder->has_shown = false;
	if (outcome->error.status)
		say("bugnet: %s: %s; %s\n", name_of(recorder, outcome->path),
		        recording_error_text(&outcome->error, why, sizeof why),
		        outcome->partial ? "the recording is not complete" : "nothing could be saved");
	if (!outcome->error.status || outcome->partial)
		say_saved(recorder, outcome);
}

static void say_when_done(struct recorder *recorder, struct save_request *request)
{
	recorder->next_shown = now() + SAVING_PATIENCE;
	request->done = say_outcome;
	request->progress = progress_can_show() ? show_saving : NULL;
	request->argument = recorder;
}

void recorder_want_keyframes(struct recorder *recorder)
{
	recorder->due_since = now();
}

void recorder_lengthen(struct recorder *recorder, unsigned doublings)
{
	recorder->doublings = doublings;
}

bool recorder_is_fresh(struct recorder *recorder, const struct log *log)
{
	const struct recorded_thread *thread = find_thread(recorder, log->id);

	return !thread || thread->since >= recorder->due_since;
}

bool recorder_save(struct recorder *recorder, const struct save_reason *reason, struct save_request *request)
{
	if (!is_recording(recorder) || !recorder->options->ring)
		return false;
	write_code(recorder);
	fill_request(recorder, reason, request);
	if (!request->done) {
		say_when_done(recorder, request);
	}
	scribe_save(recorder->scribe, request);
	return true;
}

bool recorder_ring_state(struct recorder *recorder, struct ring_state *state)
{
	if (!is_recording(recorder) || !recorder->options->ring)
		return false;
	scribe_ring_state(recorder->scribe, state);
	return true;
}

uint64_t recorder_written(const struct recorder *recorder)
{
	return __atomic_load_n(&recorder->writer.size, __ATOMIC_RELAXED);
}

uint64_t recorder_age(const struct recorder *recorder)
{
	return now() - nanoseconds(&recorder->start);
}

static void save_at_end(struct recorder *recorder, const struct scribe_result *result)
{
	struct save_request *request = calloc(1, sizeof *request);
	char text[2 * NAME_TEXT_SIZE];

	if (!request)
		abort();
	end_text(result->end_kind, result->end_status, text);
	if (result->end_kind == END_KILLED && result->end_status == SIGKILL &&
	        oom_watch_killed(&recorder->oom)) {
		say("bugnet: process %d was killed as its control group had no memory left\n", recorder->pid);
		strcat(text, ", as its control group had no memory left");
	}
	if (result->end_kind == END_KILLED && result->end_status == SIGSYS && recorder->untold) {
		say("bugnet: process %d was killed by its seccomp filter\n", recorder->pid);
		strcat(text, " by its seccomp filter");
	}
	fill_request(recorder, &(struct save_reason){.kind = "end", .text = text, .thread = THREAD_NO_PARENT},
	        request);
	meta_set_number(&request->meta, META_END_KIND, result->end_kind);
	meta_set_number(&request->meta, META_END_STATUS, (uint64_t)(int64_t)result->end_status);
	if (recorder->unrecorded)
		meta_set_number(&request->meta, META_UNRECORDED, recorder->unrecorded);
	say_when_done(recorder, request);
	scribe_save(recorder->scribe, request);
}

/* ---- the end ---- */

void recorder_note_unrecorded(struct recorder *recorder, uint32_t threads)
{
	recorder->unrecorded += threads;
}

void recorder_note_exec(struct recorder *recorder)
{
	recorder->executed = true;
}

/* Where no thread could say how: it executed, was let go while its threads waited, or was killed. */
static void complete_end(struct recorder *recorder, bool ended, int signal, struct scribe_result *result)
{
	recorder->untold = result->end_kind == END_UNKNOWN;
	if (!recorder->untold)
		return;
	result->end_kind = recorder->executed ? END_EXEC : ended ? END_KILLED : END_RELEASED;
	/* Of all others but a filter's SIGSYS, which is SIGKILL to handlers, the threads hear. */
	result->end_status = result->end_kind != END_KILLED ? 0 : signal ? signal : SIGKILL;
}

void recorder_finish(struct recorder *recorder)
{
	struct scribe_result result;
	int signal;

	if (recorder->finished)
		return;
	if (recorder->begun) {
		/* Its parent may be quicker. */
		bool ended = process_has_ended(recorder->pid, recorder->pidfd, &signal);
		if (is_recording(recorder))
			write_code(recorder);
		recorder->finished = true;
		scribe_stop(recorder->scribe, &result);
		complete_end(recorder, ended, signal, &result);
		if (!recorder->options->ring)
			save_file(recorder, &result);
		else if (save_policy_wants(&recorder->options->save_on, result.end_kind, result.end_status))
			save_at_end(recorder, &result);
		if (result.damaged)
			say_damaged(&result);
		scribe_destroy(recorder->scribe);
		oom_watch_end(&recorder->oom);
		if (recorder->pidfd >= 0)
			close(recorder->pidfd);
	}
	recorder->finished = true;
	code_view_deinit(&recorder->view);
	meta_deinit(&recorder->facts);
	if (!recorder->options->ring)
		writer_deinit(&recorder->writer);
	vector_free(&recorder->threads);
}

void recorder_destroy(struct recorder *recorder)
{
	recorder_finish(recorder);
	free(recorder);
}
