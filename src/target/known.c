/*
 * Which memory a replayed thread knows, for one who wants to tell that from memory that is zero because
 * nobody touched it: see KNOWN_TABLE. Translated code notes plain accesses itself (translate/trace.c).
 */
#include "target/feed.h"
#include "target/stub.h"

#define WINDOW (1ul << KNOWN_WINDOW_BITS)

static uint64_t *table(void)
{
	return (uint64_t *)KNOWN_TABLE;
}

/* How many are taken: behind the table, since each process that is parked has its own. */
static uint64_t *regions(void)
{
	return table() + KNOWN_WINDOWS;
}

static bool map(uint64_t start, uint64_t size, int how)
{
	return syscall6(__NR_mmap, (long)start, (long)size, K_PROT_READ | K_PROT_WRITE,
	               K_MAP_PRIVATE | K_MAP_ANONYMOUS | K_MAP_NORESERVE | how, -1, 0) == (long)start;
}

static void map_empty(uint64_t start, uint64_t size)
{
	if (!map(start, size, K_MAP_FIXED))
		stub_panic("no address space to note what is known at", start);
}

static void begin(void)
{
	syscall2(__NR_munmap, KNOWN_ABSENT, KNOWN_END - KNOWN_ABSENT);
	map_empty(KNOWN_TABLE, (KNOWN_WINDOWS + 1) * sizeof *table());
	for (uint64_t window = 0; window < KNOWN_WINDOWS; window++)
		table()[window] = KNOWN_ABSENT;
}

/* The next region that is not memory of the program's. */
static uint64_t new_region(void)
{
	while (*regions() < KNOWN_REGIONS) {
		uint64_t region = KNOWN_SHARED + ++*regions() * KNOWN_REGION_BYTES;
		if (map(region, KNOWN_REGION_BYTES, K_MAP_FIXED_NOREPLACE))
			return region;
	}
	feed()->crowded = 1;
	map_empty(KNOWN_SHARED, KNOWN_REGION_BYTES);
	return KNOWN_SHARED;
}

static uint64_t region_of(uint64_t address)
{
	uint64_t *region = &table()[address >> KNOWN_WINDOW_BITS & (KNOWN_WINDOWS - 1)];

	if (*region == KNOWN_ABSENT)
		*region = new_region();
	return *region;
}

bool known_appears(uint64_t fault, const struct thread *thread, struct kernel_sigcontext *context)
{
	if (!feed()->knowing || fault - KNOWN_ABSENT >= KNOWN_REGION_BYTES || context->r11 != KNOWN_ABSENT)
		return false;
	context->r11 = region_of(thread->slots[SLOT_ADDRESS]);
	return true;
}

bool known_is_place(uint64_t address)
{
	return replaying() && feed()->knowing && address - KNOWN_TABLE < KNOWN_END - KNOWN_TABLE;
}

void known_forget(uint64_t start, uint64_t end)
{
	if (!feed()->knowing)
		return;
	if (start == 0 && end == USER_ADDRESS_END) {
		begin();
		return;
	}
	for (uint64_t at = start, next; at < end; at = next) {
		uint64_t region = table()[at >> KNOWN_WINDOW_BITS];
		next = (at & -WINDOW) + WINDOW;
		next = next < end ? next : end;
		if (region != KNOWN_ABSENT)
			map_empty(region + at % WINDOW, next - at);
	}
}

/* Are there notes of the window, and of no other one? */
static bool has_notes(uint64_t address)
{
	uint64_t region = table()[address >> KNOWN_WINDOW_BITS];

	return region != KNOWN_ABSENT && region != KNOWN_SHARED;
}

static volatile uint8_t *note_of(uint64_t address)
{
	return (volatile uint8_t *)(region_of(address) + address % WINDOW);
}

void known_note(uint64_t address, uint64_t size)
{
	if (!feed()->knowing)
		return;
	for (uint64_t at = address, end = address + size; at < end;) {
		if (at % 8 == 0 && end - at >= 8) {
			*(volatile uint64_t *)note_of(at) = UINT64_MAX;
			at += 8;
		} else {
			*note_of(at++) = 0xff;
		}
	}
}

static bool is_ours(uint64_t address)
{
	const struct process *p = process();

	for (uint32_t i = 0; i < p->segment_count; i++) {
		if (address - p->segments[i].base < p->segments[i].size)
			return true;
	}
	return known_is_place(address);
}

uint8_t known_bytes(uint64_t word)
{
	uint8_t known = 0;

	if (!feed()->knowing)
		return 0xff;
	for (unsigned i = 0; i < 8 && has_notes(word); i++)
		known |= (uint8_t)((*note_of(word + i) != 0) << i);
	return known;
}

bool known_is(uint64_t address, uint64_t size)
{
	if (!feed()->knowing || address >= USER_ADDRESS_END || size > USER_ADDRESS_END - address ||
	        is_ours(address))
		return false;
	for (uint64_t at = address; at < address + size; at++) {
		if (!has_notes(at) || !*note_of(at))
			return false;
	}
	return true;
}
