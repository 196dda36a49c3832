#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "cli/error.h"
#include "cli/summary.h"

static void count_patch(struct summary *summary, const struct event_patch *patch)
{
	summary->logged_loads++;
	summary->words += (uint64_t)__builtin_popcount(patch->mask);
}

static void count_call(struct summary *summary, uint64_t number)
{
	summary->calls++;
	/* numbers beyond the table are rare and all wrong: they share the last place */
	summary->calls_by_number[number < SUMMARY_CALLS ? number : SUMMARY_CALLS - 1]++;
}

/* Room grows in powers of two, which the count tells. */
static void add_keyframe(struct summary *summary, const struct recording_thread *thread,
        const struct section *stretch, const struct event *event)
{
	size_t count = summary->keyframe_count;

	if (!(count & (count - 1))) {
		struct summary_keyframe *larger =
		        realloc(summary->keyframes, (count ? 2 * count : 1) * sizeof *larger);
		if (!larger)
			return;
		summary->keyframes = larger;
	}
	summary->keyframes[summary->keyframe_count++] = (struct summary_keyframe){
	        .thread = thread->id,
	        .position = event->position,
	        .realtime = event->keyframe.realtime,
	        .leans_on = event->keyframe.leans_on,
	        .raw_size = stretch->raw_size,
	        .stored_size = stretch->stored_size,
	};
}

/* The end of one thread is the end of all, unless it only left. */
static void note_end(
        struct summary *summary, const struct recording_thread *thread, const struct event *event)
{
	struct summary_end *end = &summary->end;

	if (end->known && event->end.kind == END_THREAD_EXIT)
		return;
	if (end->known && end->event.kind != END_THREAD_EXIT && event->end.kind != END_KILLED)
		return;
	*end = (struct summary_end){
	        .known = true, .thread = thread->id, .position = event->position, .event = event->end};
}

static void count_event(void *context, const struct recording_thread *thread, const struct section *stretch,
        const struct event *event)
{
	struct summary *summary = context;

	switch (event->kind) {
	case EVENT_PATCH:
		count_patch(summary, &event->patch);
		break;
	case EVENT_KEYFRAME:
		add_keyframe(summary, thread, stretch, event);
		break;
	case EVENT_RESULT:
		summary->results++;
		break;
	case EVENT_SYSCALL:
		count_call(summary, event_call_number(&event->syscall));
		break;
	case EVENT_SIGNAL:
		summary->signals++;
		break;
	case EVENT_SIGRETURN:
		if (event->sigreturn.call)
			count_call(summary, SYS_rt_sigreturn);
		break;
	case EVENT_END:
		note_end(summary, thread, event);
		break;
	default:
		break;
	}
}

static void count_sections(struct summary *summary)
{
	const struct reader *reader = &summary->recording->reader;

	for (size_t i = 0; i < reader->count; i++) {
		const struct section *section = &reader->sections[i];
		if (section->type == SECTION_STRETCH) {
			summary->raw_size += section->raw_size;
			summary->stored_size += section->stored_size;
		} else if (section->type == SECTION_FILE) {
			summary->packed_size += SECTION_HEADER_SIZE + section->stored_size;
		}
	}
}

/* Did threads that just exit make the end of the process? Not with others that never came to an end. */
static bool all_left(const struct recording *recording)
{
	for (size_t i = 0; i < recording->thread_count; i++) {
		const struct recording_thread *thread = &recording->threads[i];
		if (!thread->has_record || thread->record.end_kind != END_THREAD_EXIT)
			return false;
	}
	return true;
}

void summary_init(struct summary *summary, struct recording *recording)
{
	const struct position_range all = {POSITION_ANY_THREAD, 0, UINT64_MAX};
	struct summary_end *end = &summary->end;

	memset(summary, 0, sizeof *summary);
	summary->recording = recording;
	for (size_t i = 0; i < recording->thread_count; i++) {
		summary->instructions += recording->threads[i].instructions;
		recording_visit(recording, &recording->threads[i], &all, count_event, summary);
	}
	count_sections(summary);
	if (end->known && end->event.kind == END_THREAD_EXIT && !all_left(recording))
		end->known = false;
	struct event_end untold;
	if (!end->known && recording_untold_end(recording, &untold))
		*end = (struct summary_end){.known = true, .untold = true, .event = untold};
	if (end->known && !end->untold && end->event.kind == END_KILLED)
		end->has_symbol = symbol_find(
		        recording, end->thread, end->position, end->event.registers.pc, &end->symbol);
}

void summary_deinit(struct summary *summary)
{
	symbol_deinit(&summary->end.symbol);
	free(summary->keyframes);
}

double summary_bits_per_instruction(const struct summary *summary)
{
	uint64_t bytes = summary->recording->reader.size - summary->packed_size;

	return summary->instructions ? 8.0 * (double)bytes / (double)summary->instructions : 0;
}
