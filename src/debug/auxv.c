/*
 * The program starts with its stack pointer at argc, behind which are pointers to its arguments, a zero,
 * those to its environment, another zero, and the vector. The kernel has put them there, so that they are
 * known from where they were loaded: the dynamic linker, or the start of a static program, goes through all
 * of them before its first system call.
 */
#include "debug/auxv.h"

#include <string.h>

#define WORDS_MOST (1ul << 20) /* of arguments and environment */

static bool read_words(
        struct debugger *d, const struct standing *standing, uint64_t address, void *to, size_t size)
{
	uint8_t known[sizeof(Elf64_auxv_t)] = {0};

	explorer_read(d->explorer, standing, address, to, known, size);
	return !memchr(known, 0, size);
}

/* Where the vector begins. */
static bool find_start(struct debugger *d, const struct standing *standing, uint64_t stack, uint64_t *start)
{
	unsigned zeros = 0;
	uint64_t word, at = stack + sizeof word;

	for (uint64_t i = 0; i < WORDS_MOST && zeros < 2; i++, at += sizeof word) {
		if (!read_words(d, standing, at, &word, sizeof word))
			return false;
		zeros += word == 0;
	}
	*start = at;
	return zeros == 2;
}

/* Is it what was given to this program? A recording may begin in its middle. */
static bool fits(const struct debugger *d, const Elf64_auxv_t *auxv, unsigned count)
{
	const struct image *program = images_program(&d->images);
	bool headers = false, entry = false;

	for (unsigned i = 0; program && i < count; i++) {
		headers |= auxv[i].a_type == AT_PHDR && auxv[i].a_un.a_val == program->headers;
		entry |= auxv[i].a_type == AT_ENTRY && auxv[i].a_un.a_val == program->entry;
	}
	return headers && entry;
}

static unsigned read_vector(
        struct debugger *d, const struct standing *standing, uint64_t stack, Elf64_auxv_t to[AUXV_MOST])
{
	uint64_t at;
	unsigned count = 0;

	if (!find_start(d, standing, stack, &at))
		return 0;
	/* The value of the last one is nothing, and nobody has loaded it. */
	do {
		if (count == AUXV_MOST)
			return 0;
		to[count] = (Elf64_auxv_t){0};
		if (!read_words(d, standing, at, &to[count].a_type, sizeof to->a_type))
			return 0;
		if (to[count].a_type != AT_NULL && !read_words(d, standing, at, &to[count], sizeof *to))
			return 0;
		at += sizeof *to;
	} while (to[count++].a_type != AT_NULL);
	return fits(d, to, count) ? count : 0;
}

unsigned auxv_find(struct debugger *d, Elf64_auxv_t to[AUXV_MOST])
{
	uint32_t thread = debugger_find_thread(d, 0);
	char why[512];

	if (thread == UINT32_MAX || d->threads[thread].absent || d->threads[thread].first.position != 0)
		return 0;
	const struct happening *call = chronicle_next(&d->chronicle, 0, 0);
	const struct standing *start =
	        call ? explorer_go(d->explorer, 0, (struct place){0}, why, sizeof why) : NULL;
	if (!start)
		return 0;
	uint64_t stack = start->state.registers.gpr[RSP];
	explorer_release(d->explorer, start);
	const struct standing *loaded =
	        explorer_go(d->explorer, 0, (struct place){.position = call->position}, why, sizeof why);
	unsigned count = loaded ? read_vector(d, loaded, stack, to) : 0;
	if (loaded)
		explorer_release(d->explorer, loaded);
	return count;
}
