/*
 * The code history: which code was where, and from when on. Code is not in the threads'
 * logs; replay fetches it from here, never from the program's memory.
 *
 * A piece says that from this position of this thread on there was this code at this
 * address: bytes of a file of the code log, or bytes that are here. Pieces are in the
 * order of time, across all threads; later ones replace what earlier ones say about the
 * same addresses.
 *
 * Pieces are numbered as they come. A recording that has lost its beginning may have lost
 * pieces that nothing in it needs; the others keep their numbers.
 */
#ifndef BUGNET_RECORDING_CODE_HISTORY_H
#define BUGNET_RECORDING_CODE_HISTORY_H

#include "recording/event.h"
#include "recording/reader.h"
#include "recording/writer.h"

/* Bytes of one piece that has them here; code_history_add makes several of longer ones. */
#define CODE_PIECE_MAXIMUM (UINT32_C(1) << 20)

struct code_piece {
	uint32_t thread;   /* id of the thread that was about to run it */
	uint64_t position; /* of that thread */
	uint64_t address;
	uint64_t size;        /* not 0 */
	uint32_t file;        /* number in the code log, or EVENT_FILE_NONE */
	uint64_t offset;      /* in the file */
	const uint8_t *bytes; /* without a file: size bytes; else NULL */
	uint32_t number;      /* of the piece; code_history_add sets it */
};

struct code_bytes; /* where the pieces' bytes are kept */

struct code_history {
	struct code_piece *pieces;
	uint32_t count;
	struct code_bytes *bytes;
	uint64_t byte_count; /* of all pieces that have bytes */
	uint32_t next;       /* number of the next piece: the count, if none was left out */
};

void code_history_deinit(struct code_history *history);

/* Append a copy of the piece, with its bytes. False means out of memory. */
bool code_history_add(struct code_history *history, const struct code_piece *piece);

/* So many pieces are left out here. */
void code_history_skip(struct code_history *history, uint32_t count);

/* How many of the first `number` pieces are there. */
uint32_t code_history_index(const struct code_history *history, uint32_t number);

/* Is none left out? */
static inline bool code_history_is_whole(const struct code_history *history)
{
	return history->next == history->count;
}

/*
 * The piece with the code that this thread fetches at this address, being at this
 * position: the latest one that covers the address, of those before the thread's first
 * piece of a later position; if there is none, the first one of another thread behind
 * that. NULL where there is no code.
 */
const struct code_piece *code_history_find(
        const struct code_history *history, uint32_t thread, uint64_t position, uint64_t address);

/* All pieces as the content of one section; code_history_write makes as many sections as it takes. */
void code_history_encode(const struct code_history *history, struct buffer *buffer);
enum recording_status code_history_write(struct writer *writer, const struct code_history *history);

/*
 * Append what the bytes, or all the recording's sections of this kind, say. After a
 * failure, what came before it is there. All sections together may be as large as the
 * reader lets one be.
 */
enum recording_status code_history_decode(struct code_history *history, const uint8_t *bytes, size_t size);
enum recording_status code_history_read(struct reader *reader, struct code_history *history);

#endif
