/*
 * The code that a replayed thread fetches: the code history as far as it was in force for
 * it. Of the pieces that cover an address, the latest one counts of those that were; if
 * there is none, the first one behind them.
 */
#ifndef BUGNET_REPLAY_CODE_SOURCE_H
#define BUGNET_REPLAY_CODE_SOURCE_H

#include "recording/code_history.h"
#include "replay/code_files.h"

struct code_source;

/* NULL: out of memory. Both must live as long as the source. */
struct code_source *code_source_create(const struct code_history *history, const struct code_files *files);
void code_source_destroy(struct code_source *source);

/* Of so many pieces that were recorded, how many the history has: what is told by number here. */
uint32_t code_source_kept(const struct code_source *source, uint32_t pieces);

/* So many pieces of the history are in force from now on. */
void code_source_set(struct code_source *source, uint32_t pieces);
uint32_t code_source_current(const struct code_source *source);
/* The file that the code at this address came from, by its number, and where in it; EVENT_FILE_NONE: none. */
uint32_t code_source_file(struct code_source *source, uint64_t address, uint64_t *offset);

/* Does any piece of [first, last) say something else than another one about the same address? */
bool code_source_changes(const struct code_source *source, uint32_t first, uint32_t last);
bool code_source_piece_changes(const struct code_source *source, uint32_t piece);

/* All that there is of those bytes that are not known yet; notes which are. */
void code_source_read_known(
        struct code_source *source, uint64_t address, uint8_t *bytes, uint8_t *known, size_t size);

/* As in struct memory_source; the context is the source. */
size_t code_source_read(void *context, uint64_t address, uint8_t *bytes, size_t size);
bool code_source_has_page(void *context, uint64_t address);
bool code_source_is_replaced(void *context, uint64_t address, size_t size);

#endif
