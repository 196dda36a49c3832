#include "cli/interval.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

bool interval_parse(const char *text, uint64_t *instructions, uint64_t *nanoseconds)
{
	static const struct {
		const char *name;
		double size;
		bool is_time;
	} units[] = {
	        {"", 1, false},
	        {"K", 1e3, false},
	        {"k", 1e3, false},
	        {"M", 1e6, false},
	        {"G", 1e9, false},
	        {"us", 1e3, true},
	        {"ms", 1e6, true},
	        {"s", 1e9, true},
	        {"min", 60e9, true},
	};
	char *end;

	/* strtod takes more than that: signs, spaces, hexadecimal numbers, infinity */
	if (strspn(text, "0123456789.") == 0 || strncmp(text, "0x", 2) == 0)
		return false;
	double number = strtod(text, &end);
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		double value = number * units[i].size;
		if (value < 1 || value >= 1e18)
			return false;
		*(units[i].is_time ? nanoseconds : instructions) = (uint64_t)value;
		return true;
	}
	return false;
}
