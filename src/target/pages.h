/*
 * What the files that log whole pages share: see pages.c. Nobody else includes this.
 */
#ifndef BUGNET_TARGET_PAGES_H
#define BUGNET_TARGET_PAGES_H

#include "target/stub.h"

#define PAGE    0x1000ul
#define LINE    64ul
#define WORDS   8
#define RANGES  8192u
#define REGIONS 8192u /* a power of two */

#define RANGES_LEFT  256 /* room for what one call may add */
#define REGION_PAGES 512
/* Where there are more it is time to compare loads; until that is so there is room for some. */
#define REGIONS_MANY (REGIONS / 2)
#define REGIONS_FULL (REGIONS / 4 * 3)
/* Open pages without open neighbours: each makes two mappings more, which are limited. */
#define LONE_MANY    8192
#define LONE_FULL    12288

struct region {
	uint64_t number; /* + 1; 0: none */
	uint64_t open[REGION_PAGES / 64];
};

/* What was in memory before a call that may write there. */
#define KEPT       4
#define KEPT_LEAST 256
#define KEPT_BYTES 16384

struct kept {
	uint64_t start, end; /* of whole words */
	uint64_t words[KEPT_BYTES / 8];
};

struct pages {
	uint32_t region_count;
	int32_t lone;
	uint64_t opened;        /* pages, since the keyframe */
	uint64_t brk, brk_most; /* the end of the heap, and where it was at most since the keyframe */
	struct range vdso;
	uint64_t stack; /* its last page */
	bool probes;    /* see probe_stack */
	uint64_t image; /* the file that was mapped last, by its path; see is_of_image */
	struct call_writes writes;
	uint32_t kept_count;
	struct kept kept[KEPT];
	struct page_range ranges[RANGES];
	struct region regions[REGIONS];
};

static inline struct pages *pages(void)
{
	return (struct pages *)image_range(thread_at(1)).start;
}

static inline struct process_memory *memory(void)
{
	return &process()->memory;
}

#define AGAIN_MOST  4 /* times; what ends it over and over is not worth it */
#define AGAIN_AFTER (100ul << 20)
#define ELF_MAGIC   0x464c457fu

/* ---- page_ranges.c ---- */
/* The first one that ends behind the address; the one that has it, or NULL. */
uint32_t page_range_behind(uint64_t address);
struct page_range *page_range_at(uint64_t address);
/* Before and behind every change: the supervisor reads them. */
void page_ranges_change(void);
void page_ranges_split(uint64_t address);
void page_ranges_remove(uint64_t start, uint64_t end);
void page_ranges_insert(struct page_range range);
bool page_ranges_alike(const struct page_range *a, const struct page_range *b);
void page_ranges_merge(void);
struct region *page_region(uint64_t page, bool make);
bool page_is_open(uint64_t page);
void page_set_open(uint64_t page, bool open);
void pages_forget_open(uint64_t start, uint64_t end);
long page_protect(uint64_t start, uint64_t end, uint32_t protection);
/* What is closed of the range is without access again, and what is open as the program has it. False: there
 * are too many mappings for that. */
bool page_close_rest(const struct page_range *range);

/* ---- pages.c ---- */
/* For want of room, or of mappings, all of it. */
void pages_open_range(struct thread *thread, uint64_t here, struct page_range *range);

/* ---- page_mappings.c ---- */
bool path_begins_with(const char *text, const char *start);
/* Is what lies at the path never written to? */
bool path_is_immutable(const char *path);

#endif
