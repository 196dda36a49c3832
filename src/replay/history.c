#include "replay/history.h"

#include <stdlib.h>

#include "recording/decode.h"
#include "recording/names.h"
#include "recording/stretch.h"

#define EVENTS 8

struct line {
	uint64_t position;
	uint64_t patches; /* between the event before and this one */
	char text[192];
};

/* The stretch of the thread that the position is in, or the one that ends there: a keyframe is told with what
 * led to it. */
static const struct section *find_stretch(const struct timeline *timeline, uint32_t thread, uint64_t position)
{
	const struct section *found = NULL;

	for (size_t i = 0; i < timeline->count; i++) {
		const struct section *section = timeline->stretches[i];
		if (stretch_thread(section) == thread && (!found || section->first < position))
			found = section;
	}
	return found;
}

static void describe(const struct event *event, char *text, size_t size)
{
	char name[NAME_TEXT_SIZE], result[NAME_TEXT_SIZE];

	switch (event->kind) {
	case EVENT_KEYFRAME:
		snprintf(text, size, "keyframe at pc %#lx", event->keyframe.registers.pc);
		break;
	case EVENT_RESULT:
		snprintf(text, size, "result of an instruction");
		break;
	case EVENT_SYSCALL:
		snprintf(text, size, "%s = %s%s", syscall_name(event_call_number(&event->syscall), name),
		        syscall_result_text(
		                event_call_number(&event->syscall), event->syscall.result, result),
		        event->syscall.forgets ? ", forgets memory" : "");
		break;
	case EVENT_SIGNAL:
		snprintf(text, size, "%s, %s, after %lu iterations; handler at %#lx",
		        signal_name(event->signal.number, name),
		        event->signal.fault ? "raised by the instruction" : "from outside",
		        event->signal.iterations, event->signal.registers.pc);
		break;
	case EVENT_SIGRETURN:
		snprintf(text, size, "%s; goes on at %#lx, %s vector state",
		        event->sigreturn.call ? "rt_sigreturn" : "executed natively",
		        event->sigreturn.registers.pc, event->sigreturn.xsave.size ? "with" : "without");
		break;
	case EVENT_CODE:
		snprintf(text, size, "code as of %u pieces", event->code.pieces);
		break;
	case EVENT_END:
		snprintf(text, size, "end at pc %#lx", event->end.registers.pc);
		break;
	default:
		snprintf(text, size, "event of kind %u", event->kind);
	}
}

void history_print(FILE *stream, struct reader *reader, const struct timeline *timeline, uint32_t thread,
        uint64_t position)
{
	const struct section *section = find_stretch(timeline, thread, position);
	struct line lines[EVENTS];
	struct decoder *decoder = malloc(sizeof *decoder);
	uint8_t *bytes = NULL;
	struct event event;
	uint64_t patches = 0;
	unsigned count = 0;

	if (!decoder || !section || stretch_read(reader, section, &bytes)) {
		free(decoder);
		return;
	}
	decoder_init(decoder, bytes, section->raw_size);
	while (decoder_next(decoder, &event) == DECODE_EVENT && event.position <= position) {
		if (event.kind == EVENT_PATCH) {
			patches++;
			continue;
		}
		struct line *line = &lines[count++ % EVENTS];
		line->position = event.position;
		line->patches = patches;
		describe(&event, line->text, sizeof line->text);
		patches = 0;
	}
	fprintf(stream, "the log before it:\n");
	for (unsigned i = count > EVENTS ? count - EVENTS : 0; i < count; i++) {
		const struct line *line = &lines[i % EVENTS];
		if (line->patches)
			fprintf(stream, "  (patches: %lu)\n", line->patches);
		fprintf(stream, "  position %lu  %s\n", line->position, line->text);
	}
	if (patches)
		fprintf(stream, "  (patches: %lu)\n", patches);
	free(bytes);
	free(decoder);
}
