/*
 * What the code history says is where, as of now: files that are mapped, and on top of
 * them bytes. Whoever is about to run code asks whether the history already has it; if
 * not, the history gains a piece.
 */
#ifndef BUGNET_RECORD_CODE_VIEW_H
#define BUGNET_RECORD_CODE_VIEW_H

#include "record/index.h"
#include "record/mapped_files.h"
#include "record/memory.h"
#include "recording/code_history.h"

/* A stretch of a file that is mapped. */
struct code_extent {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	uint32_t file;
};

struct code_page;

struct code_view {
	struct mapped_files files;
	VECTOR(struct code_extent) extents; /* sorted, none overlaps another */
	struct index page_index;            /* by address */
	VECTOR(struct code_page *) pages;
	struct code_history news; /* pieces that nobody has taken yet */
	uint32_t count;           /* of all pieces */
	uint32_t replaced;        /* so many there were when one last replaced others; 0: none did */
};

void code_view_deinit(struct code_view *view);

/* See recorder_code. */
void code_view_run(struct code_view *view, uint32_t thread, uint64_t position, struct memory *memory,
        uint64_t address, const uint8_t *bytes, uint32_t size);

#endif
