/*
 * The events of a stretch, for the compressor: the parts of patches that are alike stand
 * together, heads with heads, positions with positions, words with words. No byte changes,
 * only their order; docs/format.md has it. Files are made of what sorted.h does with them instead;
 * this is for reading older ones, and for what sorted.h cannot give back.
 */
#ifndef BUGNET_RECORDING_COLUMNS_H
#define BUGNET_RECORDING_COLUMNS_H

#include "recording/buffer.h"

/* Columns are larger than their events by less than this. */
#define COLUMNS_SIZE_LIMIT(size) (2 * (size) + 64)

/* Appends the columns of these events; false: they are no events, or there is no memory. */
bool columns_split(const uint8_t *events, size_t size, struct buffer *columns);

/* The events of these columns, which may be hostile; false: they do not make just `events_size` bytes. */
bool columns_merge(const uint8_t *columns, size_t size, uint8_t *events, size_t events_size);

#endif
