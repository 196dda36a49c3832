#include "debug/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "debug/clock.h"
#include "record/why.h"

#define SECOND 1000000000ul

/* "1.5s", "20ms": since the beginning, or with a minus before the thread's end. */
static bool parse_time(struct debugger *debugger, uint32_t thread, const char *text, uint64_t *position)
{
	static const struct {
		const char *unit;
		uint64_t nanoseconds;
	} units[] = {{"s", SECOND}, {"ms", SECOND / 1000}, {"us", SECOND / 1000000}, {"ns", 1}};
	uint32_t id = debugger->threads[thread].recorded->id;
	bool before = *text == '-';
	uint64_t end = 0;
	char *unit;

	text += before;
	if (*text < '0' || *text > '9')
		return false;
	double number = strtod(text, &unit);
	for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
		double time = number * (double)units[i].nanoseconds;
		if (strcmp(unit, units[i].unit) != 0 || time > (double)(UINT64_MAX / 2))
			continue;
		if (before &&
		        !clock_at(&debugger->chronicle, id, debugger->threads[thread].last.position, &end))
			return false;
		uint64_t wanted = (uint64_t)time;
		wanted = !before ? wanted : end > wanted ? end - wanted : 0;
		return clock_position(&debugger->chronicle, id, wanted, position);
	}
	return false;
}

/* "20K", "1.5M", "2G": as --from and --to have them. */
static bool parse_amount(const char *text, uint64_t *position)
{
	static const struct {
		const char *unit;
		double size;
	} units[] = {{"K", 1e3}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}};
	char *unit;
	double number = strtod(text, &unit);

	for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
		if (strcmp(unit, units[i].unit) == 0 && number * units[i].size < 1e18) {
			*position = (uint64_t)(number * units[i].size);
			return true;
		}
	}
	return false;
}

static bool parse(const struct debugged_thread *t, const char *text, uint64_t *position)
{
	uint64_t all = t->last.position - t->first.position;
	char *end;

	if (strcmp(text, "start") == 0 || strcmp(text, "end") == 0) {
		*position = text[0] == 's' ? t->first.position : t->last.position;
		return true;
	}
	if (*text < '0' || *text > '9')
		return false;
	double percentage = strtod(text, &end);
	if (strcmp(end, "%") == 0 && percentage >= 0 && percentage <= 100) {
		*position = t->first.position + (uint64_t)((double)all * percentage / 100);
		return true;
	}
	errno = 0;
	*position = strtoull(text, &end, 10);
	return (!*end && !errno) || parse_amount(text, position);
}

bool place_parse(struct debugger *debugger, uint32_t thread, const char *text, uint64_t *position, char *why,
        size_t why_size)
{
	const struct debugged_thread *t = &debugger->threads[thread];

	if (!parse(t, text, position) && !parse_time(debugger, thread, text, position))
		return fail_because(why, why_size,
		        "'%s' is no position; give a number as 20000 or 20K, a percentage as 50%%, a time as "
		        "1.5s, 20ms or -1s (before the end), start or end",
		        text);
	if (*position < t->first.position || *position > t->last.position)
		return fail_because(why, why_size,
		        "position %s is not in the recording of thread %u, which is from %lu to %lu", text,
		        t->recorded->id, t->first.position, t->last.position);
	return true;
}
