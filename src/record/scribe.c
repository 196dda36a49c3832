#include "record/scribe.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "record/vector.h"
#include "recording/build_id.h"
#include "recording/packing.h"

/* What may wait to be written before whoever logs more has to wait. */
#define WAITING_BYTES (UINT64_C(64) << 20)
/* With more than this part of it waiting there is no time to compress well. */
#define BEHIND_SHARE  4
#define HASTY_LEVEL   1 /* of zstd */
/* Nor for more than this when somebody waits for a file. */
#define SAVED_WELL    (UINT64_C(1) << 20)

/* The same for a ring: no more than it may hold. */
#define WAITING_LEAST         (UINT64_C(4) << 20)
/* However much code there is, so much of a ring is for stretches. */
#define STRETCHES_SHARE(size) ((size) / 4)

/* A ring may have hundreds of thousands of small stretches: when the first of them began is looked up so
 * often, in ns. */
#define LOOK_INTERVAL UINT64_C(100000000)

enum job_kind { JOB_SECTION, JOB_CODE, JOB_EVENTS, JOB_CHECKSUM, JOB_SAVE, JOB_STOP };

struct job {
	struct job *next;
	enum job_kind kind;
	bool behind;         /* much was waiting before it */
	struct section what; /* JOB_SECTION */
	struct buffer content;
	struct code_history code; /* JOB_CODE */
	VECTOR(struct code_gone) gone;
	VECTOR(struct gone_mapping) mappings;
	VECTOR(struct code_need) needs;
	struct save_request *save; /* JOB_SAVE */
	struct thread_facts facts; /* JOB_EVENTS, with the events in content */
	uint64_t position;
	bool ended;
	uint32_t number; /* JOB_CHECKSUM */
	int fd;
	uint64_t size;
	int64_t modified;
};

struct scribe {
	struct writer *writer; /* or NULL: a ring */
	int level;             /* of zstd */
	uint32_t saves;        /* that wait to be begun */
	uint64_t size;         /* of the ring */
	uint64_t most_waiting;
	struct log_sink sink;
	void (*failed)(void *argument);
	void *argument;
	bool has_failed; /* read by others without the lock */

	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct job *first, **end; /* jobs to be done */
	uint64_t waiting;         /* bytes in them */
	uint64_t began, looked;   /* of the oldest stretch of the ring, as of when that was looked up */
	struct ring_state state;  /* of the ring */

	/* the scribe's thread only, until it has ended */
	VECTOR(struct thread_log *) logs; /* of threads that live */
	VECTOR(struct file_sum) sums;
	struct ring ring;
	struct kept_code code;
	struct buffer packed; /* room for compressed bytes */
	struct scribe_result result;
};

/* ---- the work ---- */

static void fail(struct scribe *scribe, enum recording_status status)
{
	if (scribe->has_failed)
		return;
	if (!scribe->writer)
		abort(); /* out of memory */
	if (!scribe->writer->error.status)
		scribe->writer->error.status = status;
	__atomic_store_n(&scribe->has_failed, true, __ATOMIC_RELEASE);
	scribe->failed(scribe->argument);
}

bool scribe_has_failed(struct scribe *scribe)
{
	return __atomic_load_n(&scribe->has_failed, __ATOMIC_ACQUIRE);
}

static struct thread_log *find_log(struct scribe *scribe, uint32_t id)
{
	struct thread_log *log;

	for (uint32_t i = 0; i < scribe->logs.count; i++) {
		if (scribe->logs.items[i]->record.id == id)
			return scribe->logs.items[i];
	}
	log = thread_log_create(id);
	if (!log)
		abort();
	vector_push(&scribe->logs, log);
	scribe->result.threads++;
	return log;
}

/* Some ends say more about the process than others: a thread that exits need not be all of it. */
static unsigned weight_of_end(uint32_t kind)
{
	switch (kind) {
	case END_KILLED:
		return 5;
	case END_EXIT:
		return 4;
	case END_EXEC:
		return 3;
	case END_RELEASED:
		return 2;
	case THREAD_STILL_RUNS:
		return 1; /* killed without a word */
	case END_THREAD_EXIT:
		return 0;
	}
	return 0;
}

static void note_end(struct scribe_result *result, const struct thread_record *record)
{
	unsigned now = weight_of_end(result->end_kind), other = weight_of_end(record->end_kind);

	/* of threads that exit, the last one is the end of the process */
	if (!result->closed++ || other > now || (other == now && record->end_kind == END_THREAD_EXIT)) {
		result->end_kind = record->end_kind;
		result->end_status = record->end_status;
	}
}

static uint64_t nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void close_log(struct scribe *scribe, struct thread_log *log, uint64_t position)
{
	enum recording_status status =
	        scribe->has_failed ? RECORDING_OK
	                           : thread_log_close(log, &scribe->sink, position, nanoseconds());

	if (status)
		fail(scribe, status);
	if (log->stretches)
		scribe->result.instructions += log->record.last_position - log->record.first_position;
	scribe->result.damaged += log->was_damaged;
	note_end(&scribe->result, &log->record);
	if (!scribe->writer)
		ring_note_thread(&scribe->ring, &log->record, false, false);
	thread_log_destroy(log);
}

static void end_thread(struct scribe *scribe, struct thread_log *log, uint64_t position)
{
	for (uint32_t i = 0; i < scribe->logs.count; i++) {
		if (scribe->logs.items[i] == log)
			scribe->logs.items[i] = scribe->logs.items[--scribe->logs.count];
	}
	close_log(scribe, log, position);
}

static void take_events(struct scribe *scribe, const struct job *job)
{
	struct thread_log *log = find_log(scribe, job->facts.id);
	enum recording_status status = RECORDING_OK;

	if (!scribe->has_failed)
		status = thread_log_take(
		        log, &scribe->sink, &job->facts, job->content.bytes, job->content.size);
	if (status)
		fail(scribe, status);
	if (!scribe->writer)
		ring_note_thread(&scribe->ring, &log->record, true, log->has_stretch && log->leans_on);
	if (job->ended)
		end_thread(scribe, log, job->position);
}

/* ---- a file ---- */

static enum recording_status write_stretch(void *context, const struct finished_stretch *stretch)
{
	struct scribe *scribe = context;

	scribe->writer->level = scribe->level;
	return writer_add(scribe->writer, &stretch->what, stretch->events->bytes, stretch->events->size);
}

static enum recording_status write_thread(void *context, const struct thread_record *record)
{
	struct scribe *scribe = context;

	return thread_record_write(scribe->writer, record);
}

/* ---- a ring ---- */

static enum recording_status keep_stretch(void *context, const struct finished_stretch *stretch)
{
	struct scribe *scribe = context;
	struct ring_stretch kept = {.section = stretch->what,
	        .leans_on = stretch->leans_on,
	        .began = stretch->began,
	        .code = stretch->code};

	kept.stored = (uint8_t *)section_pack(
	        &kept.section, stretch->events->bytes, stretch->events->size, scribe->level, &scribe->packed);
	ring_add(&scribe->ring, &kept);
	return RECORDING_OK;
}

/* Threads are told by ring_note_thread, also those of which nothing is kept. */
static enum recording_status keep_thread(void *context, const struct thread_record *record)
{
	(void)context;
	(void)record;
	return RECORDING_OK;
}

static uint64_t size_of_stretches(const struct scribe *scribe)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < scribe->logs.count; i++)
		sum += scribe->logs.items[i]->stretch.size;
	return sum;
}

/* What is there besides the stretches that are closed. */
static uint64_t size_of_rest(const struct scribe *scribe)
{
	return kept_code_size(&scribe->code) + size_of_stretches(scribe);
}

/* What has to be compressed for a file. */
static uint64_t size_of_open(const struct scribe *scribe, const struct save_request *request)
{
	uint64_t sum = size_of_stretches(scribe);

	for (uint32_t i = 0; i < request->threads.count; i++)
		sum += request->threads.items[i].events.size;
	return sum;
}

static void shrink(struct scribe *scribe)
{
	uint64_t rest = size_of_rest(scribe), least = STRETCHES_SHARE(scribe->size);

	ring_shrink(&scribe->ring, scribe->size > rest + least ? scribe->size - rest : least);
}

/* Drops the code that nothing needs any more. */
static void drop_code(struct scribe *scribe, const struct job *job)
{
	VECTOR(struct code_need) needs = {0};

	for (uint32_t i = 0; i < job->needs.count; i++)
		vector_push(&needs, job->needs.items[i]);
	for (uint32_t i = 0; i < scribe->ring.stretches.count; i++) {
		const struct ring_stretch *stretch = &scribe->ring.stretches.items[i];
		for (unsigned k = 0; stretch->stored && k < 2; k++)
			vector_push(&needs, stretch->code.needs[k]);
	}
	for (uint32_t i = 0; i < scribe->logs.count; i++) {
		for (unsigned k = 0; k < 2; k++)
			vector_push(&needs, scribe->logs.items[i]->code.needs[k]);
	}
	kept_code_drop(&scribe->code, needs.items, needs.count);
	vector_free(&needs);
}

static void take_code(struct scribe *scribe, const struct job *job)
{
	struct code_history pieces = job->code;

	kept_code_add(&scribe->code, &(struct code_news){.pieces = &pieces,
	                                     .gone = job->gone.items,
	                                     .gone_count = job->gone.count,
	                                     .mappings = job->mappings.items,
	                                     .mapping_count = job->mappings.count});
	if (kept_code_grew(&scribe->code))
		drop_code(scribe, job);
}

static void save(struct scribe *scribe, struct save_request *request)
{
	const struct save_source source = {
	        .ring = &scribe->ring,
	        .code = &scribe->code.history,
	        .logs = scribe->logs.items,
	        .log_count = scribe->logs.count,
	        .sums = scribe->sums.items,
	        .sum_count = scribe->sums.count,
	        .level = size_of_open(scribe, request) > SAVED_WELL ? HASTY_LEVEL : WRITER_DEFAULT_LEVEL,
	};
	struct save_outcome outcome;

	kept_code_add_mappings(&scribe->code, &request->files);
	save_write(&source, request, &outcome);
	if (request->done)
		request->done(request->argument, &outcome);
	save_request_deinit(request);
	free(request);
}

static void tell_state(struct scribe *scribe)
{
	struct ring_state state = {.used = scribe->ring.used + size_of_rest(scribe),
	        .stretches = scribe->ring.stretches.count - scribe->ring.gone,
	        .dropped = scribe->ring.dropped,
	        .dropped_executed = scribe->ring.dropped_executed,
	        .pieces = scribe->code.history.count};

	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	uint64_t now = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;

	if (now - scribe->looked >= LOOK_INTERVAL) {
		scribe->began = ring_began(&scribe->ring);
		scribe->looked = now;
	}
	state.began = scribe->began;
	pthread_mutex_lock(&scribe->lock);
	scribe->state = state;
	pthread_mutex_unlock(&scribe->lock);
}

void scribe_ring_state(struct scribe *scribe, struct ring_state *state)
{
	pthread_mutex_lock(&scribe->lock);
	*state = scribe->state;
	pthread_mutex_unlock(&scribe->lock);
}

/* ---- files ---- */

static bool is_unchanged(const struct job *job)
{
	struct stat status;

	return !fstat(job->fd, &status) && (uint64_t)status.st_size == job->size &&
	       (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec == job->modified;
}

static void take_checksum(struct scribe *scribe, const struct job *job)
{
	struct file_sum sum = {.number = job->number};

	if (file_checksum(job->fd, &sum.checksum) && is_unchanged(job))
		vector_push(&scribe->sums, sum);
}

static void write_section(struct scribe *scribe, const struct job *job)
{
	enum recording_status status = RECORDING_OK;

	scribe->writer->level = scribe->level;
	if (!scribe->has_failed)
		status = writer_add(scribe->writer, &job->what, job->content.bytes, job->content.size);
	if (status)
		fail(scribe, status);
}

/* Is there more to do? */
static bool do_job(struct scribe *scribe, const struct job *job)
{
	switch (job->kind) {
	case JOB_SECTION:
		write_section(scribe, job);
		return true;
	case JOB_CODE:
		take_code(scribe, job);
		return true;
	case JOB_EVENTS:
		take_events(scribe, job);
		if (!scribe->writer) {
			shrink(scribe);
			tell_state(scribe);
		}
		return true;
	case JOB_CHECKSUM:
		take_checksum(scribe, job);
		return true;
	case JOB_SAVE:
		save(scribe, job->save);
		return true;
	case JOB_STOP:
		break;
	}
	for (uint32_t i = 0; i < scribe->logs.count; i++)
		close_log(scribe, scribe->logs.items[i], 0);
	scribe->logs.count = 0;
	return false;
}

/* ---- the thread ---- */

static void free_job(struct job *job)
{
	buffer_deinit(&job->content);
	code_history_deinit(&job->code);
	vector_free(&job->gone);
	vector_free(&job->mappings);
	vector_free(&job->needs);
	free(job);
}

static struct job *next_job(struct scribe *scribe)
{
	pthread_mutex_lock(&scribe->lock);
	while (!scribe->first)
		pthread_cond_wait(&scribe->changed, &scribe->lock);
	struct job *job = scribe->first;
	scribe->level = job->behind || scribe->saves ? HASTY_LEVEL : WRITER_DEFAULT_LEVEL;
	scribe->saves -= job->kind == JOB_SAVE;
	scribe->first = job->next;
	if (!scribe->first)
		scribe->end = &scribe->first;
	pthread_mutex_unlock(&scribe->lock);
	return job;
}

static void *work(void *argument)
{
	struct scribe *scribe = argument;

	for (bool more = true; more;) {
		struct job *job = next_job(scribe);
		more = do_job(scribe, job);
		pthread_mutex_lock(&scribe->lock);
		scribe->waiting -= job->content.size;
		pthread_cond_broadcast(&scribe->changed);
		pthread_mutex_unlock(&scribe->lock);
		free_job(job);
	}
	return NULL;
}

/* Signals are for the supervisor's own thread. */
static bool start_thread(struct scribe *scribe)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	bool started = pthread_create(&scribe->thread, NULL, work, scribe) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}

static struct scribe *create(void)
{
	struct scribe *scribe = calloc(1, sizeof *scribe);

	if (!scribe)
		abort();
	scribe->level = WRITER_DEFAULT_LEVEL;
	scribe->most_waiting = WAITING_BYTES;
	scribe->end = &scribe->first;
	scribe->result.end_kind = END_UNKNOWN;
	pthread_mutex_init(&scribe->lock, NULL);
	pthread_cond_init(&scribe->changed, NULL);
	return scribe;
}

struct scribe *scribe_create(struct writer *writer, void (*failed)(void *argument), void *argument)
{
	struct scribe *scribe = create();

	scribe->writer = writer;
	scribe->sink = (struct log_sink){write_stretch, write_thread, scribe};
	scribe->failed = failed;
	scribe->argument = argument;
	scribe->has_thread = start_thread(scribe);
	return scribe;
}

struct scribe *scribe_create_ring(uint64_t size)
{
	struct scribe *scribe = create();

	scribe->size = size;
	scribe->sink = (struct log_sink){keep_stretch, keep_thread, scribe};
	scribe->most_waiting = size < WAITING_LEAST   ? WAITING_LEAST
	                       : size < WAITING_BYTES ? size
	                                              : WAITING_BYTES;
	scribe->has_thread = start_thread(scribe);
	return scribe;
}

static void give(struct scribe *scribe, struct job content)
{
	struct job *job = malloc(sizeof *job);

	if (!job)
		abort();
	*job = content;
	if (!scribe->has_thread) {
		do_job(scribe, job);
		free_job(job);
		return;
	}
	pthread_mutex_lock(&scribe->lock);
	while (scribe->waiting > scribe->most_waiting)
		pthread_cond_wait(&scribe->changed, &scribe->lock);
	job->behind = scribe->waiting > scribe->most_waiting / BEHIND_SHARE;
	scribe->waiting += job->content.size;
	scribe->saves += job->kind == JOB_SAVE;
	*scribe->end = job;
	scribe->end = &job->next;
	pthread_cond_broadcast(&scribe->changed);
	pthread_mutex_unlock(&scribe->lock);
}

void scribe_section(struct scribe *scribe, const struct section *what, struct buffer *content)
{
	if (content->failed)
		abort();
	give(scribe, (struct job){.kind = JOB_SECTION, .what = *what, .content = *content});
	*content = (struct buffer){0};
}

void scribe_code(
        struct scribe *scribe, const struct code_news *news, const struct code_need *needs, uint32_t count)
{
	struct job job = {.kind = JOB_CODE, .code = *news->pieces};

	for (uint32_t i = 0; i < news->gone_count; i++)
		vector_push(&job.gone, news->gone[i]);
	for (uint32_t i = 0; i < news->mapping_count; i++)
		vector_push(&job.mappings, news->mappings[i]);
	for (uint32_t i = 0; i < count; i++)
		vector_push(&job.needs, needs[i]);
	give(scribe, job);
	*news->pieces = (struct code_history){0};
}

void scribe_save(struct scribe *scribe, struct save_request *request)
{
	give(scribe, (struct job){.kind = JOB_SAVE, .save = request});
}

void scribe_events(struct scribe *scribe, const struct thread_facts *facts, const uint8_t *bytes, size_t size,
        uint64_t position, bool ended)
{
	struct job job = {.kind = JOB_EVENTS, .facts = *facts, .position = position, .ended = ended};

	buffer_bytes(&job.content, bytes, size);
	if (job.content.failed)
		abort();
	give(scribe, job);
}

void scribe_checksum(struct scribe *scribe, uint32_t number, int fd, uint64_t size, int64_t modified)
{
	give(scribe, (struct job){.kind = JOB_CHECKSUM,
	                     .number = number,
	                     .fd = fd,
	                     .size = size,
	                     .modified = modified});
}

void scribe_stop(struct scribe *scribe, struct scribe_result *result)
{
	give(scribe, (struct job){.kind = JOB_STOP});
	if (scribe->has_thread)
		pthread_join(scribe->thread, NULL);
	scribe->has_thread = false;
	*result = scribe->result;
}

bool scribe_checksum_of(const struct scribe *scribe, uint32_t number, uint64_t *checksum)
{
	for (uint32_t i = 0; i < scribe->sums.count; i++) {
		if (scribe->sums.items[i].number == number) {
			*checksum = scribe->sums.items[i].checksum;
			return true;
		}
	}
	return false;
}

void scribe_destroy(struct scribe *scribe)
{
	for (uint32_t i = 0; i < scribe->logs.count; i++)
		thread_log_destroy(scribe->logs.items[i]);
	vector_free(&scribe->logs);
	vector_free(&scribe->sums);
	ring_deinit(&scribe->ring);
	kept_code_deinit(&scribe->code);
	buffer_deinit(&scribe->packed);
	pthread_mutex_destroy(&scribe->lock);
	pthread_cond_destroy(&scribe->changed);
	free(scribe);
}
