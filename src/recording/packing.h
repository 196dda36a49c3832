/* A section's content as it is stored: put into another order, compressed, or as it is. */
#ifndef BUGNET_RECORDING_PACKING_H
#define BUGNET_RECORDING_PACKING_H

#include "recording/buffer.h"
#include "recording/container.h"

/*
 * The section's codec says what to try first; the one before it is tried next. Bytes that zstd cannot
 * make smaller are stored as they are. Sets its codec, sizes and checksum, and returns the stored bytes:
 * `bytes`, or in `room`.
 */
const void *section_pack(
        struct section *section, const void *bytes, size_t size, int level, struct buffer *room);

#endif
