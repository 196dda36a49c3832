#include "debug/call_accesses.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "record/why.h"
#include "recording/decode.h"
#include "recording/signatures.h"
#include "replay/explorer.h"

#define PAGE       4096ul
#define STEPS_MOST (1u << 22)

struct search {
	struct call_accesses *calls;
	const struct recorded *recorded;
	struct explorer *explorer; /* NULL: nobody had to be brought anywhere yet */
	struct call_access call;   /* what is the same for all accesses of a call */
	uint64_t arguments[SIGNATURE_ARGUMENTS];
	uint64_t result;
	uint64_t heap_end; /* the highest that it ever was */
};

static void add(struct search *s, enum call_access_kind kind, uint64_t start, uint64_t size)
{
	struct call_access access = s->call;

	if (!start || !size || start + size < start)
		return;
	access.kind = kind;
	access.start = start;
	access.end = start + size;
	vector_push(&s->calls->items, access);
}

/* ---- memory that is gone ---- */

static uint64_t whole_pages(uint64_t size)
{
	return (size + PAGE - 1) & -PAGE;
}

static void add_remapped(struct search *s)
{
	uint64_t old = s->arguments[0], before = whole_pages(s->arguments[1]),
	         after = whole_pages(s->arguments[2]);

	if (s->result != old)
		add(s, CALL_UNMAPS, old, before);
	else if (after < before)
		add(s, CALL_UNMAPS, old + after, before - after);
}

static void add_unmapped(struct search *s)
{
	switch (s->call.number) {
	case SYS_munmap:
		add(s, CALL_UNMAPS, s->arguments[0], whole_pages(s->arguments[1]));
		break;
	case SYS_mremap:
		add_remapped(s);
		break;
	case SYS_madvise:
		if (s->arguments[2] == MADV_DONTNEED || s->arguments[2] == MADV_FREE ||
		        s->arguments[2] == MADV_REMOVE)
			add(s, CALL_UNMAPS, s->arguments[0], whole_pages(s->arguments[1]));
		break;
	case SYS_brk:
		/* As far as the heap ever went; where it ended just then is known when all calls are in
		 * order. */
		if (whole_pages(s->result) < s->heap_end)
			add(s, CALL_UNMAPS, whole_pages(s->result), s->heap_end - whole_pages(s->result));
		break;
	default:
		break;
	}
}

/* ---- buffers ---- */

/* What only memory tells. */
static bool read_memory(
        struct search *s, const struct standing *standing, uint64_t address, void *to, size_t size)
{
	uint8_t known[SIGNATURE_ELEMENTS * sizeof(struct iovec)] = {0};

	if (size > sizeof known)
		return false;
	explorer_read(s->explorer, standing, address, to, known, size);
	return !memchr(known, 0, size);
}

static void add_buffers(struct search *s, const struct standing *standing, enum call_access_kind kind,
        uint64_t vectors, uint64_t count)
{
	struct iovec items[SIGNATURE_ELEMENTS];
	uint64_t left = s->result;

	count = count < SIGNATURE_ELEMENTS ? count : SIGNATURE_ELEMENTS;
	if (!read_memory(s, standing, vectors, items, count * sizeof *items))
		return;
	for (uint64_t i = 0; i < count && left; i++) {
		uint64_t size = items[i].iov_len < left ? items[i].iov_len : left;
		add(s, kind, (uint64_t)items[i].iov_base, size);
		left -= size;
	}
}

/* Behind the call: what it loaded is known there. */
static void add_vectors(
        struct search *s, enum call_access_kind kind, bool message, uint64_t address, uint64_t count)
{
	struct place place = {.position = s->call.position + 1};
	const struct standing *standing;
	struct msghdr head;
	char why[256];

	if (!s->result)
		return;
	if (!s->explorer)
		s->explorer = explorer_create(s->recorded, why, sizeof why);
	standing = s->explorer ? explorer_go(s->explorer, s->call.thread, place, why, sizeof why) : NULL;
	if (!standing)
		return;
	if (!message)
		add_buffers(s, standing, kind, address, count);
	else if (read_memory(s, standing, address, &head, sizeof head))
		add_buffers(s, standing, kind, (uint64_t)head.msg_iov, head.msg_iovlen);
	explorer_release(s->explorer, standing);
}

/* Those whose result says how much of the buffer they have read. */
static bool tells_size(uint64_t number)
{
	return number == SYS_write || number == SYS_pwrite64 || number == SYS_sendto;
}

static void add_polled(struct search *s, uint64_t start, uint64_t count)
{
	uint64_t size = structure_sizes[STRUCTURE_POLLFD];

	add(s, CALL_LOADS, start, count * size);
	for (uint64_t i = 0; i < count && i < SIGNATURE_ELEMENTS; i++)
		add(s, CALL_STORES, start + i * size + 6, 2); /* revents */
}

static void add_argument(struct search *s, struct argument argument, uint64_t value)
{
	uint64_t given = argument.detail < SIGNATURE_ARGUMENTS ? s->arguments[argument.detail] : 0;

	switch (argument.kind) {
	case ARGUMENT_BYTES:
		add(s, CALL_LOADS, value,
		        tells_size(s->call.number) && s->result < given ? s->result : given);
		break;
	case ARGUMENT_STRUCT:
		add(s, CALL_LOADS, value, structure_sizes[argument.detail]);
		break;
	case ARGUMENT_VECTORS:
		add_vectors(s, CALL_LOADS, false, value, given);
		break;
	case ARGUMENT_MESSAGE:
		add_vectors(s, CALL_LOADS, true, value, 0);
		break;
	case ARGUMENT_BYTES_OUT:
	case ARGUMENT_TEXT_OUT:
		add(s, CALL_STORES, value, s->result < given ? s->result : given);
		break;
	case ARGUMENT_BITS_OUT:
		add(s, CALL_STORES, value, s->result);
		break;
	case ARGUMENT_STRUCT_OUT:
		add(s, CALL_STORES, value, structure_sizes[argument.detail]);
		break;
	case ARGUMENT_EVENTS_OUT:
		add(s, CALL_STORES, value, s->result * structure_sizes[STRUCTURE_EPOLL_EVENT]);
		break;
	case ARGUMENT_VECTORS_OUT:
		add_vectors(s, CALL_STORES, false, value, given);
		break;
	case ARGUMENT_MESSAGE_OUT:
		add_vectors(s, CALL_STORES, true, value, 0);
		break;
	case ARGUMENT_POLL:
		add_polled(s, value, given);
		break;
	default:
		break;
	}
}

/* ---- calls ---- */

static bool take_call(struct search *s, uint32_t thread, const struct event *event)
{
	static const uint8_t registers[SIGNATURE_ARGUMENTS] = {7, 6, 2, 10, 8, 9}; /* rdi rsi rdx r10 r8 r9 */
	const struct event_registers *r = &event->syscall.registers;
	uint64_t number = event_call_number(&event->syscall);

	if (event->kind != EVENT_SYSCALL || event->syscall.result < 0 || number >= SIGNATURES)
		return false;
	s->call = (struct call_access){
	        .thread = thread, .number = (uint16_t)number, .position = event->position, .pc = r->pc - 2};
	for (unsigned i = 0; i < SIGNATURE_ARGUMENTS; i++)
		s->arguments[i] = r->gpr[registers[i]];
	s->result = (uint64_t)event->syscall.result;
	return true;
}

static void note_heap(struct search *s, uint32_t thread, const struct event *event)
{
	if (take_call(s, thread, event) && s->call.number == SYS_brk && whole_pages(s->result) > s->heap_end)
		s->heap_end = whole_pages(s->result);
}

static int by_kind(const void *a, const void *b)
{
	const struct call_access *left = a, *right = b;

	return left->kind - right->kind;
}

static void note_call(struct search *s, uint32_t thread, const struct event *event)
{
	uint32_t first = s->calls->items.count;
	const struct signature *signature;

	if (!take_call(s, thread, event))
		return;
	add_unmapped(s);
	signature = signature_of(s->call.number);
	for (unsigned i = 0; signature && i < SIGNATURE_ARGUMENTS; i++)
		add_argument(s, signature->arguments[i], s->arguments[i]);
	if (s->calls->items.count > first + 1)
		qsort(&s->calls->items.items[first], s->calls->items.count - first,
		        sizeof *s->calls->items.items, by_kind);
}

static bool each_event(struct search *s, void (*see)(struct search *, uint32_t, const struct event *),
        char *why, size_t why_size)
{
	static struct decoder decoder;
	struct reader reader = s->recorded->reader;
	struct event event;
	uint8_t *bytes;
	char text[128];

	for (size_t i = 0; i < s->recorded->timeline.count; i++) {
		const struct section *section = s->recorded->timeline.stretches[i];
		if (stretch_read(&reader, section, &bytes))
			return fail_because(
			        why, why_size, "%s", recording_error_text(&reader.error, text, sizeof text));
		decoder_init(&decoder, bytes, section->raw_size);
		while (decoder_next(&decoder, &event) == DECODE_EVENT)
			see(s, stretch_thread(section), &event);
		free(bytes);
	}
	return true;
}

bool call_accesses_find(
        struct call_accesses *calls, const struct recorded *recorded, char *why, size_t why_size)
{
	struct search s = {.calls = calls, .recorded = recorded};
	bool done = each_event(&s, note_heap, why, why_size) && each_event(&s, note_call, why, why_size);

	if (s.explorer)
		explorer_destroy(s.explorer);
	return done;
}

void call_accesses_deinit(struct call_accesses *calls)
{
	vector_free(&calls->items);
}

/* ---- steps ---- */

/* The bytes of the word that lie in the range. */
static uint8_t bytes_within(const struct call_access *call, uint64_t word)
{
	uint64_t low = call->start > word ? call->start - word : 0;
	uint64_t high = call->end < word + 8 ? call->end - word : 8;

	return (uint8_t)((1u << high) - (1u << low));
}

static void note_word(struct accessing_thread *thread, const struct call_access *call, uint64_t stamp,
        uint64_t address, uint32_t word)
{
	static const uint8_t kinds[] = {[CALL_LOADS] = STEP_CALL_LOADS,
	        [CALL_UNMAPS] = STEP_CALL_UNMAPS,
	        [CALL_STORES] = STEP_CALL_STORES};
	uint8_t bytes = bytes_within(call, address);

	vector_push(&thread->steps, (struct step){.kind = kinds[call->kind],
	                                    .position = call->position,
	                                    .pc = call->pc,
	                                    .address = address,
	                                    .stamp = stamp,
	                                    .arguments = {call->number},
	                                    .word = word,
	                                    .reads = call->kind == CALL_LOADS ? bytes : 0,
	                                    .writes = call->kind == CALL_LOADS ? 0 : bytes});
}

static void note_words(struct accesses *accesses, struct accessing_thread *thread,
        const struct call_access *call, uint64_t stamp)
{
	uint64_t first = call->start & -8ul;
	struct word_cursor cursor = {0};

	/* Whichever are fewer. */
	if ((call->end - first) / 8 <= accesses->words.count) {
		for (uint64_t at = first; at < call->end; at += 8) {
			uint32_t word = word_map_look(&accesses->word_map, &cursor, at);
			if (word != WORD_NONE)
				note_word(thread, call, stamp, at, word);
		}
		return;
	}
	for (uint32_t i = 0; i < accesses->words.count; i++) {
		if (accesses->words.items[i] >= first && accesses->words.items[i] < call->end)
			note_word(thread, call, stamp, accesses->words.items[i], i);
	}
}

/* Of the call at this position, or behind it; *at is where it was found. */
static uint64_t stamp_of(const struct accessing_thread *thread, uint64_t position, uint32_t *at)
{
	while (*at < thread->steps.count && thread->steps.items[*at].kind < STEP_BESIDE &&
	        (thread->steps.items[*at].position < position || thread->steps.items[*at].kind != STEP_CALL))
		++*at;
	return *at < thread->steps.count ? thread->steps.items[*at].stamp : UINT64_MAX;
}

bool call_accesses_note(const struct call_accesses *calls, struct accesses *accesses)
{
	uint32_t number = 0, noted = 0, at = 0;

	for (uint32_t i = 0; i < calls->items.count; i++) {
		const struct call_access *call = &calls->items.items[i];
		for (; number < accesses->thread_count && accesses->threads[number].id != call->thread;
		        at = 0)
			number++;
		if (number == accesses->thread_count || noted > STEPS_MOST)
			return false;
		uint32_t before = accesses->threads[number].steps.count;
		note_words(accesses, &accesses->threads[number], call,
		        stamp_of(&accesses->threads[number], call->position, &at));
		noted += accesses->threads[number].steps.count - before;
	}
	return true;
}
