/* The mappings of a process, as /proc/PID/maps tells them. */
#ifndef BUGNET_RECORD_MAPS_H
#define BUGNET_RECORD_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapping {
	uint64_t start, end;
	bool readable, writable, executable, shared;
	uint64_t offset;
	uint32_t device_major, device_minor;
	uint64_t inode;
	const char *path; /* as the kernel shows it, "" for none; it lasts until the maps are read again */
};

struct maps {
	struct mapping *mappings; /* sorted by address */
	size_t count, capacity;
	char *text; /* what was read: the paths are in it */
};

/* Reads an open /proc/PID/maps anew; returns 0 or -errno. */
int maps_read(struct maps *maps, int fd);
void maps_deinit(struct maps *maps);
/* The mapping that contains address, or NULL. */
const struct mapping *maps_find(const struct maps *maps, uint64_t address);

#endif
