#include "record/keyframes.h"

#include <unistd.h>

#include "record/namespace.h"

/* How far apart looks at a thread are: as long as it takes to the end of the interval at least, within these.
 */
#define LOOK_LEAST   250000
#define LOOK_MOST    100000000
/*
 * No thread needs less for an instruction, in ns. What it needed lately says nothing: it may have waited for
 * a processor then, and have one to itself now.
 */
#define PACE         0.25
/* One that does not run, or was not where it can be fetched, is tried again later and later, up to this; */
#define QUIET_MOST   10000000
#define REFUSED_MOST 1000000000 /* where it may not be stopped, to this. */
/* One that comes by often is not later than this part of the interval, or this many instructions. */
#define LATE_SHARE   8
#define LATE_MOST    100000

struct slots {
	uint64_t words[SLOT_POSITIONS + POSITION_SLOTS];
};

/* What a running thread has in its slots: good enough to tell how far it is, roughly, and whether it waits.
 */
static bool read_slots(
        const struct keyframe_process *process, unsigned number, uint64_t *position, uint32_t *parked)
{
	const struct space *space = process->space;
	uint64_t distance = space_info(space, 0)->distances[number];
	struct slots slots;

	*position = 0;
	for (unsigned i = 0; i < space->segment_count; i++) {
		uint64_t at = space->segments[i].layout.base + LAYOUT_THREADS + distance;
		if (pread(process->memory->mem_fd, &slots, sizeof slots, (off_t)at) != sizeof slots)
			return false;
		*position += slots.words[SLOT_POSITION];
		for (unsigned k = 0; k < POSITION_SLOTS; k++)
			*position += slots.words[SLOT_POSITIONS + k];
		if (i == 0)
			*parked = (uint32_t)slots.words[THREAD_PARKED / 8];
	}
	return true;
}

/* An instruction that the stub performs, such as a system call, is counted before it is executed. */
bool keyframes_place(
        const struct keyframe_process *process, unsigned number, uint64_t *position, uint32_t *parked)
{
	if (!read_slots(process, number, position, parked))
		return false;
	*position -= *position > 0 && *parked && *parked != PARKED_HELD;
	return true;
}

bool keyframes_waits(const struct keyframe_process *process, unsigned number, uint64_t *position)
{
	uint32_t parked;

	return keyframes_place(process, number, position, &parked) && parked;
}

/* Nanoseconds until its interval is over, at least; 0: it is. */
static uint64_t time_left(const struct keyframe_process *process, const struct log *log, uint64_t position)
{
	uint64_t left = recorder_keyframe_in(process->recorder, log);
	uint64_t due = __atomic_load_n(&log->due, __ATOMIC_RELAXED);

	if (position >= due)
		return 0;
	double expected = (double)(due - position) * PACE;
	return expected < (double)left ? (uint64_t)expected + 1 : left;
}

static uint64_t within(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* Has it been nowhere since its interval was over where it would have made a keyframe? */
static bool is_late(const struct log *log, uint64_t position)
{
	uint64_t due = __atomic_load_n(&log->due, __ATOMIC_RELAXED);
	uint64_t interval = due - __atomic_load_n(&log->keyframe, __ATOMIC_RELAXED);

	return position >= due && position - due >= within(interval / LATE_SHARE, 0, LATE_MOST);
}

/* Takes a thread out of translated code to where it makes a keyframe. HALT_SAFE: so it will. */
static enum halt_outcome fetch(
        const struct keyframe_process *process, pid_t tid, struct stragglers *stragglers)
{
	struct halted thread;
	bool moved = false;

	enum halt_outcome outcome = tid ? halt_stop(&thread, tid, process->memory, stragglers) : HALT_GONE;
	if (outcome != HALT_SAFE)
		return outcome;
	if (!thread.stopped)
		halt_settle(process->space, &thread, process->space->header.fetched, &moved);
	halt_let_go(&thread, stragglers);
	return moved ? HALT_SAFE : HALT_UNSAFE;
}

/*
 * Its interval is over: it is asked for a keyframe, and fetched if it does not come. Tells how long to wait
 * until the next look.
 */
static uint64_t call_in(const struct keyframe_process *process, struct keyframe_thread *thread,
        struct log *log, uint64_t position, bool waits, struct stragglers *stragglers)
{
	bool asked = __atomic_load_n(&log->wanted, __ATOMIC_RELAXED),
	     runs = !waits && position > thread->position;
	enum halt_outcome outcome = HALT_UNSAFE;

	if (!asked)
		recorder_ask_keyframe(process->recorder, log);
	if (runs && (asked || is_late(log, position)))
		outcome = fetch(process, namespace_resolve(process->pid, log->tid), stragglers);
	thread->patience = asked && outcome != HALT_SAFE
	                           ? within(2 * thread->patience, LOOK_LEAST,
	                                     outcome == HALT_REFUSED ? REFUSED_MOST : QUIET_MOST)
	                           : LOOK_LEAST;
	return thread->patience;
}

/* Nobody looks at a thread that is in a system call, until it tells that it has come back (log.unwatched). */
static bool leave_alone(const struct keyframe_process *process, unsigned number, struct log *log)
{
	uint64_t position;
	uint32_t parked;

	__atomic_store_n(&log->unwatched, 1, __ATOMIC_SEQ_CST);
	if (read_slots(process, number, &position, &parked) && parked)
		return true;
	__atomic_store_n(&log->unwatched, 0, __ATOMIC_SEQ_CST);
	return false;
}

static void look_at(const struct keyframe_process *process, struct keyframe_thread *thread, unsigned number,
        struct log *log, uint64_t now, struct stragglers *stragglers)
{
	uint32_t parked;
	uint64_t position;

	if (thread->id != log->id)
		*thread = (struct keyframe_thread){.id = log->id};
	if (!read_slots(process, number, &position, &parked)) {
		recorder_look_at(process->recorder, log, 0, false);
		return;
	}
	recorder_look_at(process->recorder, log, position, parked);
	uint64_t left = time_left(process, log, position);
	uint64_t wait = left ? within(left, LOOK_LEAST, LOOK_MOST)
	                     : call_in(process, thread, log, position, parked, stragglers);
	thread->unwatched = parked == PARKED_CALLING && leave_alone(process, number, log);
	if (thread->unwatched)
		wait = LOOK_MOST;
	thread->next = now + wait;
	thread->position = position;
}

static bool has_come_back(const struct keyframe_thread *thread, const struct log *log)
{
	return thread->unwatched && !__atomic_load_n(&log->unwatched, __ATOMIC_RELAXED);
}

void keyframes_look(struct keyframe_watch *watch, const struct keyframe_process *process, uint64_t now,
        struct stragglers *stragglers)
{
	recorder_look_begins(process->recorder);
	watch->next = now + LOOK_MOST;
	for (unsigned i = 1; i < logs_end(process->logs, process->numbers); i++) {
		struct keyframe_thread *thread = &watch->threads[i];
		struct log *log = (struct log *)(process->logs + log_offset(i));
		if (!log->tid)
			continue;
		if (now >= thread->next || thread->id != log->id || has_come_back(thread, log))
			look_at(process, thread, i, log, now, stragglers);
		if (thread->next < watch->next)
			watch->next = thread->next;
	}
	recorder_look_ends(process->recorder);
}
