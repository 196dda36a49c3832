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

#include "record/attach.h"
#include "record/clear.h"
#include "record/cpu_level.h"
#include "record/detach.h"
#include "record/evacuate.h"
#include "record/hold.h"
#include "record/inject.h"
#include "record/library.h"
#include "record/memory.h"
#include "record/namespace.h"
#include "record/output.h"
#include "record/orphan.h"
#include "record/process_facts.h"
#include "record/recorded_process.h"
#include "record/space.h"
#include "record/stats.h"
#include "record/vector.h"
#include "record/why.h"
#include "recording/names.h"

#define SPIN_NANOSECONDS             40000
#define EXPECTED_AT_ONCE             8 /* regions made in one request because an earlier process wanted them */
#define QUIET_POLL_NANOSECONDS       50000
#define EXEC_POLL_NANOSECONDS        20000
#define IDLE_NANOSECONDS             500000000
#define NATIVE_EXEC_POLL_NANOSECONDS 50000000
#define KEPT_BYTES                   (32 << 20)
#define LEAVING_NANOSECONDS          10000000000
#define OVER_POLLS                   20          /* of a millisecond */
#define REAP_POLLS                   100         /* of a millisecond */
#define LEAVING_PAUSE_NANOSECONDS    1000000     /* for threads to come out of the stub */
#define MAX_WAITED                   127         /* futex_waitv takes 128 */
#define SAVE_TEXT                    512         /* bytes of why a program wants a file */
#define ANEW_NANOSECONDS             10000000000 /* for a full cache to be begun anew */

/* One program image and its forks: they share a channel. */
struct group {
	struct channel *channel;
	uint32_t doorbell; /* how far it has been served */
	uint32_t returned; /* threads that are watched again, of channel.returned */
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
	struct recorded_process *recorded; /* or NULL */
	uint64_t waited;                   /* ns that its threads have waited for us, at least */
	struct output_lines output;        /* see --save-on-output */
};

/* A thread that is traced: on its way through execve, with its seccomp filters asleep, or to be let go as
 * soon as it stops. */
struct following {
	pid_t tid;
	bool straggles;
};

/* A request that waits for its process's full cache to be begun anew. */
struct put_off {
	pid_t pid;
	struct mailbox *mailbox;
	bool served; /* only the answer waits */
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
	VECTOR(struct put_off) put_off;
	struct engine_counters counters;
	struct library *library;              /* for processes that run the same files */
	struct process *latest;               /* who asked for code last, or NULL */
	struct recorder *recorder;            /* of the program, which has not begun; or NULL */
	struct control control;               /* while something is recorded */
	struct attachment attachment;         /* until OP_ADOPT */
	struct hold *hold;                    /* somebody debugs the program; or NULL */
	uint64_t leaving_since, next_leaving; /* see leave_processes */
	bool executed;                        /* another program, while it was being attached to */
	bool root_left;                       /* the program was let go; forks of it may still be here */
	int leaver;                           /* who asked for that and wants to know; -1: nobody */
};

static volatile sig_atomic_t asked_to_leave; /* see leave_at_signals */

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t nanoseconds(void)
{
	return read_clock(CLOCK_MONOTONIC);
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

/* What is not in the recording is told before what was saved. */
static void finish_recording(struct process *process, const struct memory *memory, bool executed)
{
	uint32_t unrecorded =
	        __atomic_exchange_n(&process->group->channel->threads_unrecorded, 0, __ATOMIC_RELAXED);

	if (process->recorded && unrecorded) {
		fprintf(stderr,
		        "bugnet: warning: %u thread%s of process %d ran unrecorded, as there was no room for "
		        "%s shadow: at most %u threads can be recorded at a time, fewer where 'ulimit -v' or "
		        "'ulimit -d' leaves no room\n",
		        unrecorded, unrecorded == 1 ? "" : "s", process->pid,
		        unrecorded == 1 ? "its" : "their", space_info(process->space, 0)->thread_count - 1);
		recorded_process_note_unrecorded(process->recorded, unrecorded);
	}
	recorded_process_finish(process->recorded, memory, executed);
}

static void group_release(struct supervisor *s, struct group *group)
{
	if (--group->users)
		return;
	s->counters.refused += group->channel->refused;
	s->counters.released += group->channel->released;
	s->counters.returned += group->channel->returned;
	s->counters.executed += executed_in(group);
	pthread_mutex_unlock((pthread_mutex_t *)group->channel->owner);
	/* A child of vfork may be left, whose process was killed. */
	__atomic_store_n(&group->channel->owner[0], OWNER_DIED, __ATOMIC_SEQ_CST);
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
	for (uint32_t i = s->put_off.count; i-- > 0;) {
		if (s->put_off.items[i].pid == process->pid)
			s->put_off.items[i] = s->put_off.items[--s->put_off.count];
	}
	/* A thread that died in the middle leaves its mailbox behind; a child of vfork, which is a thread to
	 * us, may live on, and is released. */
	struct channel *channel = process->group->channel;
	for (uint32_t i = 0; i < channel->mailbox_high; i++) {
		struct mailbox *mailbox = &channel->mailboxes[i];
		if (mailbox->pid == process->pid) {
			if (process->group->moving == mailbox)
				stop_moving(process->group);
			channel->instructions += mailbox->instructions;
			mailbox->instructions = 0;
			mailbox->pid = mailbox->forked = 0;
			if (mailbox->tid == process->pid ||
			        syscall(SYS_tgkill, mailbox->tid, mailbox->tid, 0) < 0)
				__atomic_store_n(&mailbox->state, MAILBOX_FREE, __ATOMIC_RELEASE);
		}
	}
	recorded_process_destroy(process->recorded);
	if (process->has_memory)
		memory_close(&process->memory);
	if (process->pidfd >= 0)
		close(process->pidfd);
	space_release(s, process->space);
	group_release(s, process->group);
	vector_free(&process->output.lines);
	free(process);
}

/* Where its processes say what they have mapped, see struct memory. */
static uint64_t ranges_of(const struct space *space)
{
	return space->mode == TRANSLATE_RECORD ? space->segments[0].layout.base + LAYOUT_PROCESS : 0;
}

static bool open_memory(struct process *process)
{
	if (!process->has_memory) {
		process->has_memory = memory_open(&process->memory, process->pid) == 0;
		process->memory.ranges_at = ranges_of(process->space);
	}
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
		if (seen)
			continue;
		stats_add_space(&counters, space);
		if (s->options->stats)
			stats_print_pages(space, stderr);
	}
	for (uint32_t i = 0; i < s->groups.count; i++) {
		counters.refused += s->groups.items[i]->channel->refused;
		counters.released += s->groups.items[i]->channel->released;
		counters.returned += s->groups.items[i]->channel->returned;
		counters.executed += executed_in(s->groups.items[i]);
	}
	if (s->options->stats)
		stats_print(&counters, stderr);
	if (s->options->count)
		fprintf(stderr, "bugnet: %lu instructions executed\n", counters.executed);
	fflush(stderr);
}

/* ---- recording ---- */

static void take_stragglers(struct supervisor *s, struct stragglers *stragglers)
{
	for (uint32_t i = 0; i < stragglers->count; i++)
		vector_push(&s->followed, (struct following){.tid = stragglers->items[i], .straggles = true});
	vector_free(stragglers);
}

/* Looks after the threads' keyframes, when it is time. */
static void look_after_keyframes(struct supervisor *s, uint64_t now)
{
	struct stragglers stragglers = {0};

	for (uint32_t i = 0; i < s->processes.count; i++) {
		struct process *process = s->processes.items[i];
		if (process->recorded && process->has_memory)
			recorded_process_look(process->recorded, &process->memory, now, &stragglers);
	}
	take_stragglers(s, &stragglers);
}

/* Looks at what recording costs, and lets the programs go when it is too much. */
static void look_after_costs(struct supervisor *s, uint64_t now)
{
	for (uint32_t i = 0; i < s->processes.count; i++) {
		struct process *process = s->processes.items[i];
		if (process->recorded && process->has_memory &&
		        recorded_process_look_at_costs(
		                process->recorded, &process->memory, process->waited, now) == BUDGET_LEAVE)
			asked_to_leave = 1;
	}
}

static uint64_t next_look(const struct supervisor *s)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < s->processes.count; i++) {
		uint64_t look = recorded_process_next_look(s->processes.items[i]->recorded);
		if (look < next)
			next = look;
	}
	return next;
}

/* Is this process to have a recording? It is about to run a program, or is a copy of one that has. */
static bool is_recorded(const struct supervisor *s, pid_t pid)
{
	return s->options->record && (s->options->children || (pid == s->root && s->recorder));
}

static void begin_recording(struct supervisor *s, struct process *process, pid_t forked)
{
	struct recorder *recorder = process->pid == s->root ? s->recorder : NULL;

	if (recorder)
		s->recorder = NULL;
	process->recorded = recorded_process_create(
	        recorder, s->options->record, process->pid, forked, process->space, &process->memory);
}

static bool process_is_dead(const struct process *process)
{
	struct pollfd poll_fd = {.fd = process->pidfd, .events = POLLIN};

	if (process->pidfd < 0) /* pidfd_open is not to be had */
		return process->has_memory ? !memory_alive(&process->memory) : kill(process->pid, 0) < 0;
	return poll(&poll_fd, 1, 0) > 0;
}

/* ---- being debugged ---- */

static struct hold_process held_process(const struct process *process)
{
	return (struct hold_process){process->pid, process->group->channel, process->space,
	        (struct memory *)&process->memory, process->recorded};
}

/* NULL: it does not run, or nobody debugs it. */
static struct process *debugged_process(struct supervisor *s)
{
	struct process *process = s->hold ? find_process(s, s->root) : NULL;

	return process && process->recorded && process->has_memory ? process : NULL;
}

static void look_after_hold(struct supervisor *s, uint64_t now)
{
	struct process *process = debugged_process(s);
	struct stragglers stragglers = {0};

	if (!process || hold_next_look(s->hold) > now)
		return;
	struct hold_process held = held_process(process);
	hold_look(s->hold, &held, now, &stragglers);
	take_stragglers(s, &stragglers);
}

/* A debugger that goes without a word takes the program with it, as gdb does; one that was running goes on.
 */
static void serve_hold(struct supervisor *s)
{
	struct process *process = debugged_process(s);
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
	bool leave = false;

	if (!process || asked_to_leave)
		return;
	struct hold_process held = held_process(process);
	if (hold_serve(s->hold, &held, &leave))
		epoll_ctl(s->epoll, EPOLL_CTL_MOD, s->options->debugger, &event);
	else if (s->attachment.pid)
		leave = true;
	else
		kill(process->pid, SIGKILL);
	if (leave)
		asked_to_leave = 1;
}

static void begin_hold(struct supervisor *s)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};

	s->hold = hold_create(s->options->debugger);
	epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->options->debugger, &event);
}

static void bury_the_dead(struct supervisor *s)
{
	for (uint32_t i = s->processes.count; i-- > 0;) {
		struct process *process = s->processes.items[i];
		bool gone = process->leaving && process->has_memory && !memory_alive(&process->memory);
		if (!gone && !process_is_dead(process))
			continue;
		finish_recording(process, NULL, gone);
		/* What it executes now has nothing of ours. */
		s->root_left |= process->pid == s->root && gone;
		if (process->pid == s->root && s->hold)
			hold_ended(s->hold, process->pid);
		if (process->pid == s->root && !gone)
			print_stats(s);
		remove_process(s, process);
		i = s->processes.count;
	}
}

/* ---- who asks from outside ---- */

static void tell_state(struct supervisor *s, int client)
{
	char text[CONTROL_PACKET - 8], line[PATH_MAX + 256];
	size_t size = 0;

	*text = 0;
	for (uint32_t i = 0; i < s->processes.count; i++) {
		struct process *process = s->processes.items[i];
		recorded_process_tell(process->recorded, &process->memory, line, sizeof line);
		if (size + strlen(line) < sizeof text)
			size += (size_t)snprintf(text + size, sizeof text - size, "%s", line);
	}
	control_answer(client, "ok\n%s", text);
}

/* "PID\nPATH\nREASON" */
static void take_wish(struct supervisor *s, char *request, int client)
{
	char *number = strsep(&request, "\n"), *path = strsep(&request, "\n"), *text = strsep(&request, "\n");
	struct process *process = number ? find_process(s, atoi(number)) : NULL;
	struct save_wish wish = {.reason = {.kind = "request",
	                                 .text = text && *text ? text : "asked for by 'bugnet save'",
	                                 .path = path && *path == '/' ? path : NULL,
	                                 .thread = THREAD_NO_PARENT},
	        .client = client};

	if (!process || !process->recorded)
		control_answer(client, "error\nprocess %s is not recorded\n", number ? number : "?");
	else if (!recorded_process_save(process->recorded, &wish))
		control_answer(client, "error\neverything is kept in its file, there is no ring to save\n");
}

/* What has ended is saved before anybody is answered who wants to know. */
static void answer_late(struct supervisor *s, int client)
{
	bury_the_dead(s);
	control_answer(client, "ok\n");
}

/* Answered when it is done. */
static void take_leave(struct supervisor *s, int client)
{
	if (asked_to_leave) {
		control_answer(client, "error\nit is about to be let go already\n");
		return;
	}
	/* Processes that it made, such as jobs of a shell, are let go when they go on. */
	if (s->processes.count && process_is_stopped(s->root)) {
		control_answer(client,
		        "error\nit is stopped, and recorded on; let it go on with 'kill -CONT %d', and ask "
		        "again\n",
		        s->root);
		return;
	}
	asked_to_leave = 1;
	s->leaver = client;
}

static void serve_control(struct supervisor *s)
{
	char request[CONTROL_PACKET], *rest;

	for (int client; (client = control_next(&s->control, request)) >= 0;) {
		rest = request;
		const char *verb = strsep(&rest, "\n");
		if (!strcmp(verb, "state"))
			tell_state(s, client);
		else if (!strcmp(verb, "save"))
			take_wish(s, rest, client);
		else if (!strcmp(verb, "detach"))
			take_leave(s, client);
		else if (!strcmp(verb, "wait"))
			answer_late(s, client);
		else
			close(client);
	}
	if (s->control.fd >= 0) {
		struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
		epoll_ctl(s->epoll, EPOLL_CTL_MOD, s->control.events, &event);
	}
}

static void begin_control(struct supervisor *s)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};

	control_open(&s->control);
	if (s->control.fd >= 0)
		epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->control.events, &event);
}

static void look_after_saves(struct supervisor *s, uint64_t now)
{
	for (uint32_t i = 0; i < s->processes.count; i++) {
		struct process *process = s->processes.items[i];
		if (recorded_process_is_saving(process->recorded) && open_memory(process))
			recorded_process_look_after_saves(process->recorded, &process->memory, now);
	}
}

/* ---- following execve ---- */

static void follow(struct supervisor *s, pid_t tid)
{
	for (uint32_t i = 0; i < s->followed.count; i++) {
		if (s->followed.items[i].tid == tid)
			return;
	}
	if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD) == 0)
		vector_push(&s->followed, (struct following){.tid = tid});
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

/* ---- seccomp filters that are asleep ---- */

/* The thread is about to make calls that its filters may forbid. */
static enum status put_filters_to_sleep(struct supervisor *s, pid_t tid)
{
	if (!tid || ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_SUSPEND_SECCOMP) < 0)
		return STATUS_RELEASE;
	vector_push(&s->followed, (struct following){.tid = tid});
	return STATUS_OK;
}

/* It waits in the stub. `mask`: of signals from now on; NULL: as it is. */
static void wake_filters(struct supervisor *s, pid_t tid, const uint64_t *mask)
{
	struct stragglers stragglers = {0};
	int status;

	if (!unfollow(s, tid))
		return;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 || waitpid(tid, &status, __WALL) < 0 ||
	        !WIFSTOPPED(status))
		return;
	struct halted thread = {.tid = tid, .signal = status >> 16 ? 0 : WSTOPSIG(status)};
	if (mask)
		ptrace(PTRACE_SETSIGMASK, tid, sizeof *mask, mask);
	halt_let_go(&thread, &stragglers);
	take_stragglers(s, &stragglers);
}

static void redirect_stderr(void)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, 2);
		close(null);
	}
}

static struct injection injection_for(const struct supervisor *s, pid_t pid)
{
	const struct recorder_options *record = s->options->record;
	struct injection options = {.children = s->options->children,
	        .cache = s->options->cache,
	        .announce_exit = (s->options->stats || s->options->count) && pid == s->root,
	        .count = s->options->count};

	if (is_recorded(s, pid)) {
		options.record = options.announce_exit = true;
		cpu_level_parse(record->cpu, &options.cpu_level);
		options.dictionary_bits =
		        record->dictionary ? (uint32_t)__builtin_ctz(record->dictionary) : 0;
		options.bound = record->bound;
		options.pages = record->pages && !record->bound && !s->hold;
		options.interval = record->interval ? record->interval : UINT64_MAX;
		options.puts_off = record->puts_off;
		options.save_calls = record->save_calls;
		options.save_call_count = record->save_call_count;
	}
	return options;
}

/* The process has its space. */
static void settle_in(struct supervisor *s, pid_t pid, const struct memory *memory,
        const struct injection *options, struct space *space)
{
	space->library = options->record ? NULL : s->library; /* not the code of another kind of run */
	space->count = s->options->count;
	struct process *process = add_process(s, pid, group_create(s, space), space);
	process->memory = *memory;
	process->memory.ranges_at = ranges_of(space);
	process->has_memory = true;
	process->group->channel->clears = memory->pages_fd >= 0;
	if (options->record)
		begin_recording(s, process, 0);
	if (s->hold && process->recorded) {
		struct hold_process held = held_process(process);
		hold_begin(s->hold, &held);
	}
	s->counters.images++;
}

/* A process stands at the first instruction of its new image. */
static void take_over(struct supervisor *s, pid_t pid)
{
	struct memory memory;
	struct process *old = find_process(s, pid);
	struct injection options = injection_for(s, pid);
	char why[256];
	int error = memory_open(&memory, pid);

	bool only_saved = old && old->recorded && !s->options->children;
	if (old) {
		finish_recording(old, NULL, true);
		if (s->hold && old->pid == s->root)
			hold_ended(s->hold, old->pid);
		remove_process(s, old);
	}
	if (only_saved) {
		if (!error)
			memory_close(&memory);
		ptrace(PTRACE_DETACH, pid, 0, 0);
		return;
	}
	if (error) {
		fprintf(stderr, "bugnet: process %d runs natively: cannot open its memory: %s\n", pid,
		        strerror(-error));
		ptrace(PTRACE_DETACH, pid, 0, 0);
		return;
	}
	struct space *space = inject(pid, &memory, &options, why, sizeof why);
	if (space) {
		settle_in(s, pid, &memory, &options, space);
		/* Nothing left to say: do not keep a pipe open that somebody reads to its end. */
		if (!s->options->stats && !s->options->count && !s->options->children && !s->options->record)
			redirect_stderr();
	} else if (pid == s->root && s->counters.images == 0) {
		fprintf(stderr, "bugnet: cannot run the program translated: %s\n", why);
		inject_exit(pid, &memory, 125);
		memory_close(&memory);
		return;
	} else {
		fprintf(stderr, "bugnet: process %d runs natively: %s\n", pid, why);
		memory_close(&memory);
		s->counters.images++;
	}
	ptrace(PTRACE_DETACH, pid, 0, 0);
}

/* Is it still what was looked at before it was stopped? */
static bool runs_program(const struct supervisor *s, const struct memory *memory)
{
	char program[PATH_MAX];

	return memory_alive(memory) && process_link(s->root, "exe", program) &&
	       strcmp(program, s->options->record->program) == 0;
}

/* The program runs already. False, with the reason in `why`: it runs on as it was. */
static bool stop_running(struct supervisor *s, struct memory *memory, char *why, size_t why_size)
{
	int error = memory_open(memory, s->root);

	if (error == -ENOENT)
		return fail_because(why, why_size, "there is no such process");
	if (error)
		return fail_because(why, why_size,
		        "cannot open its memory: %s; it must be yours, and the kernel must permit it: see "
		        "'bugnet doctor', or become root",
		        strerror(-error));
	if ((orphan_look(memory) != ORPHAN_LEFT || orphan_take_out(s->root, memory, why, why_size)) &&
	        attachment_begin(&s->attachment, s->root, memory, why, why_size)) {
		if (runs_program(s, memory))
			return true;
		attachment_abandon(&s->attachment);
		s->executed = true;
	}
	memory_close(memory);
	return false;
}

/* The same, for one that is stopped. */
static bool take_over_running(struct supervisor *s, struct memory *memory, char *why, size_t why_size)
{
	struct injection options = injection_for(s, s->root);

	options.attachment = &s->attachment;
	struct space *space = inject(s->root, memory, &options, why, why_size);
	if (space) {
		settle_in(s, s->root, memory, &options, space);
		attachment_start(&s->attachment);
		if (s->attachment.filters == FILTERS_FORBID)
			vector_push(&s->followed, (struct following){.tid = s->root});
	}
	return space != NULL;
}

static void handle_stop(struct supervisor *s, pid_t pid, int status)
{
	int event = status >> 16;

	if (straggles(s, pid)) {
		struct stragglers stragglers = {0};
		struct halted thread = {.tid = pid, .signal = event ? 0 : WSTOPSIG(status)};
		unfollow(s, pid);
		halt_let_go(&thread, &stragglers);
		take_stragglers(s, &stragglers);
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

/* a[0]: the descriptor of its memory in the process; a[1]: for a recording of its own, of the child of a fork
 */
static enum status new_space(
        struct supervisor *s, struct process *process, const uint64_t *a, uint64_t reply[2])
{
	char path[64];

	if (process->space->users == 1 && !a[1])
		return STATUS_NONE; /* another thread was faster, or the others have gone */
	snprintf(path, sizeof path, "/proc/%d/fd/%d", process->pid, (int)a[0]);
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
	space->on_code = NULL;
	space->on_unmapped = NULL;
	if (process->recorded)
		recorded_process_moved(process->recorded, space);
	else if (a[1] && is_recorded(s, process->pid))
		begin_recording(s, process, (pid_t)a[2]);
	s->counters.copies++;
	reply[0] = space->id;
	reply[1] = process->recorded != NULL;
	return STATUS_OK;
}

enum anew { ANEW_DONE, ANEW_LATER, ANEW_NEVER };

/* Answers that somebody has not taken yet speak of code that is no more. */
static void take_answers_back(const struct evacuee *evacuee)
{
	struct channel *channel = evacuee->channel;

	for (uint32_t i = 0; i < channel->mailbox_high; i++) {
		struct mailbox *mailbox = &channel->mailboxes[i];
		if (mailbox->pid == evacuee->pid && mailbox->operation == OP_TRANSLATE &&
		        mailbox->state == MAILBOX_REPLY && mailbox->status == STATUS_OK)
			mailbox->status = STATUS_AGAIN;
	}
}

/*
 * The code cache is full: begin it anew, with everybody out of it. That cannot be now while somebody is
 * traced already, who is on the way through execve or did not stop in time; one who never stops is not waited
 * for for ever.
 */
static enum anew begin_anew(struct supervisor *s, struct space *space)
{
	VECTOR(struct evacuee) evacuees = {0};
	struct stragglers stragglers = {0};
	struct evacuation *evacuation = NULL;
	enum halt_outcome outcome = HALT_UNSAFE;
	uint64_t now = nanoseconds();

	if (!space->exhausted_since)
		space->exhausted_since = now;
	for (uint32_t i = 0; i < s->processes.count; i++) {
		struct process *process = s->processes.items[i];
		if (process->space == space && open_memory(process))
			vector_push(&evacuees,
			        (struct evacuee){process->pid, &process->memory, process->group->channel});
	}
	if (!s->followed.count)
		outcome = evacuation_begin(&evacuation, space, evacuees.items, evacuees.count, &stragglers);
	bool later = outcome == HALT_UNSAFE && now - space->exhausted_since < ANEW_NANOSECONDS, done = false;
	if (evacuation) {
		for (uint32_t i = 0; i < evacuees.count; i++)
			take_answers_back(&evacuees.items[i]);
		done = space_reset(space) == 0;
		evacuation_end(evacuation, evacuees.items, evacuees.count);
	}
	take_stragglers(s, &stragglers);
	vector_free(&evacuees);
	if (later)
		return ANEW_LATER;
	space->exhausted = false; /* when it could not be: threads leave it one by one, as they come */
	space->exhausted_since = 0;
	return done ? ANEW_DONE : ANEW_NEVER;
}

/* Code that was translated for a program without low memory, or without a stack there, goes. */
static enum status fold_memory(struct space *space)
{
	space->low_stack = space->low_memory;
	space->low_memory = true;
	for (unsigned i = 0; i < space->segment_count; i++)
		space_info(space, i)->low_memory = 1;
	space->exhausted = true;
	return STATUS_OK;
}

static void set_pages(struct space *space, bool by_pages)
{
	space->by_pages = by_pages;
	for (unsigned i = 0; i < space->segment_count; i++)
		space_info(space, i)->pages = by_pages;
}

/* Code that was translated for whole pages to be logged goes, see target/pages.c. */
static enum status compare_loads(struct space *space, struct memory *memory, const uint64_t *a)
{
	space->compares_for = a[0];
	space->compares_from = a[1];
	memory_changed(memory); /* nothing is closed any more */
	set_pages(space, false);
	space->exhausted = true;
	return STATUS_OK;
}

/* And it comes back when they are to be logged again. */
static enum status log_pages(struct space *space, struct memory *memory)
{
	memory_changed(memory);
	set_pages(space, true);
	space->compares_for = LEAVES_NOT;
	space->exhausted = true;
	return STATUS_OK;
}

static enum status translate_for(struct process *process, const uint64_t *a, uint64_t reply[2])
{
	struct space *space = process->space;

	if (space->users > 1 && space_needs_protection(space, &process->memory, a[0]))
		return STATUS_SPLIT;
	if (space_is_stop(space, a[0]))
		return space_single(space, &process->memory, a[0], reply);
	enum status status = space_translate(space, &process->memory, a[0], a[1], (unsigned)a[2], reply);
	for (unsigned i = 0; i < EXPECTED_AT_ONCE && !space->exhausted; i++) {
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

/* A thread asks for a file, or makes a call that may be worth one. It waits until it has been looked at. */
static enum status save_for(struct supervisor *s, struct process *process, struct mailbox *mailbox)
{
	const uint64_t *a = mailbox->arguments;
	const regex_t *pattern = s->options->record->output;
	uint32_t number = (uint32_t)a[0];
	char text[SAVE_TEXT], call[NAME_TEXT_SIZE];
	struct save_wish wish = {.reason = {.kind = "program",
	                                 .text = text,
	                                 .thread = mailbox->log,
	                                 .position = mailbox->instructions ? mailbox->instructions - 1 : 0},
	        .client = -1,
	        .mailbox = mailbox};

	if (a[0] == SAVE_PROGRAM) {
		memory_text(&process->memory, a[1], text, sizeof text);
	} else if (!pattern || !output_is_written_by(number)) {
		wish.reason.kind = "call";
		snprintf(text, sizeof text, "system call %s", syscall_name(number, call));
	} else {
		wish.reason.kind = "output";
		if (!output_matches(&process->output, (uint32_t)(a[0] >> 32), pattern, &process->memory,
		            (uint64_t[]){number, a[1], a[2]}, text, sizeof text))
			return STATUS_OK;
	}
	return recorded_process_save(process->recorded, &wish) ? STATUS_LATER : STATUS_OK;
}

/* The first thread, whose mask of signals is told, has got everything ready for the others. */
static void adopt_others(struct supervisor *s, const struct space *space, uint64_t mask)
{
	struct stragglers traced = {0};

	attachment_finish(&s->attachment, space, &traced);
	for (uint32_t i = 0; i < traced.count; i++)
		vector_push(&s->followed, (struct following){.tid = traced.items[i]});
	vector_free(&traced);
	take_stragglers(s, &s->attachment.stragglers);
	wake_filters(s, s->root, &mask);
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
		if (s->hold && mailbox->log != MAILBOX_NO_LOG && hold_stops(s->hold, space, mailbox))
			return STATUS_HOLD;
		s->latest = process;
		return translate_for(process, a, mailbox->reply);
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
		enum status status = new_space(s, process, a, mailbox->reply);
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
	case OP_ADOPT:
		if (!s->hold)
			fprintf(stderr, "bugnet: recording process %d; 'bugnet detach %d'%s lets it go\n",
			        s->root, s->root, isatty(0) ? " or ^C" : "");
		adopt_others(s, space, a[0]);
		return STATUS_OK;
	case OP_ADOPTED:
		wake_filters(s, namespace_resolve(process->pid, mailbox->tid), &a[0]);
		return STATUS_OK;
	case OP_UNFILTER:
		return put_filters_to_sleep(s, namespace_resolve(process->pid, mailbox->tid));
	case OP_FILTER:
		wake_filters(s, namespace_resolve(process->pid, mailbox->tid), NULL);
		return STATUS_OK;
	case OP_KNOW_ME:
		return STATUS_OK;
	case OP_EXIT:
		if (s->hold && process == debugged_process(s)) {
			struct hold_process held = held_process(process);
			return hold_exits(s->hold, &held);
		}
		finish_recording(process, &process->memory, false);
		if (process->pid == s->root)
			print_stats(s);
		return STATUS_OK;
	case OP_SAVE:
		return save_for(s, process, mailbox);
	case OP_LOG:
		return recorded_process_log(process->recorded, a[0], (unsigned)a[1]);
	case OP_CLEAR:
		return clear_memory(&process->memory, a[0], a[1]) ? STATUS_OK : STATUS_RELEASE;
	case OP_TIME:
		mailbox->reply[0] = read_clock(CLOCK_REALTIME);
		mailbox->reply[1] = read_clock(CLOCK_MONOTONIC);
		return STATUS_OK;
	case OP_LOW_MEMORY:
		return fold_memory(space);
	case OP_PAGES:
		return log_pages(space, &process->memory);
	case OP_COMPARE:
		return compare_loads(space, &process->memory, a);
	case OP_STEP:
		return space_single(space, &process->memory, a[0], mailbox->reply);
	case OP_HELD: {
		struct hold_process held = held_process(process);
		return s->hold ? hold_stands(s->hold, &held, mailbox) : STATUS_OK;
	}
	case OP_FEED:
	case OP_DIVERGED:
		break;
	}
	return STATUS_RELEASE;
}

static void put_off(struct supervisor *s, struct mailbox *mailbox, bool served)
{
	vector_push(&s->put_off, (struct put_off){mailbox->pid, mailbox, served});
}

static bool is_put_off(const struct supervisor *s, const struct mailbox *mailbox)
{
	for (uint32_t i = 0; i < s->put_off.count; i++) {
		if (s->put_off.items[i].mailbox == mailbox)
			return true;
	}
	return false;
}

/* Is it asked for code, which is to be asked for again when all code has gone? */
static bool wants_code(const struct mailbox *mailbox)
{
	return mailbox->operation == OP_TRANSLATE || mailbox->operation == OP_STEP;
}

/* Does it wait in the middle of something, and may come back to code that it was in? It must not wait for all
 * to be out. */
static bool is_amid(const struct mailbox *mailbox)
{
	return mailbox->operation == OP_UNFILTER || mailbox->operation == OP_FILTER;
}

/*
 * What could not be placed, or not be unlinked for lack of room, must not be run: there is an answer only
 * when the cache has been begun anew.
 */
static void answer(struct supervisor *s, struct process *process, struct mailbox *mailbox)
{
	if (process && process->space->exhausted && !is_amid(mailbox)) {
		switch (begin_anew(s, process->space)) {
		case ANEW_LATER:
			put_off(s, mailbox, !wants_code(mailbox));
			return;
		case ANEW_DONE:
			if (wants_code(mailbox))
				mailbox->status = serve_request(s, process, mailbox);
			break;
		case ANEW_NEVER:
			if (mailbox->operation == OP_PAGES)
				set_pages(process->space, false);
			if (mailbox->operation == OP_LOW_MEMORY || mailbox->operation == OP_COMPARE ||
			        mailbox->operation == OP_PAGES)
				mailbox->status = STATUS_RELEASE;
		}
	}
	__atomic_store_n(&mailbox->state, MAILBOX_REPLY, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&mailbox->sleeping, __ATOMIC_SEQ_CST))
		futex_wake(&mailbox->state);
}

static void serve_mailbox(struct supervisor *s, struct group *group, struct mailbox *mailbox)
{
	if (__atomic_load_n(&mailbox->state, __ATOMIC_ACQUIRE) != MAILBOX_REQUEST ||
	        (group->moving && group->moving != mailbox) || is_put_off(s, mailbox))
		return;
	if (!mailbox->pid && mailbox->forked)
		mailbox->pid = namespace_resolve(mailbox->parent, mailbox->forked);
	struct process *process = find_process(s, mailbox->pid);
	if (!process && mailbox->pid) {
		struct space *space = find_space(s, group, mailbox->space);
		if (space)
			process = add_process(s, mailbox->pid, group, space);
	}
	if (process && process->space->exhausted && wants_code(mailbox) &&
	        begin_anew(s, process->space) == ANEW_LATER) {
		put_off(s, mailbox, false);
		return;
	}
	if (process)
		recorded_process_asks(process->recorded, mailbox);
	uint64_t begin = nanoseconds();
	mailbox->status = process ? serve_request(s, process, mailbox) : STATUS_RELEASE;
	if (process)
		process->waited += nanoseconds() - begin;
	if (mailbox->status != STATUS_LATER)
		answer(s, process, mailbox);
}

static void serve_put_off(struct supervisor *s)
{
	/* They may be put off once more. */
	uint32_t count = s->put_off.count;
	struct put_off *items = s->put_off.items;

	memset(&s->put_off, 0, sizeof s->put_off);
	for (uint32_t i = 0; i < count; i++) {
		struct process *process = find_process(s, items[i].pid);
		if (!process)
			continue;
		if (!items[i].served)
			serve_mailbox(s, process->group, items[i].mailbox);
		else if (process->group->moving)
			vector_push(&s->put_off, items[i]);
		else
			answer(s, process, items[i].mailbox);
	}
	free(items);
}

/* Threads tell that they go on: they are to be watched again. */
static void watch_returned(struct supervisor *s, struct group *group)
{
	uint32_t returned = __atomic_load_n(&group->channel->returned, __ATOMIC_ACQUIRE);

	if (returned == group->returned)
		return;
	group->returned = returned;
	for (uint32_t i = 0; i < s->processes.count; i++) {
		if (s->processes.items[i]->group == group)
			recorded_process_look_now(s->processes.items[i]->recorded);
	}
}

/*
 * A thread waits for others to leave for which there is no room (expel_threads in target/request.c):
 * everybody is out of translated code once. One who does not come to a place for that in time is tried again.
 */
static void expel(struct supervisor *s, struct group *group)
{
	struct stragglers stragglers = {0};
	enum halt_outcome outcome = HALT_SAFE;

	for (uint32_t i = 0; i < s->processes.count; i++) {
		struct process *process = s->processes.items[i];
		struct evacuee evacuee = {process->pid, &process->memory, group->channel};
		struct evacuation *evacuation = NULL;
		if (process->group != group || !open_memory(process))
			continue;
		enum halt_outcome one =
		        evacuation_begin(&evacuation, process->space, &evacuee, 1, &stragglers);
		if (evacuation)
			evacuation_end(evacuation, &evacuee, 1);
		if (one == HALT_UNSAFE)
			outcome = one;
	}
	take_stragglers(s, &stragglers);
	if (outcome == HALT_UNSAFE) {
		group->doorbell--;
		return;
	}
	__atomic_store_n(&group->channel->expelling, 0, __ATOMIC_SEQ_CST);
	futex_wake(&group->channel->expelling);
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
	watch_returned(s, group);
	if (__atomic_load_n(&channel->expelling, __ATOMIC_SEQ_CST))
		expel(s, group);
	group_release(s, group);
	return true;
}

static bool serve_all(struct supervisor *s)
{
	bool served = serve_followed(s);

	serve_put_off(s);
	for (uint32_t i = s->groups.count; i-- > 0;) {
		if (i < s->groups.count)
			served |= serve_group(s, s->groups.items[i]);
	}
	uint32_t deaths = __atomic_load_n(&s->deaths, __ATOMIC_ACQUIRE);
	if (deaths != s->deaths_seen) {
		s->deaths_seen = deaths;
		bury_the_dead(s);
		serve_control(s);
		if (s->hold)
			serve_hold(s);
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
	if (asked_to_leave)
		return LEAVING_PAUSE_NANOSECONDS;
	uint64_t sleep = s->groups.count > MAX_WAITED ? QUIET_POLL_NANOSECONDS : IDLE_NANOSECONDS;

	if (s->followed.count || s->put_off.count)
		return EXEC_POLL_NANOSECONDS;
	uint64_t next = next_look(s), hold = s->hold ? hold_next_look(s->hold) : UINT64_MAX;
	if (hold < next)
		next = hold;
	if (next < now + sleep)
		sleep = next > now ? next - now : 0;
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

/* ---- leaving ---- */

static void ask_to_leave(int signal)
{
	(void)signal;
	asked_to_leave = 1;
}

/* Signals that end us let a program go that was running before. Only the thread that serves takes them. */
static void leave_at_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = ask_to_leave};

	for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		sigaction(numbers[i], &action, NULL);
}

/*
 * One round for everybody. True: it is over. Whoever cannot be let go in time is released when we end, as
 * after any death of a supervisor, with our memory in it.
 */
static bool leave_processes(struct supervisor *s, uint64_t now)
{
	struct stragglers stragglers = {0};

	if (!s->leaving_since)
		s->leaving_since = now;
	for (uint32_t i = s->processes.count; i-- > 0;) {
		struct process *process = s->processes.items[i];
		process->group->channel->detaining = DETAIN_LEAVING;
		struct hold_process held = held_process(process);
		hold_release(&held);
		if (!open_memory(process) ||
		        !detach_round(process->pid, &process->memory, process->space, &stragglers, false))
			continue;
		finish_recording(process, NULL, !memory_alive(&process->memory));
		s->root_left |= process->pid == s->root;
		remove_process(s, process);
	}
	take_stragglers(s, &stragglers);
	if (s->processes.count && now - s->leaving_since < LEAVING_NANOSECONDS)
		return false;
	for (uint32_t i = 0; i < s->processes.count; i++)
		finish_recording(s->processes.items[i], NULL, false);
	return true;
}

/* Nobody is here any more, or some cannot be let go. */
static void tell_leaver(struct supervisor *s)
{
	char wrong[128] = "";

	if (s->processes.count && s->root_left)
		snprintf(wrong, sizeof wrong,
		        "it is let go; but process %d, which it made, goes on with bugnet's memory in it",
		        s->processes.items[0]->pid);
	else if (s->processes.count && process_status(s->root, "Seccomp") > 0)
		snprintf(wrong, sizeof wrong,
		        "it restricts its own system calls (seccomp): it goes on natively, and bugnet's "
		        "memory stays "
		        "in it");
	else if (s->processes.count && process_is_stopped(s->root))
		snprintf(wrong, sizeof wrong,
		        "it is stopped; when it goes on it does so natively, and bugnet's memory stays in "
		        "it");
	else if (s->processes.count)
		snprintf(wrong, sizeof wrong,
		        "not all threads could be stopped: it goes on natively, and bugnet's memory stays in "
		        "it");
	else if (!s->root_left)
		snprintf(wrong, sizeof wrong, "it ended before it could be let go");
	if (s->leaver >= 0)
		control_answer(s->leaver, *wrong ? "error\n%s\n" : "ok\n", wrong);
	else if (s->processes.count)
		fprintf(stderr, "bugnet: process %d: %s\n", s->root, wrong);
	s->leaver = -1;
}

static void serve_until_alone(struct supervisor *s)
{
	uint64_t last = nanoseconds();

	while (s->processes.count || s->followed.count) {
		if (asked_to_leave && nanoseconds() >= s->next_leaving) {
			if (leave_processes(s, nanoseconds()))
				break;
			s->next_leaving = nanoseconds() + LEAVING_PAUSE_NANOSECONDS;
		}
		struct process *latest;
		uint64_t now;
		bool served = serve_all(s);
		now = nanoseconds();
		look_after_saves(s, now);
		look_after_costs(s, now);
		if (next_look(s) <= now)
			look_after_keyframes(s, now);
		look_after_hold(s, now);
		if (served || (!s->processes.count && !s->followed.count)) {
			last = now; /* and nobody waits for one who is alone */
		} else if ((latest = s->latest) && !latest->group->moving && !latest->space->exhausted &&
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
	tell_leaver(s);
}

static bool create_recorder(struct supervisor *s)
{
	char why[512];

	if (!s->options->record)
		return true;
	s->recorder = recorder_create(s->options->record, why, sizeof why);
	if (!s->recorder)
		fprintf(stderr, "bugnet record: %s\n", why);
	return s->recorder;
}

static bool start(struct supervisor *s)
{
	const struct supervisor_options *options = s->options;
	pthread_t watcher;

	/* What one process's space gave back, the next one's takes: not through the kernel each time. */
	mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	if (options->children)
		s->library = library_create();
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0 || pthread_create(&watcher, NULL, watch_deaths, s) != 0) {
		fprintf(stderr, "bugnet: cannot start the supervisor: %s%s\n", strerror(errno),
		        errno == ENOMEM || errno == EAGAIN ? "; see the limits in 'ulimit -a'" : "");
		return false;
	}
	if (options->record)
		begin_control(s);
	if (options->debugged)
		begin_hold(s);
	return true;
}

static int serve(struct supervisor *s)
{
	serve_until_alone(s);
	control_close(&s->control);
	if (s->recorder)
		recorder_destroy(s->recorder);
	hold_destroy(s->hold);
	print_stats(s);
	return recorder_any_failed() ? 1 : 0;
}

/*
 * A service manager that ends a program tells all its processes, us among them: we end with the program, when
 * what was recorded is saved.
 */
static void stay_at_signals(void)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
}

int supervise(pid_t pid, const struct supervisor_options *options, int ready_fd)
{
	struct supervisor s = {
	        .options = options, .root = pid, .control = {.fd = -1, .events = -1}, .leaver = -1};

	if (!create_recorder(&s) || !start(&s))
		return 1;
	if (options->record)
		stay_at_signals();
	follow(&s, pid);
	if (!s.followed.count && errno == ESRCH) {
		control_close(&s.control);
		return 1; /* killed before it came to its execve */
	}
	if (!s.followed.count) {
		control_close(&s.control);
		fprintf(stderr,
		        "bugnet: cannot trace the program: %s; 'bugnet doctor' tells whether this machine "
		        "permits it\n",
		        strerror(errno));
		return 1;
	}
	if (write(ready_fd, "", 1) != 1)
		return 1;
	close(ready_fd);
	return serve(&s);
}

/* What ended while it was being stopped, and whose tracer we are, nobody else can reap before us. */
static void reap(const struct stragglers *stragglers)
{
	for (uint32_t i = 0; i < stragglers->count; i++) {
		for (unsigned k = 0;
		        k < REAP_POLLS && waitpid(stragglers->items[i], NULL, __WALL | WNOHANG) == 0; k++)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

/* It could not even be stopped, because of `why`, or is not there any more. */
static int leave_alone(struct supervisor *s, const char *why)
{
	bool over = s->executed;

	/* One that was killed while we looked at it is over in a moment. */
	for (unsigned i = 0; !over && i < OVER_POLLS; i++) {
		over = process_is_over(s->root);
		if (!over)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	if (over)
		reap(&s->attachment.stragglers);
	else
		fprintf(stderr, "bugnet record: process %d: %s\n", s->root, why);
	vector_free(&s->attachment.stragglers);
	recorder_destroy(s->recorder);
	return over ? SUPERVISED_NOBODY : 1;
}

/*
 * No signal ends us while the program is stopped, with its own signals blocked. Up to then nothing is begun,
 * so that the caller can go on to another process.
 */
int supervise_running(pid_t pid, const struct supervisor_options *options)
{
	struct supervisor s = {
	        .options = options, .root = pid, .control = {.fd = -1, .events = -1}, .leaver = -1};
	struct memory memory;
	sigset_t all, old;
	char why[512] = "";

	if (!create_recorder(&s))
		return 1;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	bool stopped = stop_running(&s, &memory, why, sizeof why);
	bool started = stopped && start(&s);
	if (started)
		leave_at_signals();
	bool taken = started && take_over_running(&s, &memory, why, sizeof why);
	if (stopped && !taken)
		attachment_abandon(&s.attachment);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (!stopped)
		return leave_alone(&s, why);
	take_stragglers(&s, &s.attachment.stragglers);
	if (taken)
		return serve(&s);
	control_close(&s.control);
	recorder_destroy(s.recorder);
	if (started)
		fprintf(stderr, "bugnet record: process %d: %s\n", pid, why);
	return 1;
}
