#include "record/supervisor.h"

#include <errno.h>
#include <linux/futex.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "record/cpu_level.h"
#include "record/evacuate.h"
#include "record/inject.h"
#include "record/keyframes.h"
#include "record/library.h"
#include "record/memory.h"
#include "record/namespace.h"
#include "record/recorder.h"
#include "record/space.h"
#include "record/stats.h"
#include "record/vector.h"

#define SPIN_NANOSECONDS             40000
#define EXPECTED_AT_ONCE             8 /* regions made in one request because an earlier process wanted them */
#define QUIET_POLL_NANOSECONDS       50000
#define EXEC_POLL_NANOSECONDS        20000
#define IDLE_NANOSECONDS             500000000
#define NATIVE_EXEC_POLL_NANOSECONDS 50000000
#define KEPT_BYTES                   (32 << 20)
#define MAX_WAITED                   127 /* futex_waitv takes 128 */

/* One program image and its forks: they share a channel. */
struct group {
	struct channel *channel;
	uint32_t doorbell; /* how far it has been served */
	uint32_t users;
	struct mailbox
	        *moving; /* whose process is between OP_NEW_SPACE and OP_MOVED: nobody else is served */
};

struct process {
	pid_t pid;
	int pidfd;
	bool has_memory;
	bool leaving; /* told us of an execve that is not followed */
	struct memory memory;
	struct group *group;
	struct space *space;
};

/* A thread that is traced: on its way through execve, or to be let go as soon as it stops. */
struct following {
	pid_t tid;
	bool straggles;
};

struct supervisor {
	const struct supervisor_options *options;
	pid_t root;
	bool stats_printed;
	int epoll;
	uint32_t deaths; /* futex: raised by the watcher thread */
	uint32_t deaths_seen;
	VECTOR(struct process *) processes;
	VECTOR(struct group *) groups;
	VECTOR(struct following) followed;
	struct engine_counters counters;
	struct library *library;      /* for processes that run the same files */
	struct process *latest;       /* who asked for code last, or NULL */
	struct recorder *recorder;    /* or NULL: nothing is recorded */
	bool recorded;                /* the program has been begun */
	uint8_t *logs;                /* of the threads of the recorded process, by number; or NULL */
	const struct mailbox *asking; /* who is being served */
	struct keyframe_watch keyframes;
};

static uint64_t nanoseconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* ---- groups ---- */

/* The mutex is held for life; the kernel marks it when we die, and the stubs look at the mark. */
static void hold_channel(struct channel *channel)
{
	pthread_mutexattr_t attributes;
	pthread_mutex_t *mutex = (pthread_mutex_t *)channel->owner;

	_Static_assert(sizeof(pthread_mutex_t) <= sizeof channel->owner, "the channel's mutex");
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(mutex, &attributes);
	pthread_mutex_lock(mutex);
}

static struct group *group_create(struct supervisor *s, const struct space *space)
{
	struct group *group = calloc(1, sizeof *group);
	if (!group)
		abort();
	group->channel = mmap(
	        NULL, LAYOUT_CHANNEL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, space->memfd, LAYOUT_CHANNEL);
	if (group->channel == MAP_FAILED)
		abort();
	hold_channel(group->channel);
	vector_push(&s->groups, group);
	return group;
}

/* By threads that have ended, and by the others as far as they said. */
static uint64_t executed_in(const struct group *group)
{
	uint64_t sum = group->channel->instructions;

	for (uint32_t i = 0; i < group->channel->mailbox_high; i++)
		sum += group->channel->mailboxes[i].instructions;
	return sum;
}

static void group_release(struct supervisor *s, struct group *group)
{
	if (--group->users)
		return;
	s->counters.refused += group->channel->refused;
	s->counters.released += group->channel->released;
	s->counters.executed += executed_in(group);
	pthread_mutex_unlock((pthread_mutex_t *)group->channel->owner);
	munmap(group->channel, LAYOUT_CHANNEL_BYTES);
	for (uint32_t i = 0; i < s->groups.count; i++) {
		if (s->groups.items[i] == group)
			s->groups.items[i] = s->groups.items[--s->groups.count];
	}
	free(group);
}

/* ---- processes ---- */

static struct process *find_process(struct supervisor *s, pid_t pid)
{
	for (uint32_t i = 0; i < s->processes.count; i++) {
		if (s->processes.items[i]->pid == pid)
			return s->processes.items[i];
	}
	return NULL;
}

static struct space *find_space(struct supervisor *s, const struct group *group, uint32_t id)
{
	for (uint32_t i = 0; i < s->processes.count; i++) {
		if (s->processes.items[i]->group == group && s->processes.items[i]->space->id == id)
			return s->processes.items[i]->space;
	}
	return NULL;
}

static void space_release(struct supervisor *s, struct space *space)
{
	if (--space->users)
		return;
	stats_add_space(&s->counters, space);
	space_destroy(space);
}

static struct process *add_process(struct supervisor *s, pid_t pid, struct group *group, struct space *space)
{
	struct process *process = calloc(1, sizeof *process);
	if (!process)
		abort();
	process->pid = pid;
	process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	process->group = group;
	process->space = space;
	group->users++;
	space->users++;
	if (process->pidfd >= 0) {
		struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
		epoll_ctl(s->epoll, EPOLL_CTL_ADD, process->pidfd, &event);
	}
	vector_push(&s->processes, process);
	return process;
}

/* Whoever had to wait is looked at again. */
static void stop_moving(struct group *group)
{
	struct channel *channel = group->channel;

	group->moving = NULL;
	group->doorbell--;
	for (uint32_t i = 0; i < channel->mailbox_high; i++) {
		if (__atomic_load_n(&channel->mailboxes[i].state, __ATOMIC_ACQUIRE) == MAILBOX_REQUEST)
			__atomic_fetch_or(&channel->pending[i / 64], 1ul << (i & 63), __ATOMIC_SEQ_CST);
	}
}

static void remove_process(struct supervisor *s, struct process *process)
{
	for (uint32_t i = 0; i < s->processes.count; i++) {
		if (s->processes.items[i] == process)
			s->processes.items[i] = s->processes.items[--s->processes.count];
	}
	if (s->latest == process)
		s->latest = NULL;
	/* A thread that died in the middle leaves its mailbox behind. */
	struct channel *channel = process->group->channel;
	for (uint32_t i = 0; i < channel->mailbox_high; i++) {
		struct mailbox *mailbox = &channel->mailboxes[i];
		if (mailbox->pid == process->pid) {
			if (process->group->moving == mailbox)
				stop_moving(process->group);
			channel->instructions += mailbox->instructions;
			mailbox->instructions = 0;
			mailbox->pid = mailbox->forked = 0;
			__atomic_store_n(&mailbox->state, MAILBOX_FREE, __ATOMIC_RELEASE);
		}
	}
	if (process->has_memory)
		memory_close(&process->memory);
	if (process->pidfd >= 0)
		close(process->pidfd);
	space_release(s, process->space);
	group_release(s, process->group);
	free(process);
}

static bool open_memory(struct process *process)
{
	if (!process->has_memory)
		process->has_memory = memory_open(&process->memory, process->pid) == 0;
	return process->has_memory;
}

static void print_stats(struct supervisor *s)
{
	struct engine_counters counters = s->counters;

	if ((!s->options->stats && !s->options->count) || s->stats_printed)
		return;
	s->stats_printed = true;
	for (uint32_t i = 0; i < s->processes.count; i++) {
		struct space *space = s->processes.items[i]->space;
		bool seen = false;
		for (uint32_t j = 0; j < i; j++)
			seen |= s->processes.items[j]->space == space;
		if (!seen)
			stats_add_space(&counters, space);
	}
	for (uint32_t i = 0; i < s->groups.count; i++) {
		counters.refused += s->groups.items[i]->channel->refused;
		counters.released += s->groups.items[i]->channel->released;
		counters.executed += executed_in(s->groups.items[i]);
	}
	if (s->options->stats)
		stats_print(&counters, stderr);
	if (s->options->count)
		fprintf(stderr, "bugnet: %lu instructions executed\n", counters.executed);
	fflush(stderr);
}

/* ---- recording ---- */

#define LOGS_BYTES (MAX_RECORDED_THREADS * LOG_STRIDE)

static void take_log(struct supervisor *s, struct log *log, unsigned reason)
{
	uint64_t used = __atomic_load_n(&log->used, __ATOMIC_ACQUIRE);

	recorder_log(s->recorder, log, (const uint8_t *)log + LOG_DATA,
	        used < LOG_STRIDE - LOG_DATA ? used : 0, reason);
	log->used = 0;
	if (reason == LOG_ENDED)
		log->tid = 0;
	else if (recorder_keyframe_in(s->recorder, log) == 0)
		log->wanted = 1;
}

static enum status serve_log(struct supervisor *s, const uint64_t *a)
{
	if (!s->logs || a[0] >= MAX_RECORDED_THREADS)
		return STATUS_RELEASE;
	take_log(s, (struct log *)(s->logs + a[0] * LOG_STRIDE), (unsigned)a[1]);
	return STATUS_OK;
}

/* The process ends, or has ended: what the threads left is all there will be. */
static void finish_recording(struct supervisor *s)
{
	if (!s->logs)
		return;
	for (unsigned i = 0; i < MAX_RECORDED_THREADS; i++) {
		struct log *log = (struct log *)(s->logs + i * LOG_STRIDE);
		if (log->tid)
			take_log(s, log, LOG_ENDED);
	}
	recorder_finish(s->recorder);
	munmap(s->logs, LOGS_BYTES);
	s->logs = NULL;
}

/* Threads note in their logs from where on they may run code that replaced other code. */
static void tell_of_code(struct supervisor *s, uint32_t pieces)
{
	for (uint32_t i = 0; i < s->groups.count; i++) {
		struct channel *channel = s->groups.items[i]->channel;
		if (s->asking >= channel->mailboxes && s->asking < channel->mailboxes + MAILBOX_COUNT)
			__atomic_store_n(&channel->code_pieces, pieces, __ATOMIC_RELEASE);
	}
}

static void take_stragglers(struct supervisor *s, struct stragglers *stragglers)
{
	for (uint32_t i = 0; i < stragglers->count; i++)
		vector_push(&s->followed, (struct following){stragglers->items[i], true});
	vector_free(stragglers);
}

/* Looks after the threads' keyframes, when it is time. */
static void look_after_keyframes(struct supervisor *s, uint64_t now)
{
	const struct process *process = find_process(s, s->root);
	uint64_t interval = s->logs ? s->options->record->interval : 0;
	struct stragglers stragglers = {0};

	if (!s->logs || !process || !process->has_memory || now < s->keyframes.next)
		return;
	struct keyframe_process threads = {.pid = process->pid,
	        .memory = &process->memory,
	        .space = process->space,
	        .logs = s->logs,
	        .recorder = s->recorder,
	        .interval = interval ? interval : UINT64_MAX};
	keyframes_look(&s->keyframes, &threads, now, &stragglers);
	take_stragglers(s, &stragglers);
}

static void note_code(
        void *context, struct memory *memory, uint64_t address, const uint8_t *bytes, uint32_t size)
{
	struct supervisor *s = context;
	uint32_t pieces;

	if (!s->recorder || !s->asking)
		return;
	recorder_code(s->recorder, s->asking->log, s->asking->instructions, memory, address, bytes, size);
	pieces = recorder_replaced(s->recorder);
	if (pieces)
		tell_of_code(s, pieces);
}

static void begin_recording(struct supervisor *s, pid_t pid, struct space *space)
{
	const struct segment_layout *first = &space->segments[0].layout;
	void *logs = mmap(NULL, LOGS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, space->memfd,
	        (off_t)(first->file + first->logs));

	if (logs == MAP_FAILED) {
		fprintf(stderr, "bugnet: cannot record: no memory for the logs: %s\n", strerror(errno));
		return;
	}
	s->logs = logs;
	space->on_code = note_code;
	space->on_code_context = s;
	recorder_begin(s->recorder, pid, space);
}

static bool process_is_dead(const struct process *process)
{
	struct pollfd poll_fd = {.fd = process->pidfd, .events = POLLIN};

	if (process->pidfd < 0) /* pidfd_open is not to be had */
		return process->has_memory ? !memory_alive(&process->memory) : kill(process->pid, 0) < 0;
	return poll(&poll_fd, 1, 0) > 0;
}

static void bury_the_dead(struct supervisor *s)
{
	for (uint32_t i = s->processes.count; i-- > 0;) {
		struct process *process = s->processes.items[i];
		bool gone = process->leaving && process->has_memory && !memory_alive(&process->memory);
		if (!gone && !process_is_dead(process))
			continue;
		if (process->pid == s->root && gone && s->logs)
			recorder_note_exec(s->recorder);
		if (process->pid == s->root)
			finish_recording(s);
		if (process->pid == s->root && !gone)
			print_stats(s);
		remove_process(s, process);
		i = s->processes.count;
	}
}

/* ---- following execve ---- */

static void follow(struct supervisor *s, pid_t tid)
{
	for (uint32_t i = 0; i < s->followed.count; i++) {
		if (s->followed.items[i].tid == tid)
			return;
	}
	if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACEEXEC) == 0)
		vector_push(&s->followed, (struct following){tid, false});
}

static bool straggles(const struct supervisor *s, pid_t tid)
{
	for (uint32_t i = 0; i < s->followed.count; i++) {
		if (s->followed.items[i].tid == tid)
			return s->followed.items[i].straggles;
	}
	return false;
}

static bool unfollow(struct supervisor *s, pid_t tid)
{
	for (uint32_t i = 0; i < s->followed.count; i++) {
		if (s->followed.items[i].tid == tid) {
			s->followed.items[i] = s->followed.items[--s->followed.count];
			return true;
		}
	}
	return false;
}

static void stop_following(struct supervisor *s, pid_t tid)
{
	int status, signal = 0;

	if (!unfollow(s, tid))
		return;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 || waitpid(tid, &status, __WALL) < 0 ||
	        !WIFSTOPPED(status))
		return;
	if (status >> 16 == 0)
		signal = WSTOPSIG(status);
	ptrace(PTRACE_DETACH, tid, 0, signal);
}

static void redirect_stderr(void)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, 2);
		close(null);
	}
}

/* A process stands at the first instruction of its new image. */
static void take_over(struct supervisor *s, pid_t pid)
{
	struct memory memory;
	struct process *old = find_process(s, pid);
	struct injection options = {.children = s->options->children,
	        .cache = s->options->cache,
	        .announce_exit = (s->options->stats || s->options->count || s->recorder) && pid == s->root,
	        .count = s->options->count};
	if (s->recorder && pid == s->root && !s->recorded) {
		options.record = true;
		cpu_level_parse(s->options->record->cpu, &options.cpu_level);
		options.dictionary_bits = s->options->record->dictionary
		                                  ? (uint32_t)__builtin_ctz(s->options->record->dictionary)
		                                  : 0;
		options.bound = s->options->record->bound;
		options.interval = s->options->record->interval ? s->options->record->interval : UINT64_MAX;
		s->recorded = true;
	}
	char why[256];
	int error = memory_open(&memory, pid);

	if (old)
		remove_process(s, old);
	if (error) {
		fprintf(stderr, "bugnet: process %d runs natively: cannot open its memory: %s\n", pid,
		        strerror(-error));
		ptrace(PTRACE_DETACH, pid, 0, 0);
		return;
	}
	struct space *space = inject(pid, &memory, &options, why, sizeof why);
	if (space) {
		space->library = options.record ? NULL : s->library; /* not the code of another kind of run */
		space->count = s->options->count;
		struct process *process = add_process(s, pid, group_create(s, space), space);
		process->memory = memory;
		process->has_memory = true;
		if (options.record)
			begin_recording(s, pid, space);
		/* Nothing left to say: do not keep a pipe open that somebody reads to its end. */
		if (!s->options->stats && !s->options->count && !s->options->children && !s->recorder)
			redirect_stderr();
	} else if (pid == s->root && s->counters.images == 0) {
		fprintf(stderr, "bugnet: cannot run the program translated: %s\n", why);
		inject_exit(pid, &memory, 125);
		memory_close(&memory);
		return;
	} else {
		fprintf(stderr, "bugnet: process %d runs natively: %s\n", pid, why);
		memory_close(&memory);
	}
	s->counters.images++;
	ptrace(PTRACE_DETACH, pid, 0, 0);
}

static void handle_stop(struct supervisor *s, pid_t pid, int status)
{
	int event = status >> 16;

	if (straggles(s, pid)) {
		unfollow(s, pid);
		ptrace(PTRACE_DETACH, pid, 0, event ? 0 : WSTOPSIG(status));
	} else if (event == PTRACE_EVENT_EXEC) {
		unsigned long former = 0;
		ptrace(PTRACE_GETEVENTMSG, pid, 0, &former);
		unfollow(s, (pid_t)former);
		unfollow(s, pid);
		take_over(s, pid);
	} else if (event == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP) {
		ptrace(PTRACE_LISTEN, pid, 0, 0); /* job control */
	} else {
		ptrace(PTRACE_CONT, pid, 0, event ? 0 : WSTOPSIG(status));
	}
}

static bool serve_followed(struct supervisor *s)
{
	int status;
	pid_t pid = s->followed.count ? waitpid(-1, &status, WNOHANG | __WALL) : 0;

	if (pid < 0)
		s->followed.count = 0;
	if (pid <= 0)
		return false;
	if (WIFSTOPPED(status))
		handle_stop(s, pid, status);
	else
		unfollow(s, pid);
	return true;
}

/* ---- requests ---- */

static enum status new_space(struct process *process, int target_fd, uint64_t reply[2], struct supervisor *s)
{
	char path[64];

	if (process->space->users == 1)
		return STATUS_NONE; /* another thread was faster, or the others have gone */
	snprintf(path, sizeof path, "/proc/%d/fd/%d", process->pid, target_fd);
	int memfd = open(path, O_RDWR | O_CLOEXEC);
	if (memfd < 0)
		return STATUS_RELEASE;
	if (ftruncate(memfd, (off_t)process->space->memory_size) < 0) {
		close(memfd);
		return STATUS_RELEASE;
	}
	struct space *space = space_clone(process->space, memfd);
	if (!space) {
		close(memfd);
		return STATUS_RELEASE;
	}
	space_release(s, process->space);
	process->space = space;
	space->users = 1;
	if (process->pid != s->root)
		space->on_code = NULL;
	s->counters.copies++;
	reply[0] = space->id;
	return STATUS_OK;
}

/*
 * The code cache is full: begin it anew, with everybody out of it. Answers that
 * somebody has not taken yet speak of code that is no more.
 */
static bool begin_anew(struct supervisor *s, struct space *space)
{
	VECTOR(struct evacuee) evacuees = {0};

	for (uint32_t i = 0; i < s->processes.count; i++) {
		struct process *process = s->processes.items[i];
		if (process->space == space && open_memory(process))
			vector_push(&evacuees,
			        (struct evacuee){process->pid, &process->memory, process->group->channel});
	}
	/* Who is on the way through execve is traced already. */
	struct stragglers stragglers = {0};
	struct evacuation *evacuation =
	        s->followed.count ? NULL
	                          : evacuation_begin(space, evacuees.items, evacuees.count, &stragglers);
	for (uint32_t i = 0; evacuation && i < evacuees.count; i++) {
		struct channel *channel = evacuees.items[i].channel;
		for (uint32_t m = 0; m < channel->mailbox_high; m++) {
			struct mailbox *mailbox = &channel->mailboxes[m];
			if (mailbox->pid == evacuees.items[i].pid && mailbox->operation == OP_TRANSLATE &&
			        mailbox->state == MAILBOX_REPLY && mailbox->status == STATUS_OK)
				mailbox->status = STATUS_AGAIN;
		}
	}
	bool done = evacuation && space_reset(space) == 0;
	if (evacuation)
		evacuation_end(evacuation, evacuees.items, evacuees.count);
	take_stragglers(s, &stragglers);
	vector_free(&evacuees);
	space->exhausted = false; /* when it could not be: threads leave it one by one, as they come */
	return done;
}

/* Code that was translated for a program without low memory, or without a stack there, goes. */
static enum status fold_memory(struct supervisor *s, struct space *space)
{
	space->low_stack = space->low_memory;
	space->low_memory = true;
	for (unsigned i = 0; i < space->segment_count; i++)
		space_info(space, i)->low_memory = 1;
	return begin_anew(s, space) ? STATUS_OK : STATUS_RELEASE;
}

static enum status translate_for(
        struct supervisor *s, struct process *process, const uint64_t *a, uint64_t reply[2])
{
	struct space *space = process->space;

	if (space->users > 1 && space_needs_protection(space, &process->memory, a[0]))
		return STATUS_SPLIT;
	enum status status = space_translate(space, &process->memory, a[0], a[1], (unsigned)a[2], reply);
	if (space->exhausted && begin_anew(s, space))
		status = space_translate(space, &process->memory, a[0], a[1], (unsigned)a[2], reply);
	for (unsigned i = 0; i < EXPECTED_AT_ONCE; i++) {
		if (!space_translate_expected(space, &process->memory))
			break;
	}
	return status;
}

/* A child process shares its parent's space from the start. */
static enum status forked(struct supervisor *s, struct process *parent, pid_t id, uint64_t mailbox)
{
	struct channel *channel = parent->group->channel;
	pid_t pid = namespace_resolve(parent->pid, id);

	if (!pid || mailbox >= channel->mailbox_high)
		return STATUS_NONE;
	/* A child that was quick may have come and gone, and its mailbox be another's. */
	struct mailbox *own = &channel->mailboxes[mailbox];
	if (own->forked != id || own->parent != parent->pid)
		return STATUS_NONE;
	own->pid = pid;
	if (!find_process(s, pid))
		add_process(s, pid, parent->group, parent->space);
	return STATUS_OK;
}

static enum status serve_request(struct supervisor *s, struct process *process, struct mailbox *mailbox)
{
	const uint64_t *a = mailbox->arguments;
	struct space *space = process->space;
	bool shared = space->users > 1;

	if (!open_memory(process))
		return STATUS_RELEASE;
	switch ((enum operation)mailbox->operation) {
	case OP_TRANSLATE:
		s->latest = process;
		return translate_for(s, process, a, mailbox->reply);
	case OP_REMAPPED:
		if (shared)
			return STATUS_SPLIT;
		space_remapped(space, &process->memory, a[0], a[1], a[2]);
		return STATUS_OK;
	case OP_WRITE_FAULT:
		if (shared && space_is_watched(space, a[0], a[0] + 1))
			return STATUS_SPLIT;
		return space_write_fault(space, &process->memory, a[0], a[1], mailbox->reply);
	case OP_UNWATCH:
		if (shared && space_is_watched(space, a[0], a[1]))
			return STATUS_SPLIT;
		return space_unwatch(space, &process->memory, a[0], a[1], mailbox->reply);
	case OP_NEW_SPACE: {
		enum status status = new_space(process, (int)a[0], mailbox->reply, s);
		if (status == STATUS_OK)
			process->group->moving = mailbox;
		return status;
	}
	case OP_MOVED:
		stop_moving(process->group);
		return STATUS_OK;
	case OP_EXEC:
		if (a[0])
			follow(s, namespace_resolve(process->pid, mailbox->tid));
		else if (!a[1])
			process->leaving = true;
		return STATUS_OK;
	case OP_EXEC_FAILED:
		if (a[0])
			stop_following(s, namespace_resolve(process->pid, mailbox->tid));
		else if (!a[1])
			process->leaving = false;
		return STATUS_OK;
	case OP_FORKED:
		return forked(s, process, (pid_t)a[0], a[1]);
	case OP_KNOW_ME:
		return STATUS_OK;
	case OP_EXIT:
		if (process->pid == s->root) {
			finish_recording(s);
			print_stats(s);
		}
		return STATUS_OK;
	case OP_LOG:
		return serve_log(s, a);
	case OP_LOW_MEMORY:
		return fold_memory(s, space);
	case OP_FEED:
	case OP_STEP:
	case OP_DIVERGED:
		break;
	}
	return STATUS_RELEASE;
}

static void serve_mailbox(struct supervisor *s, struct group *group, struct mailbox *mailbox)
{
	if (__atomic_load_n(&mailbox->state, __ATOMIC_ACQUIRE) != MAILBOX_REQUEST ||
	        (group->moving && group->moving != mailbox))
		return;
	if (!mailbox->pid && mailbox->forked)
		mailbox->pid = namespace_resolve(mailbox->parent, mailbox->forked);
	struct process *process = find_process(s, mailbox->pid);
	if (!process && mailbox->pid) {
		struct space *space = find_space(s, group, mailbox->space);
		if (space)
			process = add_process(s, mailbox->pid, group, space);
	}
	s->asking = mailbox;
	mailbox->status = process ? serve_request(s, process, mailbox) : STATUS_RELEASE;
	/* What could not be unlinked for lack of room must not be run any more. */
	if (process && process->space->exhausted && mailbox->operation != OP_TRANSLATE)
		begin_anew(s, process->space);
	__atomic_store_n(&mailbox->state, MAILBOX_REPLY, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&mailbox->sleeping, __ATOMIC_SEQ_CST))
		futex_wake(&mailbox->state);
}

static bool serve_group(struct supervisor *s, struct group *group)
{
	struct channel *channel = group->channel;
	uint32_t doorbell = __atomic_load_n(&channel->doorbell, __ATOMIC_ACQUIRE);
	if (doorbell == group->doorbell)
		return false;

	group->doorbell = doorbell;
	group->users++; /* a request may end the last process */
	uint32_t high = __atomic_load_n(&channel->mailbox_high, __ATOMIC_ACQUIRE);
	for (uint32_t word = 0; word * 64 < high; word++) {
		uint64_t bits = __atomic_load_n(&channel->pending[word], __ATOMIC_RELAXED);
		if (bits)
			bits = __atomic_exchange_n(&channel->pending[word], 0, __ATOMIC_ACQ_REL);
		for (; bits; bits &= bits - 1)
			serve_mailbox(
			        s, group, &channel->mailboxes[word * 64 + (uint32_t)__builtin_ctzl(bits)]);
	}
	group_release(s, group);
	return true;
}

static bool serve_all(struct supervisor *s)
{
	bool served = serve_followed(s);

	for (uint32_t i = s->groups.count; i-- > 0;) {
		if (i < s->groups.count)
			served |= serve_group(s, s->groups.items[i]);
	}
	uint32_t deaths = __atomic_load_n(&s->deaths, __ATOMIC_ACQUIRE);
	if (deaths != s->deaths_seen) {
		s->deaths_seen = deaths;
		bury_the_dead(s);
	}
	return served;
}

/* ---- sleeping ---- */

/* Will nobody tell us of its end? */
static bool must_look(const struct process *process)
{
	return process->leaving || process->pidfd < 0;
}

static uint64_t longest_sleep(const struct supervisor *s, uint64_t now)
{
	uint64_t sleep = s->groups.count > MAX_WAITED ? QUIET_POLL_NANOSECONDS : IDLE_NANOSECONDS;

	if (s->followed.count)
		return EXEC_POLL_NANOSECONDS;
	if (s->logs && s->keyframes.next < now + sleep)
		sleep = s->keyframes.next > now ? s->keyframes.next - now : 0;
	for (uint32_t i = 0; i < s->groups.count; i++) {
		if (s->groups.items[i]->channel->quiet_processes)
			return QUIET_POLL_NANOSECONDS;
	}
	for (uint32_t i = 0; i < s->processes.count; i++) {
		if (must_look(s->processes.items[i]) && sleep > NATIVE_EXEC_POLL_NANOSECONDS)
			sleep = NATIVE_EXEC_POLL_NANOSECONDS;
	}
	return sleep;
}

static void set_sleeping(struct supervisor *s, uint32_t sleeping)
{
	for (uint32_t i = 0; i < s->groups.count; i++)
		__atomic_store_n(&s->groups.items[i]->channel->sleeping, sleeping, __ATOMIC_SEQ_CST);
}

/* Waits for a doorbell or a death. A bell that rang before is seen by the kernel: its value differs. */
static void sleep_until_rung(struct supervisor *s)
{
	struct futex_waitv waiters[MAX_WAITED + 1];
	uint32_t count = 0;
	uint64_t now = nanoseconds(), end = now + longest_sleep(s, now);
	struct timespec deadline = {(time_t)(end / 1000000000), (long)(end % 1000000000)};

	set_sleeping(s, 1);
	waiters[count++] = (struct futex_waitv){s->deaths_seen, (uintptr_t)&s->deaths, FUTEX_32, 0};
	for (uint32_t i = 0; i < s->groups.count && count <= MAX_WAITED; i++)
		waiters[count++] = (struct futex_waitv){s->groups.items[i]->doorbell,
		        (uintptr_t)&s->groups.items[i]->channel->doorbell, FUTEX_32, 0};
	if (syscall(SYS_futex_waitv, waiters, count, 0, &deadline, CLOCK_MONOTONIC) < 0 && errno == ENOSYS)
		nanosleep(
		        &(struct timespec){.tv_nsec = QUIET_POLL_NANOSECONDS}, NULL); /* before Linux 5.16 */
	set_sleeping(s, 0);
	for (uint32_t i = 0; i < s->processes.count; i++) {
		if (must_look(s->processes.items[i])) {
			bury_the_dead(s);
			break;
		}
	}
}

/* The watcher: turns the readiness of pidfds into a futex, so that the main thread has one place to wait. */
static void *watch_deaths(void *argument)
{
	struct supervisor *s = argument;
	struct epoll_event events[16];

	for (;;) {
		if (epoll_wait(s->epoll, events, 16, -1) > 0) {
			__atomic_fetch_add(&s->deaths, 1, __ATOMIC_RELEASE);
			futex_wake(&s->deaths);
		}
	}
	return NULL;
}

static void serve_until_alone(struct supervisor *s)
{
	uint64_t last = nanoseconds();

	while (s->processes.count || s->followed.count) {
		struct process *latest;
		uint64_t now;
		bool served = serve_all(s);
		now = nanoseconds();
		if (s->logs)
			look_after_keyframes(s, now);
		if (served) {
			last = now;
		} else if ((latest = s->latest) && !latest->group->moving &&
		           (space_translate_expected(latest->space, &latest->memory) ||
		                   space_translate_ahead(latest->space, &latest->memory))) {
			continue;
		} else if (now - last > SPIN_NANOSECONDS) {
			sleep_until_rung(s);
			last = nanoseconds() - SPIN_NANOSECONDS / 2;
		} else {
			__builtin_ia32_pause();
		}
	}
}

int supervise(pid_t pid, const struct supervisor_options *options, int ready_fd)
{
	struct supervisor s = {.options = options, .root = pid};
	pthread_t watcher;

	/* What one process's space gave back, the next one's takes: not through the kernel each time. */
	mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	if (options->children)
		s.library = library_create();
	s.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s.epoll < 0 || pthread_create(&watcher, NULL, watch_deaths, &s) != 0) {
		fprintf(stderr, "bugnet: cannot start the supervisor: %s%s\n", strerror(errno),
		        errno == ENOMEM || errno == EAGAIN ? "; see the limits in 'ulimit -a'" : "");
		return 1;
	}
	if (options->record) {
		char why[512];
		s.recorder = recorder_create(options->record, why, sizeof why);
		if (!s.recorder) {
			fprintf(stderr, "bugnet record: %s\n", why);
			return 1;
		}
	}
	follow(&s, pid);
	if (!s.followed.count && errno == ESRCH)
		return 1; /* killed before it came to its execve */
	if (!s.followed.count) {
		fprintf(stderr,
		        "bugnet: cannot trace the program: %s; 'bugnet doctor' tells whether this machine "
		        "permits it\n",
		        strerror(errno));
		return 1;
	}
	if (write(ready_fd, "", 1) != 1)
		return 1;
	close(ready_fd);
	serve_until_alone(&s);
	if (s.recorder)
		recorder_destroy(s.recorder);
	print_stats(&s);
	return 0;
}
