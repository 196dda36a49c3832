#include <elf.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "debug/auxv.h"
#include "debug/gdb_session.h"
#include "debug/libraries.h"
#include "debug/live.h"
#include "debug/tls.h"

#define PAGE 4096ul

static const char *after(const char *text, const char *prefix)
{
	size_t size = strlen(prefix);

	return strncmp(text, prefix, size) == 0 ? text + size : NULL;
}

static void put_xml(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<' || *text == '>' || *text == '&' || *text == '"' ||
		        (unsigned char)*text < ' ')
			fprintf(out, "&#%u;", (unsigned char)*text);
		else
			fputc(*text, out);
	}
}

/* ---- what qXfer gives ---- */

static void make_threads(struct gdb_session *session, FILE *out)
{
	struct debugger *d = session->debugger;
	char text[GDB_THREAD_TEXT];

	fputs("<?xml version=\"1.0\"?><threads>", out);
	for (uint32_t i = 0; i < d->thread_count; i++) {
		if (!debugger_is_alive(d, i))
			continue;
		fprintf(out, "<thread id=\"%s\"", gdb_thread_text(session, i, text));
		if (d->threads[i].recorded->has_record) {
			fputs(" name=\"", out);
			put_xml(out, d->threads[i].recorded->record.name);
			fputs("\"", out);
		}
		fprintf(out, ">position %lu</thread>", debugger_place(d, i).position);
	}
	fputs("</threads>", out);
}

/* Those that are there where it stands, and only those: others may have lain in the same place. Where a
 * program runs gdb gets them in the same way: it would follow the dynamic linker's pointers, which are not
 * known everywhere. What is not in the file has no address that gdb could look at: a number that no other has
 * will do. */
static void make_libraries(struct gdb_session *session, FILE *out)
{
	struct libraries libraries;

	libraries_find(&libraries, session->debugger);
	fputs("<library-list-svr4 version=\"1.0\"", out);
	for (uint32_t i = 0; i < libraries.items.count; i++) {
		if (libraries.items.items[i].program)
			fprintf(out, " main-lm=\"%#lx\"", libraries.items.items[i].start);
	}
	fputs(">", out);
	for (uint32_t i = 0; i < libraries.items.count; i++) {
		const struct library *library = &libraries.items.items[i];
		if (library->program)
			continue;
		fputs("<library name=\"", out);
		put_xml(out, library->path);
		fprintf(out, "\" lm=\"%#lx\" l_addr=\"%#lx\" l_ld=\"%#lx\" lmid=\"0x0\"/>", library->start,
		        library->distance, library->dynamic);
	}
	fputs("</library-list-svr4>", out);
	libraries_deinit(&libraries);
}

static char *libraries_text(struct gdb_session *session)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		abort();
	make_libraries(session, out);
	if (fclose(out))
		abort();
	return text;
}

bool gdb_libraries_changed(struct gdb_session *session)
{
	char *text = session->libraries ? libraries_text(session) : NULL;

	if (!text || strcmp(text, session->libraries) == 0) {
		free(text);
		return false;
	}
	free(session->libraries);
	session->libraries = text;
	return true;
}

/* Whoever asks is told from now on when it is another one. */
static void send_libraries(struct gdb_session *session, FILE *out)
{
	free(session->libraries);
	session->libraries = libraries_text(session);
	session->debugger->catches.loads = &session->debugger->loads;
	fputs(session->libraries, out);
}

static void copy_auxv(const struct live *live, FILE *out)
{
	Elf64_auxv_t entry;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/auxv", live->pid);
	FILE *file = fopen(path, "re");
	while (file && fread(&entry, sizeof entry, 1, file) == 1) {
		fwrite(&entry, sizeof entry, 1, out);
	}
	if (file)
		fclose(file);
}

static void make_auxv(struct gdb_session *session, FILE *out)
{
	if (session->debugger->live) {
		copy_auxv(session->debugger->live, out);
		return;
	}
	Elf64_auxv_t found[AUXV_MOST];
	unsigned count = auxv_find(session->debugger, found);
	for (unsigned i = 0; i < count; i++) {
		/* gdb would load the vdso from there, of which only what was run is known. */
		if (found[i].a_type != AT_SYSINFO_EHDR)
			fwrite(&found[i], sizeof *found, 1, out);
	}
	if (count)
		return;
	/* What follows from the files. */
	const struct images *images = &session->debugger->images;
	const struct image *program = images_program(images);
	uint64_t interpreter = 0;

	for (uint32_t i = 0; i < images->items.count; i++) {
		const char *base = strrchr(images->items.items[i].file->path, '/');
		if (base && strncmp(base, "/ld", 3) == 0)
			interpreter = images->items.items[i].distance;
	}
	if (!program)
		return;
	Elf64_auxv_t auxv[] = {
	        {AT_PHDR, {program->headers}},
	        {AT_PHENT, {sizeof(Elf64_Phdr)}},
	        {AT_PHNUM, {program->header_count}},
	        {AT_PAGESZ, {PAGE}},
	        {AT_BASE, {interpreter}},
	        {AT_ENTRY, {program->entry}},
	        {AT_NULL, {0}},
	};
	fwrite(auxv, 1, sizeof auxv, out);
}

static void make_exec_file(struct gdb_session *session, FILE *out)
{
	if (session->debugger->live) {
		char path[64], program[PATH_MAX] = "";
		snprintf(path, sizeof path, "/proc/%d/exe", session->debugger->live->pid);
		if (readlink(path, program, sizeof program - 1) > 0)
			fputs(program, out);
		return;
	}
	const struct image *program = images_program(&session->debugger->images);

	if (program)
		fputs(program->file->path, out);
}

/* struct siginfo, as far as the log has it; without a signal as behind a step. */
static void make_siginfo(struct gdb_session *session, FILE *out)
{
	/* Where the program is killed, that is what it stands there for, whichever way it came. */
	bool came = session->last.kind == STOP_STEP || session->last.kind == STOP_END;
	const struct stop stop = came ? debugger_last_stop(session->debugger) : session->last;
	const struct happening *signal = stop.kind == STOP_SIGNAL ? stop.happening : NULL;
	int32_t head[4] = {SIGTRAP, 0, TRAP_TRACE, 0};
	uint8_t info[128] = {0};

	if (signal) {
		head[0] = stop.signal;
		head[2] = signal->code;
		memcpy(info + sizeof head, signal->details, sizeof signal->details);
	}
	memcpy(info, head, sizeof head);
	fwrite(info, 1, sizeof info, out);
	if (!session->scripted)
		gdb_calls_arm(session);
}

static void make_features(struct gdb_session *session, FILE *out)
{
	if (!session->description)
		session->description = gdb_description(session->register_count);
	fputs(session->description, out);
}

static const struct object {
	const char *name;
	void (*make)(struct gdb_session *session, FILE *out);
} objects[] = {
        {"features:read:target.xml:", make_features},
        {"threads:read::", make_threads},
        {"libraries-svr4:read::", send_libraries},
        {"auxv:read::", make_auxv},
        {"exec-file:read:", make_exec_file},
        {"siginfo:read::", make_siginfo},
};

/* A new one is made when it is read from its start. */
static void make_object(struct gdb_session *session, const struct object *object, bool anew)
{
	if (!anew && session->reply && strcmp(session->reply_name, object->name) == 0)
		return;
	free(session->reply);
	session->reply = NULL;
	FILE *out = open_memstream(&session->reply, &session->reply_size);
	if (!out)
		abort();
	object->make(session, out);
	if (fclose(out))
		abort();
	snprintf(session->reply_name, sizeof session->reply_name, "%s", object->name);
}

static void send_part(struct gdb_session *session, uint64_t offset, uint64_t size)
{
	char *part;

	if (offset >= session->reply_size) {
		gdb_reply(session, "l");
		return;
	}
	uint64_t left = session->reply_size - offset;
	bool last = left <= size;
	size = last ? left : size;
	part = malloc(size + 1);
	if (!part)
		abort();
	part[0] = last ? 'l' : 'm';
	memcpy(part + 1, session->reply + offset, size);
	gdb_reply_bytes(session, part, size + 1);
	free(part);
}

static void query_transfer(struct gdb_session *session, const char *text)
{
	const char *written = after(text, "siginfo:write::");

	if (written) { /* back, when a call is over */
		const char *colon = strchr(written, ':');
		gdb_calls_returned(session);
		gdb_reply(session, colon ? "80" : "E01");
		return;
	}
	for (unsigned i = 0; i < sizeof objects / sizeof *objects; i++) {
		const char *rest = after(text, objects[i].name);
		uint64_t offset, size;
		if (!rest)
			continue;
		/* exec-file has the process in front. */
		const char *colon = strrchr(rest, ':');
		rest = colon ? colon + 1 : rest;
		if (!gdb_hex(&rest, &offset) || *rest++ != ',' || !gdb_hex(&rest, &size) || *rest) {
			gdb_reply(session, "E01");
			return;
		}
		make_object(session, &objects[i], offset == 0);
		send_part(session, offset, size < GDB_PACKET_MAXIMUM ? size : GDB_PACKET_MAXIMUM);
		return;
	}
	gdb_reply(session, strstr(text, ":read:") ? "E00" : "%s", "");
}

/* ---- the rest ---- */

static void query_supported(struct gdb_session *session, const char *text)
{
	session->multiprocess = strstr(text, "multiprocess+") != NULL;
	/* A program that runs does not stop for them, so its recording does not either. */
	session->debugger->catches.forks =
	        !session->debugger->live && session->multiprocess && strstr(text, ";fork-events+");
	gdb_reply(session,
	        "PacketSize=%x;QStartNoAckMode+;multiprocess%c;ReverseStep+;ReverseContinue+;swbreak+;"
	        "hwbreak+;"
	        "vContSupported+;QPassSignals+;ConditionalBreakpoints+;QCatchSyscalls+;qXfer:features:read+;"
	        "qXfer:threads:"
	        "read+;qXfer:auxv:read+;"
	        "qXfer:libraries-svr4:read+;qXfer:exec-file:read+;qXfer:siginfo:read+;qXfer:siginfo:write+%"
	        "s",
	        GDB_PACKET_MAXIMUM - 8, session->multiprocess ? '+' : '-',
	        session->debugger->catches.forks ? ";fork-events+" : "");
}

static void query_threads(struct gdb_session *session)
{
	struct debugger *d = session->debugger;
	char text[GDB_THREAD_TEXT], *list = NULL;
	size_t size;
	FILE *out = open_memstream(&list, &size);

	if (!out)
		abort();
	fputc('m', out);
	for (uint32_t i = 0, n = 0; i < d->thread_count; i++) {
		if (debugger_is_alive(d, i))
			fprintf(out, "%s%s", n++ ? "," : "", gdb_thread_text(session, i, text));
	}
	if (fclose(out))
		abort();
	gdb_reply_bytes(session, list, size);
	free(list);
}

/* A command in hex, and its output the same way. */
static void query_command(struct gdb_session *session, const char *hex)
{
	char command[GDB_PACKET_MAXIMUM / 2], *text = NULL;
	size_t output;

	if (!gdb_text(&hex, command, sizeof command) || *hex) {
		gdb_reply(session, "E01");
		return;
	}
	FILE *out = open_memstream(&text, &output);
	if (!out)
		abort();
	gdb_monitor(session, command, out);
	if (fclose(out))
		abort();
	/* In pieces: what is long is console output before the end. */
	for (size_t at = 0; at < output; at += 4096) {
		char packet[2 * 4096 + 2] = "O";
		size_t part = output - at < 4096 ? output - at : 4096;
		gdb_put_hex(packet + 1, (const uint8_t *)text + at, part);
		gdb_reply_bytes(session, packet, 1 + 2 * part);
	}
	free(text);
	gdb_reply(session, "OK");
}

/* "THREAD,OFFSET,MODULE": for modules see make_libraries. */
static void query_tls(struct gdb_session *session, const char *text)
{
	uint64_t offset, module, address;
	uint32_t thread;
	char why[512];

	if (!gdb_thread(session, &text, &thread) || *text++ != ',' || !gdb_hex(&text, &offset) ||
	        *text++ != ',' || !gdb_hex(&text, &module) || *text)
		gdb_reply(session, "E01");
	else if (tls_address(session->debugger, thread == NO_INDEX ? session->general : thread, module,
	                 offset, &address, why, sizeof why))
		gdb_reply(session, "%lx", address);
	else
		gdb_fail(session, "%s", why);
}

void gdb_query(struct gdb_session *session, const char *text)
{
	char thread[GDB_THREAD_TEXT];
	const char *rest;

	if ((rest = after(text, "Supported")))
		query_supported(session, rest);
	else if ((rest = after(text, "Xfer:")))
		query_transfer(session, rest);
	else if (strcmp(text, "C") == 0)
		gdb_reply(session, "QC%s", gdb_thread_text(session, session->general, thread));
	else if (strcmp(text, "fThreadInfo") == 0)
		query_threads(session);
	else if (strcmp(text, "sThreadInfo") == 0)
		gdb_reply(session, "l");
	else if (after(text, "Attached"))
		gdb_reply(session, session->debugger->live && !session->debugger->live->attached ? "0" : "1");
	else if ((rest = after(text, "GetTLSAddr:")))
		query_tls(session, rest);
	else if ((rest = after(text, "Rcmd,")))
		query_command(session, rest);
	else if (after(text, "Symbol:"))
		gdb_reply(session, "OK");
	else
		gdb_reply(session, "%s", "");
}

/* Signals by gdb's numbers. */
static void set_passed(struct gdb_session *session, const char *list)
{
	struct debugger *d = session->debugger;
	uint64_t number;

	memset(d->catches.passes, 0, sizeof d->catches.passes);
	while (gdb_hex(&list, &number)) {
		for (int i = 1; i < 65; i++) {
			if ((uint64_t)gdb_signal_number(i) == number)
				d->catches.passes[i] = true;
		}
		if (*list++ != ';')
			break;
	}
	gdb_reply(session, "OK");
}

/* "0", or "1" and the numbers of system calls, each behind a semicolon; none: all of them. */
static void set_caught_calls(struct gdb_session *session, const char *list)
{
	struct catches *catches = &session->debugger->catches;
	uint64_t number;

	if (*list != '0' && *list != '1') {
		gdb_reply(session, "E01");
		return;
	}
	catches->calls = *list++ == '1';
	catches->numbers.count = 0;
	while (*list == ';') {
		list++;
		if (!gdb_hex(&list, &number))
			break;
		vector_push(&catches->numbers, number);
	}
	if (*list)
		catches->calls = false;
	gdb_reply(session, *list ? "E01" : "OK");
}

void gdb_set(struct gdb_session *session, const char *text)
{
	const char *rest;

	if (strcmp(text, "StartNoAckMode") == 0) {
		gdb_reply(session, "OK");
		session->link.acknowledges = false;
	} else if ((rest = after(text, "PassSignals:"))) {
		set_passed(session, rest);
	} else if ((rest = after(text, "CatchSyscalls:"))) {
		set_caught_calls(session, rest);
	} else {
		gdb_reply(session, "%s", "");
	}
}
