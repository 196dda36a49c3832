/*
 * Where the code of the sequences lies. Always at the same address for the same sequence.
 *
 *   protected   the 100 sequences of a block are written into fresh writable memory, which is then made
 * executable and taken away after the block: what a JIT with W^X does, and dlclose rewritten   memory that is
 * writable and executable at once; every sequence overwrites the one before it, at odd places, so old
 * translations must go two views   a memfd mapped twice, written through one view and run through the other,
 * four slots used in turn
 */
#include "fuzz.h"
#include <string.h>
#include <errno.h>
#include <unistd.h>
#include <sys/mman.h>

static int views_fd = -1;
static uint8_t *writable_view;

void code_setup(void)
{
	if (settings.without & WITHOUT_TWO_VIEWS)
		return;
	views_fd = memfd_create("fuzz-code", MFD_CLOEXEC);
	if (views_fd < 0 || ftruncate(views_fd, CODE_SIZE) < 0)
		fail("cannot make the memfd for code: %s", strerror(errno));
	writable_view = mmap(NULL, CODE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, views_fd, 0);
	if (writable_view == MAP_FAILED)
		fail("cannot map the memfd for code: %s", strerror(errno));
}

static void *code_memory(unsigned arena)
{
	return (void *)(arena_base(arena) + AT_CODE); /* NOLINT */
}

void code_open(unsigned arena, enum code_mode mode)
{
	void *at = code_memory(arena), *got;
	if (mode == CODE_TWO_VIEWS)
		got = mmap(at, CODE_SIZE, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
		        views_fd, 0);
	else if (mode == CODE_REWRITTEN)
		got = mmap(at, REWRITTEN_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
		        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0);
	else
		got = mmap(at, CODE_SIZE, PROT_READ | PROT_WRITE,
		        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0);
	if (got != at)
		fail("cannot map code at %p: %s", at, strerror(errno));
}

/*
 * The address of a sequence. Rewritten code lies around the middle of the buffer, so that consecutive
 * sequences overlap; a few are put so near to the end that they run off the executable memory.
 */
uint64_t code_place(struct rng *r, unsigned arena, enum code_mode mode, uint64_t number)
{
	uint64_t base = arena_base(arena) + AT_CODE;
	switch (mode) {
	case CODE_REWRITTEN:
		if (rng_chance(r, 3))
			return base + REWRITTEN_SIZE - 4 - rng_below(r, 60);
		return base + REWRITTEN_SIZE / 2 - SLOT + rng_below(r, 2 * SLOT);
	case CODE_TWO_VIEWS:
		return base + (number % 4) * SLOT;
	default:
		return base + (number % 100) * SLOT;
	}
}

unsigned code_written(const struct sequence *s, unsigned length)
{
	uint64_t offset = s->address - arena_base(s->arena) - AT_CODE;
	if (s->mode == CODE_REWRITTEN && length > REWRITTEN_SIZE - offset)
		return (unsigned)(REWRITTEN_SIZE - offset);
	return length;
}

/*
 * What lies around the code of a sequence must not depend on the sequences before it: there may be stray
 * loads. In the protected mode these are the other sequences of the block, which are always all there.
 */
void code_write(const struct sequence *s)
{
	uint64_t offset = s->address - arena_base(s->arena) - AT_CODE;
	uint8_t *code = s->mode == CODE_TWO_VIEWS ? writable_view : code_memory(s->arena);
	if (s->mode != CODE_PROTECTED)
		memset(code, 0xcc, REWRITTEN_SIZE);
	memcpy(code + offset, s->code, code_written(s, s->length));
}

void code_seal(unsigned arena, enum code_mode mode)
{
	if (mode == CODE_PROTECTED && mprotect(code_memory(arena), CODE_SIZE, PROT_READ | PROT_EXEC) < 0)
		fail("cannot make code executable: %s", strerror(errno));
}

/* Leaves no access, and the address range still ours. */
void code_close(unsigned arena, enum code_mode mode)
{
	void *at = code_memory(arena);
	if (mode == CODE_PROTECTED && munmap(at, CODE_SIZE) < 0)
		fail("cannot unmap code: %s", strerror(errno));
	if (mmap(at, CODE_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) !=
	        at)
		fail("cannot reserve %p again: %s", at, strerror(errno));
}
