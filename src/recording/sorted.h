/*
 * The events of a stretch, for the compressor: the words of patches sorted by address, and
 * separated by what they look like; the rest as it is, like with like.
 *
 * A log has pointers, small numbers, text and tables in the order in which a program came
 * across them. A compressor finds more in it when lines that are neighbours in memory come one behind
 * the other, pointers are told by how far they lead, and the low bytes of numbers do not stand
 * between high ones that are all alike. docs/format.md describes every byte.
 */
#ifndef BUGNET_RECORDING_SORTED_H
#define BUGNET_RECORDING_SORTED_H

#include "recording/buffer.h"

/* Eight words that the dictionary has are thirteen bytes as an event, and 70 here. */
#define SORTED_SIZE_LIMIT(size) (6 * (size) + 256)

enum {
	SORTED_HEADS,     /* the first byte of every event */
	SORTED_POSITIONS, /* of patches, as the other parts are */
	SORTED_LINES,
	SORTED_OTHERS, /* the other events: a size, and what is behind the first byte */
	SORTED_KINDS,  /* half a byte for each word of a line */
	SORTED_VALUES, /* one column for each kind of words from here on, but for the kind 0 */
	SORTED_COLUMNS = SORTED_VALUES + 12,
};

struct sorted {
	struct buffer bytes;
	size_t ends[SORTED_COLUMNS]; /* of columns; what comes behind is of another nature */
};

/* False: these are no events, or not as encode.h writes them, or there is no memory. To be deinited either
 * way. */
bool sorted_split(const uint8_t *events, size_t size, struct sorted *sorted);
void sorted_deinit(struct sorted *sorted);

/* The events of what may be hostile; false: they do not make just `events_size` bytes, or no memory. */
bool sorted_merge(const uint8_t *bytes, size_t size, uint8_t *events, size_t events_size);

#endif
