#include "record/hold.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include "record/attach.h"
#include "record/namespace.h"
#include "record/vector.h"

#define FETCH_EVERY 1000000 /* ns: threads that run on are stopped */
#define PATIENCE    50      /* looks, after which a system call that cannot be ended is let alone */

struct hold {
	int fd;
	bool holding;     /* all are to stand still, and that was not told yet */
	bool standing;    /* it was */
	bool exits;       /* a thread is about to end the process */
	bool ended;       /* and nobody will hear more of it */
	uint32_t stepped; /* id of the thread that executes one instruction, and has to come back first; or
	                     HOLD_NOBODY */
	bool others;      /* run meanwhile */
	uint32_t only;    /* the one that was let go, alone: nobody else's reason is told; or HOLD_NOBODY */
	uint64_t next_look;
	unsigned looks; /* since they were to */
	uint64_t *stops;
	uint32_t stop_count;
	uint32_t passed; /* the thread with this id goes on from the stop that it was told of, */
	uint64_t passed_position;
};

/* ---- mailboxes ---- */

static struct mailbox *find_held(const struct hold_process *process, uint32_t id, uint32_t operation)
{
	struct channel *channel = process->channel;

	for (uint32_t i = 0; i < channel->mailbox_high; i++) {
		struct mailbox *mailbox = &channel->mailboxes[i];
		if (mailbox->pid == process->pid && mailbox->operation == operation &&
		        (id == HOLD_NOBODY || mailbox->log == id) &&
		        __atomic_load_n(&mailbox->state, __ATOMIC_ACQUIRE) == MAILBOX_REQUEST)
			return mailbox;
	}
	return NULL;
}

static void answer(struct mailbox *mailbox, uint64_t reply)
{
	mailbox->status = STATUS_OK;
	mailbox->reply[0] = reply;
	__atomic_store_n(&mailbox->state, MAILBOX_REPLY, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&mailbox->sleeping, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &mailbox->state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* All that stand still, but for one of them. */
static void answer_all(const struct hold_process *process, uint32_t but)
{
	struct channel *channel = process->channel;

	for (uint32_t i = 0; i < channel->mailbox_high; i++) {
		struct mailbox *mailbox = &channel->mailboxes[i];
		if (mailbox->pid == process->pid && mailbox->operation == OP_HELD && mailbox->log != but &&
		        __atomic_load_n(&mailbox->state, __ATOMIC_ACQUIRE) == MAILBOX_REQUEST)
			answer(mailbox, HELD_GO);
	}
}

void hold_release(const struct hold_process *process)
{
	answer_all(process, HOLD_NOBODY);
}

/* ---- telling ---- */

static void tell(const struct hold *hold, const void *what, size_t size)
{
	/* Who has gone hears nothing: see hold_serve. */
	if (hold->fd >= 0 && send(hold->fd, what, size, MSG_NOSIGNAL) < 0)
		return;
}

static enum hold_reason reason_of(uint64_t why)
{
	switch (why) {
	case HELD_AT_STOP:
		return HOLD_AT_STOP;
	case HELD_SIGNAL:
		return HOLD_SIGNAL;
	case HELD_STEPPED:
		return HOLD_STEPPED;
	default:
		return HOLD_WANTED;
	}
}

/* Whose reason counts: signals are told first, as they are only told once. */
static struct mailbox *find_reason(const struct hold_process *process, uint32_t only)
{
	static const uint64_t order[] = {HELD_SIGNAL, HELD_AT_STOP, HELD_STEPPED};
	struct channel *channel = process->channel;

	for (unsigned k = 0; k < sizeof order / sizeof *order; k++) {
		for (uint32_t i = 0; i < channel->mailbox_high; i++) {
			struct mailbox *mailbox = &channel->mailboxes[i];
			if (mailbox->pid == process->pid && mailbox->operation == OP_HELD &&
			        (only == HOLD_NOBODY || mailbox->log == only) &&
			        mailbox->arguments[0] == order[k] &&
			        __atomic_load_n(&mailbox->state, __ATOMIC_ACQUIRE) == MAILBOX_REQUEST)
				return mailbox;
		}
	}
	return NULL;
}

static void tell_standing(
        struct hold *hold, const struct hold_process *process, const struct process_places *places)
{
	struct hold_event event = {.kind = HOLD_STANDS, .thread = HOLD_NOBODY, .pid = process->pid};
	struct mailbox *mailbox = find_reason(process, hold->only);

	if (mailbox) {
		event.reason = reason_of(mailbox->arguments[0]);
		event.thread = mailbox->log;
		event.signal = (uint32_t)mailbox->arguments[1];
		mailbox->arguments[0] = HELD_WANTED; /* told */
		if (event.reason == HOLD_AT_STOP) {
			hold->passed = mailbox->log;
			hold->passed_position = mailbox->instructions;
		}
	}
	for (uint32_t i = 0; i < places->count; i++)
		event.threads[event.thread_count++] = (struct hold_thread){
		        places->items[i].id, places->items[i].tid, places->items[i].position};
	hold->holding = false;
	hold->standing = true;
	hold->stepped = HOLD_NOBODY;
	hold->others = false;
	hold->next_look = UINT64_MAX;
	tell(hold, &event,
	        offsetof(struct hold_event, threads) + event.thread_count * sizeof event.threads[0]);
}

static void tell_end(struct hold *hold, pid_t pid, bool waits)
{
	struct hold_event event = {.kind = HOLD_ENDS, .thread = HOLD_NOBODY, .pid = pid, .waits = waits};

	if (hold->ended)
		return;
	hold->ended = true;
	hold->holding = false;
	hold->next_look = UINT64_MAX;
	tell(hold, &event, offsetof(struct hold_event, threads));
}

void hold_ended(struct hold *hold, pid_t pid)
{
	tell_end(hold, pid, false);
}

/* ---- standing still ---- */

static void begin_holding(struct hold *hold, const struct hold_process *process)
{
	if (hold->holding || hold->standing)
		return;
	hold->holding = true;
	hold->next_look = hold->looks = 0;
	__atomic_fetch_or(&process->channel->detaining, DETAIN_HOLDING, __ATOMIC_SEQ_CST);
}

/*
 * Takes a thread out of translated code, or of a system call, to where it stands still. A call that has done
 * nothing yet is made again when it goes on; meanwhile it must not take what is typed for the debugger.
 */
static void fetch(const struct hold_process *process, pid_t tid, struct stragglers *stragglers)
{
	const struct space *space = process->space;
	struct user_regs_struct r;
	struct halted thread;
	bool moved;

	if (!tid || halt_stop(&thread, tid, process->memory, stragglers) != HALT_SAFE)
		return;
	thread.further = true;
	if (thread.stopped || thread.signal || ptrace(PTRACE_GETREGS, tid, 0, &r) < 0)
		; /* another time */
	else if (attached_is_calling(space, &r))
		halt_put(space, &thread, space->header.withdrawn);
	else
		halt_settle(space, &thread, space->header.resume, &moved);
	halt_let_go(&thread, stragglers);
}

/* It waits for a child of vfork. */
static bool is_absent(const struct hold_process *process, uint32_t id)
{
	for (uint32_t i = 0; i < process->channel->mailbox_high; i++) {
		const struct mailbox *mailbox = &process->channel->mailboxes[i];
		if (mailbox->pid == process->pid && mailbox->log == id &&
		        __atomic_load_n(&mailbox->absent, __ATOMIC_SEQ_CST))
			return true;
	}
	return false;
}

static bool stands(
        const struct hold *hold, const struct hold_process *process, const struct process_place *place)
{
	if (find_held(process, place->id, OP_HELD))
		return true;
	if (place->id == hold->stepped)
		return false;
	return (place->calls && hold->looks > PATIENCE) || is_absent(process, place->id);
}

void hold_look(
        struct hold *hold, const struct hold_process *process, uint64_t now, struct stragglers *stragglers)
{
	struct process_places places;
	bool all = true;

	if (!hold->holding || hold->others || now < hold->next_look)
		return;
	recorded_process_places(process->recorded, process->memory, &places);
	for (uint32_t i = 0; i < places.count; i++) {
		if (stands(hold, process, &places.items[i]))
			continue;
		all = false;
		if ((places.items[i].runs || places.items[i].calls) && hold->stepped == HOLD_NOBODY)
			fetch(process, namespace_resolve(process->pid, places.items[i].tid), stragglers);
	}
	hold->next_look = now + FETCH_EVERY;
	hold->looks++;
	if (!all)
		return;
	if (hold->exits) {
		recorded_process_finish(process->recorded, NULL, false);
		tell_end(hold, process->pid, true);
	} else if (places.count) {
		tell_standing(hold, process, &places);
	}
}

uint64_t hold_next_look(const struct hold *hold)
{
	return hold->holding && !hold->others ? hold->next_look : UINT64_MAX;
}

enum status hold_stands(struct hold *hold, const struct hold_process *process, struct mailbox *mailbox)
{
	bool reason = mailbox->arguments[0] != HELD_WANTED || mailbox->log == hold->stepped;

	if (mailbox->arguments[0] == HELD_SIGNAL)
		__atomic_fetch_and(&process->channel->detaining, ~DETAIN_SIGNAL, __ATOMIC_SEQ_CST);
	/* Another one executes a single instruction, or all were let go meanwhile. */
	if (!reason && !hold->standing && (hold->others || !hold->holding)) {
		mailbox->reply[0] = HELD_GO;
		return STATUS_OK;
	}
	if (reason) {
		hold->others = false;
		hold->stepped = HOLD_NOBODY;
		begin_holding(hold, process);
	}
	hold->next_look = 0;
	return STATUS_LATER;
}

enum status hold_exits(struct hold *hold, const struct hold_process *process)
{
	hold->exits = true;
	hold->others = false;
	hold->stepped = HOLD_NOBODY;
	if (hold->ended)
		return STATUS_OK;
	begin_holding(hold, process);
	hold->next_look = 0;
	return STATUS_LATER;
}

bool hold_stops(struct hold *hold, const struct space *space, const struct mailbox *mailbox)
{
	uint64_t pc = mailbox->arguments[0];

	if (!space_is_stop(space, pc) ||
	        (mailbox->log == hold->passed && mailbox->instructions == hold->passed_position))
		return false;
	for (uint32_t i = 0; i < hold->stop_count; i++) {
		if (hold->stops[i] == pc)
			return true;
	}
	return false;
}

/* ---- what the debugger asks for ---- */

static bool is_wanted(const struct hold *hold, uint64_t pc)
{
	for (uint32_t i = 0; i < hold->stop_count; i++) {
		if (hold->stops[i] == pc)
			return true;
	}
	return false;
}

/* gdb takes breakpoints out to step, so that what was made for them stays then. */
static void set_stops(
        struct hold *hold, struct space *space, const struct hold_request *request, bool all_run)
{
	hold->stop_count = request->stop_count < HOLD_STOPS ? request->stop_count : HOLD_STOPS;
	memcpy(hold->stops, request->stops, hold->stop_count * sizeof *hold->stops);
	for (uint32_t i = space->stops.count; all_run && i-- > 0;) {
		if (!is_wanted(hold, space->stops.items[i]))
			space_stop(space, space->stops.items[i], false);
	}
	for (uint32_t i = 0; i < hold->stop_count; i++)
		space_stop(space, hold->stops[i], true);
}

static void end_it(struct hold *hold, const struct hold_process *process)
{
	struct mailbox *mailbox;

	while ((mailbox = find_held(process, HOLD_NOBODY, OP_EXIT)))
		answer(mailbox, 0);
	hold->standing = false;
}

static void go(struct hold *hold, const struct hold_process *process, const struct hold_request *request)
{
	struct process_places places;
	struct mailbox *mailbox;

	if (hold->exits) {
		end_it(hold, process);
		return;
	}
	if (!hold->standing)
		return;
	hold->only = request->thread != HOLD_NOBODY && !request->others ? request->thread : HOLD_NOBODY;
	mailbox = find_reason(process, hold->only);
	if (mailbox && mailbox->arguments[0] == HELD_SIGNAL) {
		recorded_process_places(process->recorded, process->memory, &places);
		tell_standing(hold, process, &places);
		return;
	}
	bool step = request->thread != HOLD_NOBODY;
	set_stops(hold, process->space, request, !step || request->others);
	space_info(process->space, 0)->passed_signals = request->passed;
	hold->standing = false;
	hold->holding = step;
	hold->stepped = request->thread;
	hold->others = step && request->others;
	hold->next_look = 0;
	if (!step)
		__atomic_fetch_and(&process->channel->detaining, ~DETAIN_HOLDING, __ATOMIC_SEQ_CST);
	if (step && (mailbox = find_held(process, request->thread, OP_HELD)))
		answer(mailbox, HELD_STEP);
	if (!step || request->others)
		answer_all(process, request->thread);
}

/* One that waits stands before its system call. */
static void read_state(
        const struct hold_process *process, const struct process_place *place, struct hold_registers *state)
{
	uint64_t record = process->space->segments[0].layout.base + LAYOUT_THREADS + place->distance;
	int fd = process->memory->mem_fd;

	if (pread(fd, &state->registers, sizeof state->registers, (off_t)(record + THREAD_REGS)) !=
	                (ssize_t)sizeof state->registers ||
	        pread(fd, &state->gs_base, 8, (off_t)(record + 8 * SLOT_PROGRAM_GS)) != 8 ||
	        pread(fd, &state->fs_base, 8, (off_t)(record + 8 * SLOT_FS_BASE)) != 8)
		return;
	if (place->calls) {
		state->registers.pc -= 2; /* as long as any instruction that makes one */
	} else {
		state->xsave_size = VECTORS_BYTES;
		memcpy(state->xsave, place->vectors, VECTORS_BYTES);
	}
	state->position = place->position;
	state->known = true;
}

static void tell_registers(struct hold *hold, const struct hold_process *process, uint32_t id)
{
	struct hold_registers state = {.kind = HOLD_REGISTERS_ARE};
	struct process_places places = {0};

	if (!hold->ended)
		recorded_process_places(process->recorded, process->memory, &places);
	for (uint32_t i = 0; i < places.count; i++) {
		if (places.items[i].id == id)
			read_state(process, &places.items[i], &state);
	}
	tell(hold, &state, sizeof state);
}

static void tell_saved(void *argument, const struct save_outcome *outcome)
{
	struct hold *hold = argument;
	struct hold_saved saved = {.kind = HOLD_SAVED};

	if (outcome->error.status)
		recording_error_text(&outcome->error, saved.why, sizeof saved.why);
	tell(hold, &saved, sizeof saved);
}

static void save(struct hold *hold, const struct hold_process *process, const struct hold_request *request)
{
	struct save_wish wish = {.reason = {.kind = "debugger",
	                                 .text = "looked back at while it ran",
	                                 .path = request->path,
	                                 .thread = THREAD_NO_PARENT},
	        .client = -1,
	        .still = true,
	        .done = tell_saved,
	        .argument = hold};
	struct hold_saved refused = {.kind = HOLD_SAVED, .why = "it is not recorded any more"};

	if (hold->ended || !recorded_process_save(process->recorded, &wish))
		tell(hold, &refused, sizeof refused);
}

bool hold_serve(struct hold *hold, const struct hold_process *process, bool *leave)
{
	static struct hold_request request;
	ssize_t size;

	*leave = false;
	while ((size = recv(hold->fd, &request, sizeof request, MSG_DONTWAIT)) > 0) {
		if (size < (ssize_t)offsetof(struct hold_request, stops))
			continue;
		switch ((enum hold_asks)request.kind) {
		case HOLD_STOP:
			if (!hold->standing && !hold->ended) {
				hold->stepped = HOLD_NOBODY;
				hold->others = false;
				begin_holding(hold, process);
				hold->next_look = 0;
			}
			break;
		case HOLD_GO:
			go(hold, process, &request);
			break;
		case HOLD_REGISTERS:
			tell_registers(hold, process, request.thread);
			break;
		case HOLD_SAVE:
			save(hold, process, &request);
			break;
		case HOLD_LEAVE:
			*leave = true;
			break;
		}
	}
	return size < 0 && (errno == EAGAIN || errno == EINTR);
}

/* ---- begin and end ---- */

struct hold *hold_create(int fd)
{
	struct hold *hold = calloc(1, sizeof *hold);

	if (!hold)
		abort();
	*hold = (struct hold){.fd = fd,
	        .stepped = HOLD_NOBODY,
	        .only = HOLD_NOBODY,
	        .passed = HOLD_NOBODY,
	        .next_look = UINT64_MAX};
	hold->stops = calloc(HOLD_STOPS, sizeof *hold->stops);
	if (!hold->stops)
		abort();
	return hold;
}

void hold_destroy(struct hold *hold)
{
	if (!hold)
		return;
	close(hold->fd);
	free(hold->stops);
	free(hold);
}

void hold_begin(struct hold *hold, const struct hold_process *process)
{
	struct info *info = space_info(process->space, 0);

	process->space->whole_state = true;
	info->debugged = 1;
	info->passed_signals = 0;
	begin_holding(hold, process);
}
