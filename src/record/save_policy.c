#include "record/save_policy.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "record/why.h"
#include "recording/event.h"
#include "recording/names.h"

#define SIGNALS 64

static bool parse_exit(struct save_policy *policy, const char *text)
{
	char *end;
	unsigned long status = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || status > 255)
		return false;
	policy->exits[status / 64] |= UINT64_C(1) << status % 64;
	return true;
}

/* 15, SIGRTMIN+1, RTMAX-2, as kill(1) has them; 0: none of these. */
static uint32_t parse_number(const char *word)
{
	long base = 0, number = 0;
	char *end = (char *)word;

	if (!strncasecmp(word, "SIG", 3))
		word += 3;
	if (!strncasecmp(word, "RTMIN", 5))
		base = SIGRTMIN;
	else if (!strncasecmp(word, "RTMAX", 5))
		base = SIGRTMAX;
	if (base && !word[5])
		return (uint32_t)base;
	if (base && word[5] != (base == SIGRTMIN ? '+' : '-'))
		return 0;
	const char *digits = base ? word + 6 : word;
	if (*digits >= '0' && *digits <= '9')
		number = strtol(digits, &end, 10);
	number = base == SIGRTMAX ? base - number : base + number;
	return *end || number < (base ? SIGRTMIN : 1) || number > SIGNALS ? 0 : (uint32_t)number;
}

static bool parse_signal(struct save_policy *policy, const char *word)
{
	char name[NAME_TEXT_SIZE];
	uint32_t given = parse_number(word);

	if (given) {
		policy->signals |= UINT64_C(1) << (given - 1);
		return true;
	}

	for (uint32_t number = 1; number <= SIGNALS; number++) {
		signal_name(number, name);
		if (strcasecmp(name, word) && strcasecmp(name + strlen("SIG"), word))
			continue;
		policy->signals |= UINT64_C(1) << (number - 1);
		return true;
	}
	return false;
}

static bool parse_word(struct save_policy *policy, const char *word)
{
	if (!strcmp(word, "always"))
		policy->always = true;
	else if (!strcmp(word, "signal"))
		policy->any_signal = true;
	else if (!strcmp(word, "error"))
		policy->any_error = true;
	else if (!strncmp(word, "exit=", 5))
		return parse_exit(policy, word + 5);
	else if (strcmp(word, "never"))
		return parse_signal(policy, word);
	return true;
}

bool save_policy_parse(struct save_policy *policy, const char *text, char *why, size_t why_size)
{
	char word[32];

	*policy = (struct save_policy){0};
	do {
		size_t size = strcspn(text, ",");
		snprintf(word, sizeof word, "%.*s", size < sizeof word ? (int)size : (int)sizeof word - 1,
		        text);
		if (!size || size >= sizeof word || !parse_word(policy, word))
			return fail_because(why, why_size,
			        "'%.*s' is no end of a program; give signal, error, always, never, a signal "
			        "such as SIGTERM, or exit=N",
			        (int)size, text);
		text += size;
	} while (*text++ == ',');
	return true;
}

bool save_policy_wants(const struct save_policy *policy, uint32_t kind, int32_t status)
{
	uint32_t signal = kind == END_KILLED ? (uint32_t)status : kind > END_RELEASED ? SIGKILL : 0;
	uint32_t exit = (uint32_t)status & 0xff;

	if (policy->always)
		return true;
	if (signal)
		return policy->any_signal || policy->any_error ||
		       (signal <= SIGNALS && policy->signals >> (signal - 1) & 1);
	if (kind != END_EXIT && kind != END_THREAD_EXIT)
		return false;
	return (policy->any_error && exit) || (policy->exits[exit / 64] >> exit % 64 & 1);
}
