#include "cli/position.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cli/error.h"
#include "cli/interval.h"
#include "cli/shared_options.h"

/* Digits only: no sign, no space, nothing behind them. */
static bool read_number(const char *text, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

bool number_parse(const char *command, const char *option, const char *text, uint64_t least, uint64_t most,
        uint64_t *number)
{
	uint64_t value;

	if (!text)
		return true;
	if (!read_number(text, &value)) {
		error_print(command,
		        "option '--%s': '%s' is no number; give one from %" PRIu64 " to %" PRIu64, option,
		        text, least, most);
		return false;
	}
	if (value < least || value > most) {
		error_print(command,
		        "option '--%s': %s is not possible; give a number from %" PRIu64 " to %" PRIu64,
		        option, text, least, most);
		return false;
	}
	*number = value;
	return true;
}

/* 20M, as lengths of intervals are written. */
static bool read_position(const char *text, uint64_t *number)
{
	uint64_t instructions = 0, time = 0;

	if (read_number(text, number))
		return true;
	if (!interval_parse(text, &instructions, &time) || time)
		return false;
	*number = instructions;
	return true;
}

/* Positions and threads are in the listing of 'bugnet info'. */
static bool parse_listed(
        const char *command, const char *option, const char *text, uint64_t most, uint64_t *number)
{
	uint64_t value = 0;

	if (!text)
		return true;
	if (!(most == UINT64_MAX ? read_position(text, &value) : read_number(text, &value)) || value > most) {
		error_print(command,
		        "option '--%s': '%s' is no number%s; 'bugnet info' lists threads and positions",
		        option, text, value > most ? " that can be" : "");
		return false;
	}
	*number = value;
	return true;
}

bool position_range_parse(
        const char *command, const struct range_values *values, struct position_range *range)
{
	uint64_t id = POSITION_ANY_THREAD;

	*range = (struct position_range){.to = UINT64_MAX};
	if (!parse_listed(command, "from", values->from, UINT64_MAX, &range->from) ||
	        !parse_listed(command, "to", values->to, UINT64_MAX, &range->to) ||
	        !parse_listed(command, "thread", values->thread, POSITION_ANY_THREAD - 1, &id))
		return false;
	range->thread = (uint32_t)id;
	if (range->from <= range->to)
		return true;
	error_print(command, "--to %s is before --from %s; give the lower position first", values->to,
	        values->from);
	return false;
}
