/*
 * Is a line of source about something atomic? An atomic load or store that the compiler makes of a builtin,
 * or of a member of an atomic type, is an instruction like any other, and nothing but the source tells them
 * apart.
 */
#ifndef BUGNET_CLI_ATOMIC_LINES_H
#define BUGNET_CLI_ATOMIC_LINES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>

/* Names of members that are atomic by their types. All zero to begin with. */
struct atomic_members {
	const char **names; /* the debug information's */
	size_t count;
	bool collected;
};

void atomic_members_collect(struct atomic_members *members, Dwarf *dwarf);
void atomic_members_deinit(struct atomic_members *members);

/* Has the line a call of an atomic function, or the name of such a member? False also if the source cannot be
 * read. */
bool atomic_line(const struct atomic_members *members, const char *directory, const char *source, int line);
/* The same of the text itself. */
bool atomic_text(const struct atomic_members *members, const char *text);

#endif
