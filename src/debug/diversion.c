#include "debug/diversion.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "recording/names.h"
#include "replay/session.h"
#include "target/feed.h"

#define INSTRUCTIONS 1000000000ul /* that a call may execute, about, */
#define PIECE        4000000ul    /* and before it is asked whether the user wants to wait */
#define LINE         ((uint64_t)EVENT_LINE_BYTES)
#define PAGE         4096ul
/* Memory that a copy maps: where no program has any. */
#define ROOM         0x200000000000ul
#define ROOM_BYTES   (1ul << 32)
#define OUTPUT_MOST  65536ul

/* ---- memory ---- */

static struct diverted_line *find_line(const diverted_lines *lines, uint64_t address)
{
	for (uint32_t i = lines->count; i-- > 0;) {
		if (lines->items[i].address == address)
			return &lines->items[i];
	}
	return NULL;
}

/* What the copy itself knows, or what is known of the recording. */
static uint64_t read_line(struct diversion *diversion, uint64_t address, uint8_t bytes[LINE])
{
	const struct diverted_line *line = find_line(&diversion->lines, address);
	struct debugger *d = diversion->debugger;
	uint8_t known[EVENT_LINE_BYTES] = {0};
	uint64_t mask = 0;

	if (line) {
		memcpy(bytes, line->bytes, LINE);
		return line->known;
	}
	if (address - ROOM < diversion->mapped) {
		memset(bytes, 0, LINE);
		memset(known, 1, LINE);
	}
	if (diversion->standing) {
		memset(known, 0, LINE);
		explorer_read(d->explorer, diversion->standing, address, bytes, known, LINE);
		if (address - ROOM < diversion->mapped && !known[0]) {
			memset(bytes, 0, LINE);
			memset(known, 1, LINE);
		}
	}
	for (unsigned i = 0; i < LINE; i++) {
		if (!known[i])
			debugger_read_known(d, diversion->thread, address + i, bytes + i, known + i, 1);
		mask |= (uint64_t)known[i] << i;
	}
	return mask;
}

void diversion_write(struct diversion *diversion, uint64_t address, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		uint64_t at = (address + i) & -LINE;
		struct diverted_line *line = find_line(&diversion->lines, at);
		if (!line) {
			struct diverted_line new = {.address = at};
			new.known = read_line(diversion, at, new.bytes);
			line = &diversion->lines.items[vector_push(&diversion->lines, new)];
		}
		line->bytes[(address + i) % LINE] = bytes[i];
		line->known |= 1ul << (address + i) % LINE;
	}
}

void diversion_read(struct diversion *diversion, uint64_t address, uint8_t *to, uint8_t *known, size_t size)
{
	uint8_t bytes[EVENT_LINE_BYTES];
	uint64_t mask = 0, line = 1;

	for (size_t i = 0; i < size; i++) {
		if (line != ((address + i) & -LINE)) {
			line = (address + i) & -LINE;
			mask = read_line(diversion, line, bytes);
		}
		known[i] = mask >> (address + i) % LINE & 1;
		to[i] = bytes[(address + i) % LINE];
	}
}

/* ---- while it runs ---- */

static bool stops(void *context, uint64_t pc)
{
	const struct diversion *diversion = context;

	return breakpoints_have(&diversion->debugger->breakpoints, pc);
}

/* The lines that were written are in the copy; and nothing can be replayed now, so only what is there is
 * looked at, and what was looked for where that was not enough. */
static uint64_t give_line(void *context, uint64_t address, uint8_t bytes[LINE], uint64_t *blank)
{
	struct diversion *diversion = context;
	const struct diverted_line *found = find_line(&diversion->found, address);

	*blank = 0;
	if (address - ROOM < diversion->mapped) {
		memset(bytes, 0, LINE);
		return UINT64_MAX;
	}
	if (!found)
		return debugger_read_here(diversion->debugger, diversion->thread, address, bytes);
	for (unsigned i = 0; i < LINE; i++)
		*blank |= (uint64_t)debugger_is_blank(diversion->debugger, address + i) << i;
	*blank &= ~found->known;
	memcpy(bytes, found->bytes, LINE);
	return found->known;
}

/* It stands where it needs the line: what gdb would show of it is looked for. False: it was already. */
static bool look_for(struct diversion *diversion, uint64_t address)
{
	struct diverted_line line = {.address = address & -LINE};
	uint8_t known[EVENT_LINE_BYTES];

	if (find_line(&diversion->found, line.address))
		return false;
	debugger_read_known(
	        diversion->debugger, diversion->thread, line.address, line.bytes, known, sizeof line.bytes);
	for (unsigned i = 0; i < LINE; i++)
		line.known |= (uint64_t)(known[i] != 0) << i;
	vector_push(&diversion->found, line);
	return true;
}

static uint64_t write_out(struct diversion *diversion, int memory, uint64_t address, uint64_t size)
{
	char bytes[OUTPUT_MOST];
	ssize_t n = pread(memory, bytes, size < sizeof bytes ? size : sizeof bytes, (off_t)address);

	if (n > 0 && diversion->output)
		diversion->output(diversion->context, bytes, (size_t)n);
	return n < 0 ? (uint64_t)-EFAULT : (uint64_t)n;
}

static uint64_t write_vectors(struct diversion *diversion, int memory, uint64_t address, uint64_t count)
{
	uint64_t all = 0;

	for (uint64_t i = 0; i < count && i < 1024; i++) {
		struct iovec vector;
		if (pread(memory, &vector, sizeof vector, (off_t)(address + i * sizeof vector)) !=
		        sizeof vector)
			return (uint64_t)-EFAULT;
		if (vector.iov_len)
			all += write_out(
			        diversion, memory, (uint64_t)(uintptr_t)vector.iov_base, vector.iov_len);
	}
	return all;
}

static uint64_t map(struct diversion *diversion, const uint64_t *gpr)
{
	uint64_t size = (gpr[RSI] + PAGE - 1) & -PAGE, at = ROOM + diversion->mapped;

	if (!(gpr[R10] & MAP_ANONYMOUS) || gpr[R10] & (MAP_FIXED | MAP_SHARED) ||
	        size > ROOM_BYTES - diversion->mapped)
		return (uint64_t)-ENOMEM;
	diversion->mapped += size;
	return at;
}

static bool call(void *context, pid_t pid, const struct registers *registers, uint64_t *result)
{
	struct diversion *diversion = context;
	const uint64_t *gpr = registers->gpr;
	char path[64];
	int memory;

	switch (gpr[RAX]) {
	case SYS_write:
	case SYS_writev:
		if (gpr[RDI] != 1 && gpr[RDI] != 2)
			return false;
		snprintf(path, sizeof path, "/proc/%d/mem", pid);
		memory = open(path, O_RDONLY | O_CLOEXEC);
		if (memory < 0)
			return false;
		*result = gpr[RAX] == SYS_write ? write_out(diversion, memory, gpr[RSI], gpr[RDX])
		                                : write_vectors(diversion, memory, gpr[RSI], gpr[RDX]);
		close(memory);
		return true;
	case SYS_mmap:
		*result = map(diversion, gpr);
		return true;
	case SYS_munmap:
	case SYS_madvise:
		*result = 0;
		return gpr[RDI] - ROOM < diversion->mapped;
	case SYS_brk: /* it stays where it is, as for one who asks for too much */
		*result = 0;
		return true;
	case SYS_getpid:
		meta_number(&diversion->debugger->recorded->meta, META_PID, result);
		return true;
	case SYS_futex: /* nobody else runs: there is nobody to wake, and nobody who would */
		*result = 0;
		return (gpr[RSI] & 0x7f) == 1;
	default:
		return false;
	}
}

__attribute__((format(printf, 3, 4))) static void give_up(
        struct stop *stop, int number, const char *format, ...)
{
	va_list arguments;

	stop->kind = STOP_SIGNAL;
	stop->signal = number;
	va_start(arguments, format);
	vsnprintf(stop->why, sizeof stop->why, format, arguments);
	va_end(arguments);
}

/* So many instructions of the way. *detail goes with it. False: it could not go on, and `why` tells. */
static bool run_piece(struct diversion *diversion, uint64_t instructions, unsigned *why_stopped,
        uint64_t *detail, char *why, size_t why_size)
{
	struct debugger *d = diversion->debugger;
	const struct session_diversion world = {
	        .context = diversion, .stops = stops, .read_line = give_line, .call = call};
	const struct standing *from =
	        diversion->standing ? diversion->standing : d->threads[diversion->thread].standing;
	struct explorer_line *lines = calloc(diversion->lines.count + 1, sizeof *lines);

	if (!lines)
		abort();
	for (uint32_t i = 0; i < diversion->lines.count; i++) {
		lines[i].address = diversion->lines.items[i].address;
		memcpy(lines[i].words, diversion->lines.items[i].bytes, LINE);
	}
	/* What the thread knows may not be what is there: see debugger_read_known. */
	bool empty = !diversion->standing && (d->thread_count > 1 || debugger_shows_program(d));
	const struct standing *standing = explorer_divert(d->explorer, from, &diversion->state, empty, lines,
	        diversion->lines.count, instructions, &world, why_stopped, detail, why, why_size);
	free(lines);
	if (!standing)
		return false;
	if (diversion->standing)
		explorer_drop(d->explorer, diversion->standing);
	diversion->standing = standing;
	diversion->state = standing->state;
	diversion->lines.count = 0;
	return true;
}

void diversion_run(struct diversion *diversion, bool step, struct stop *stop)
{
	struct debugger *d = diversion->debugger;
	uint64_t detail = 0, end = diversion->state.position + (step ? 1 : INSTRUCTIONS);
	char why[400], name[NAME_TEXT_SIZE];
	unsigned why_stopped = DIVERTED_LONG;

	*stop = (struct stop){.kind = STOP_BREAK, .thread = d->threads[diversion->thread].recorded->id};
	debugger_set_probes(d);
	while (why_stopped == DIVERTED_LONG && diversion->state.position < end) {
		if (!run_piece(diversion, step ? 1 : PIECE, &why_stopped, &detail, why, sizeof why)) {
			give_up(stop, SIGABRT, "%s", why);
			return;
		}
		if (why_stopped == DIVERTED_UNKNOWN && look_for(diversion, detail))
			why_stopped = DIVERTED_LONG;
		if (why_stopped == DIVERTED_LONG && d->interrupted && d->interrupted(d->context)) {
			give_up(stop, SIGINT, "it was interrupted");
			return;
		}
	}
	if (why_stopped == DIVERTED_UNKNOWN)
		give_up(stop, SIGSEGV, "it loads from %#lx, and nothing is known of that memory", detail);
	else if (why_stopped == DIVERTED_CALL)
		give_up(stop, SIGSYS, "it makes system call %s, which a copy cannot",
		        syscall_name(detail, name));
	else if (why_stopped == DIVERTED_LONG && step)
		stop->kind = STOP_STEP;
	else if (why_stopped == DIVERTED_LONG)
		give_up(stop, SIGXCPU, "it has executed %lu instructions, and no end was seen", INSTRUCTIONS);
}

/* ---- the whole ---- */

bool diversion_begin(struct diversion *diversion, struct debugger *debugger, uint32_t thread)
{
	char why[512];
	const struct standing *standing = debugger_look(debugger, thread, why, sizeof why);

	if (!standing)
		return false;
	diversion->debugger = debugger;
	diversion->thread = thread;
	diversion->state = standing->state;
	if (!debugger_shows_program(debugger))
		debugger_look_around(debugger, thread);
	return true;
}

void diversion_end(struct diversion *diversion)
{
	if (diversion->standing)
		explorer_drop(diversion->debugger->explorer, diversion->standing);
	vector_free(&diversion->lines);
	vector_free(&diversion->found);
	diversion->debugger = NULL;
	diversion->standing = NULL;
	diversion->mapped = 0;
}
