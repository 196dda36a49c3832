/*
 * A space: the code cache of one program image and of the processes forked from
 * it, for as long as their code is the same. It holds the translations that were
 * placed, knows which branches lead where, and unlinks what is no longer true.
 */
#ifndef BUGNET_RECORD_SPACE_H
#define BUGNET_RECORD_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "record/index.h"
#include "record/memory.h"
#include "record/vector.h"
#include "target/layout.h"
#include "translate/translate.h"

#define KNOWN_FILTER_BYTES (1u << 20)
#define AHEAD_TARGETS      64

/* What --stats tells; one line each in stats.c. */
struct space_counters {
	uint64_t requests, ahead, shared, regions, blocks, instructions, links, indirect_entries, invalidated,
	        revived, write_faults, self_check_pages, resets, full;
	uint64_t translate_nanoseconds;
};

struct library;

struct space_segment {
	struct segment_layout layout;
	uint8_t *memory; /* this segment's part of the memfd, in the supervisor */
	uint64_t routines[ROUTINE_COUNT];
	uint32_t code_used, allocated, directory_count, records_used;
	uint32_t *chains; /* BRANCH_TABLES * BRANCH_TABLE_ENTRIES heads: index of a thunk + 1 */
	uint32_t chained; /* thunks in its tables */
	bool spread;      /* over all tables, as the first one is crowded */
};

struct space_entry {
	uint64_t pc;
	uint32_t code;                 /* offset in its segment's code + 1; 0: not translated now */
	uint32_t region;               /* index + 1 of the region that has it, or last had it */
	uint32_t sites;                /* head of the branches that want to go there: index + 1 */
	uint32_t bridge[MAX_SEGMENTS]; /* index + 1 */
	uint8_t segment;
};

struct space_site {
	uint32_t offset; /* of the rel32, in its segment's code */
	uint32_t exit;   /* code offset of its exit + 1; 0: not made yet */
	uint32_t entry;
	uint32_t next, previous; /* index + 1 */
	uint8_t segment;
};

struct space_thunk {
	uint32_t entry;
	uint32_t offset; /* in the segment's code */
	uint32_t next_field;
	uint32_t next; /* index + 1 */
	uint8_t segment;
	uint8_t home, table; /* where it belongs, and where it is */
	bool chained;
};

struct space_bridge {
	uint32_t code, literal; /* offsets in the segment's code */
	uint32_t exit;
	uint32_t entry;
	uint8_t segment;
};

enum region_state { REGION_LIVE, REGION_DORMANT, REGION_DEAD };

struct space_region {
	uint64_t pc;
	uint32_t first_entry, entry_count;   /* in region_entries */
	uint32_t first_source, source_count; /* in sources */
	uint32_t first_site, site_count;     /* in sites */
	uint8_t segment;
	uint8_t state;
	bool self_check; /* compares its source at every block */
};

struct region_entry {
	uint32_t entry, code;
	uint32_t thunk; /* index + 1 of its inline thunk */
};

struct region_source {
	uint64_t pc;
	uint32_t size, bytes; /* position in source_bytes */
};

enum page_watch { PAGE_FREE, PAGE_PENDING, PAGE_WATCHED };

struct space_page {
	uint64_t page;
	uint32_t uses; /* head in page_uses: index + 1 */
	uint8_t watch;
	uint8_t faults;
	uint32_t watched_at; /* if it was watched: its place in info.watched */
	bool was_watched;    /* the program may write there, whatever the kernel says now */
	bool self_check;
};

struct page_use {
	uint32_t region, next;
};

/* Code for a single instruction, see space_single. */
struct stepped {
	uint64_t pc, code;
	uint32_t size;
	uint8_t bytes[16];
};

/* A few pcs, in no order. */
struct pc_set {
	uint64_t *items;
	uint32_t count, capacity;
};

struct space {
	uint32_t id;
	uint32_t users; /* processes */
	bool exhausted; /* something could not be placed: space_reset must come before the program goes on */
	uint64_t exhausted_since; /* the supervisor's clock when it first saw that */
	uint8_t *memory;
	uint64_t memory_size;
	int memfd;
	struct stub_header header; /* a copy's memory has none: its processes keep the stub they have */
	struct space_segment segments[MAX_SEGMENTS];
	unsigned segment_count;
	uint64_t xstate_mask;
	bool wide_vectors; /* see struct translate_request */
	bool loop_is_fast;
	bool count; /* translations count instructions */
	bool count_loads;
	bool approximates; /* some code has instructions whose results differ from processor to processor */
	enum translate_mode mode;
	uint64_t trace_filter; /* see struct translate_request */
	bool trace_stack;      /* the same */
	uint64_t known_table;  /* the same */
	bool exact_flags;      /* replay: flags are the program's everywhere, read or not */
	struct pc_set probes;  /* replay: pcs whose execution is told of, see space_probe */
	bool whole_state;      /* see struct translate_request */
	struct pc_set stops;   /* pcs that no code leads to, see space_stop */
	VECTOR(struct stepped) steps;
	bool low_memory, low_stack; /* see struct translate_request */
	bool by_pages;              /* pages of the same */
	uint64_t compares_for;      /* enum leaving_pages */
	uint64_t compares_from;     /* position */
	/* Told of the bytes that code was translated from, before it is run; or NULL. */
	void (*on_code)(
	        void *context, struct memory *memory, uint64_t address, const uint8_t *bytes, uint32_t size);
	/* Told where nothing is mapped any more; or NULL. */
	void (*on_unmapped)(void *context, uint64_t start, uint64_t end);
	void *on_code_context;    /* of both */
	struct pattern *patterns; /* see link.c; NULL: none made yet */
	struct library *library;  /* shared with other spaces, or NULL */
	struct index entry_index, page_index;
	uint8_t *known_filter; /* KNOWN_FILTER_BYTES: a bit for each pc that ever had code, see regions.c */
	VECTOR(struct space_entry) entries;
	VECTOR(struct space_site) sites;
	VECTOR(struct space_thunk) thunks;
	VECTOR(struct space_bridge) bridges;
	VECTOR(struct space_region) regions;
	VECTOR(struct region_entry) region_entries;
	VECTOR(struct region_source) sources;
	VECTOR(uint8_t) source_bytes;
	VECTOR(struct space_page) pages;
	VECTOR(struct page_use) page_uses;
	uint64_t ahead[AHEAD_TARGETS]; /* where control may go on from the code last asked for */
	uint32_t ahead_first, ahead_end;
	uint32_t asked, expected; /* numbers in the library + 1: asked for last, and what should come next */
	uint32_t foresight;
	struct space_counters counters;
};

/*
 * The layout of the segments, given their bases; returns the size of the memfd. Each has room for
 * `reserved_code` bytes of code, of which `code_size` are used.
 */
uint64_t space_plan(struct segment_layout *layouts, unsigned count, uint64_t threads, uint64_t code_size,
        uint64_t reserved_code, uint64_t logs_size);

/* Takes the memfd over. Returns NULL and sets errno. */
struct space *space_create(int memfd, const struct segment_layout *layouts, unsigned count, const void *stub,
        const struct stub_header *header, uint64_t vectors);
/* A copy in another memfd, for a process whose code is about to differ. */
struct space *space_clone(const struct space *from, int memfd);
void space_destroy(struct space *space);
/* Forgets all translations. Nobody may be in them, see evacuate.h. */
int space_reset(struct space *space);

struct info *space_info(const struct space *space, unsigned segment);

/* Tells on_code of everything that can be run without a request. */
void space_tell_code(struct space *space, struct memory *memory);

/* Would the process's code differ from that of others in this space after this request? Then it must leave
 * first. */
bool space_needs_protection(struct space *space, struct memory *memory, uint64_t pc);
bool space_is_watched(const struct space *space, uint64_t start, uint64_t end);

/* The requests of layout.h. */
enum status space_translate(struct space *space, struct memory *memory, uint64_t pc, uint64_t indirect,
        unsigned how, uint64_t reply[2]);
/* Replay: code for just so many instructions from pc on, see struct translate_request; reply[0] is where,
 * reply[1] how many. 0 or -errno. */
int space_step(struct space *space, struct memory *memory, uint64_t pc, unsigned count, uint64_t reply[2]);
/* Translates what an earlier process asked for at this point; false when nothing is known of that. */
bool space_translate_expected(struct space *space, struct memory *memory);
/* Translates something that may be asked for soon; false when there is nothing. */
bool space_translate_ahead(struct space *space, struct memory *memory);
/* protection_kept: contents may have changed, but what may be done with them has not. */
void space_remapped(
        struct space *space, struct memory *memory, uint64_t start, uint64_t end, bool protection_kept);
/* Code in there is another one now; what was made of it and is still true stays. Nobody may be in it. */
void space_changed(struct space *space, struct memory *memory, uint64_t start, uint64_t end);
/* Replay: from now on it is told that the instruction at pc is executed, or no more. Nobody may be in its
 * code; steps (space_step) have to be asked for again. */
void space_probe(struct space *space, uint64_t pc, bool wanted);
/* From now on no code leads to pc: whoever comes there asks for it; or again as ever. Nobody may be in its
 * code. */
void space_stop(struct space *space, uint64_t pc, bool wanted);
bool space_is_stop(const struct space *space, uint64_t pc);
/* Code for the one instruction at pc, which leaves behind it, to be entered at once: others may change what
 * is there. */
enum status space_single(struct space *space, struct memory *memory, uint64_t pc, uint64_t reply[2]);
enum status space_write_fault(
        struct space *space, struct memory *memory, uint64_t address, uint64_t pc, uint64_t reply[2]);
enum status space_unwatch(
        struct space *space, struct memory *memory, uint64_t start, uint64_t end, uint64_t reply[2]);

#endif
