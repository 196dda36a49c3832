/* Which system calls a listing shows: what -e asks for, as strace understands it. */
#ifndef BUGNET_CLI_CALL_FILTER_H
#define BUGNET_CLI_CALL_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#define CALL_FILTER_NUMBERS 1024

struct call_filter {
	bool used; /* else everything is shown */
	bool inverted;
	bool named[CALL_FILTER_NUMBERS];
};

/* "openat,close", "!futex", "%file,read"; NULL: all. False after saying what is wrong with it. */
bool call_filter_parse(const char *command, const char *text, struct call_filter *filter);
bool call_filter_shows(const struct call_filter *filter, uint64_t number);

#endif
