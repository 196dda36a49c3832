/* What the parts of the server share; see gdb_server.h. */
#ifndef BUGNET_DEBUG_GDB_SESSION_H
#define BUGNET_DEBUG_GDB_SESSION_H

#include <stdio.h>

#include "debug/debugger.h"
#include "debug/diversion.h"
#include "debug/gdb_packet.h"
#include "debug/gdb_registers.h"
#include "debug/line_steps.h"

/* A file that gdb has opened: `bytes` is NULL if it is none. */
struct gdb_file {
	const uint8_t *bytes;
	size_t size;
	char *made; /* what is to be freed */
};
#define GDB_FILES 16

struct gdb_session {
	struct debugger *debugger;
	struct gdb_link link;
	uint32_t general;   /* index of the thread that is looked at, */
	uint32_t continued; /* that is continued, or NO_INDEX: all of them */
	uint32_t selected;  /* the one that the user looks at, as far as gdb said so: going back it does not;
	                       or  NO_INDEX */
	bool multiprocess;
	bool errors;         /* gdb understands "E.text" */
	bool over, ends_all; /* gdb has left; and wants us to end */
	int pid;
	int child;            /* the process that was made where it stands, which gdb may talk about; or 0 */
	bool of_child;        /* gdb talks about it */
	struct stop last;     /* why it stands where it stands */
	uint64_t interrupted; /* when gdb wanted it to stop where it stood already, monotonic, ns; or 0 */
	bool seeks;           /* the next step goes to this position: see gdb_monitor.c */
	uint64_t seek;
	uint32_t seek_thread;
	bool switched;      /* it went to another thread than the one that gdb has stepped */
	char *libraries;    /* the list that gdb has; NULL: it has never asked for it */
	bool delayed;       /* it has just been told that there is another one, and not yet of the stop */
	enum direction way; /* in which it went there */
	struct line_steps lines; /* that are stepped back over, if gdb has told */
	uint64_t read_end;       /* of a large piece of memory that it was told of just now, or 0 */
	unsigned register_count; /* GDB_REGISTERS_AVX or GDB_REGISTER_COUNT */
	char *description;
	char *reply; /* what was made for qXfer, to be fetched in pieces */
	size_t reply_size;
	char reply_name[64];
	struct gdb_file files[GDB_FILES];
	/* calls, see gdb_calls.c */
	bool scripted;         /* gdb has our commands, and says when it is about to call a function */
	unsigned armed;        /* so many calls it may be about to make, or is making; */
	unsigned outermost;    /* and so many when the copy was made */
	struct diversion copy; /* in which it does */
	struct stop stopped;   /* as `last` was before it */
	bool lingers;          /* the call is over, and the copy is there for the next one, if gdb */
	uint32_t refused;  /* the thread that was to be stepped instead, of which the stop is; or NO_INDEX */
	bool wanted;       /* has written to */
	uint64_t returned; /* what was returned */
};
#define NO_INDEX UINT32_MAX

/* ---- gdb_server.c ---- */
void gdb_reply(struct gdb_session *session, const char *format, ...) __attribute__((format(printf, 2, 3)));
void gdb_reply_bytes(struct gdb_session *session, const char *bytes, size_t size);
void gdb_put_hex(char *text, const uint8_t *bytes, size_t size);
bool gdb_skip(const char **text, char character);
void gdb_fail(struct gdb_session *session, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "p1a2b.1a2c", or "1a2c". */
#define GDB_THREAD_TEXT 40
const char *gdb_thread_text(const struct gdb_session *session, uint32_t thread, char text[GDB_THREAD_TEXT]);
int gdb_tid(const struct gdb_session *session, uint32_t thread);
/* "-1", "0", a number, with or without "pPID.". *thread: an index, or NO_INDEX for all or any. */
bool gdb_thread(const struct gdb_session *session, const char **text, uint32_t *thread);
/* The text of a number in hex; *text is behind it then. */
bool gdb_hex(const char **text, uint64_t *number);
int gdb_signal_number(int signal);
/* A text in hex; *text is behind it then. False: it is none, or too long. */
bool gdb_text(const char **text, char *to, size_t size);

/* Text for the user, while gdb waits for the program. */
void gdb_say(struct gdb_session *session, const char *text, size_t size);

/* ---- gdb_calls.c ---- */
/* gdb has read the signal information, and it has written it. */
void gdb_calls_arm(struct gdb_session *session);
void gdb_calls_returned(struct gdb_session *session);
void gdb_calls_end(struct gdb_session *session);
/* Of the selected thread in the copy; NULL, false: there is none. */
const struct state *gdb_calls_state(const struct gdb_session *session);
bool gdb_calls_read(struct gdb_session *session, uint64_t address, uint8_t *to, uint8_t *known, size_t size);
/* "P", "G", and memory: made in the copy, or refused. */
void gdb_calls_write_register(struct gdb_session *session, const char *text);
void gdb_calls_write_registers(struct gdb_session *session, const char *text);
void gdb_calls_write_memory(
        struct gdb_session *session, uint64_t address, const uint8_t *bytes, uint64_t size);
/* Has the copy run, or this thread in it execute one instruction; session->last is its stop then. False:
 * there is none. */
bool gdb_calls_run(struct gdb_session *session, uint32_t thread, bool step);
/* The thread that session->last is of. */
uint32_t gdb_calls_stopped(const struct gdb_session *session);

/* ---- gdb_memory.c ---- */
#define GDB_FILLER 0xfe /* what is not known beside what is; our Python is told, by `monitor script` */
/* "1000,40" */
void gdb_memory_packet(struct gdb_session *session, const char *text);
/* Of the selected thread, or of the copy in which a function is called; notes which bytes are known. */
void gdb_memory_read(struct gdb_session *session, uint64_t address, uint8_t *to, uint8_t *known, size_t size);

/* ---- gdb_search.c ---- */
#define GDB_SEARCH_PACKET "qSearch:memory:"
/* "qSearch:memory:1000;40;" and the bytes that are looked for. */
void gdb_search_packet(struct gdb_session *session, const char *packet, size_t packet_size);

/* ---- gdb_query.c ---- */
void gdb_query(struct gdb_session *session, const char *text);
void gdb_set(struct gdb_session *session, const char *text);
/* Is the list of libraries another one than gdb has? It counts as told then. */
bool gdb_libraries_changed(struct gdb_session *session);

/* ---- gdb_files.c ---- */
/* Behind "vFile:". */
void gdb_file_packet(struct gdb_session *session, const char *text);
void gdb_close_files(struct gdb_session *session);

/* ---- gdb_monitor.c ---- */
/* A command of `monitor`, of the selected thread, or "@TID COMMAND"; prints what it has to say. */
void gdb_monitor(struct gdb_session *session, char *command, FILE *out);

#endif
