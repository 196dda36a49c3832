/* What the sections with structured content share. */
#ifndef BUGNET_RECORDING_TYPED_H
#define BUGNET_RECORDING_TYPED_H

#include "recording/cursor.h"
#include "recording/reader.h"
#include "recording/writer.h"

/* Content that becomes many small allocations: far more than any real recording has. */
#define TYPED_LIMIT (UINT64_C(16) << 20)

/* A text of `size` bytes, in memory that the caller frees; RECORDING_MALFORMED if it is not all there or has
 * a zero. */
enum recording_status typed_text(struct cursor *cursor, uint32_t size, char **text);

/* Add a section with the buffer's bytes, and let go of the buffer. */
enum recording_status typed_write(
        struct writer *writer, enum section_type type, uint64_t id, struct buffer *buffer);

/*
 * Load one section, or every section of a type one after the other, and give the content
 * to `decode`. RECORDING_MISSING if there is none.
 */
typedef enum recording_status typed_decoder(void *to, const uint8_t *bytes, size_t size);
enum recording_status typed_read(
        struct reader *reader, const struct section *section, typed_decoder *decode, void *to);
enum recording_status typed_read_all(
        struct reader *reader, enum section_type type, typed_decoder *decode, void *to);

#endif
