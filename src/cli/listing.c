#include "cli/listing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "recording/names.h"

#define RESULT_COLUMN 39 /* as strace has it */

static const struct explained_memory no_memory = {0};

/* ---- lines ---- */

static void begin_line(const struct listing *listing, uint32_t thread, uint64_t position)
{
	if (listing->several)
		printf("[%u] ", thread);
	printf("%12" PRIu64 " ", position);
}

static void begin_object(struct listing *listing, uint32_t thread, uint64_t position, const char *kind)
{
	json_open(&listing->json, NULL, '{');
	json_number(&listing->json, "thread", thread);
	json_number(&listing->json, "position", position);
	json_text(&listing->json, "kind", kind);
}

/* ---- calls ---- */

static const char *text_or_unknown(const char *text)
{
	return text ? text : "?";
}

static void print_call(const struct explanation *call, const char *result)
{
	char name[NAME_TEXT_SIZE];
	int width = printf("%s(", syscall_name(call->number, name));

	for (unsigned i = 0; i < call->count; i++)
		width += printf("%s%s", i ? ", " : "", text_or_unknown(call->texts[i]));
	width += printf(")");
	printf("%*s = %s\n", width < RESULT_COLUMN ? RESULT_COLUMN - width : 0, "", result);
}

static void json_call(struct listing *listing, const struct explanation *call, const char *result)
{
	struct json *json = &listing->json;
	char name[NAME_TEXT_SIZE];

	json_text(json, "name", syscall_name(call->number, name));
	json_open(json, "arguments", '[');
	for (unsigned i = 0; i < call->count; i++)
		json_text(json, NULL, text_or_unknown(call->texts[i]));
	json_close(json, ']');
	json_signed(json, "result", call->result);
	json_text(json, "result_text", result);
	json_close(json, '}');
}

static void list_call(
        struct listing *listing, uint32_t thread, uint64_t position, const struct explanation *call)
{
	char *result = explanation_result(call);

	if (listing->as_json) {
		begin_object(listing, thread, position, "call");
		json_call(listing, call, text_or_unknown(result));
	} else {
		begin_line(listing, thread, position);
		print_call(call, text_or_unknown(result));
	}
	free(result);
}

static bool is_shown(const struct listing *listing, const struct event *event, uint64_t number)
{
	return event->position >= listing->range.from && event->position <= listing->range.to &&
	       call_filter_shows(&listing->filter, number);
}

void listing_call(struct listing *listing, const struct event *event, const struct explained_memory *memory)
{
	if (!is_shown(listing, event, event_call_number(&event->syscall)))
		return;
	explanation_begin(&listing->call, &event->syscall.registers, event->syscall.result, memory);
	listing->called = true;
}

static void end_call(struct listing *listing, uint32_t thread, const struct event *event,
        const struct explained_memory *memory)
{
	if (!listing->called)
		listing_call(listing, event, memory);
	if (!listing->called)
		return;
	explanation_end(&listing->call, memory);
	list_call(listing, thread, event->position, &listing->call);
	explanation_deinit(&listing->call);
	listing->called = false;
}

/* One without arguments that anybody could see: what rt_sigreturn reads is a signal's frame. */
static void list_sigreturn(struct listing *listing, uint32_t thread, const struct event *event)
{
	const struct explanation call = {
	        .number = SYS_rt_sigreturn, .result = (int64_t)event->sigreturn.registers.gpr[0]};

	if (event->sigreturn.call && is_shown(listing, event, SYS_rt_sigreturn))
		list_call(listing, thread, event->position, &call);
}

/* ---- signals ---- */

static void list_signal(struct listing *listing, uint32_t thread, uint64_t position, uint32_t number,
        int32_t code, const uint64_t details[EVENT_SIGNAL_DETAILS])
{
	char name[NAME_TEXT_SIZE], code_name[NAME_TEXT_SIZE], info[SIGNAL_INFO_TEXT_SIZE];

	signal_info_text(number, code, details, info);
	if (!listing->as_json) {
		begin_line(listing, thread, position);
		printf("--- %s %s ---\n", signal_name(number, name), info);
		return;
	}
	begin_object(listing, thread, position, "signal");
	json_text(&listing->json, "name", signal_name(number, name));
	json_text(&listing->json, "code", signal_code_name(number, code, code_name));
	json_text(&listing->json, "info", info);
	json_close(&listing->json, '}');
}

/* ---- ends ---- */

/* As strace has it. */
static const char *strace_end_text(const struct event_end *end, char text[NAME_TEXT_SIZE])
{
	if (end->kind != END_EXIT && end->kind != END_THREAD_EXIT)
		return end_text(end->kind, end->status, text);
	snprintf(text, NAME_TEXT_SIZE, "exited with %d", end->status & 0xff);
	return text;
}

/* The call that ended the thread has no event of its own: it never came back. */
static void list_last_call(struct listing *listing, uint32_t thread, const struct event *event)
{
	uint64_t number = event->end.registers.gpr[0];
	struct explanation call;

	if ((event->end.kind != END_EXIT && event->end.kind != END_THREAD_EXIT) ||
	        (number != SYS_exit && number != SYS_exit_group) || !is_shown(listing, event, number))
		return;
	explanation_begin(&call, &event->end.registers, 0, &no_memory);
	list_call(listing, thread, event->position, &call);
	explanation_deinit(&call);
}

void listing_end(struct listing *listing, uint32_t thread, const struct event *event)
{
	const struct event_end *end = &event->end;
	char text[NAME_TEXT_SIZE + 32];

	strace_end_text(end, text);
	if (listing->as_json) {
		begin_object(listing, thread, event->position, "end");
		json_text(&listing->json, "text", text);
		json_signed(&listing->json, "status", end->status);
		json_close(&listing->json, '}');
	} else {
		begin_line(listing, thread, event->position);
		printf("+++ %s +++\n", text);
	}
}

static void list_end(struct listing *listing, uint32_t thread, const struct event *event)
{
	const struct event_end *end = &event->end;

	if (end->kind == END_KILLED)
		list_signal(listing, thread, event->position, (uint32_t)end->status, end->code, end->details);
	list_last_call(listing, thread, event);
	listing_end(listing, thread, event);
}

/* ---- all of it ---- */

void listing_open(struct listing *listing)
{
	if (!listing->as_json)
		return;
	listing->json = (struct json){.out = stdout};
	json_open(&listing->json, NULL, '{');
	json_open(&listing->json, "events", '[');
}

void listing_close(struct listing *listing, bool replayed)
{
	if (listing->called)
		explanation_deinit(&listing->call);
	if (!listing->as_json)
		return;
	json_close(&listing->json, ']');
	json_bool(&listing->json, "replayed", replayed);
	json_close(&listing->json, '}');
}

void listing_event(struct listing *listing, uint32_t thread, const struct event *event,
        const struct explained_memory *memory)
{
	bool within = event->position >= listing->range.from && event->position <= listing->range.to;

	if (!within)
		return;
	switch (event->kind) {
	case EVENT_SYSCALL:
		end_call(listing, thread, event, memory ? memory : &no_memory);
		break;
	case EVENT_SIGNAL:
		list_signal(listing, thread, event->position, event->signal.number, event->signal.code,
		        event->signal.details);
		break;
	case EVENT_SIGRETURN:
		list_sigreturn(listing, thread, event);
		break;
	case EVENT_END:
		list_end(listing, thread, event);
		break;
	default:
		break;
	}
}
