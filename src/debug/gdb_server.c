#include "debug/gdb_server.h"

#include <ctype.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/wait.h>

#include "debug/executed.h"
#include "debug/gdb_session.h"
#include "debug/live.h"
#include "record/cpu_level.h"
#include "replay/cpu_level.h"

#define INTERRUPT_LASTS 1000000000ul /* ns: who continues later than that has seen the stop */
#define LETS_IT         "Going on from here lets it.\n"
#define MEMORY_MAXIMUM  (GDB_PACKET_MAXIMUM / 2 - 8)

/* ---- replies ---- */

void gdb_reply_bytes(struct gdb_session *session, const char *bytes, size_t size)
{
	gdb_link_send(&session->link, bytes, size);
}

void gdb_reply(struct gdb_session *session, const char *format, ...)
{
	char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	int size = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (size < 0)
		abort();
	gdb_reply_bytes(session, text, (size_t)size);
	free(text);
}

void gdb_fail(struct gdb_session *session, const char *format, ...)
{
	char text[600] = "E.";
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text + 2, sizeof text - 2, format, arguments);
	va_end(arguments);
	gdb_reply(session, "%s", text);
}

/* ---- numbers, threads and signals as gdb writes them ---- */

bool gdb_hex(const char **text, uint64_t *number)
{
	char *end;

	if (!isxdigit((unsigned char)**text))
		return false;
	*number = strtoull(*text, &end, 16);
	bool fits = end - *text <= 16;
	*text = end;
	return fits;
}

static int digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? (c | 0x20) - 'a' + 10 : -1;
}

bool gdb_text(const char **text, char *to, size_t size)
{
	size_t count = 0;

	for (; digit((*text)[0]) >= 0 && digit((*text)[1]) >= 0 && count + 1 < size; *text += 2)
		to[count++] = (char)(digit((*text)[0]) << 4 | digit((*text)[1]));
	to[count] = 0;
	return digit(**text) < 0;
}

bool gdb_skip(const char **text, char c)
{
	if (**text != c)
		return false;
	(*text)++;
	return true;
}

/* Linux may use a number twice, and a log may have none: then it is one that no thread has. */
int gdb_tid(const struct gdb_session *session, uint32_t thread)
{
	const struct debugger *d = session->debugger;
	const struct chronicle_thread *t = d->threads[thread].recorded;
	int tid = t->has_record && t->record.tid > 0 ? t->record.tid : t->id == 0 ? session->pid : 0;

	for (uint32_t i = 0; i < thread; i++) {
		if (d->threads[i].recorded->record.tid == tid)
			tid = 0;
	}
	return tid ? tid : 0x40000000 + (int)t->id;
}

const char *gdb_thread_text(const struct gdb_session *session, uint32_t thread, char text[GDB_THREAD_TEXT])
{
	if (session->multiprocess)
		snprintf(text, GDB_THREAD_TEXT, "p%x.%x", session->pid, gdb_tid(session, thread));
	else
		snprintf(text, GDB_THREAD_TEXT, "%x", gdb_tid(session, thread));
	return text;
}

bool gdb_thread(const struct gdb_session *session, const char **text, uint32_t *thread)
{
	uint64_t number;

	*thread = NO_INDEX;
	if (gdb_skip(text, 'p')) {
		if (!gdb_skip(text, '-') && !gdb_hex(text, &number))
			return false;
		if ((*text)[-1] == '-' && !gdb_hex(text, &number))
			return false;
		if (!gdb_skip(text, '.'))
			return true;
	}
	if (gdb_skip(text, '-'))
		return gdb_hex(text, &number);
	if (!gdb_hex(text, &number))
		return false;
	if (number == 0)
		return true;
	for (uint32_t i = 0; i < session->debugger->thread_count; i++) {
		if ((uint64_t)gdb_tid(session, i) == number)
			*thread = i;
	}
	return *thread != NO_INDEX;
}

/* gdb has its own numbers, which are those of Linux only in part. */
int gdb_signal_number(int number)
{
	static const struct {
		int linux_number, gdb_number;
	} numbers[] = {
	        {SIGHUP, 1},
	        {SIGINT, 2},
	        {SIGQUIT, 3},
	        {SIGILL, 4},
	        {SIGTRAP, 5},
	        {SIGABRT, 6},
	        {SIGFPE, 8},
	        {SIGKILL, 9},
	        {SIGBUS, 10},
	        {SIGSEGV, 11},
	        {SIGSYS, 12},
	        {SIGPIPE, 13},
	        {SIGALRM, 14},
	        {SIGTERM, 15},
	        {SIGURG, 16},
	        {SIGSTOP, 17},
	        {SIGTSTP, 18},
	        {SIGCONT, 19},
	        {SIGCHLD, 20},
	        {SIGTTIN, 21},
	        {SIGTTOU, 22},
	        {SIGIO, 23},
	        {SIGXCPU, 24},
	        {SIGXFSZ, 25},
	        {SIGVTALRM, 26},
	        {SIGPROF, 27},
	        {SIGWINCH, 28},
	        {SIGUSR1, 30},
	        {SIGUSR2, 31},
	        {SIGPWR, 32},
	        {32, 77},
	        {64, 78},
	};

	for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		if (numbers[i].linux_number == number)
			return numbers[i].gdb_number;
	}
	return number >= 33 && number <= 63 ? number + 12 : 143; /* GDB_SIGNAL_UNKNOWN */
}

/* ---- stops ---- */

/* NULL: `why` tells. */
static const struct state *state_of(struct gdb_session *session, uint32_t thread, char *why, size_t why_size)
{
	const struct state *copy = thread == session->general ? gdb_calls_state(session) : NULL;

	if (copy)
		return copy;
	const struct standing *standing = debugger_look(session->debugger, thread, why, why_size);
	return standing ? &standing->state : NULL;
}

static void put_registers(struct gdb_session *session, FILE *out)
{
	static const unsigned expedited[] = {GDB_RBP, GDB_RSP, GDB_RIP};
	uint8_t bytes[GDB_REGISTER_BYTES];
	char why[512];
	const struct state *state = state_of(session, session->general, why, sizeof why);

	for (unsigned i = 0; state && i < sizeof expedited / sizeof *expedited; i++) {
		size_t size = gdb_register_bytes(state, expedited[i], bytes);
		fprintf(out, "%02x:", expedited[i]);
		for (size_t k = 0; k < size; k++)
			fprintf(out, "%02x", bytes[k]);
		fputc(';', out);
	}
}

static void put_reason(const struct stop *stop, FILE *out)
{
	static const char *const watches[] = {"watch", "rwatch", "awatch"};

	switch (stop->kind) {
	case STOP_BREAK:
		fputs("swbreak:;", out);
		break;
	case STOP_WATCH:
		fprintf(out, "%s:%lx;", watches[stop->watch.kind], stop->watch.address);
		break;
	case STOP_CALL:
	case STOP_RETURN:
		fprintf(out, "syscall_%s:%lx;", stop->kind == STOP_CALL ? "entry" : "return",
		        (uint64_t)stop->happening->number);
		break;
	case STOP_FORK:
		fprintf(out, "fork:p%lx.%lx;", (uint64_t)stop->happening->result,
		        (uint64_t)stop->happening->result);
		break;
	case STOP_START:
		fputs("replaylog:begin;", out);
		break;
	case STOP_END:
		fputs("replaylog:end;", out);
		break;
	default:
		break;
	}
}

static void reply_exit(struct gdb_session *session)
{
	int status = session->last.status;
	char process[32] = "";

	if (session->multiprocess)
		snprintf(process, sizeof process, ";process:%x", session->pid);
	if (WIFSIGNALED(status))
		gdb_reply(session, "X%02x%s", gdb_signal_number(WTERMSIG(status)), process);
	else
		gdb_reply(session, "W%02x%s", WEXITSTATUS(status), process);
}

static void reply_stop(struct gdb_session *session)
{
	const struct stop *stop = &session->last;
	char thread[GDB_THREAD_TEXT], *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int signal = 5;

	if (!out)
		abort();
	if (stop->kind == STOP_EXITED) {
		fclose(out);
		free(text);
		reply_exit(session);
		return;
	}
	if (stop->kind == STOP_SIGNAL)
		signal = gdb_signal_number(stop->signal);
	else if (stop->kind == STOP_INTERRUPTED)
		signal = 2;
	else if (session->switched)
		signal = 0; /* no trap of this thread's that gdb would look for a reason of */
	session->general = gdb_calls_stopped(session);
	/* Where gdb names the thread that goes, it may be another one than the user's, which it has step over
	 * a breakpoint before. */
	if (session->continued == NO_INDEX || session->continued == session->selected)
		session->selected = NO_INDEX;
	session->child = stop->kind == STOP_FORK ? (int)stop->happening->result : 0;
	session->of_child = false;
	fprintf(out, "T%02x", signal);
	put_reason(stop, out);
	fprintf(out, "thread:%s;", gdb_thread_text(session, session->general, thread));
	put_registers(session, out);
	if (fclose(out))
		abort();
	gdb_reply_bytes(session, text, size);
	free(text);
}

void gdb_put_hex(char *text, const uint8_t *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < size; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
}

void gdb_say(struct gdb_session *session, const char *text, size_t size)
{
	char packet[2 * 1024 + 1] = "O";

	for (size_t at = 0, part; at < size; at += part) {
		part = size - at < 1024 ? size - at : 1024;
		gdb_put_hex(packet + 1, (const uint8_t *)text + at, part);
		gdb_reply_bytes(session, packet, 1 + 2 * part);
	}
}

static void say_end(struct gdb_session *session)
{
	struct debugger *d = session->debugger;
	const struct happening *end = chronicle_end(&d->chronicle, d->threads[d->current].recorded->id);
	char text[512];

	if (executed_text(d, d->current, text, sizeof text - 1))
		strcat(text, "\n");
	else if (end && recorded_lost_end(d->recorded, d->threads[d->current].recorded->id))
		snprintf(text, sizeof text, "The recording is damaged here: how it goes on is lost.\n");
	else if (!end || end->kind == HAPPENED_CUT)
		snprintf(text, sizeof text, "The recording of this thread ends here.\n");
	else if (end->end == END_KILLED)
		snprintf(text, sizeof text, "The program is killed here by %s.\n",
		        strsignal((int)end->number));
	else if (end->end == END_EXIT)
		snprintf(text, sizeof text, "The program exits here with status %ld.\n", end->number);
	else
		snprintf(text, sizeof text, "The thread ends here.\n");
	gdb_say(session, text, strlen(text));
	if (d->live)
		gdb_say(session, LETS_IT, sizeof LETS_IT - 1);
}

static void stopped(struct gdb_session *session)
{
	struct stop *stop = &session->last;

	if (stop->kind == STOP_FAILED) {
		char text[600];
		snprintf(text, sizeof text, "bugnet: cannot go there: %s\n", stop->why);
		gdb_say(session, text, strlen(text));
	} else if (stop->kind == STOP_END) {
		say_end(session);
	}
	reply_stop(session);
}

/* ---- libraries ---- */

/* gdb asks for the list then, sets its breakpoints in what is new, and goes on by itself. It does so with the
 * thread that it is told of: that must be the one that it moved. */
static void reply_libraries(struct gdb_session *session, uint32_t thread)
{
	char name[GDB_THREAD_TEXT], *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		abort();
	session->general = thread;
	fprintf(out, "T05library:;thread:%s;", gdb_thread_text(session, thread, name));
	put_registers(session, out);
	if (fclose(out))
		abort();
	gdb_reply_bytes(session, text, size);
	free(text);
}

/* After a move of this thread. Of libraries first: where gdb goes on then, it hears why it has stopped. */
static void arrived(struct gdb_session *session, uint32_t thread, enum direction direction)
{
	bool ended = session->last.kind == STOP_EXITED;

	session->delayed = !ended && gdb_libraries_changed(session);
	session->way = direction;
	if (session->delayed)
		reply_libraries(session, thread);
	else
		stopped(session);
}

/* Has gdb gone on, to hear of a stop? */
static bool was_delayed(struct gdb_session *session, enum direction direction)
{
	bool delayed = session->delayed && session->way == direction && !session->seeks;

	session->delayed = false;
	if (delayed)
		stopped(session);
	return delayed;
}

/* ---- moving ---- */

static uint64_t monotonic_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/*
 * gdb may go on from a stop by itself, thousands of times: for a condition that it evaluates, or line by
 * line. ^C then comes as likely as not while it stands, and is meant for the move that follows at once.
 */
static bool was_interrupted(struct gdb_session *session)
{
	bool recent = session->interrupted && monotonic_now() - session->interrupted < INTERRUPT_LASTS;

	session->interrupted = 0;
	if (!recent || session->seeks)
		return false;
	session->last = (struct stop){.kind = STOP_INTERRUPTED, .thread = session->debugger->current};
	reply_stop(session);
	return true;
}

/* Of a thread that gdb resumes alone it takes for granted that others stay where they are: it does not ask
 * for their registers again. */
static void stay_behind(struct gdb_session *session, uint32_t thread, struct places *places)
{
	if (places->items && session->debugger->current == thread)
		debugger_put_others(session->debugger, thread, places);
	free(places->items);
}

/* `range`: to be left, or NULL. */
static void step(struct gdb_session *session, uint32_t thread, bool alone, enum direction direction,
        const struct line_range *range)
{
	if (was_delayed(session, direction) || was_interrupted(session)) {
		session->switched = false;
		return;
	}
	session->switched = false;
	if (direction == FORWARDS && !session->seeks && gdb_calls_run(session, thread, true)) {
		reply_stop(session);
		return;
	}
	gdb_calls_end(session);
	struct places places = {0};
	if (alone && !session->seeks && session->debugger->recorded)
		places = debugger_places(session->debugger);
	if (session->seeks) {
		session->seeks = false;
		session->switched = session->seek_thread != thread;
		debugger_seek(session->debugger, session->seek_thread, session->seek, &session->last);
	} else if (direction == BACKWARDS) {
		line_steps_back(session->debugger, &session->lines, thread, alone, &session->last);
	} else if (range) {
		line_steps_forward(session->debugger, *range, thread, alone, &session->last);
	} else {
		debugger_step(session->debugger, thread, alone, direction, &session->last);
	}
	stay_behind(session, thread, &places);
	arrived(session, thread, direction);
	session->switched &= session->delayed;
}

static void run(struct gdb_session *session, uint32_t thread, bool alone, enum direction direction)
{
	session->seeks = false;
	if (was_delayed(session, direction) || was_interrupted(session)) {
		session->switched = false;
		return;
	}
	session->switched = false;
	if (direction == FORWARDS && gdb_calls_run(session, session->copy.thread, false)) {
		reply_stop(session);
		return;
	}
	gdb_calls_end(session);
	struct places places = {0};
	if (alone && session->debugger->recorded)
		places = debugger_places(session->debugger);
	bool told = false;
	do {
		debugger_continue(session->debugger, thread, alone, direction, &session->last);
		told = session->last.kind == STOP_LIBRARY && gdb_libraries_changed(session);
	} while (session->last.kind == STOP_LIBRARY && !told);
	stay_behind(session, thread, &places);
	if (told)
		reply_libraries(session, thread);
	else
		arrived(session, thread, direction);
}

/* "vCont;s:p1.2;c": a thread that is stepped goes alone; else all go, or those that are named. "r1,2": it is
 * stepped out of that range. */
static void handle_vcont(struct gdb_session *session, const char *text)
{
	uint32_t stepped = NO_INDEX, continued = NO_INDEX;
	bool all = false, ranged = false;
	struct line_range range = {0};

	while (*text == ';' && text[1]) {
		char action = text[1];
		text += 2;
		uint32_t thread = NO_INDEX;
		uint64_t number;
		if ((action == 'C' || action == 'S') && !gdb_hex(&text, &number))
			break;
		if (action == 'r' && (!gdb_hex(&text, &range.start) || !gdb_skip(&text, ',') ||
		                             !gdb_hex(&text, &range.end)))
			break;
		if (gdb_skip(&text, ':') && !gdb_thread(session, &text, &thread))
			break;
		if (action == 's' || action == 'S' || action == 'r') {
			ranged |= action == 'r' && stepped == NO_INDEX;
			stepped = stepped != NO_INDEX  ? stepped
			          : thread == NO_INDEX ? session->general
			                               : thread;
		} else if (action == 'c' || action == 'C') {
			all |= thread == NO_INDEX;
			continued = thread == NO_INDEX ? continued : thread;
		} else {
			text--;
			break;
		}
	}
	if (*text || (stepped == NO_INDEX && continued == NO_INDEX && !all)) {
		gdb_fail(session, "no such action");
		return;
	}
	if (stepped != NO_INDEX)
		step(session, stepped, !all && continued == NO_INDEX, FORWARDS, ranged ? &range : NULL);
	else
		run(session, continued == NO_INDEX ? session->general : continued, !all, FORWARDS);
}

static void handle_backwards(struct gdb_session *session, const char *text)
{
	uint32_t any = session->selected == NO_INDEX ? session->general : session->selected;
	uint32_t thread = session->continued == NO_INDEX ? any : session->continued;

	if (strcmp(text, "s") == 0)
		step(session, thread, session->continued != NO_INDEX, BACKWARDS, NULL);
	else if (strcmp(text, "c") == 0)
		run(session, thread, session->continued != NO_INDEX, BACKWARDS);
	else
		gdb_reply(session, "%s", "");
}

static void handle_plain_move(struct gdb_session *session, const char *text)
{
	uint32_t thread = session->continued == NO_INDEX ? session->general : session->continued;

	if (text[0] == 's' || text[0] == 'S')
		step(session, thread, session->continued != NO_INDEX, FORWARDS, NULL);
	else
		run(session, thread, session->continued != NO_INDEX, FORWARDS);
}

/* ---- registers and memory ---- */

static void read_registers(struct gdb_session *session, unsigned first, unsigned end)
{
	char text[GDB_REGISTER_COUNT * GDB_REGISTER_BYTES * 2], why[512] = "";
	uint8_t bytes[GDB_REGISTER_BYTES];
	size_t size = 0;
	const struct state *state = state_of(session, session->general, why, sizeof why);

	if (!state) {
		gdb_fail(session, "%s", why);
		return;
	}
	for (unsigned i = first; i < end; i++) {
		size_t n = gdb_register_bytes(state, i, bytes);
		gdb_put_hex(text + size, bytes, n);
		size += 2 * n;
	}
	gdb_reply_bytes(session, text, size);
}

static void handle_register(struct gdb_session *session, const char *text)
{
	uint64_t number;

	if (!gdb_hex(&text, &number) || *text || number >= session->register_count)
		gdb_reply(session, "E01");
	else
		read_registers(session, (unsigned)number, (unsigned)number + 1);
}

/* "M1000,2:abcd", or "X1000,2:" and the bytes as they are. */
static void handle_write(struct gdb_session *session, const char *packet, size_t packet_size)
{
	const char *text = packet + 1;
	uint64_t address, size;
	uint8_t bytes[MEMORY_MAXIMUM];

	if (!gdb_hex(&text, &address) || !gdb_skip(&text, ',') || !gdb_hex(&text, &size) ||
	        !gdb_skip(&text, ':') || size > sizeof bytes || address + size < address ||
	        packet_size - (size_t)(text - packet) != (packet[0] == 'M' ? 2 * size : size)) {
		gdb_reply(session, "E01");
		return;
	}
	if (packet[0] == 'X') {
		memcpy(bytes, text, size);
	} else {
		for (size_t i = 0; i < size; i++, text += 2) {
			if (digit(text[0]) < 0 || digit(text[1]) < 0) {
				gdb_reply(session, "E01");
				return;
			}
			bytes[i] = (uint8_t)(digit(text[0]) << 4 | digit(text[1]));
		}
	}
	gdb_calls_write_memory(session, address, bytes, size);
}

/* ---- breakpoints ---- */

static void change_watch(struct debugger *d, struct watch watch, bool insert)
{
	for (uint32_t i = 0; i < d->watches.count; i++) {
		struct watch *w = &d->watches.items[i];
		if (w->kind != watch.kind || w->address != watch.address || w->size != watch.size)
			continue;
		if (!insert)
			*w = d->watches.items[--d->watches.count];
		return;
	}
	if (insert)
		vector_push(&d->watches, watch);
}

static void handle_point(struct gdb_session *session, const char *text, bool insert)
{
	static const enum watch_kind kinds[] = {WATCH_WRITE, WATCH_READ, WATCH_ACCESS};
	uint64_t type, address, size;

	if (!gdb_hex(&text, &type) || !gdb_skip(&text, ',') || !gdb_hex(&text, &address) ||
	        !gdb_skip(&text, ',') || !gdb_hex(&text, &size) || (*text && *text != ';')) {
		gdb_reply(session, "E01");
		return;
	}
	if (type > 4 || (type >= 2 && (size == 0 || address + size < address))) {
		gdb_reply(session, "%s", type > 4 ? "" : "E01");
		return;
	}
	char why[256];
	if (type < 2 && insert &&
	        !debugger_break(session->debugger, address, *text ? text + 1 : text, why, sizeof why)) {
		gdb_fail(session, "%s", why);
		return;
	}
	if (type < 2 && !insert)
		breakpoints_remove(&session->debugger->breakpoints, address);
	if (type >= 2)
		change_watch(session->debugger,
		        (struct watch){.kind = kinds[type - 2], .address = address, .size = size}, insert);
	gdb_reply(session, "OK");
}

/* ---- threads, and the session ---- */

/*
 * "p1a2b.0", of a process that was just made. It is in no recording of this program's, or in one of its own;
 * but gdb takes its breakpoints out of it, and lets it go. Its memory is a copy of this one's.
 */
static bool is_child(const struct gdb_session *session, const char *text)
{
	uint64_t pid;

	return session->child && gdb_skip(&text, 'p') && gdb_hex(&text, &pid) &&
	       pid == (uint64_t)session->child;
}

static void handle_select(struct gdb_session *session, const char *text)
{
	char what = *text ? *text++ : 0;
	uint32_t thread;

	session->of_child = what == 'g' && is_child(session, text);
	if (session->of_child) {
		gdb_reply(session, "OK");
		return;
	}
	if ((what != 'g' && what != 'c') || !gdb_thread(session, &text, &thread) || *text) {
		gdb_reply(session, "E01");
		return;
	}
	if (what == 'c')
		session->continued = thread;
	else if (thread != NO_INDEX)
		session->general = thread;
	gdb_reply(session, "OK");
}

static void handle_is_alive(struct gdb_session *session, const char *text)
{
	uint32_t thread;

	if (gdb_thread(session, &text, &thread) && thread != NO_INDEX &&
	        debugger_is_alive(session->debugger, thread))
		gdb_reply(session, "OK");
	else
		gdb_reply(session, "E01");
}

static void handle_verbose(struct gdb_session *session, const char *text)
{
	if (strcmp(text, "Cont?") == 0) {
		gdb_reply(session, "vCont;c;C;s;S;r");
	} else if (strncmp(text, "Cont;", 5) == 0) {
		handle_vcont(session, text + 4);
	} else if (strncmp(text, "File:", 5) == 0) {
		gdb_file_packet(session, text + 5);
	} else if (strncmp(text, "Kill", 4) == 0) {
		if (session->debugger->live)
			live_kill(session->debugger->live);
		gdb_reply(session, "OK");
		session->over = session->ends_all = true;
	} else if (strcmp(text, "CtrlC") == 0) {
		gdb_reply(session, "OK");
	} else {
		gdb_reply(session, "%s", "");
	}
}

/* "", or ";PID". */
static void handle_detach(struct gdb_session *session, const char *text)
{
	uint64_t pid = (uint64_t)session->pid;

	if (gdb_skip(&text, ';') && !gdb_hex(&text, &pid)) {
		gdb_reply(session, "E01");
		return;
	}
	session->over = !session->child || pid != (uint64_t)session->child;
	if (session->over && session->debugger->live)
		live_leave(session->debugger->live);
	gdb_reply(session, "OK");
	session->child = 0;
}

/* Those that end in bytes as they are, zeros among them. */
static bool has_bytes(const char *text)
{
	static const char *const packets[] = {
	        "X", "qXfer:siginfo:write:", GDB_SEARCH_PACKET, "vFile:pwrite:"};

	for (unsigned i = 0; i < sizeof packets / sizeof *packets; i++) {
		if (strncmp(text, packets[i], strlen(packets[i])) == 0)
			return true;
	}
	return false;
}

static void handle(struct gdb_session *session, const char *text, size_t size)
{
	switch (text[0]) {
	case '?':
		reply_stop(session);
		break;
	case 'g':
		read_registers(session, 0, session->register_count);
		break;
	case 'p':
		handle_register(session, text + 1);
		break;
	case 'm':
		gdb_memory_packet(session, text + 1);
		break;
	case 'G':
		gdb_calls_write_registers(session, text + 1);
		break;
	case 'P':
		gdb_calls_write_register(session, text + 1);
		break;
	case 'M':
	case 'X':
		handle_write(session, text, size);
		break;
	case 'Z':
	case 'z':
		if (session->of_child)
			gdb_reply(session, "OK");
		else
			handle_point(session, text + 1, text[0] == 'Z');
		break;
	case 'H':
		handle_select(session, text + 1);
		break;
	case 'T':
		handle_is_alive(session, text + 1);
		break;
	case 'v':
		handle_verbose(session, text + 1);
		break;
	case 'c':
	case 'C':
	case 's':
	case 'S':
		handle_plain_move(session, text);
		break;
	case 'b':
		handle_backwards(session, text + 1);
		break;
	case 'q':
		if (strncmp(text, GDB_SEARCH_PACKET, strlen(GDB_SEARCH_PACKET)) == 0)
			gdb_search_packet(session, text, size);
		else
			gdb_query(session, text + 1);
		break;
	case 'Q':
		gdb_set(session, text + 1);
		break;
	case 'D':
		handle_detach(session, text + 1);
		break;
	case 'k':
		if (session->debugger->live)
			live_kill(session->debugger->live);
		session->over = session->ends_all = true;
		break;
	default:
		gdb_reply(session, "%s", "");
	}
}

static bool wants_stop(void *link)
{
	return gdb_link_wants_stop(link);
}

/* A program that runs was offered all that this processor has. */
static bool has_wide_vectors(const struct debugger *debugger)
{
	return debugger->live ? cpu_level_vectors(CPU_NATIVE) & VECTORS_AVX512
	                      : cpu_was_wide(&debugger->recorded->meta);
}

bool gdb_serve(struct debugger *debugger, int fd)
{
	struct gdb_session *session = calloc(1, sizeof *session);
	char *text = malloc(GDB_PACKET_MAXIMUM);
	uint64_t pid = 1;
	size_t size;

	if (!session || !text)
		abort();
	if (debugger->live)
		pid = (uint64_t)debugger->live->pid;
	else
		meta_number(&debugger->recorded->meta, META_PID, &pid);
	session->debugger = debugger;
	session->general = debugger->current;
	session->continued = session->selected = session->refused = NO_INDEX;
	session->pid = (int)pid;
	session->register_count = has_wide_vectors(debugger) ? GDB_REGISTER_COUNT : GDB_REGISTERS_AVX;
	session->last = debugger_last_stop(debugger);
	gdb_link_open(&session->link, fd);
	debugger->interrupted = wants_stop;
	debugger->context = &session->link;
	while (!session->over && gdb_link_receive(&session->link, text, &size)) {
		if (session->link.interrupted)
			session->link.interrupted = false, session->interrupted = monotonic_now();
		else if (strlen(text) == size || has_bytes(text))
			handle(session, text, size);
		else
			gdb_reply(session, "E01");
	}
	debugger->interrupted = NULL;
	gdb_calls_end(session);
	breakpoints_clear(&debugger->breakpoints);
	debugger->watches.count = 0;
	catches_clear(&debugger->catches);
	bool ends_all = session->ends_all;
	gdb_link_close(&session->link);
	gdb_close_files(session);
	free(session->description);
	line_steps_clear(&session->lines);
	free(session->reply);
	free(session->libraries);
	free(session);
	free(text);
	return !ends_all;
}
