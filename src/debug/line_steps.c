#include "debug/line_steps.h"

#include "target/feed.h"

#define PATIENCE     32u           /* steps that are made one by one: most lines are short */
#define LONGEST_LINE 4096u         /* bytes */
#define FIRST_CHUNK  (256ul << 10) /* instructions that are looked at at once, at first */
#define LAST_CHUNK   (16ul << 20)

/* Executions of the line's instructions, one behind the other, up to a place. */
struct stretch_of_line {
	struct line_range range;
	uint64_t first, next; /* positions: of the first of those that end with the last, and behind that */
	uint64_t start;       /* of the last execution of the first instruction, or NOWHERE */
};
#define NOWHERE UINT64_MAX

static bool is_inside(const struct line_range *range, uint64_t pc)
{
	return pc - range->start < range->end - range->start;
}

void line_steps_clear(struct line_steps *steps)
{
	vector_free(&steps->ranges);
	*steps = (struct line_steps){0};
}

static bool see(void *context, const struct trace_record *record)
{
	struct stretch_of_line *s = context;

	if (record->kind != TRACE_EXECUTION || !is_inside(&s->range, record->pc))
		return false;
	if (record->position != s->next)
		s->first = record->position, s->start = NOWHERE;
	s->next = record->position + 1;
	if (record->pc == s->range.start)
		s->start = record->position;
	return false;
}

/* The last position before `position` at which the thread is at the line's start, or outside, or at `limit`.
 */
static bool find(struct debugger *d, uint32_t thread, struct line_range range, uint64_t limit,
        uint64_t *position, char *why, size_t why_size)
{
	struct place to = debugger_about(d, thread, *position), least = debugger_about(d, thread, limit),
	             reached;

	while (to.position > limit) {
		struct stretch_of_line s = {
		        .range = range, .first = NOWHERE, .next = NOWHERE, .start = NOWHERE};
		struct place from = debugger_trace_base(d, thread, to);
		if (place_compare(from, least) < 0)
			from = least;
		if (!explorer_trace(d->explorer, d->threads[thread].recorded->id, from, to, see, &s, &reached,
		            why, why_size))
			return false;
		if (s.next != to.position || s.start != NOWHERE || s.first > from.position) {
			*position = s.next != to.position ? to.position - 1
			            : s.start != NOWHERE  ? s.start
			                                  : s.first - 1;
			return true;
		}
		to = from;
	}
	*position = limit;
	return true;
}

static const struct line_range *range_of(const struct line_steps *steps, uint64_t pc)
{
	for (uint32_t i = 0; i < steps->ranges.count; i++) {
		const struct line_range *range = &steps->ranges.items[i];
		if (pc > range->start && pc < range->end && range->end - range->start <= LONGEST_LINE)
			return range;
	}
	return NULL;
}

static bool is_broken(const struct debugger *d, const struct line_range *range)
{
	for (uint32_t i = 0; i < d->breakpoints.items.count; i++) {
		if (is_inside(range, d->breakpoints.items.items[i].pc))
			return true;
	}
	return d->watches.count > 0;
}

static void probe(struct debugger *d, const struct line_range *range, bool wanted)
{
	for (uint64_t pc = range->start; pc < range->end; pc++) {
		bool kept = false;
		for (uint32_t i = 0; i < d->probed.count; i++)
			kept |= d->probed.items[i] == pc;
		if (!kept)
			explorer_probe(d->explorer, pc, wanted);
	}
}

/* Behind the last system call or signal: those may be stopped at. */
static uint64_t limit_before(struct debugger *d, uint32_t thread, uint64_t position)
{
	uint32_t id = d->threads[thread].recorded->id;
	const struct happening *h = chronicle_previous(&d->chronicle, id, position);

	while (h && h->kind == HAPPENED_ORDER)
		h = chronicle_previous(&d->chronicle, id, h->position);
	uint64_t first = d->threads[thread].first.position;
	return h && h->position + 1 > first ? h->position + 1 : first;
}

void line_steps_back(
        struct debugger *d, struct line_steps *steps, uint32_t thread, bool alone, struct stop *stop)
{
	debugger_step(d, thread, alone, BACKWARDS, stop);
	if (!steps->ranges.count || stop->kind != STOP_STEP || d->now || ++steps->steps < PATIENCE)
		return;
	char why[512];
	const struct standing *standing = debugger_look(d, thread, why, sizeof why);
	const struct line_range *range = standing ? range_of(steps, standing->state.registers.pc) : NULL;
	uint64_t here = debugger_place(d, thread).position, position = here;
	if (!range || is_broken(d, range))
		return;
	probe(d, range, true);
	explorer_condition_none(d->explorer);
	explorer_watch_none(d->explorer);
	bool found = find(d, thread, *range, limit_before(d, thread, here), &position, why, sizeof why);
	probe(d, range, false);
	if (found && position < here)
		debugger_seek(d, thread, position, stop);
}

/* Executions of the range's instructions, one behind the other, from `next` on. */
struct way_out {
	struct line_range range;
	uint64_t next;
};

static bool see_next(void *context, const struct trace_record *record)
{
	struct way_out *way = context;

	if (record->kind != TRACE_EXECUTION || !is_inside(&way->range, record->pc))
		return false;
	if (record->position != way->next)
		return record->position > way->next;
	way->next++;
	return false;
}

/* The first position behind `here` at which the thread is outside, or `limit`. */
static bool find_out(struct debugger *d, uint32_t thread, struct line_range range, uint64_t here,
        uint64_t limit, uint64_t *position, char *why, size_t why_size)
{
	struct way_out way = {.range = range, .next = here};
	uint64_t chunk = FIRST_CHUNK;

	for (uint64_t from = here; from < limit; chunk = chunk < LAST_CHUNK ? 2 * chunk : chunk) {
		uint64_t to = limit - from > chunk ? from + chunk : limit;
		struct place reached;
		if (!explorer_trace(d->explorer, d->threads[thread].recorded->id,
		            debugger_about(d, thread, from), debugger_about(d, thread, to), see_next, &way,
		            &reached, why, why_size))
			return false;
		if (way.next < to || (d->interrupted && d->interrupted(d->context)))
			break;
		from = to;
	}
	*position = way.next < limit ? way.next : limit;
	return true;
}

void line_steps_forward(
        struct debugger *d, struct line_range range, uint32_t thread, bool alone, struct stop *stop)
{
	char why[512];

	for (unsigned steps = 1;; steps++) {
		debugger_step(d, thread, alone, FORWARDS, stop);
		const struct standing *standing =
		        stop->kind == STOP_STEP && !d->now ? debugger_look(d, thread, why, sizeof why) : NULL;
		if (!standing || !is_inside(&range, standing->state.registers.pc) || is_broken(d, &range) ||
		        (d->interrupted && d->interrupted(d->context)))
			return;
		if (steps < PATIENCE || range.end - range.start > LONGEST_LINE)
			continue;
		uint64_t here = debugger_place(d, thread).position, position = here;
		probe(d, &range, true);
		explorer_condition_none(d->explorer);
		explorer_watch_none(d->explorer);
		bool found = find_out(d, thread, range, here, debugger_next_event(d, thread, here), &position,
		        why, sizeof why);
		probe(d, &range, false);
		if (!found || position <= here)
			continue;
		debugger_seek(d, thread, position, stop);
		standing = stop->kind == STOP_STEP ? debugger_look(d, thread, why, sizeof why) : NULL;
		if (!standing || !is_inside(&range, standing->state.registers.pc))
			return;
	}
}
