/*
 * A recording, opened to be looked at: who took part, and the events of each. Of a file
 * that is cut off or damaged this is what is whole; warnings on stderr tell the rest.
 */
#ifndef BUGNET_CLI_RECORDING_H
#define BUGNET_CLI_RECORDING_H

#include "cli/position.h"
#include "recording/code_history.h"
#include "recording/codelog.h"
#include "recording/meta.h"
#include "recording/stretch.h"
#include "recording/thread.h"

struct recording_thread {
	uint32_t id;
	bool has_record; /* else the file was cut off before there was one */
	struct thread_record record;
	const struct section **stretches; /* in their order */
	size_t stretch_count;
	uint64_t instructions; /* of these stretches */
	size_t rank;           /* of two with the same id, the higher one counts */
};

struct recording {
	const char *command; /* for messages */
	const char *path;
	bool damaged; /* a warning was printed */
	struct reader reader;
	struct meta meta;
	struct codelog codelog;
	struct code_history code;
	struct recording_thread *threads; /* by id */
	size_t thread_count;
	const struct section **stretches; /* of all threads */
};

/* False after saying why. */
bool recording_open(struct recording *recording, const char *command, const char *path);
void recording_close(struct recording *recording);

__attribute__((format(printf, 2, 3))) void recording_warn(
        struct recording *recording, const char *format, ...);

/*
 * How the process ended, where no thread was left to say so: it was killed while they knew nothing of it, or
 * executed another program. Kind and status only.
 */
bool recording_untold_end(const struct recording *recording, struct event_end *end);

/* Calls `visit` for every event of the thread in the range. */
typedef void recording_visitor(void *context, const struct recording_thread *thread,
        const struct section *stretch, const struct event *event);
void recording_visit(struct recording *recording, const struct recording_thread *thread,
        const struct position_range *range, recording_visitor *visit, void *context);

/* What goes to a terminal: without control characters, quoted as a shell would need it. NULL: out of memory.
 */
char *recording_quoted(const char *text);

#endif
