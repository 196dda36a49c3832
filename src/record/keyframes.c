#include "record/keyframes.h"

#include <unistd.h>

#include "record/namespace.h"

/* How far apart looks at a thread are: as long as it takes to the end of the interval, within these. */
#define LOOK_LEAST     1000000
#define LOOK_MOST      100000000
/* A thread that is due is given so long to come by itself, and longer each time when it cannot be fetched. */
#define PATIENCE_LEAST 1000000
#define PATIENCE_MOST  1000000000
#define PACE_BEFORE    0.25 /* of a thread that has not been seen to run */

struct slots {
	uint64_t words[SLOT_POSITIONS + POSITION_SLOTS];
};

/* What a running thread has in its slots: good enough to tell how far it is, roughly, and whether it waits.
 */
static bool read_slots(
        const struct keyframe_process *process, unsigned number, uint64_t *position, bool *parked)
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

/* Nanoseconds until its interval is over, as far as can be told; 0: it is. */
static uint64_t time_left(const struct keyframe_process *process, const struct keyframe_thread *thread,
        const struct log *log, uint64_t position)
{
	uint64_t left = recorder_keyframe_in(process->recorder, log), executed = position - log->keyframe;

	/* Read while the thread makes one, the two may be from before and after it. */
	if ((int64_t)executed < 0)
		executed = 0;
	if (executed >= process->interval)
		return 0;
	double expected = (double)(process->interval - executed) * thread->pace;
	return expected < (double)left ? (uint64_t)expected : left;
}

static uint64_t within(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* Takes a thread out of translated code to where it makes a keyframe. */
static void fetch(const struct keyframe_process *process, pid_t tid, struct stragglers *stragglers)
{
	struct halted thread;
	bool moved;

	if (!tid || halt_stop(&thread, tid, process->memory, stragglers) != HALT_SAFE)
		return;
	if (!thread.stopped)
		halt_settle(process->space, &thread, process->space->header.fetched, &moved);
	halt_let_go(&thread, stragglers);
}

static void look_at(const struct keyframe_process *process, struct keyframe_thread *thread, unsigned number,
        struct log *log, uint64_t now, struct stragglers *stragglers)
{
	bool parked, asked = __atomic_load_n(&log->wanted, __ATOMIC_RELAXED);
	uint64_t position;

	if (thread->id != log->id || !thread->time)
		*thread = (struct keyframe_thread){.id = log->id, .pace = PACE_BEFORE};
	if (!read_slots(process, number, &position, &parked))
		return;
	bool runs = position > thread->position;
	if (runs && thread->time)
		thread->pace = (double)(now - thread->time) / (double)(position - thread->position);
	uint64_t left = time_left(process, thread, log, position);
	if (!asked || left)
		thread->patience = PATIENCE_LEAST;
	else
		thread->patience =
		        within(2 * thread->patience, PATIENCE_LEAST, runs ? PATIENCE_MOST : LOOK_MOST);
	if (left == 0 && !asked)
		log->wanted = 1;
	else if (left == 0 && runs && !parked)
		fetch(process, namespace_resolve(process->pid, log->tid), stragglers);
	thread->next = now + (parked             ? LOOK_MOST
	                             : left == 0 ? thread->patience
	                                         : within(left, LOOK_LEAST, LOOK_MOST));
	thread->position = position;
	thread->time = now;
}

void keyframes_look(struct keyframe_watch *watch, const struct keyframe_process *process, uint64_t now,
        struct stragglers *stragglers)
{
	watch->next = now + LOOK_MOST;
	for (unsigned i = 1; i < MAX_RECORDED_THREADS; i++) {
		struct log *log = (struct log *)(process->logs + i * LOG_STRIDE);
		if (!log->tid)
			continue;
		if (now >= watch->threads[i].next || watch->threads[i].id != log->id)
			look_at(process, &watch->threads[i], i, log, now, stragglers);
		if (watch->threads[i].next < watch->next)
			watch->next = watch->threads[i].next;
	}
}
