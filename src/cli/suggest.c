#include "cli/suggest.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Longer words are not typing mistakes of ours. */
#define LONGEST 32

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Insertions, deletions, replacements and swaps of neighbours that turn a into b. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	size_t cost[LONGEST + 1][LONGEST + 1];

	for (size_t i = 0; i <= a_length; i++)
		cost[i][0] = i;
	for (size_t j = 0; j <= b_length; j++)
		cost[0][j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		for (size_t j = 1; j <= b_length; j++) {
			size_t replaced = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			cost[i][j] = least(replaced, least(cost[i - 1][j], cost[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				cost[i][j] = least(cost[i][j], cost[i - 2][j - 2] + 1);
		}
	}
	return cost[a_length][b_length];
}

void suggest_init(struct suggestion *suggestion, const char *wanted, size_t length)
{
	*suggestion = (struct suggestion){.wanted = wanted, .length = length, .distance = SIZE_MAX};
}

void suggest_offer(struct suggestion *suggestion, const char *name)
{
	size_t length = strlen(name);
	size_t longer = length > suggestion->length ? length : suggestion->length;
	size_t distance;

	if (longer > LONGEST || suggestion->length == 0)
		return;
	distance = edit_distance(suggestion->wanted, suggestion->length, name, length);
	/* An abbreviation is near however much of the name is missing. */
	bool abbreviated = suggestion->length >= 2 && suggestion->length < length &&
	                   memcmp(suggestion->wanted, name, suggestion->length) == 0;

	if (abbreviated)
		distance = 1;
	if (distance <= (longer + 2) / 3 && distance < suggestion->distance) {
		suggestion->best = name;
		suggestion->distance = distance;
	}
}
