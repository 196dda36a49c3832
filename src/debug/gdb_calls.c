/*
 * Functions that gdb calls in the program: in a copy, which is dropped when the call is over (diversion.h).
 *
 * gdb does not say that it is about to call something, unless it has our commands. But it reads the signal
 * information first, to save it, then writes registers and memory, and at the end writes the signal
 * information back, and then the registers. Before a copy was made only the stack can be written to, below
 * where the thread has it. For a text among the arguments gdb calls malloc, writes to what that returned, and
 * then calls the function: so the copy lingers, and is used again if what the last call returned is written
 * to.
 */
#include <signal.h>
#include <string.h>

#include "debug/gdb_session.h"

#define WHY_NOT        "the recording cannot be changed: it is what happened"
#define REFUSED        "E." WHY_NOT
#define STACK_BYTES    (1ul << 20) /* that gdb may use for a call */
#define RED_ZONE_BYTES 128ul

static bool is_on(const struct gdb_session *session)
{
	return session->copy.debugger && !session->lingers;
}

void gdb_calls_arm(struct gdb_session *session)
{
	session->armed++;
}

static void drop(struct gdb_session *session)
{
	if (session->copy.debugger)
		diversion_end(&session->copy);
	session->lingers = session->wanted = false;
}

void gdb_calls_end(struct gdb_session *session)
{
	drop(session);
	session->armed = 0;
}

void gdb_calls_returned(struct gdb_session *session)
{
	session->armed -= session->armed > 0;
	/* One that was called where another had stopped returns to that, in the same copy. */
	session->lingers =
	        session->copy.debugger && (!session->scripted || session->armed < session->outermost);
	session->wanted = false;
	if (session->lingers)
		session->last = session->stopped;
}

/* Output of the copy is gdb's console's. */
static void print(void *context, const char *bytes, size_t size)
{
	gdb_say(context, bytes, size);
}

static bool begin(struct gdb_session *session)
{
	char why[512];

	if (is_on(session))
		return session->copy.thread == session->general;
	if (!session->armed)
		return false;
	if (!debugger_recall(session->debugger, why, sizeof why)) {
		fprintf(stderr, "bugnet: there can be no copy to call functions in: %s\n", why);
		return false;
	}
	if (!session->lingers || !session->wanted || session->copy.thread != session->general)
		drop(session);
	session->stopped = session->last;
	session->lingers = false;
	session->outermost = session->armed;
	if (!diversion_begin(&session->copy, session->debugger, session->general))
		return false;
	session->copy.output = print;
	session->copy.context = session;
	return true;
}

const struct state *gdb_calls_state(const struct gdb_session *session)
{
	return is_on(session) && session->copy.thread == session->general ? &session->copy.state : NULL;
}

/* Where the thread's stack ends. What gdb puts there for a call lies below; 0: that is not known. */
static uint64_t stack_top(const struct gdb_session *session)
{
	char why[512];
	const struct standing *standing = debugger_look(session->debugger, session->general, why, sizeof why);

	return standing ? standing->state.registers.gpr[RSP] : 0;
}

static bool is_below_stack(const struct gdb_session *session, uint64_t address, uint64_t size)
{
	uint64_t top = stack_top(session);

	return address + size > address && address + size <= top && top - address <= STACK_BYTES;
}

/*
 * An object that was returned is in memory that gdb had for it below the stack, and is read when the call is
 * over. The program has nothing there that it will load again, but for what it may keep right below the
 * stack pointer.
 */
static void read_returned(
        struct gdb_session *session, uint64_t address, uint8_t *to, uint8_t *known, size_t size)
{
	uint64_t top = stack_top(session) - RED_ZONE_BYTES;
	size_t below = top > address ? top - address < size ? top - address : size : 0;

	diversion_read(&session->copy, address, to, known, below);
	debugger_read_known(session->debugger, session->general, address + below, to + below, known + below,
	        size - below);
}

bool gdb_calls_read(struct gdb_session *session, uint64_t address, uint8_t *to, uint8_t *known, size_t size)
{
	if (!session->copy.debugger || session->copy.thread != session->general)
		return false;
	if (!session->lingers)
		diversion_read(&session->copy, address, to, known, size);
	else if (is_below_stack(session, address, 1))
		read_returned(session, address, to, known, size);
	else
		return false;
	return true;
}

/* ---- writes ---- */

/* Bytes in hex; false: there are not so many. */
static bool parse_bytes(const char **hex, uint8_t *bytes, size_t size)
{
	char text[2 * GDB_REGISTER_BYTES + 2];

	for (size_t i = 0; i < size; i++) {
		const char *at = text;
		memcpy(text, *hex, 2 * ((*hex)[0] && (*hex)[1]));
		text[2 * ((*hex)[0] && (*hex)[1])] = 0;
		char byte[2];
		if (!gdb_text(&at, byte, sizeof byte) || *at || at == text)
			return false;
		bytes[i] = (uint8_t)byte[0];
		*hex += 2;
	}
	return true;
}

/* Sets one register, of the copy if there is one. What a register is already can always be written. */
static bool write_register(struct gdb_session *session, unsigned number, const char **hex, bool *same)
{
	uint8_t bytes[GDB_REGISTER_BYTES], before[GDB_REGISTER_BYTES];
	char why[512];
	const struct standing *standing = debugger_look(session->debugger, session->general, why, sizeof why);
	const struct state *state = is_on(session) ? &session->copy.state
	                            : standing     ? &standing->state
	                                           : NULL;

	if (!state)
		return false;
	size_t size = gdb_register_bytes(state, number, before);
	if (!parse_bytes(hex, bytes, size))
		return false;
	*same = memcmp(bytes, before, size) == 0;
	if (*same)
		return true;
	if (begin(session))
		gdb_register_set(&session->copy.state, number, bytes);
	*same = is_on(session);
	return true;
}

void gdb_calls_write_register(struct gdb_session *session, const char *text)
{
	uint64_t number;
	bool done = false;

	bool written = gdb_hex(&text, &number) && number < session->register_count && *text++ == '=' &&
	               write_register(session, (unsigned)number, &text, &done) && !*text;
	gdb_reply(session, "%s", !written ? "E01" : done ? "OK" : REFUSED);
}

void gdb_calls_write_registers(struct gdb_session *session, const char *text)
{
	bool written = true, done = true;

	for (unsigned i = 0; i < session->register_count && written && done; i++)
		written = write_register(session, i, &text, &done);
	gdb_reply(session, "%s", !written || (done && *text) ? "E01" : done ? "OK" : REFUSED);
}

void gdb_calls_write_memory(
        struct gdb_session *session, uint64_t address, const uint8_t *bytes, uint64_t size)
{
	bool returned = session->lingers && session->returned && address == session->returned;
	bool allowed = size == 0 || returned || is_on(session) || is_below_stack(session, address, size);

	session->wanted |= returned;
	if (!allowed || (size && !returned && !begin(session))) {
		/* gdb shows why a register was not written, but of memory it only says that it cannot access
		 * it. */
		fprintf(stderr, "bugnet: " WHY_NOT "\n");
		gdb_reply(session, REFUSED);
		return;
	}
	if (size)
		diversion_write(&session->copy, address, bytes, size);
	gdb_reply(session, "OK");
}

/* ---- running ---- */

/* Registers were set, but none that leads elsewhere: nothing is being called. */
static bool is_called(const struct gdb_session *session)
{
	char why[512];
	const struct diversion *copy = &session->copy;
	const struct standing *standing = debugger_look(session->debugger, copy->thread, why, sizeof why);

	return copy->standing || (standing && standing->state.registers.pc != copy->state.registers.pc);
}

/* gdb has a thread that stands at a breakpoint step over it before it calls a function in another one. In a
 * copy nobody but the thread of the call goes on; and if that stopped instead, gdb would abort. */
static void refuse_step(struct gdb_session *session, uint32_t thread)
{
	struct stop *stop = &session->last;

	*stop = (struct stop){.kind = STOP_SIGNAL, .signal = SIGABRT};
	stop->thread = session->debugger->threads[thread].recorded->id;
	snprintf(stop->why, sizeof stop->why,
	        "another thread is at a breakpoint, and gdb would step that one first; 'set "
	        "scheduler-locking "
	        "on' keeps it from doing so");
	session->refused = thread;
}

uint32_t gdb_calls_stopped(const struct gdb_session *session)
{
	if (!session->copy.debugger)
		return session->debugger->current;
	return session->refused == NO_INDEX ? session->copy.thread : session->refused;
}

bool gdb_calls_run(struct gdb_session *session, uint32_t thread, bool step)
{
	if (!is_on(session) || !is_called(session)) {
		gdb_calls_end(session);
		return false;
	}
	session->refused = NO_INDEX;
	if (thread != session->copy.thread)
		refuse_step(session, thread);
	else
		diversion_run(&session->copy, step, &session->last);
	session->returned = session->copy.state.registers.gpr[RAX];
	if (session->last.kind == STOP_SIGNAL) {
		char text[600];
		int size =
		        snprintf(text, sizeof text, "bugnet: the call is given up: %s.\n", session->last.why);
		gdb_say(session, text, (size_t)size);
	}
	return true;
}
