/*
 * All are stopped, and those in translated code put at the stub's resume. When one is
 * somewhere else in the stub they are all let go and stopped again.
 */
#include "record/evacuate.h"

#include <stdlib.h>
#include <time.h>

#include "record/namespace.h"
#include "record/vector.h"

#define ATTEMPTS          500
#define PAUSE_NANOSECONDS 1000000

struct evacuation {
	const struct space *space;
	VECTOR(struct halted) threads;
	struct stragglers *stragglers;
};

/* ---- stopping ---- */

static bool is_stopped(const struct evacuation *evacuation, pid_t tid)
{
	for (uint32_t i = 0; i < evacuation->threads.count; i++) {
		if (evacuation->threads.items[i].tid == tid)
			return true;
	}
	return false;
}

static enum halt_outcome stop(struct evacuation *evacuation, const struct evacuee *process, pid_t tid)
{
	struct halted thread;
	enum halt_outcome outcome = halt_stop(&thread, tid, process->memory, evacuation->stragglers);

	if (outcome == HALT_SAFE)
		vector_push(&evacuation->threads, thread);
	return outcome;
}

/* Everybody with a mailbox; threads that start meanwhile are found by looking until there are no more. */
static enum halt_outcome stop_process(struct evacuation *evacuation, const struct evacuee *process)
{
	const struct channel *channel = process->channel;
	bool found;

	do {
		found = false;
		uint32_t high = __atomic_load_n(&channel->mailbox_high, __ATOMIC_ACQUIRE);
		for (uint32_t i = 0; i < high; i++) {
			const struct mailbox *mailbox = &channel->mailboxes[i];
			if (__atomic_load_n(&mailbox->state, __ATOMIC_ACQUIRE) == MAILBOX_FREE ||
			        mailbox->pid != process->pid ||
			        __atomic_load_n(&mailbox->absent, __ATOMIC_SEQ_CST))
				continue;
			if (!mailbox->tid)
				return HALT_UNSAFE; /* it is just being made */
			pid_t tid = namespace_resolve(process->pid, mailbox->tid);
			if (!tid || is_stopped(evacuation, tid))
				continue;
			switch (stop(evacuation, process, tid)) {
			case HALT_REFUSED:
				return HALT_REFUSED;
			case HALT_SAFE:
				found = true;
			default:
				break;
			}
		}
	} while (found);
	return HALT_SAFE;
}

/* ---- all together ---- */

static void let_go(struct evacuation *evacuation)
{
	for (uint32_t i = 0; i < evacuation->threads.count; i++)
		halt_let_go(&evacuation->threads.items[i], evacuation->stragglers);
	evacuation->threads.count = 0;
}

static enum halt_outcome attempt(
        struct evacuation *evacuation, const struct evacuee *evacuees, unsigned count)
{
	const struct space *space = evacuation->space;
	enum halt_outcome outcome = HALT_SAFE;
	bool moved;

	for (unsigned i = 0; i < count && outcome == HALT_SAFE; i++)
		outcome = stop_process(evacuation, &evacuees[i]);
	for (uint32_t i = 0; i < evacuation->threads.count && outcome == HALT_SAFE; i++)
		outcome = halt_settle(space, &evacuation->threads.items[i], space->header.resume, &moved);
	for (uint32_t i = 0; i < evacuation->threads.count && outcome == HALT_SAFE; i++)
		halt_mend_x87(space, &evacuation->threads.items[i]);
	return outcome;
}

static void set_evacuating(const struct evacuee *evacuees, unsigned count, uint32_t value)
{
	for (unsigned i = 0; i < count; i++)
		__atomic_store_n(&evacuees[i].channel->evacuating, value, __ATOMIC_SEQ_CST);
}

enum halt_outcome evacuation_begin(struct evacuation **begun, const struct space *space,
        const struct evacuee *evacuees, unsigned count, struct stragglers *stragglers)
{
	struct evacuation *evacuation = calloc(1, sizeof *evacuation);
	enum halt_outcome outcome = HALT_UNSAFE;

	if (!evacuation)
		abort();
	evacuation->space = space;
	evacuation->stragglers = stragglers;
	/* One that did not stop in time is still on its way to that. */
	for (unsigned i = 0; i < ATTEMPTS && outcome == HALT_UNSAFE && !stragglers->count; i++) {
		set_evacuating(evacuees, count, 1);
		outcome = attempt(evacuation, evacuees, count);
		if (outcome == HALT_SAFE) {
			*begun = evacuation;
			return outcome;
		}
		set_evacuating(evacuees, count, 0);
		let_go(evacuation);
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOSECONDS}, NULL);
	}
	vector_free(&evacuation->threads);
	free(evacuation);
	return stragglers->count ? HALT_UNSAFE : outcome;
}

void evacuation_end(struct evacuation *evacuation, const struct evacuee *evacuees, unsigned count)
{
	set_evacuating(evacuees, count, 0);
	let_go(evacuation);
	vector_free(&evacuation->threads);
	free(evacuation);
}
