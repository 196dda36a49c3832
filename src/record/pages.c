#include "record/pages.h"

#include <sys/ioctl.h>
#include <unistd.h>

#define PAGE 4096ul

/* From Linux 6.7 on, see its Documentation/admin-guide/mm/pagemap.rst; Debian 12's headers are older. */
struct scanned {
	uint64_t start, end, categories;
};

struct scan {
	uint64_t size, flags, start, end, walk_end, found, found_length, most_pages;
	uint64_t inverted, all_of, any_of, wanted;
};

#define SCAN         _IOWR('f', 16, struct scan)
#define SCAN_PRESENT (1 << 3)
#define SCAN_SWAPPED (1 << 4)
#define SCAN_ZERO    (1 << 5)

/* The same for every Linux: a word for each page. */
#define ENTRY_PRESENT (UINT64_C(1) << 63)
#define ENTRY_SWAPPED (UINT64_C(1) << 62)

struct visit {
	bool (*found)(void *context, uint64_t start, uint64_t end);
	void *context;
	bool stopped; /* `found` was false */
};

/* Can the kernel tell? */
static bool scan(const struct memory *memory, uint64_t start, uint64_t end, struct visit *visit)
{
	struct scanned found[256];
	struct scan scan = {.size = sizeof scan,
	        .end = end,
	        .found = (uintptr_t)found,
	        .found_length = sizeof found / sizeof found[0],
	        .inverted = SCAN_ZERO,
	        .all_of = SCAN_ZERO,
	        .any_of = SCAN_PRESENT | SCAN_SWAPPED,
	        .wanted = SCAN_PRESENT};

	for (; start < end; start = scan.walk_end) {
		scan.start = start;
		int count = ioctl(memory->pages_fd, SCAN, &scan);
		if (count < 0)
			return false;
		for (int i = 0; i < count && !visit->stopped; i++)
			visit->stopped = !visit->found(visit->context, found[i].start, found[i].end);
		if (visit->stopped)
			break;
	}
	return true;
}

static bool list(const struct memory *memory, uint64_t start, uint64_t end, struct visit *visit)
{
	static uint64_t entries[1 << 16];

	while (start < end) {
		uint64_t count = (end - start) / PAGE;
		if (count > sizeof entries / sizeof entries[0])
			count = sizeof entries / sizeof entries[0];
		ssize_t got = pread(memory->pages_fd, entries, count * sizeof entries[0],
		        (off_t)(start / PAGE * sizeof entries[0]));
		if (got <= 0 || got % (ssize_t)sizeof entries[0])
			return false;
		count = (uint64_t)got / sizeof entries[0];
		for (uint64_t i = 0; i < count; i++) {
			uint64_t at = start + i * PAGE;
			if (entries[i] & (ENTRY_PRESENT | ENTRY_SWAPPED) &&
			        !visit->found(visit->context, at, at + PAGE))
				return false;
		}
		start += count * PAGE;
	}
	return true;
}

bool pages_each(const struct memory *memory, uint64_t start, uint64_t end,
        bool (*found)(void *context, uint64_t start, uint64_t end), void *context)
{
	struct visit visit = {found, context, false};

	return scan(memory, start, end, &visit) ? !visit.stopped : list(memory, start, end, &visit);
}

static bool add(void *context, uint64_t start, uint64_t end)
{
	*(uint64_t *)context += end - start;
	return true;
}

bool pages_bytes(const struct memory *memory, uint64_t start, uint64_t end, uint64_t *bytes)
{
	*bytes = 0;
	return scan(memory, start, end, &(struct visit){add, bytes, false});
}
