/*
 * The shape of a recording file: a file header, then sections, each a header and stored
 * bytes, one behind the other. The last one is an index, which only saves time.
 *
 * writer.h makes such files, reader.h reads them; docs/format.md describes every byte.
 * This is what both share.
 */
#ifndef BUGNET_RECORDING_CONTAINER_H
#define BUGNET_RECORDING_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTAINER_VERSION        1 /* of what this code writes, and the newest it reads */
#define CONTAINER_MINIMUM_READER 1 /* the oldest version of readers that understand what it writes */

/* Features that a reader must know, and those it may ignore. */
#define CONTAINER_REQUIRED_GAPS   (UINT64_C(1) << 0) /* the code history leaves pieces out */
#define CONTAINER_REQUIRED_SORTED (UINT64_C(1) << 1) /* stretches may have CODEC_SORTED */
#define CONTAINER_REQUIRED_KNOWN  (CONTAINER_REQUIRED_GAPS | CONTAINER_REQUIRED_SORTED)
#define CONTAINER_OPTIONAL_FILES  (UINT64_C(1) << 0) /* the mapped files are inside */

#define CONTAINER_HEADER_SIZE         64
#define CONTAINER_HEADER_SIZE_MAXIMUM 4096 /* what a later version may grow it to */

enum section_type {
	SECTION_META = 1,
	SECTION_CODELOG,
	SECTION_FILE,
	SECTION_THREAD,
	SECTION_STRETCH,
	SECTION_INDEX,
	SECTION_CODE,
};

enum section_codec {
	CODEC_NONE,
	CODEC_ZSTD,
	CODEC_COLUMNS, /* zstd of what columns.h makes of the content; stretches only */
	CODEC_SORTED,  /* the same of what sorted.h makes of it */
};

#define SECTION_HEADER_SIZE 64

/* A section's header. What id, first and last mean depends on the type. */
struct section {
	uint16_t type;        /* enum section_type, or one of a later version */
	uint8_t codec;        /* enum section_codec */
	uint64_t id;          /* FILE: its number; THREAD: its id; STRETCH: stretch_id() */
	uint64_t first, last; /* STRETCH: positions; FILE: range of offsets; others: 0 */
	uint64_t raw_size;    /* of the content */
	uint64_t stored_size; /* of the bytes behind the header */
	uint64_t checksum;    /* of these bytes */
	uint64_t offset;      /* of the header in the file; not part of the header */
};

struct container_header {
	uint32_t size;
	uint32_t version;
	uint32_t minimum_reader;
	uint64_t required, optional;
};

uint64_t container_checksum(const void *bytes, size_t size);

/* Fuzzers get past checksums; nobody else does. */
bool container_checksum_matches(const void *bytes, size_t size, uint64_t expected);

void container_header_encode(const struct container_header *header, uint8_t bytes[CONTAINER_HEADER_SIZE]);
void section_header_encode(const struct section *section, uint8_t bytes[SECTION_HEADER_SIZE]);

/* False if this is no section header, or a damaged one. Sets everything but the offset. */
bool section_header_decode(struct section *section, const uint8_t bytes[SECTION_HEADER_SIZE]);

/* The first 16 bytes of a file: is it a recording, and how large is its header? */
#define CONTAINER_START_SIZE 16
bool container_start_decode(const uint8_t bytes[CONTAINER_START_SIZE], uint32_t *header_size);

/* False if damaged. `size` is what container_start_decode gave. */
bool container_header_decode(struct container_header *header, const uint8_t *bytes, uint32_t size);

/* The index: INDEX_ENTRY_SIZE for each section, then a tail by which it is found from the end of the file. */
#define INDEX_ENTRY_SIZE (8 + SECTION_HEADER_SIZE)
#define INDEX_TAIL_SIZE  16
void index_tail_encode(uint64_t offset, uint8_t bytes[INDEX_TAIL_SIZE]);
bool index_tail_decode(uint64_t *offset, const uint8_t bytes[INDEX_TAIL_SIZE]);

#endif
