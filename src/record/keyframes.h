/*
 * When threads make keyframes. A thread makes one by itself where it comes to the stub and
 * finds that it is time. One that does not come by, because it needs no new code, loads
 * nothing new and makes no system call, is fetched: stopped for a moment in translated code and
 * put where it makes one.
 */
#ifndef BUGNET_RECORD_KEYFRAMES_H
#define BUGNET_RECORD_KEYFRAMES_H

#include "record/halt.h"
#include "record/recorder.h"

struct keyframe_thread {
	uint32_t id;       /* in the recording */
	uint64_t position; /* when it was last looked at */
	uint64_t next;     /* when to look again; */
	bool unwatched;    /* or when it tells that it goes on */
	uint64_t patience; /* how long to wait for it to come by itself */
};

/* The threads of the recorded process. All zero to begin with. */
struct keyframe_watch {
	struct keyframe_thread threads[MAX_RECORDED_THREADS];
	uint64_t next; /* when to look again; times are of CLOCK_MONOTONIC, in ns */
};

struct keyframe_process {
	pid_t pid;
	const struct memory *memory;
	const struct space *space;
	uint8_t *logs; /* by thread number, see log_offset */
	unsigned numbers;
	struct recorder *recorder;
};

/*
 * How far the thread with this number is, if it waits, in a system call or for the supervisor: it has
 * executed everything before `position`. False: it runs, or nobody can tell.
 */
bool keyframes_waits(const struct keyframe_process *process, unsigned number, uint64_t *position);

/* Where it is, about, whatever it does, and thread.parked. False: nobody can tell. */
bool keyframes_place(
        const struct keyframe_process *process, unsigned number, uint64_t *position, uint32_t *parked);

/* To be called when it is time (watch->next). */
void keyframes_look(struct keyframe_watch *watch, const struct keyframe_process *process, uint64_t now,
        struct stragglers *stragglers);

#endif
