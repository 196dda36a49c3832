#include "replay/replayer.h"

#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "recording/progress.h"
#include "recording/stretch.h"
#include "replay/cpu_level.h"
#include "replay/session.h"

#define SESSION_WORK (20ul << 20) /* instructions: less is not worth a process of its own */

static uint64_t nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void fail(struct replay_result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct replay_result *result, const char *format, ...)
{
	va_list arguments;

	result->outcome = REPLAY_FAILED;
	va_start(arguments, format);
	vsnprintf(result->message, sizeof result->message, format, arguments);
	va_end(arguments);
}

/* ---- sharing the work out ---- */

/* What is shown comes in the order of threads and positions; then one session does it all. */
static unsigned sessions_for(const struct replay_options *options, const struct timeline *timeline)
{
	uint64_t useful = 1 + schedule_work(timeline) / SESSION_WORK;
	cpu_set_t processors;

	if (options->output || options->observer || options->from || options->to != UINT64_MAX)
		return 1;
	uint64_t sessions = options->sessions;
	if (!sessions) {
		bool known = sched_getaffinity(0, sizeof processors, &processors) == 0;
		sessions = known ? (unsigned)CPU_COUNT(&processors) : 1;
		sessions = sessions < useful ? sessions : useful;
	}
	return sessions < REPLAY_SESSIONS_MAXIMUM ? (unsigned)sessions : REPLAY_SESSIONS_MAXIMUM;
}

/* Instructions that will be executed. */
static uint64_t work_in(const struct replay_options *options, const struct timeline *timeline)
{
	uint64_t work = 0;

	for (size_t i = 0; i < timeline->count; i++) {
		const struct section *stretch = timeline->stretches[i];
		if (options->thread == UINT32_MAX || stretch_thread(stretch) == options->thread)
			work += stretch->last - stretch->first;
	}
	return work;
}

static void *run_session(void *session)
{
	session_run(session);
	return NULL;
}

/* The first one runs in this thread, the others in threads of their own as far as there are any to be had. */
static void run_sessions(struct session *sessions, unsigned count)
{
	pthread_t threads[REPLAY_SESSIONS_MAXIMUM];
	unsigned started = 1;

	while (started < count &&
	        pthread_create(&threads[started], NULL, run_session, &sessions[started]) == 0)
		started++;
	session_run(&sessions[0]);
	for (unsigned i = 1; i < started; i++)
		pthread_join(threads[i], NULL);
}

/* ---- what came of it ---- */

/* The first stretch that did not replay decides, whoever had it; one session that could start does. */
static const struct session *first_failure(const struct session *sessions, unsigned count)
{
	const struct session *first = NULL;
	bool started = false;

	for (unsigned i = 0; i < count; i++)
		started |= sessions[i].started;
	if (!started)
		return &sessions[0];
	for (unsigned i = 0; i < count; i++) {
		if (sessions[i].stretch != SIZE_MAX && (!first || sessions[i].stretch < first->stretch))
			first = &sessions[i];
	}
	return first;
}

static void add_counts(struct feed_counts *sum, const struct feed_counts *counts)
{
	sum->records += counts->records;
	sum->shares += counts->shares;
	sum->steps += counts->steps;
	sum->requests += counts->requests;
	sum->step_requests += counts->step_requests;
	sum->faults += counts->faults;
}

static void collect(struct replay_result *result, const struct session *sessions, unsigned count,
        const uint64_t *instructions, size_t stretches)
{
	const struct session *failure = first_failure(sessions, count);

	for (unsigned i = 0; i < count; i++) {
		result->keyframes += sessions[i].keyframes;
		result->skipped += sessions[i].skipped;
		result->cut += sessions[i].cut;
		result->loads += sessions[i].loads;
		result->approximates |= sessions[i].approximates;
		add_counts(&result->counts, &sessions[i].counts);
	}
	for (size_t i = 0; i < stretches && (!failure || i <= failure->stretch); i++)
		result->instructions += instructions[i];
	if (!failure)
		return;
	result->outcome = failure->outcome;
	memcpy(result->message, failure->message, sizeof result->message);
	if (failure->states)
		fputs(failure->states, stderr);
}

void replay_opened(
        const struct replay_options *options, const struct recorded *recorded, struct replay_result *result)
{
	*result = (struct replay_result){0};
	unsigned count = sessions_for(options, &recorded->timeline);
	struct session *sessions = calloc(count, sizeof *sessions);
	uint64_t *instructions = calloc(recorded->timeline.count, sizeof *instructions);
	struct schedule schedule;
	uint64_t start = nanoseconds();

	if (!sessions || !instructions)
		abort();
	schedule_init(&schedule, &recorded->timeline, count);
	for (unsigned i = 0; i < count; i++)
		session_init(&sessions[i], options, recorded, &schedule, instructions);
	progress_set_total(options->progress, work_in(options, &recorded->timeline));
	run_sessions(sessions, count);
	result->seconds = (double)(nanoseconds() - start) / 1e9;
	result->threads = recorded->timeline.threads;
	collect(result, sessions, count, instructions, recorded->timeline.count);
	result->approximates &= cpu_is_other(&recorded->meta);
	for (unsigned i = 0; i < count; i++)
		session_deinit(&sessions[i]);
	schedule_deinit(&schedule);
	free(sessions);
	free(instructions);
}

void replay(const struct replay_options *options, struct replay_result *result)
{
	struct recorded recorded;
	char why[sizeof result->message];

	*result = (struct replay_result){0};
	bool open =
	        recorded_open(&recorded, options->path, options->sysroot, options->binary, why, sizeof why);
	if (!open)
		fail(result, "%s", why);
	else if (options->thread != UINT32_MAX && !recorded_has_thread(&recorded, options->thread))
		fail(result, "there is no thread %u; 'bugnet info' lists them", options->thread);
	else
		replay_opened(options, &recorded, result);
	memcpy(result->warning, recorded.warning, sizeof result->warning);
	recorded_close(&recorded);
}
