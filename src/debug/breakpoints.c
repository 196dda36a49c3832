#include "debug/breakpoints.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define CONDITION_LONGEST 16384

static void free_conditions(struct breakpoint *breakpoint)
{
	for (uint32_t i = 0; i < breakpoint->condition_count; i++)
		free((void *)breakpoint->conditions[i].code);
	free(breakpoint->conditions);
	breakpoint->conditions = NULL;
	breakpoint->condition_count = 0;
}

static int digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? (c | 0x20) - 'a' + 10 : -1;
}

/* One condition: "5,2226000027"; *text is behind it then. NULL: it is none. */
static uint8_t *parse_condition(const char **text, uint32_t *size)
{
	char *end;
	unsigned long wanted = strtoul(*text, &end, 16);

	if (!isxdigit((unsigned char)**text) || *end != ',' || wanted == 0 || wanted > CONDITION_LONGEST)
		return NULL;
	uint8_t *code = malloc(wanted);
	if (!code)
		abort();
	const char *hex = end + 1;
	for (unsigned long i = 0; i < wanted; i++, hex += 2) {
		if (digit(hex[0]) < 0 || digit(hex[1]) < 0) {
			free(code);
			return NULL;
		}
		code[i] = (uint8_t)(digit(hex[0]) << 4 | digit(hex[1]));
	}
	*text = hex;
	*size = (uint32_t)wanted;
	return code;
}

static bool parse(struct breakpoint *breakpoint, const char *text)
{
	while (*text == 'X') {
		uint32_t size;
		text++;
		uint8_t *code = parse_condition(&text, &size);
		if (!code) {
			free_conditions(breakpoint);
			return false;
		}
		breakpoint->conditions = realloc(breakpoint->conditions,
		        (breakpoint->condition_count + 1) * sizeof *breakpoint->conditions);
		if (!breakpoint->conditions)
			abort();
		breakpoint->conditions[breakpoint->condition_count++] =
		        (struct explorer_condition){code, size};
	}
	if (!*text)
		return true;
	free_conditions(breakpoint);
	return false;
}

static struct breakpoint *find(const struct breakpoints *breakpoints, uint64_t pc)
{
	for (uint32_t i = 0; i < breakpoints->items.count; i++) {
		if (breakpoints->items.items[i].pc == pc)
			return &breakpoints->items.items[i];
	}
	return NULL;
}

bool breakpoints_insert(struct breakpoints *breakpoints, uint64_t pc, const char *conditions)
{
	struct breakpoint breakpoint = {.pc = pc}, *there = find(breakpoints, pc);

	if (!parse(&breakpoint, conditions))
		return false;
	if (there) {
		free_conditions(there);
		*there = breakpoint;
	} else {
		vector_push(&breakpoints->items, breakpoint);
	}
	return true;
}

void breakpoints_remove(struct breakpoints *breakpoints, uint64_t pc)
{
	struct breakpoint *there = find(breakpoints, pc);

	if (!there)
		return;
	free_conditions(there);
	*there = breakpoints->items.items[--breakpoints->items.count];
}

bool breakpoints_have(const struct breakpoints *breakpoints, uint64_t pc)
{
	return find(breakpoints, pc) != NULL;
}

void breakpoints_clear(struct breakpoints *breakpoints)
{
	for (uint32_t i = 0; i < breakpoints->items.count; i++)
		free_conditions(&breakpoints->items.items[i]);
	vector_free(&breakpoints->items);
}
