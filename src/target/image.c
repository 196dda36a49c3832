/*
 * The image of a thread's memory that its log alone gives: what the patches since the last
 * keyframe that leans on nothing leave in empty memory. Kept while recording with --bound, for
 * keyframes that lean on those before them: such a one makes the shadow the image, so what was
 * logged before and is still true is not logged again, and what the thread itself stored since
 * is forgotten. Replay gets to the same by reading the patches, without executing anything.
 *
 * It lies in the shadow of the code cache, which no program has use for: lines in the order in
 * which they came, and a hash table of them that grows.
 */
#include "target/stub.h"

#define PAGE            4096ul
#define LINE            64ul
#define WORDS           8
#define FIRST_TABLE     (1u << 10)
#define BYTES_OF_A_LINE (sizeof(uint64_t) + LINE + 2 * sizeof(uint32_t)) /* at least, with its table */

struct image {
	uint32_t count; /* lines */
	uint32_t table; /* entries of the hash table, a power of two; 0: nothing is there yet */
};

struct parts {
	struct image *head;
	uint64_t *lines;
	uint64_t (*words)[WORDS];
	uint32_t *table; /* number of a line + 1 */
	uint64_t capacity;
};

struct range image_range(const struct thread *thread)
{
	const struct segment_layout *first = &process()->segments[0];
	uint64_t start = first->base + first->code + thread->distance;

	return (struct range){
	        (start + PAGE - 1) & -PAGE, (first->base + first->logs + thread->distance) & -PAGE};
}

static struct parts parts_of(const struct thread *thread)
{
	struct range range = image_range(thread);
	uint64_t capacity = FIRST_TABLE / 2;

	while (2 * capacity * BYTES_OF_A_LINE + PAGE <= range.end - range.start)
		capacity *= 2;
	struct parts parts = {.head = (struct image *)range.start, .capacity = capacity};
	parts.lines = (uint64_t *)(range.start + PAGE);
	parts.words = (uint64_t(*)[WORDS])(parts.lines + capacity);
	parts.table = (uint32_t *)(parts.words + capacity);
	return parts;
}

static uint32_t *slot_of(const struct parts *parts, uint64_t line)
{
	uint32_t mask = parts->head->table - 1,
	         i = (uint32_t)(line / LINE * 0x9e3779b97f4a7c15ul >> 32) & mask;

	while (parts->table[i] && parts->lines[parts->table[i] - 1] != line)
		i = (i + 1) & mask;
	return &parts->table[i];
}

/* There is always room for a line more than there are places for. */
static void grow(const struct parts *parts)
{
	struct image *image = parts->head;

	if (image->table && image->count < image->table / 2)
		return;
	memset(parts->table, 0, image->table * sizeof *parts->table);
	image->table = image->table ? 2 * image->table : FIRST_TABLE;
	for (uint32_t i = 0; i < image->count; i++)
		*slot_of(parts, parts->lines[i]) = i + 1;
}

bool image_full(const struct thread *thread)
{
	struct parts parts = parts_of(thread);

	return parts.head->count >= parts.capacity;
}

void image_patch(const struct thread *thread, uint64_t line, uint8_t mask, const uint64_t *words)
{
	struct parts parts = parts_of(thread);
	struct image *image = parts.head;

	if (image->count >= parts.capacity)
		return; /* the next keyframe begins a new one */
	grow(&parts);
	uint32_t *slot = slot_of(&parts, line);
	if (!*slot) {
		parts.lines[image->count] = line;
		*slot = ++image->count;
	}
	for (unsigned i = 0; i < WORDS; i++) {
		if (mask >> i & 1)
			parts.words[*slot - 1][i] = words[i];
	}
}

void image_restore(const struct thread *thread)
{
	struct parts parts = parts_of(thread);

	for (uint32_t i = 0; i < parts.head->count; i++)
		memcpy(shadow_of(thread, parts.lines[i]), parts.words[i], LINE);
}
