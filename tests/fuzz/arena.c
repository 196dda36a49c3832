/*
 * The memory of the sequences: two arenas at fixed addresses, one below 4 GB, where 32-bit addressing reaches
 * it and where translators that put a shadow at a distance have their special case, and one high up, between
 * the highest place of executables and the lowest of libraries (with 28 random bits or 32).
 *
 * Before a sequence its pages are filled from a template of random numbers, small numbers, floating point
 * numbers and pointers into the arena; afterwards they are hashed.
 */
#include "fuzz.h"
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static const uint64_t bases[ARENAS] = {0x20000000, 0x698040000000};

enum { TEMPLATE = 64 << 10 };
static _Alignas(64) uint8_t templates[ARENAS][TEMPLATE];

const uint16_t arena_changing_pages[] = {
        AT_DATA, AT_DATA + PAGE, AT_DATA + 2 * PAGE, AT_TAIL, AT_STACK, AT_STACK + PAGE, 0};

uint64_t arena_base(unsigned arena)
{
	return bases[arena];
}

uint64_t arena_pointer(struct rng *r, unsigned arena)
{
	uint64_t base = bases[arena];
	unsigned kind = rng_below(r, 100);
	if (kind < 62)
		return base + AT_DATA + 512 + rng_below(r, 3 * PAGE - 1024);
	if (kind < 74) /* across a page boundary */
		return base + AT_DATA + PAGE * (1 + rng_below(r, 2)) - rng_below(r, 40);
	if (kind < 82) /* into the read-only page */
		return base + AT_READ_ONLY - 32 + rng_below(r, 64);
	if (kind < 85)
		return base + AT_READ_ONLY + rng_below(r, PAGE);
	if (kind < 89) /* into a guard, upwards and downwards */
		return base + AT_TAIL + PAGE - rng_below(r, 40);
	if (kind < 92)
		return base + AT_TAIL - 4 + rng_below(r, 40);
	if (kind < 96)
		return base + AT_TAIL + rng_below(r, PAGE);
	return base + AT_STACK + 256 + rng_below(r, 2 * PAGE - 512);
}

static uint64_t template_word(struct rng *r, unsigned arena)
{
	static const uint64_t special[] = {0x7ff0000000000000, 0xfff8000000000000, 0x7ff0000000000001, 1,
	        0x7f8000007f800001, 0x8000000000000000, 0x00000001007fffff, 0x3ff0000000000000,
	        0xffffffffffffffff, 0x7fffffffffffffff, 0x80000000, 0x7fff8000ffff0001};
	switch (rng_below(r, 10)) {
	case 0:
		return 0;
	case 1:
		return (uint64_t)rng_between(r, -200, 200);
	case 2:
	case 3:
		return arena_pointer(r, arena);
	case 4: {
		double d = (double)rng_between(r, -100000, 100000) / 64;
		uint64_t bits;
		memcpy(&bits, &d, sizeof bits);
		return bits;
	}
	case 5: {
		float f[2] = {(float)rng_between(r, -5000, 5000) / 16, (float)rng_between(r, -9, 9)};
		uint64_t bits;
		memcpy(&bits, f, sizeof bits);
		return bits;
	}
	case 6:
		return special[rng_below(r, sizeof special / sizeof *special)];
	case 7:
		return (uint32_t)rng_next(r);
	default:
		return rng_next(r);
	}
}

static void fill_constants(struct rng *r, uint8_t *page)
{
	for (unsigned n = 0; n < 8; n++) {
		uint32_t mxcsr = 0x1f80 | (rng_below(r, 4) << 13) | rng_below(r, 64) | (n & 1 ? 0x8040 : 0);
		if (n == 6)
			mxcsr &= ~(1u << (7 + rng_below(r, 6)));
		memcpy(page + CONST_MXCSR + 4 * n, &mxcsr, 4);
		uint16_t cw = (uint16_t)(0x37f & ~(rng_below(r, 4) << 8)) | (uint16_t)(rng_below(r, 4) << 10);
		if (n == 7)
			cw &= (uint16_t) ~(1u << rng_below(r, 6));
		memcpy(page + CONST_CW + 2 * n, &cw, 2);
	}
	static const double numbers[] = {1.0, -3.75, 1e30, 1e-310, 0.1, 0.0, 123456789.0, -0.5};
	for (unsigned n = 0; n < 8; n++) {
		float f = (float)numbers[n];
		long double l = numbers[n];
		memcpy(page + CONST_FLOAT + 48 * n, &f, 4);
		memcpy(page + CONST_FLOAT + 48 * n + 16, &numbers[n], 8);
		memcpy(page + CONST_FLOAT + 48 * n + 32, &l, 10);
	}
	const uint32_t trapping_floats[2] = {0x00000123, 0x7f800123};
	const uint64_t trapping_doubles[2] = {0x0000000000123456, 0x7ff0000000123456};
	for (unsigned n = 0; n < 2; n++) {
		memcpy(page + CONST_TRAPPING + 48 * n, &trapping_floats[n], 4);
		memcpy(page + CONST_TRAPPING + 48 * n + 16, &trapping_doubles[n], 8);
	}
	memcpy(page + CONST_UNMASKED, "\x40\x03", 2);
	struct machine m;
	struct roles roles;
	state_random(r, 0, &m, &roles);
	memcpy(page + CONST_FXSAVE, m.fx, 512);
	for (unsigned n = 0; n < 16; n++)
		memcpy(page + CONST_FXSAVE + 160 + 16 * n, m.zmm[n], 16);
	/* An environment in protected mode format: control, status, tag, ip, cs and opcode, data pointer,
	 * segment. */
	uint32_t environment[7] = {0xffff037f, 0xffff0000 | (rng_below(r, 8) << 11),
	        0xffff0000 | rng_below(r, 65536), 0, 0, 0, 0xffff0000};
	memcpy(page + CONST_FENV, environment, sizeof environment);
	memcpy(page + CONST_FNSAVE, environment, sizeof environment);
	for (unsigned n = 0; n < 80; n++)
		page[CONST_FNSAVE + 28 + n] = (uint8_t)rng_next(r);
}

/* Without STATE_AVX no STATE_ZMM_HIGH: see restore_image(). */
static void fill_images(struct rng *r, uint8_t *page)
{
	for (unsigned n = 0; n < IMAGES; n++, page += PAGE) {
		struct machine m;
		struct roles roles;
		uint64_t components = n < WHOLE_IMAGES ? STATE_WIDE : rng_next(r) & STATE_WIDE;
		if (!(components & STATE_AVX))
			components &= ~(uint64_t)STATE_ZMM_HIGH;
		state_random(r, 0, &m, &roles);
		if (n & 1)
			state_to_compact_image(&m, page, components);
		else
			state_to_image(&m, page, components);
	}
}

static void map(uint64_t address, uint64_t size, int protection, int flags, const char *what)
{
	void *wanted = (void *)address; /* NOLINT */
	void *got = mmap(wanted, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	if (got == MAP_FAILED || got != wanted)
		fail("cannot map %s at %#lx (%lu bytes): %s", what, address, size, strerror(errno));
}

/*
 * What leads out of the arenas must fault in every run. When the high arena was two terabytes below the libraries, a gather
 * found itself in a code cache now and then, or in a library, wherever these had come to lie in that run.
 */
static void check_empty(uint64_t from, uint64_t to, const uint64_t own[2])
{
	char line[300];
	uint64_t start, end;
	FILE *maps = fopen("/proc/self/maps", "r");
	if (!maps)
		fail("cannot open /proc/self/maps: %s", strerror(errno));
	while (fgets(line, sizeof line, maps))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start < to && from < end &&
		        (start < own[0] || end > own[1]))
			fail("sequences could find what is no memory of theirs: %s", line);
	fclose(maps);
}

static void check_surroundings(const uint64_t neighbours[ARENAS][2])
{
	const uint64_t most = (uint64_t)MOST_SCALE << 32, below = most * -LEAST_INDEX, above = most * (MOST_INDEX + 1);
	for (unsigned a = 0; a < ARENAS; a++) {
		/* The program itself may be in low memory. */
		uint64_t from = bases[a] > below ? bases[a] - below : neighbours[a][1];
		check_empty(from, bases[a] + ARENA_SIZE + above, neighbours[a]);
		/* bt and its kind, with a pointer as the number of the bit */
		uint64_t bit = bases[a] + bases[1] / 8;
		check_empty(bit - ARENA_SIZE, bit + 2 * ARENA_SIZE, (const uint64_t[2]){0, 0});
	}
}

void arena_setup(bool reserve_neighbours)
{
	const uint64_t neighbours[ARENAS][2] = {
	        {0x10000000, 0x100000000}, {bases[1] - (1ul << 31), bases[1] + ARENA_SIZE + (1ul << 31)}};
	for (unsigned a = 0; a < ARENAS; a++) {
		struct rng r = rng_stream(settings.seed, ~(uint64_t)a);
		uint64_t base = bases[a];
		if (reserve_neighbours)
			map(neighbours[a][0], neighbours[a][1] - neighbours[a][0], PROT_NONE,
			        MAP_FIXED_NOREPLACE | MAP_NORESERVE, "the surroundings of an arena");
		else
			map(base, ARENA_SIZE, PROT_NONE, MAP_FIXED_NOREPLACE | MAP_NORESERVE, "an arena");
		const struct {
			uint64_t at, end;
		} parts[] = {{AT_DATA, AT_READ_ONLY + PAGE}, {AT_TAIL, AT_TAIL + PAGE},
		        {AT_STACK, AT_STACK_END}, {AT_CONSTANTS, AT_SCRATCH + PAGE},
		        {AT_XSAVE, AT_XSAVE + PAGE}, {AT_IMAGES, AT_IMAGES + IMAGES * PAGE},
		        {AT_GATE, AT_GATE + PAGE}};
		for (unsigned n = 0; n < sizeof parts / sizeof *parts; n++)
			map(base + parts[n].at, parts[n].end - parts[n].at, PROT_READ | PROT_WRITE,
			        MAP_FIXED | MAP_POPULATE, "data");
		for (unsigned n = 0; n < TEMPLATE; n += 8) {
			uint64_t word = template_word(&r, a);
			memcpy(templates[a] + n, &word, 8);
		}
		memcpy((void *)(base + AT_READ_ONLY), templates[a] + 4096, PAGE);
		fill_constants(&r, (uint8_t *)(base + AT_CONSTANTS));
		if (settings.wide)
			fill_images(&r, (uint8_t *)(base + AT_IMAGES));
		uint8_t *gate = (uint8_t *)(base + AT_GATE); /* jmp [rip + 2], aligned for AC */
		uint64_t exit = (uint64_t)(uintptr_t)fuzz_exit;
		memcpy(gate, "\xff\x25\2\0\0", 6);
		memcpy(gate + 8, &exit, 8);
		mprotect(gate, PAGE, PROT_READ | PROT_EXEC);
		mprotect((void *)(base + AT_READ_ONLY), PAGE, PROT_READ);
		mprotect((void *)(base + AT_CONSTANTS), PAGE, PROT_READ);
		mprotect((void *)(base + AT_IMAGES), IMAGES * PAGE, PROT_READ);
	}
	if (!(settings.without & WITHOUT_SHARING)) /* else it is looked at by the runs that do share */
		check_surroundings(neighbours);
}

static const uint8_t *page_source(struct rng *r, unsigned arena)
{
	return templates[arena] + 8 * rng_below(r, (TEMPLATE - PAGE) / 8);
}

void arena_reset(const struct sequence *s)
{
	struct rng r = s->memory;
	for (const uint16_t *page = arena_changing_pages; *page; page++)
		memcpy((void *)(bases[s->arena] + *page), page_source(&r, s->arena), PAGE);
	memset((void *)(bases[s->arena] + AT_SCRATCH), 0, PAGE);
	memset((void *)(bases[s->arena] + AT_XSAVE), 0, PAGE);
}

const uint8_t *arena_original(const struct sequence *s, unsigned offset)
{
	struct rng r = s->memory;
	for (const uint16_t *page = arena_changing_pages; *page; page++) {
		const uint8_t *source = page_source(&r, s->arena);
		if (*page == offset)
			return source;
	}
	return NULL;
}

static uint64_t page_hash(const void *page)
{
	const uint64_t *word = page, k = 0x9fb21c651e98df25u;
	uint64_t a = 1, b = 2, c = 3, d = 4;
	for (unsigned n = 0; n < PAGE / 8; n += 4) {
		a = (a ^ word[n]) * k;
		b = (b ^ word[n + 1]) * k;
		c = (c ^ word[n + 2]) * k;
		d = (d ^ word[n + 3]) * k;
	}
	return mix64(a ^ mix64(b ^ mix64(c ^ mix64(d))));
}

/* Most pages are as they were, and to see that is faster than to hash them. */
uint64_t arena_hash(const struct sequence *s)
{
	struct rng r = s->memory;
	uint64_t hash = 0;
	for (const uint16_t *page = arena_changing_pages; *page; page++) {
		const void *now = (const void *)(bases[s->arena] + *page), *then = page_source(&r, s->arena);
		if (memcmp(now, then, PAGE) != 0)
			hash = mix64(hash + *page) ^ page_hash(now);
	}
	return hash;
}
