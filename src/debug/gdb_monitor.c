#include <stdlib.h>
#include <string.h>

#include "debug/clock.h"
#include "debug/executed.h"
#include "debug/executions.h"
#include "debug/gdb_session.h"
#include "debug/places.h"
#include "debug/whereabouts.h"
#include "debug/writes.h"
#include "recording/names.h"

/* ---- where ---- */

static void print_when(struct gdb_session *session, char *rest, FILE *out)
{
	struct debugger *d = session->debugger;
	const struct debugged_thread *t = &d->threads[session->general];
	struct place place = debugger_place(d, session->general);
	uint64_t all = t->last.position - t->first.position, time;

	(void)rest;
	if (!d->recorded) {
		fprintf(out, "thread %u position %lu now\n", t->recorded->id, place.position);
		return;
	}
	fprintf(out, "thread %u position %lu of %lu to %lu (%.2f%%)", t->recorded->id, place.position,
	        t->first.position, t->last.position,
	        all ? 100.0 * (double)(place.position - t->first.position) / (double)all : 100.0);
	if (clock_at(&d->chronicle, t->recorded->id, place.position, &time))
		fprintf(out, ", about %.6f s", (double)time / 1e9);
	fputc('\n', out);
}

/* The index of a thread, `otherwise` if there is none. */
static uint32_t find_tid(const struct gdb_session *session, const char *tid, uint32_t otherwise)
{
	for (uint32_t i = 0; i < session->debugger->thread_count; i++) {
		if (gdb_tid(session, i) == atoi(tid))
			return i;
	}
	return otherwise;
}

/* "PLACE", of the selected thread, or "PLACE TID". */
static bool parse_where(
        struct gdb_session *session, char *text, uint32_t *thread, uint64_t *position, FILE *out)
{
	struct debugger *d = session->debugger;
	char why[256], *tid = strchr(text, ' ');

	*thread = tid ? find_tid(session, tid + 1, session->general) : session->general;
	if (tid)
		*tid = 0;
	if (place_parse(d, *thread, text, position, why, sizeof why))
		return true;
	fprintf(out, "error: %s\n", why);
	return false;
}

/* The move itself is made by a step of gdb, so that gdb knows that everything is another one then. */
static void arm_seek(struct gdb_session *session, char *rest, FILE *out)
{
	session->seeks = parse_where(session, rest, &session->seek_thread, &session->seek, out);
}

static void print_whereabouts(const struct whereabouts *w, FILE *out)
{
	char name[NAME_TEXT_SIZE];

	switch (w->state) {
	case WHEREABOUTS_TO_COME:
		fputs("not yet started\n", out);
		break;
	case WHEREABOUTS_RUNNING:
		fputs("running\n", out);
		break;
	case WHEREABOUTS_CALL:
		fprintf(out, "in system call %s\n", syscall_name((uint64_t)w->number, name));
		break;
	case WHEREABOUTS_CUT:
		fputs("its recording ends\n", out);
		break;
	case WHEREABOUTS_ENDED:
		fputs("ended\n", out);
		break;
	case WHEREABOUTS_ENDS:
		fputs("ends\n", out);
		break;
	case WHEREABOUTS_DIES:
		fprintf(out, "killed by %s\n", signal_name((uint32_t)w->number, name));
		break;
	case WHEREABOUTS_EXITS:
		fprintf(out, "exits with status %ld\n", w->number);
		break;
	case WHEREABOUTS_UNKNOWN:
		fputs("cannot be replayed up to here\n", out);
		break;
	}
}

static void print_threads(struct gdb_session *session, char *rest, FILE *out)
{
	struct debugger *d = session->debugger;
	uint32_t thread = session->general;
	uint64_t position;

	if (*rest && !parse_where(session, rest, &thread, &position, out))
		return;
	struct whereabouts *all = *rest ? whereabouts_at(d, thread, position) : whereabouts_now(d);
	for (uint32_t i = 0; i < d->thread_count; i++) {
		fprintf(out, "thread %u tid %d position %lu pc %lx state ", d->threads[i].recorded->id,
		        gdb_tid(session, i), all[i].place.position, all[i].pc);
		print_whereabouts(&all[i], out);
	}
	free(all);
}

/* gdb does not say which thread it is that goes back: the one it asked about last may be another one. */
static void select_thread(struct gdb_session *session, char *rest, FILE *out)
{
	(void)out;
	session->selected = find_tid(session, rest, session->selected);
	line_steps_clear(&session->lines);
}

static void note_lines(struct gdb_session *session, char *rest, FILE *out)
{
	struct line_range range;
	int read;

	(void)out;
	line_steps_clear(&session->lines);
	for (; sscanf(rest, "%lx %lx%n", &range.start, &range.end, &read) == 2; rest += read)
		vector_push(&session->lines.ranges, range);
}

/* "POSITION PC ...", the pcs in hex. */
static void print_executions(struct gdb_session *session, char *rest, FILE *out)
{
	VECTOR(uint64_t) pcs = {0};
	struct executions found = {0};
	uint64_t from = strtoull(rest, &rest, 10), pc;
	char why[512];
	int read;

	for (; sscanf(rest, "%lx%n", &pc, &read) == 1; rest += read)
		vector_push(&pcs, pc);
	if (!executions_find(session->debugger, session->general, from, pcs.items, pcs.count, &found, why,
	            sizeof why)) {
		fprintf(out, "error: %s\n", why);
	} else {
		for (uint32_t i = 0; i < found.items.count; i++) {
			const struct execution *e = &found.items.items[i];
			fprintf(out, "%lu %lx %lx %lx %lx\n", e->position, e->pc, e->stack, e->top,
			        e->result);
		}
		fprintf(out, "%s %lu\n", found.all ? "end" : "more", found.reached);
	}
	executions_deinit(&found);
	vector_free(&pcs);
}

/* "POSITION": is it a `ret` that the thread executes right before? It may come to where a call returns to in
 * another way: by longjmp. */
static void print_returned(struct gdb_session *session, char *rest, FILE *out)
{
	struct debugger *d = session->debugger;
	uint32_t thread = session->general;
	uint64_t position = strtoull(rest, NULL, 10);
	uint8_t code[2] = {0};
	char why[512];

	if (position <= d->threads[thread].first.position) {
		fprintf(out, "no\n");
		return;
	}
	const struct standing *before = explorer_go(d->explorer, d->threads[thread].recorded->id,
	        debugger_about(d, thread, position - 1), why, sizeof why);
	if (!before) {
		fprintf(out, "error: %s\n", why);
		return;
	}
	explorer_read_code(d->explorer, before, before->state.registers.pc, code, sizeof code);
	explorer_release(d->explorer, before);
	bool prefixed = code[0] == 0xf2 || code[0] == 0xf3;
	fprintf(out, "%s\n", (code[prefixed] & 0xfe) == 0xc2 ? "yes" : "no");
}

/* ---- what it is ---- */

/* For the user, when gdb has opened it. */
static void print_opened(struct gdb_session *session, char *rest, FILE *out)
{
	struct debugger *d = session->debugger;
	const struct debugged_thread *t = &d->threads[d->current];
	const struct happening *end = d->recorded ? chronicle_end(&d->chronicle, t->recorded->id) : NULL;
	struct place place = debugger_place(d, d->current);
	char name[NAME_TEXT_SIZE], text[512];

	(void)rest;
	if (!d->recorded) {
		fprintf(out, "The program is recorded. It stands at position %lu; 'continue' lets it run.\n",
		        debugger_place(d, d->current).position);
		return;
	}
	fprintf(out, "Recording of %lu instructions", t->last.position - t->first.position);
	if (d->thread_count > 1)
		fprintf(out, " of this thread, one of %u", d->thread_count);
	fprintf(out, ". Position %lu.\n", place.position);
	if (!end || place_compare(place, t->last) < 0)
		return;
	if (executed_text(d, d->current, text, sizeof text))
		fprintf(out, "%s\n", text);
	else if (recorded_lost_end(d->recorded, t->recorded->id))
		fputs("The recording is damaged here: how it goes on is lost.\n", out);
	else if (end->kind == HAPPENED_CUT)
		fputs("The recording ends here.\n", out);
	else if (end->end == END_KILLED)
		fprintf(out, "The program was killed here by signal %s, %s.\n",
		        signal_name((uint32_t)end->number, name), strsignal((int)end->number));
	else if (end->end == END_EXIT)
		fprintf(out, "The program exited here with status %ld.\n", end->number);
	else
		fputs("The thread ended here.\n", out);
}

static void print_path(struct gdb_session *session, char *rest, FILE *out)
{
	(void)rest;
	if (session->debugger->path)
		fprintf(out, "%s\n", session->debugger->path);
	else
		fprintf(out, "error: it has no file\n");
}

/* ---- who wrote it ---- */

/* "ADDRESS SIZE", in hex and decimal; of a bit-field how many bits of the first byte and of the last one are
 * none of it, too. */
static bool parse_what(const char *text, struct watch *what, FILE *out)
{
	unsigned long low = 0, high = 0;
	char *end;

	*what = (struct watch){.address = strtoull(text, &end, 16)};
	what->size = *end == ' ' ? strtoull(end + 1, &end, 10) : 0;
	if (*end == ' ') {
		low = strtoul(end + 1, &end, 10);
		high = *end == ' ' ? strtoul(end + 1, &end, 10) : 8;
	}
	what->spared_low = (uint8_t)low;
	what->spared_high = (uint8_t)high;
	if (!*end && what->size && what->address + what->size > what->address && low < 8 && high < 8)
		return true;
	fprintf(out, "error: give an address in hex and a size\n");
	return false;
}

static void print_write(struct gdb_session *session, struct watch what, const struct write *write, FILE *out)
{
	struct debugger *d = session->debugger;

	char before[24] = "?";

	if (writes_knows_before(write, what))
		snprintf(before, sizeof before, "%lx", write->before);
	fprintf(out, "thread %u tid %d position %lu pc %lx address %lx before %s after %lx %s",
	        d->threads[write->thread].recorded->id, gdb_tid(session, write->thread), write->position,
	        write->pc, write->address, before, write->after, write->found ? "found" : "stored");
	const struct happening *call = write->found ? writes_call(d, write) : NULL;
	char name[NAME_TEXT_SIZE];
	if (call)
		fprintf(out, " call %s %lu", syscall_name((uint64_t)call->number, name), call->position);
	fputc('\n', out);
}

/* last, next: of all threads, seen from here. */
static void print_found(struct gdb_session *session, char *rest, FILE *out, enum direction direction)
{
	struct watch what;
	struct write write;
	char why[512];

	if (!parse_what(rest, &what, out))
		return;
	if (writes_find(session->debugger, session->general, what, direction, &write, why, sizeof why))
		print_write(session, what, &write, out);
	else if (*why)
		fprintf(out, "error: %s\n", why);
	else
		fprintf(out, "error: nothing in the recording changes it %s\n",
		        direction == FORWARDS ? "from here on" : "before");
}

#define KNOWN_MOST 4096

static void print_known(struct gdb_session *session, char *rest, FILE *out)
{
	uint8_t bytes[KNOWN_MOST], known[KNOWN_MOST];
	struct watch what;

	if (!parse_what(rest, &what, out))
		return;
	what.size = what.size < KNOWN_MOST ? what.size : KNOWN_MOST;
	gdb_memory_read(session, what.address, bytes, known, what.size);
	for (uint64_t i = 0; i < what.size; i++)
		fputc('0' + known[i], out);
	fputc('\n', out);
}

static void print_last(struct gdb_session *session, char *rest, FILE *out)
{
	print_found(session, rest, out, BACKWARDS);
}

static void print_next(struct gdb_session *session, char *rest, FILE *out)
{
	print_found(session, rest, out, FORWARDS);
}

#define HISTORY_MOST 20000

static void print_history(struct gdb_session *session, char *rest, FILE *out)
{
	struct watch what;
	struct writes writes;
	char why[512];

	if (!parse_what(rest, &what, out))
		return;
	if (!writes_list(session->debugger, what, HISTORY_MOST, &writes, why, sizeof why))
		fprintf(out, "error: %s\n", why);
	for (uint32_t i = 0; i < writes.items.count; i++)
		print_write(session, what, &writes.items.items[i], out);
	if (writes.cut)
		fprintf(out, "cut\n");
	writes_deinit(&writes);
}

/* ---- what happened ---- */

static void print_happening(
        struct debugger *d, uint32_t thread, const struct happening *h, bool here, FILE *out)
{
	char name[NAME_TEXT_SIZE];

	fprintf(out, "%s %12lu  ", here ? "=>" : "  ", h->position);
	switch (h->kind) {
	case HAPPENED_CALL:
		fprintf(out, "%s(%#lx, %#lx, %#lx, ...) = %ld\n", syscall_name((uint64_t)h->number, name),
		        h->arguments[0], h->arguments[1], h->arguments[2], h->result);
		break;
	case HAPPENED_SIGNAL:
		fprintf(out, "--- %s ---\n", signal_name((uint32_t)h->number, name));
		break;
	case HAPPENED_END:
		if (h->end == END_KILLED)
			fprintf(out, "+++ killed by %s +++\n", signal_name((uint32_t)h->number, name));
		else
			fprintf(out, "+++ %s +++\n", h->end == END_EXIT ? "exited" : "ended");
		break;
	case HAPPENED_CUT:
		fprintf(out, "+++ %s +++\n",
		        executed_at_end(d, thread) ? "executed another program" : "the recording ends");
		break;
	case HAPPENED_ORDER:
		break;
	}
}

#define EVENTS_AROUND 8

/* The system calls and signals before and behind the place; "=>" is the next one. */
static void print_events(struct gdb_session *session, char *rest, FILE *out)
{
	struct debugger *d = session->debugger;
	uint32_t id = d->threads[session->general].recorded->id;
	uint64_t here = debugger_place(d, session->general).position, from = here;
	char *end = rest;
	long around = *rest ? strtol(rest, &end, 10) : EVENTS_AROUND;

	if (*end || around < 1) {
		fprintf(out,
		        "error: '%s' is not how many events there can be on each side; give a number, 1 or "
		        "more\n",
		        rest);
		return;
	}

	for (long i = 0; i < around;) {
		const struct happening *before = chronicle_previous(&d->chronicle, id, from);
		if (!before)
			break;
		from = before->position;
		i += before->kind != HAPPENED_ORDER;
	}
	const struct happening *h = chronicle_next(&d->chronicle, id, from);
	bool next = true;
	for (long behind = 0; h && behind < around; h = chronicle_following(&d->chronicle, id, h)) {
		if (h->kind == HAPPENED_ORDER)
			continue;
		behind += h->position >= here;
		print_happening(d, session->general, h, next && h->position >= here, out);
		next &= h->position < here;
	}
}

/* Where replay can begin. */
static void print_intervals(struct gdb_session *session, char *rest, FILE *out)
{
	struct debugger *d = session->debugger;
	const struct timeline *timeline = &d->recorded->timeline;
	const struct chronicle_thread *t = d->threads[session->general].recorded;

	(void)rest;
	for (size_t i = t->first; i < t->end; i++)
		fprintf(out, "%12lu to %12lu\n", timeline->stretches[i]->first, timeline->stretches[i]->last);
}

static void print_statistics(struct gdb_session *session, char *rest, FILE *out)
{
	struct explorer_counts counts = explorer_counts(session->debugger->explorer);

	(void)rest;
	fprintf(out, "%lu moves, %lu forks, %lu instructions, %u processes parked\n", counts.moves,
	        counts.forks, counts.instructions, counts.parked);
}

/* For our own commands: from now on gdb says when it is about to call a function; and it is. */
/* Where the selected thread was then, right before it. */
static uint64_t position_before(struct gdb_session *session, const struct load *load)
{
	struct debugger *d = session->debugger;

	if (d->threads[session->general].recorded->id == load->thread)
		return load->position;
	return debugger_place_at(d, session->general, load->time - 1).position;
}

static uint64_t number_of(const bool *there, uint32_t count)
{
	uint64_t number = 0xcbf29ce484222325;

	for (uint32_t i = 0; i < count; i++)
		number = (number ^ there[i]) * 0x100000001b3;
	return number;
}

/* Where libraries only come, nothing lies where something else has lain: a function is found where the first
 * of them goes, and is the same up to where the next one comes. */
static void print_libraries(struct gdb_session *session, char *rest, FILE *out)
{
	struct debugger *d = session->debugger;
	const struct images *images = debugger_images(d);
	const struct loads *loads = &d->loads;
	uint32_t count = images->items.count;
	uint64_t end = d->threads[session->general].last.position, number = 0;
	bool *there = calloc(count + 1, sizeof *there);
	const struct load *gone = NULL;

	(void)rest;
	if (!there)
		abort();
	memset(there, true, count);
	for (uint32_t i = loads->items.count; i-- > 0;)
		there[loads->items.items[i].image] = !loads->items.items[i].loaded;
	for (uint32_t i = 0; i < loads->items.count; i++) {
		const struct load *load = &loads->items.items[i];
		if (load->loaded && gone) {
			fprintf(out, "%lu %lu %lx\n", position_before(session, gone),
			        position_before(session, load), number);
			gone = NULL;
		} else if (!load->loaded && !gone) {
			gone = load;
			number = number_of(there, count);
		}
		there[load->image] = load->loaded;
	}
	fprintf(out, "%lu %lu %lx\n", gone ? position_before(session, gone) : end, end,
	        gone ? number : number_of(there, count));
	free(there);
}

static void note_script(struct gdb_session *session, char *rest, FILE *out)
{
	(void)rest;
	session->scripted = true;
	fprintf(out, "filler %x images %u\n", GDB_FILLER,
	        session->debugger->recorded ? session->debugger->images.items.count : 0);
}

static void print_live(struct gdb_session *session, char *rest, FILE *out)
{
	(void)rest;
	fprintf(out, "%s\n", session->debugger->live ? "yes" : "no");
}

static void note_call(struct gdb_session *session, char *rest, FILE *out)
{
	(void)rest;
	(void)out;
	gdb_calls_arm(session);
}

static const struct monitor {
	const char *name;
	void (*function)(struct gdb_session *session, char *rest, FILE *out);
	const char *help;
	bool now; /* needs no recording where the program runs */
} monitors[] = {
        {"path", print_path, "where the recording is", true},
        {"opened", print_opened, "what is being debugged", true},
        {"when", print_when, "where the thread stands", true},
        {"seek", arm_seek,
                "POSITION|N%|TIME|start|end [TID]: the next stepi goes there, in this thread or that one",
                false},
        {"threads-at", print_threads,
                "[POSITION|N%|TIME|start|end [TID]]: where every thread is when this thread, or that one, is "
                "there",
                false},
        {"executions", print_executions,
                "POSITION PC ...: where the thread executes what is at these pcs, from there on", false},
        {"returned", print_returned, "POSITION: has the thread just returned from a function there?", false},
        {"thread", select_thread, "TID: the thread that goes back next", true},
        {"lines", note_lines, "START END ...: the pcs of lines that are gone back over next", true},
        {"known", print_known, "ADDRESS SIZE: 0 or 1 for each byte of memory, up to 4096 of them", true},
        {"last", print_last,
                "ADDRESS SIZE [LOW HIGH]: who changed it last before here; of a bit-field without so many "
                "bits of the first byte and the last",
                false},
        {"next", print_next, "ADDRESS SIZE [LOW HIGH]: who changes it next", false},
        {"history", print_history, "ADDRESS SIZE [LOW HIGH]: all who change it", false},
        {"libraries", print_libraries,
                "stretches in which libraries only come: where the first one goes, where the stretch ends, "
                "and a "
                "number for all of its libraries",
                false},
        {"events", print_events, "[COUNT]: system calls and signals around here", false},
        {"intervals", print_intervals, "the keyframes of this thread", false},
        {"live", print_live, "is it a program that runs, and no recording?", true},
        {"script", note_script, "gdb says when it calls a function", true},
        {"call", note_call, "it does", true},
        {"statistics", print_statistics, "what it took to come here", false},
};

static void execute(struct gdb_session *session, char *command, FILE *out)
{
	char *rest = command + strcspn(command, " "), why[512];

	if (*rest)
		*rest++ = 0;
	for (unsigned i = 0; i < sizeof monitors / sizeof *monitors; i++) {
		if (strcmp(command, monitors[i].name) != 0)
			continue;
		if (monitors[i].now || debugger_recall(session->debugger, why, sizeof why))
			monitors[i].function(session, rest, out);
		else
			fprintf(out, "error: %s\n", why);
		return;
	}
	for (unsigned i = 0; i < sizeof monitors / sizeof *monitors; i++)
		fprintf(out, "monitor %s: %s\n", monitors[i].name, monitors[i].help);
}

void gdb_monitor(struct gdb_session *session, char *command, FILE *out)
{
	uint32_t general = session->general;

	if (*command == '@') {
		session->general = find_tid(session, command + 1, general);
		command += strcspn(command, " ");
		command += *command == ' ';
	}
	execute(session, command, out);
	session->general = general;
}
