/*
 * A stretch of a thread's log: from one keyframe to the next. Everything about it but the
 * events is in the section's header, so that a recording's time line is known without
 * decompressing anything.
 */
#ifndef BUGNET_RECORDING_STRETCH_H
#define BUGNET_RECORDING_STRETCH_H

#include "recording/reader.h"
#include "recording/writer.h"

/* The id of its section. */
static inline uint64_t stretch_id(uint32_t thread, uint32_t number)
{
	return (uint64_t)thread << 32 | number;
}

static inline uint32_t stretch_thread(const struct section *section)
{
	return (uint32_t)(section->id >> 32);
}

/* Counted per thread from the start of the recording, also those that the ring has lost. */
static inline uint32_t stretch_number(const struct section *section)
{
	return (uint32_t)section->id;
}

/* `bytes` are events as encode.h wrote them; `first` and `last` the positions of the keyframe and of the end.
 */
enum recording_status stretch_write(struct writer *writer, uint32_t thread, uint32_t number, uint64_t first,
        uint64_t last, const uint8_t *bytes, size_t size);

/* The events, section->raw_size bytes for decode.h, in memory that the caller frees. */
enum recording_status stretch_read(struct reader *reader, const struct section *section, uint8_t **bytes);

#endif
