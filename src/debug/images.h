/*
 * The program and its libraries where they were in memory, as far as code of them was run: from
 * the code history and the headers of the files.
 */
#ifndef BUGNET_DEBUG_IMAGES_H
#define BUGNET_DEBUG_IMAGES_H

#include <elf.h>

#include "record/vector.h"
#include "replay/recorded.h"

struct image {
	const struct codelog_file *file;
	const struct code_file *bytes;
	uint64_t distance; /* from where its headers say to where it was */
	uint64_t start, end;
	uint64_t entry, headers, dynamic; /* addresses; dynamic 0: it has none */
	unsigned header_count;
	bool program; /* what was executed */
	bool loaded;  /* it is there; see loads.h */
};

struct images {
	VECTOR(struct image) items;
	const struct recorded *recorded;
};

void images_find(struct images *images, const struct recorded *recorded);
void images_deinit(struct images *images);

/* What the address is in a file that is loaded, or IMAGE_NOTHING. */
enum image_part {
	IMAGE_NOTHING,
	IMAGE_CONSTANT, /* code and what cannot be written */
	IMAGE_INITIAL,  /* what it was when the program began, or the library was loaded */
};
enum image_part images_read(const struct images *images, uint64_t address, uint8_t *byte);

/* All that the headers say is loaded. */
void images_each_segment(const struct images *images,
        void (*see)(void *context, const struct image *image, const Elf64_Phdr *header), void *context);

const struct image *images_program(const struct images *images);

/* The first of its headers of that type; NULL: there is none. */
const Elf64_Phdr *image_header(const struct image *image, uint32_t type);

#endif
