/*
 * The memory of a target process, as the supervisor sees it: its mappings and
 * its code bytes. Access was granted when the files were opened, under the
 * kernel's ptrace rules, and stays with the memory even when the process
 * changes its credentials later.
 */
#ifndef BUGNET_RECORD_MEMORY_H
#define BUGNET_RECORD_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/maps.h"

#define CODE_PAGE            4096ul
#define MEMORY_CACHED_PAGES  64
#define MEMORY_MISSING_PAGES 64

/*
 * Code that comes from elsewhere than a process: a recording. It never changes but when the
 * owner says so (memory_changed, and what a space is told), and nobody writes to it.
 */
struct memory_source {
	/* Copies up to `size` bytes of code at address; returns how many are known there, one behind the
	 * other. */
	size_t (*read)(void *context, uint64_t address, uint8_t *bytes, size_t size);
	/* Is anything known of the page that contains the address? */
	bool (*has_page)(void *context, uint64_t address);
	/* Will any of these bytes be replaced one day? */
	bool (*is_replaced)(void *context, uint64_t address, size_t size);
	void *context;
};

struct memory {
	const struct memory_source *source; /* NULL: the process's own memory */
	struct mapping source_mapping;
	int mem_fd, maps_fd, pages_fd; /* the last, /proc/PID/pagemap, may be -1 */
	struct maps maps;
	uint64_t ranges_at; /* where the process says what it has mapped, while it logs whole pages; 0:
	                       nowhere */
	bool maps_stale;
	uint64_t missing[MEMORY_MISSING_PAGES]; /* pages | 1 that have no mapping */
	uint64_t cached[MEMORY_CACHED_PAGES];   /* page address | 1, or 0 */
	uint8_t pages[MEMORY_CACHED_PAGES][CODE_PAGE];
};

/* Returns 0 or -errno. */
int memory_open(struct memory *memory, pid_t pid);
void memory_close(struct memory *memory);
/* Is it still somebody's memory? Not after execve or exit. */
bool memory_alive(const struct memory *memory);
/* Mappings or contents in there changed. */
void memory_changed(struct memory *memory);
/* Contents of one page may change from now on, or may have. */
void memory_forget(struct memory *memory, uint64_t page);
/* Looks at /proc anew only when something changed or nothing is known of the address. */
const struct mapping *memory_mapping(struct memory *memory, uint64_t address);
/* The bytes of a whole page, or NULL. `keep`: they stay the same until somebody calls memory_forget or
 * _changed. */
const uint8_t *memory_page(struct memory *memory, uint64_t page, bool keep);

#endif
