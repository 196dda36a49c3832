#include "record/scribe.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "record/vector.h"
#include "recording/build_id.h"

/* What may wait to be written before whoever logs more has to wait. */
#define WAITING_BYTES (UINT64_C(64) << 20)
/* With more than this waiting there is no time to compress well. */
#define BEHIND_BYTES  (WAITING_BYTES / 4)
#define HASTY_LEVEL   1 /* of zstd */

enum job_kind { JOB_SECTION, JOB_EVENTS, JOB_CHECKSUM, JOB_STOP };

struct job {
	struct job *next;
	enum job_kind kind;
	bool behind;         /* much was waiting before it */
	struct section what; /* JOB_SECTION */
	struct buffer content;
	struct thread_facts facts; /* JOB_EVENTS, with the events in content */
	uint64_t position;
	bool ended;
	uint32_t number; /* JOB_CHECKSUM */
	int fd;
	uint64_t size;
	int64_t modified;
};

struct file_sum {
	uint32_t number;
	uint64_t checksum;
};

struct scribe {
	struct writer *writer;
	void (*failed)(void *argument);
	void *argument;
	bool has_failed; /* read by others without the lock */

	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct job *first, **end; /* jobs to be done */
	uint64_t waiting;         /* bytes in them */

	/* the scribe's thread only, until it has ended */
	VECTOR(struct thread_log *) logs; /* of threads that live */
	VECTOR(struct file_sum) sums;
	struct scribe_result result;
};

/* ---- the work ---- */

static void fail(struct scribe *scribe)
{
	if (scribe->has_failed)
		return;
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

static void close_log(struct scribe *scribe, struct thread_log *log, uint64_t position)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!scribe->has_failed && thread_log_close(log, scribe->writer, position,
	                                   (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec))
		fail(scribe);
	if (log->stretches)
		scribe->result.instructions += log->record.last_position - log->record.first_position;
	scribe->result.damaged += log->was_damaged;
	note_end(&scribe->result, &log->record);
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

	thread_log_facts(log, &job->facts);
	if (!scribe->has_failed &&
	        thread_log_take(log, scribe->writer, job->content.bytes, job->content.size))
		fail(scribe);
	if (job->ended)
		end_thread(scribe, log, job->position);
}

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

/* Is there more to do? */
static bool do_job(struct scribe *scribe, const struct job *job)
{
	switch (job->kind) {
	case JOB_SECTION:
		if (!scribe->has_failed &&
		        writer_add(scribe->writer, &job->what, job->content.bytes, job->content.size))
			fail(scribe);
		return true;
	case JOB_EVENTS:
		take_events(scribe, job);
		return true;
	case JOB_CHECKSUM:
		take_checksum(scribe, job);
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
	free(job);
}

static struct job *next_job(struct scribe *scribe)
{
	pthread_mutex_lock(&scribe->lock);
	while (!scribe->first)
		pthread_cond_wait(&scribe->changed, &scribe->lock);
	struct job *job = scribe->first;
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
		scribe->writer->level = job->behind ? HASTY_LEVEL : WRITER_DEFAULT_LEVEL;
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

struct scribe *scribe_create(struct writer *writer, void (*failed)(void *argument), void *argument)
{
	struct scribe *scribe = calloc(1, sizeof *scribe);

	if (!scribe)
		abort();
	scribe->writer = writer;
	scribe->failed = failed;
	scribe->argument = argument;
	scribe->end = &scribe->first;
	scribe->result.end_kind = END_UNKNOWN;
	pthread_mutex_init(&scribe->lock, NULL);
	pthread_cond_init(&scribe->changed, NULL);
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
	while (scribe->waiting > WAITING_BYTES)
		pthread_cond_wait(&scribe->changed, &scribe->lock);
	job->behind = scribe->waiting > BEHIND_BYTES;
	scribe->waiting += job->content.size;
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
	pthread_mutex_destroy(&scribe->lock);
	pthread_cond_destroy(&scribe->changed);
	free(scribe);
}
