/* What an address of a recorded program is called, by the symbols and line numbers of the file it came from.
 */
#ifndef BUGNET_CLI_SYMBOLS_H
#define BUGNET_CLI_SYMBOLS_H

#include "cli/recording.h"

struct symbol {
	char *file;      /* of the code log, or NULL: the code is no file's */
	uint64_t offset; /* in the file */
	bool changed;    /* the file is not what it was, or gone: no more is known */
	char *name;      /* or NULL */
	uint64_t name_offset;
	char *source; /* or NULL */
	int line;
};

/* What this thread executed at the address, being at this position. False where no code is known. */
bool symbol_find(struct recording *recording, uint32_t thread, uint64_t position, uint64_t address,
        struct symbol *symbol);
void symbol_deinit(struct symbol *symbol);

/* "crash+0x16 (crash.c:5)", or as much as there is; to be freed. */
char *symbol_text(const struct symbol *symbol);

#endif
