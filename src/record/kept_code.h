/*
 * The code history of a ring: pieces that nothing in the ring can need any more are dropped.
 * The others keep their numbers, by which logs refer to them.
 */
#ifndef BUGNET_RECORD_KEPT_CODE_H
#define BUGNET_RECORD_KEPT_CODE_H

#include "record/vector.h"
#include "recording/code_history.h"
#include "recording/codelog.h"

/*
 * What a stretch may run: the code as the first `low` pieces have it, and the pieces from there
 * up to number `high`, itself not included.
 */
struct code_need {
	uint32_t low, high;
};

/* What pieces before number `as_of` have in [start, end) was unmapped then. */
struct code_gone {
	uint64_t start, end;
	uint32_t as_of;
};

/* A mapping of a file that went then. */
struct gone_mapping {
	uint32_t file; /* number in the code log */
	struct codelog_mapping mapping;
	uint32_t as_of;
};

#define CODE_NEED_ALL UINT32_MAX /* as `high`: whatever will come */

/*
 * A stretch needs two of these at most: one before and one behind its thread's longest sleep, in which
 * others may have run and replaced much code. low > high: not needed.
 */
struct stretch_code {
	struct code_need needs[2];
};

#define STRETCH_CODE_NONE ((struct stretch_code){{{1, 0}, {1, 0}}})

struct kept_code {
	struct code_history history;
	VECTOR(struct code_gone) gone;        /* with pieces that are still there; in the order of time */
	VECTOR(struct gone_mapping) mappings; /* that went with these */
	uint32_t least_count;                 /* after it was last looked through, */
	uint64_t least_bytes;                 /* with so many bytes */
};

void kept_code_deinit(struct kept_code *code);

/* What has become of the code. */
struct code_news {
	struct code_history *pieces; /* that come next */
	const struct code_gone *gone;
	uint32_t gone_count;
	const struct gone_mapping *mappings;
	uint32_t mapping_count;
};
void kept_code_add(struct kept_code *code, const struct code_news *news);

/* Has so much come that it is worth looking for what can go? */
bool kept_code_grew(const struct kept_code *code);

/* Drop what none of these needs; they are sorted and merged in place. */
void kept_code_drop(struct kept_code *code, struct code_need *needs, uint32_t count);

/* Memory that the pieces take. */
/* Adds the mappings that went to those that are there. */
void kept_code_add_mappings(const struct kept_code *code, struct codelog *log);

uint64_t kept_code_size(const struct kept_code *code);

#endif
