/*
 * What the code history says is where, as of now: files that are mapped, and on top of
 * them bytes. Whoever is about to run code asks whether the history already has it; if
 * not, the history gains a piece.
 */
#ifndef BUGNET_RECORD_CODE_VIEW_H
#define BUGNET_RECORD_CODE_VIEW_H

#include "record/index.h"
#include "record/kept_code.h"
#include "record/mapped_files.h"
#include "record/memory.h"
#include "recording/code_history.h"
#include "target/layout.h"

/* A stretch of a file that is mapped. */
struct code_extent {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	uint32_t file;
};

struct code_page;

/* Addresses that had code once: whatever comes there replaces it, as far as anybody may still need that. */
#define CODE_VIEW_BURIED 256

struct code_view {
	struct mapped_files files;
	VECTOR(struct code_extent) extents; /* sorted, none overlaps another */
	struct index page_index;            /* by address */
	VECTOR(struct code_page *) pages;
	struct code_history news; /* pieces that nobody has taken yet, */
	/* and, where code is kept as long as it is needed, what went; that takes a number, as a piece does */
	bool keeps_gone;
	VECTOR(struct code_gone) gone;
	struct range buried[CODE_VIEW_BURIED]; /* sorted; more is told than is true when there is no room */
	uint32_t buried_count;
	uint32_t count;    /* of all pieces */
	uint32_t replaced; /* so many there were when one last replaced others, or code went; 0: never */
};

void code_view_deinit(struct code_view *view);

/* Nothing is mapped there any more. */
void code_view_gone(struct code_view *view, uint64_t start, uint64_t end);

/* See recorder_code. */
void code_view_run(struct code_view *view, uint32_t thread, uint64_t position, struct memory *memory,
        uint64_t address, const uint8_t *bytes, uint32_t size);

#endif
