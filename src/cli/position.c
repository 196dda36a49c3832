#include "cli/position.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "cli/error.h"

static bool parse_number(const char *text, const char **end, uint64_t *number)
{
	char *behind;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &behind, 10);
	*end = behind;
	return errno == 0;
}

/* [THREAD:]POSITION */
static bool parse(const char *text, uint32_t *thread, uint64_t *position)
{
	const char *end;
	uint64_t number;

	if (!parse_number(text, &end, &number))
		return false;
	*position = number;
	if (*end != ':')
		return !*end;
	if (number >= POSITION_ANY_THREAD)
		return false;
	*thread = (uint32_t)number;
	return parse_number(end + 1, &end, position) && !*end;
}

bool position_range_parse(const char *command, const char *from, const char *to, struct position_range *range)
{
	uint32_t from_thread = POSITION_ANY_THREAD, to_thread = POSITION_ANY_THREAD;
	const char *wrong = NULL;

	*range = (struct position_range){POSITION_ANY_THREAD, 0, UINT64_MAX};
	if (from && !parse(from, &from_thread, &range->from))
		wrong = from;
	else if (to && !parse(to, &to_thread, &range->to))
		wrong = to;
	if (wrong) {
		error_print(command, "'%s' is no position; give a number of instructions, or THREAD:NUMBER",
		        wrong);
		return false;
	}
	if (from_thread != POSITION_ANY_THREAD && to_thread != POSITION_ANY_THREAD &&
	        from_thread != to_thread) {
		error_print(command, "--from %s and --to %s are positions of two threads; give one thread's",
		        from, to);
		return false;
	}
	if (range->from > range->to) {
		error_print(command, "--to %s is before --from %s; give the lower position first", to, from);
		return false;
	}
	range->thread = from_thread != POSITION_ANY_THREAD ? from_thread : to_thread;
	return true;
}
