/* Which ends of a program are worth a file. */
#ifndef BUGNET_RECORD_SAVE_POLICY_H
#define BUGNET_RECORD_SAVE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct save_policy {
	bool always;
	bool any_signal;
	bool any_error;    /* any signal, and any exit status but 0 */
	uint64_t signals;  /* bit n - 1 for signal n */
	uint64_t exits[4]; /* a bit for each exit status */
};

/*
 * Words separated by commas: always, never, signal, error, a signal's name with or without "SIG" or its
 * number, exit=N. False with what is wrong in `why`.
 */
bool save_policy_parse(struct save_policy *policy, const char *text, char *why, size_t why_size);

/*
 * Is an end of this kind (enum event_end_kind, or another number for one that nobody could tell of, which is
 * SIGKILL's) worth a file?
 */
bool save_policy_wants(const struct save_policy *policy, uint32_t kind, int32_t status);

#endif
