#include "debug/live.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/why.h"

#define LOOK_MS 20 /* how often it is looked for a user who wants it to stop */

/* The largest packet there is. */
union packet {
	uint32_t kind;
	struct hold_event event;
	struct hold_registers registers;
	struct hold_saved saved;
};

static void ended(struct live *live)
{
	live->state = LIVE_ENDED;
	live->last.thread_count = 0;
}

/* What is told without being asked for. */
static void take_event(struct live *live, const struct hold_event *event)
{
	live->last = *event;
	if (event->kind == HOLD_ENDS) {
		live->state = event->waits ? LIVE_ENDS : LIVE_ENDED;
		live->last.thread_count = 0;
	}
}

/* The next packet. False: nobody is there any more. */
static bool receive(struct live *live, union packet *packet)
{
	ssize_t size;

	do
		size = recv(live->link, packet, sizeof *packet, 0);
	while (size < 0 && errno == EINTR);
	if (size < (ssize_t)sizeof packet->kind)
		return ended(live), false;
	if (packet->kind == HOLD_STANDS || packet->kind == HOLD_ENDS)
		take_event(live, &packet->event);
	return true;
}

/* An answer of this kind; what else comes is the end of the program. */
static bool receive_answer(struct live *live, enum hold_tells kind, union packet *packet)
{
	while (live->state == LIVE_STANDS && receive(live, packet)) {
		if (packet->kind == kind)
			return true;
	}
	return false;
}

static void ask(struct live *live, struct hold_request *request, size_t stops)
{
	size_t size = offsetof(struct hold_request, stops) +
	              (request->kind == HOLD_SAVE ? PATH_MAX : stops * sizeof request->stops[0]);

	if (send(live->link, request, size, MSG_NOSIGNAL) < 0)
		ended(live);
}

/* ---- begin and end ---- */

bool live_begin(struct live *live, char *why, size_t why_size)
{
	union packet *packet = malloc(sizeof *packet);
	char path[64];

	if (!packet)
		abort();
	live->memory = -1;
	live->state = LIVE_STANDS;
	bool stands = receive(live, packet) && live->state == LIVE_STANDS;
	free(packet);
	if (!stands)
		return fail_because(why, why_size, "it has not come to its first instruction");
	live->pid = live->last.pid;
	snprintf(path, sizeof path, "/proc/%d/mem", live->pid);
	live->memory = open(path, O_RDONLY | O_CLOEXEC);
	return live->memory >= 0 ||
	       fail_because(why, why_size, "cannot open its memory: %s", strerror(errno));
}

void live_close(struct live *live)
{
	if (live->link >= 0)
		close(live->link);
	if (live->memory >= 0)
		close(live->memory);
	live->link = live->memory = -1;
}

/* ---- running ---- */

static uint64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool user_wants_stop(const struct live *live, const struct live_run *run)
{
	if (live->asked && *live->asked) {
		*live->asked = 0;
		return true;
	}
	return run->interrupted && run->interrupted(run->context);
}

static void wait_for_event(struct live *live, const struct live_run *run, bool *interrupted)
{
	uint64_t start = milliseconds();
	struct hold_request stop = {.kind = HOLD_STOP, .thread = HOLD_NOBODY};
	union packet *packet = malloc(sizeof *packet);
	bool asked = false;

	if (!packet)
		abort();
	packet->kind = HOLD_SAVED;
	while (packet->kind != HOLD_STANDS && packet->kind != HOLD_ENDS && live->state != LIVE_ENDED) {
		struct pollfd fd = {.fd = live->link, .events = POLLIN};
		if (poll(&fd, 1, LOOK_MS) > 0 && !receive(live, packet))
			break;
		bool wanted = user_wants_stop(live, run);
		*interrupted |= wanted;
		if ((wanted || (run->milliseconds && milliseconds() - start >= run->milliseconds)) &&
		        !asked) {
			asked = true;
			ask(live, &stop, 0);
		}
	}
	free(packet);
}

void live_go(struct live *live, const struct live_run *run, bool *interrupted)
{
	struct hold_request *request = calloc(1, sizeof *request);

	*interrupted = false;
	if (!request)
		abort();
	request->kind = HOLD_GO;
	request->thread = run->step;
	request->others = run->others;
	request->passed = run->passed;
	if (run->stop_count > HOLD_STOPS)
		abort(); /* debugger_break lets nobody have more */
	request->stop_count = run->stop_count;
	memcpy(request->stops, run->stops, request->stop_count * sizeof request->stops[0]);
	if (live->turn)
		live->turn(live->context, true);
	ask(live, request, request->stop_count);
	free(request);
	wait_for_event(live, run, interrupted);
	if (live->turn)
		live->turn(live->context, false);
}

void live_end(struct live *live)
{
	struct hold_request go = {.kind = HOLD_GO, .thread = HOLD_NOBODY};

	if (live->turn)
		live->turn(live->context, true);
	if (live->state == LIVE_ENDS)
		ask(live, &go, 0);
	live->state = LIVE_ENDED;
	while (!live->attached && !live->reaped && waitpid(live->pid, &live->status, 0) < 0 && errno == EINTR)
		;
	live->reaped = true;
	if (live->turn)
		live->turn(live->context, false);
}

void live_kill(struct live *live)
{
	if (live->reaped)
		return;
	kill(live->pid, SIGKILL);
	live_end(live);
}

/* The supervisor ends when it is done. */
void live_leave(struct live *live)
{
	struct hold_request leave = {.kind = HOLD_LEAVE, .thread = HOLD_NOBODY};
	char byte;

	if (live->state != LIVE_STANDS)
		return;
	ask(live, &leave, 0);
	while (recv(live->link, &byte, 1, 0) > 0)
		;
	ended(live);
}

/* ---- looking ---- */

bool live_registers(struct live *live, uint32_t thread, struct state *state)
{
	struct hold_request request = {.kind = HOLD_REGISTERS, .thread = thread};
	union packet *packet = malloc(sizeof *packet);

	if (!packet)
		abort();
	*state = (struct state){0};
	ask(live, &request, 0);
	bool known = receive_answer(live, HOLD_REGISTERS_ARE, packet) && packet->registers.known;
	if (known) {
		const struct hold_registers *r = &packet->registers;
		state->position = r->position;
		memcpy(&state->registers, &r->registers, sizeof state->registers);
		state->has_bases = true;
		state->fs_base = r->fs_base;
		state->gs_base = r->gs_base;
		state->has_vectors = state_vectors(state->vectors, r->xsave, r->xsave_size);
	}
	free(packet);
	return known;
}

size_t live_read(struct live *live, uint64_t address, void *to, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t part = pread(live->memory, (char *)to + done, size - done, (off_t)(address + done));
		if (part <= 0)
			break;
		done += (size_t)part;
	}
	return done;
}

bool live_save(struct live *live, const char *path, char *why, size_t why_size)
{
	struct hold_request *request = calloc(1, sizeof *request);
	union packet *packet = malloc(sizeof *packet);

	if (!request || !packet)
		abort();
	request->kind = HOLD_SAVE;
	request->thread = HOLD_NOBODY;
	snprintf(request->path, sizeof request->path, "%s", path);
	ask(live, request, 0);
	bool answered = receive_answer(live, HOLD_SAVED, packet), saved = answered && !*packet->saved.why;
	if (!saved)
		fail_because(why, why_size, "%s", answered ? packet->saved.why : "it has ended");
	free(request);
	free(packet);
	return saved;
}
