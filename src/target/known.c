/*
 * Which memory a replayed thread knows, for one who wants to tell that from memory that is zero because
 * nobody touched it: see KNOWN_MAP. Translated code notes plain accesses itself (translate/trace.c).
 */
#include "target/feed.h"
#include "target/stub.h"

#define PAGE 0x1000ul

static void map(uint64_t start, uint64_t end)
{
	long at = syscall6(__NR_mmap, (long)start, (long)(end - start), K_PROT_READ | K_PROT_WRITE,
	        K_MAP_PRIVATE | K_MAP_ANONYMOUS | K_MAP_NORESERVE | K_MAP_FIXED, -1, 0);

	if (at != (long)start)
		stub_panic("no address space to note what is known at", start);
}

void known_begin(void)
{
	if (feed()->knowing)
		map(KNOWN_MAP, KNOWN_MAP + KNOWN_MAP_BYTES + PAGE);
}

void known_forget(uint64_t start, uint64_t end)
{
	uint64_t low = start & (KNOWN_MAP_BYTES - 1), size = end - start;

	if (!feed()->knowing || size == 0)
		return;
	if (size >= KNOWN_MAP_BYTES) {
		known_begin();
		return;
	}
	uint64_t first = low + size < KNOWN_MAP_BYTES ? size : KNOWN_MAP_BYTES - low;
	map(KNOWN_MAP + low, KNOWN_MAP + low + first);
	if (first < size)
		map(KNOWN_MAP, KNOWN_MAP + size - first);
}

static volatile uint8_t *note_of(uint64_t address)
{
	return (volatile uint8_t *)(KNOWN_MAP + (address & (KNOWN_MAP_BYTES - 1)));
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
	return address - KNOWN_MAP < KNOWN_MAP_BYTES + PAGE;
}

uint8_t known_bytes(uint64_t word)
{
	uint8_t known = 0;

	if (!feed()->knowing)
		return 0xff;
	for (unsigned i = 0; i < 8; i++)
		known |= (uint8_t)((*note_of(word + i) != 0) << i);
	return known;
}

bool known_is(uint64_t address, uint64_t size)
{
	if (!feed()->knowing || address >= USER_ADDRESS_END || size > USER_ADDRESS_END - address ||
	        is_ours(address))
		return false;
	for (uint64_t at = address; at < address + size; at++) {
		if (!*note_of(at))
			return false;
	}
	return true;
}
