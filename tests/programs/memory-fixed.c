/*
 * MAP_FIXED and MAP_FIXED_NOREPLACE at many places that /proc/self/maps shows free, low and high: whatever
 * the tool keeps in the address space must give way or not be there. Each place is used, then given back.
 */
#include "check.h"
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define PAGE     4096ul
#define USER_END 0x7ffffffff000ul

static struct range {
	unsigned long start, end;
} used[2000];
static int ranges;

static void read_maps(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	ranges = 0;
	CHECK(maps);
	while (fgets(line, sizeof line, maps))
		if (sscanf(line, "%lx-%lx", &used[ranges].start, &used[ranges].end) == 2 && ranges < 1999)
			ranges++;
	fclose(maps);
}

static int is_free(unsigned long start, unsigned long end)
{
	for (int i = 0; i < ranges; i++)
		if (start < used[i].end + (2ul << 20) && used[i].start < end + (2ul << 20))
			return 0; /* keep off: stack guard gaps and growing mappings */
	return 1;
}

static void use(unsigned long address, size_t size)
{
	volatile uint64_t *memory = mmap((void *)address, size, PROT_READ | PROT_WRITE,
	        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	if (memory != (void *)address)
		fail("MAP_FIXED at a free %#lx: %s", address, strerror(errno));
	for (size_t i = 0; i < size / 8; i += 512) {
		if (memory[i])
			fail("not zero at %#lx", (unsigned long)&memory[i]);
		memory[i] = address + i;
	}
	for (size_t i = 0; i < size / 8; i += 512)
		CHECK_EQ(memory[i], address + i);
	CHECK(!munmap((void *)address, size));
	void *again = mmap(
	        (void *)address, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (again != (void *)address)
		fail("MAP_FIXED_NOREPLACE at a free %#lx: %s", address, strerror(errno));
	CHECK(!munmap(again, size));
}

int main(void)
{
	uint64_t random_state = 4711;
	int tried = 0;

	/* Powers of two and their neighbourhood: where tools like to sit. */
	for (int bit = 17; bit < 47; bit++) {
		for (int offset = -1; offset <= 1; offset++) {
			unsigned long address = (1ul << bit) + (unsigned long)(offset * 65536l);
			read_maps();
			if (address >= 65536 && address + 65536 < USER_END &&
			        is_free(address, address + 65536)) {
				use(address, 65536);
				tried++;
			}
		}
	}
	/* Every terabyte. */
	read_maps();
	for (unsigned long address = 1ul << 40; address + PAGE < USER_END; address += 1ul << 40)
		if (is_free(address, address + PAGE))
			use(address, PAGE);
	/* At random, all over the address space. */
	for (int i = 0; i < 300; i++) {
		unsigned long address = (next_random(&random_state) % (USER_END / PAGE)) * PAGE;
		size_t size = (1 + next_random(&random_state) % 64) * PAGE;
		if (address >= 65536 && address + size < USER_END && is_free(address, address + size)) {
			use(address, size);
			tried++;
		}
	}
	/* Next to what is mapped: behind the libraries, between them, behind the executable. */
	read_maps();
	int count = ranges;
	struct range copy[2000];
	memcpy(copy, used, sizeof copy);
	for (int i = 0; i + 1 < count; i++) {
		unsigned long gap = copy[i + 1].start - copy[i].end;
		if (gap < 16ul << 20 || copy[i].end > USER_END)
			continue;
		use(copy[i].end + (4ul << 20), 65536);
		tried++;
	}
	CHECK(tried > 300);

	/* A whole gigabyte and a whole terabyte where there is room. */
	char *big = mmap(NULL, 1ul << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(big != MAP_FAILED);
	CHECK_EQ(mmap(big, 1ul << 40, PROT_READ | PROT_WRITE,
	                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0),
	        big);
	big[(1ul << 39) + 5] = 1;
	CHECK(!munmap(big, 1ul << 40));

	char *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_ERRNO(mmap(page, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
	        EEXIST);
	return done();
}
