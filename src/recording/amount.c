#include "recording/amount.h"

#include <inttypes.h>
#include <stdio.h>

struct unit {
	uint64_t size;
	const char *name;
};

/* Three digits of the largest unit that the number reaches; the last unit's size is 1. */
static const char *in_units(uint64_t number, const struct unit *unit, char text[AMOUNT_TEXT_SIZE])
{
	while (unit->size > 1 && number < unit->size)
		unit++;
	double value = (double)number / (double)unit->size;
	if (unit->size == 1)
		snprintf(text, AMOUNT_TEXT_SIZE, "%" PRIu64 "%s", number, unit->name);
	else
		snprintf(text, AMOUNT_TEXT_SIZE,
		        value < 9.995   ? "%.2f%s"
		        : value < 99.95 ? "%.1f%s"
		                        : "%.0f%s",
		        value, unit->name);
	return text;
}

const char *amount_text(uint64_t number, char text[AMOUNT_TEXT_SIZE])
{
	static const struct unit units[] = {
	        {1000000000000, " trillion"}, {1000000000, " billion"}, {1000000, " million"}, {1, ""}};

	return in_units(number, units, text);
}

const char *size_text(uint64_t bytes, char text[AMOUNT_TEXT_SIZE])
{
	static const struct unit units[] = {{1ul << 40, " TB"}, {1ul << 30, " GB"}, {1ul << 20, " MB"},
	        {1ul << 10, " KB"}, {1, " bytes"}};

	return in_units(bytes, units, text);
}

const char *duration_text(uint64_t nanoseconds, char text[AMOUNT_TEXT_SIZE])
{
	static const struct unit units[] = {{1000000000, " s"}, {1000000, " ms"}, {1000, " us"}, {1, " ns"}};

	return in_units(nanoseconds, units, text);
}
