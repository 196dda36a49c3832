#include "cli/position.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/error.h"

/* What is not given stays as it is. */
static bool parse_number(
        const char *command, const char *option, const char *text, uint64_t most, uint64_t *number)
{
	char *end;

	if (!text)
		return true;
	errno = 0;
	*number = strtoull(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && !errno && *number <= most)
		return true;
	error_print(command, "option '--%s': '%s' is no number; 'bugnet info' lists threads and positions",
	        option, text);
	return false;
}

bool position_range_parse(const char *command, const char *from, const char *to, const char *thread,
        struct position_range *range)
{
	uint64_t id = POSITION_ANY_THREAD;

	*range = (struct position_range){.to = UINT64_MAX};
	if (!parse_number(command, "from", from, UINT64_MAX, &range->from) ||
	        !parse_number(command, "to", to, UINT64_MAX, &range->to) ||
	        !parse_number(command, "thread", thread, POSITION_ANY_THREAD - 1, &id))
		return false;
	range->thread = (uint32_t)id;
	if (range->from <= range->to)
		return true;
	error_print(command, "--to %s is before --from %s; give the lower position first", to, from);
	return false;
}
