/*
 * Gathers: loads of as many elements as a vector has, each from where an index says. The stub makes sure that
 * the shadow has what memory has, element by element, and takes the result from the shadow. Where an element
 * cannot be read the CPU is asked what happens: it has done some of them when it faults.
 */
#include "target/stub.h"

#define VECTOR_BYTES 64
#define SSE_AT       160
#define MASK_BYTES   8

struct image {
	uint8_t bytes[VECTORS_BYTES] __attribute__((aligned(64)));
};

/* Where 16 bytes of a vector register are. */
static unsigned part_at(unsigned number, unsigned part)
{
	if (number >= 16)
		return VECTORS_AT_ZMM_MORE + VECTOR_BYTES * (number - 16) + 16 * part;
	if (part == 0)
		return SSE_AT + 16 * number;
	return part == 1 ? VECTORS_AT_AVX + 16 * number : VECTORS_AT_ZMM_HIGH + 32 * number + 16 * (part - 2);
}

/* All that the program has; the rest is zero. */
static unsigned parts_of(unsigned number)
{
	return info()->vectors & VECTORS_AVX512 || number >= 16 ? 4 : 2;
}

static void read_vector(const struct image *image, unsigned number, uint8_t to[VECTOR_BYTES])
{
	memset(to, 0, VECTOR_BYTES);
	for (unsigned part = 0; part < parts_of(number); part++)
		memcpy(to + 16 * part, image->bytes + part_at(number, part), 16);
}

static void write_vector(struct image *image, unsigned number, const uint8_t from[VECTOR_BYTES])
{
	for (unsigned part = 0; part < parts_of(number); part++)
		memcpy(image->bytes + part_at(number, part), from + 16 * part, 16);
}

struct gather {
	unsigned to, index, mask, scale, element_size, index_size, count;
	bool by_mask_register;
};

static struct gather gather_of(uint32_t what)
{
	return (struct gather){
	        .to = what & 31,
	        .index = what >> 5 & 31,
	        .mask = what >> 10 & 15,
	        .scale = 1u << (what >> 14 & 3),
	        .element_size = what & GATHER_WIDE_ELEMENTS ? 8 : 4,
	        .index_size = what & GATHER_WIDE_INDEX ? 8 : 4,
	        .count = what >> GATHER_COUNT_SHIFT & 31,
	        .by_mask_register = what & GATHER_BY_MASK_REGISTER,
	};
}

/* A bit for each element that is wanted. */
static uint32_t wanted_elements(const struct gather *gather, const struct image *image)
{
	uint8_t mask[VECTOR_BYTES];
	uint32_t wanted = 0;

	if (gather->by_mask_register) {
		memcpy(&wanted, image->bytes + VECTORS_AT_MASKS + MASK_BYTES * gather->mask, sizeof wanted);
		return wanted & ((1u << gather->count) - 1);
	}
	read_vector(image, gather->mask, mask);
	for (unsigned i = 0; i < gather->count; i++)
		wanted |= (uint32_t)(mask[(i + 1) * gather->element_size - 1] >> 7) << i;
	return wanted;
}

static uint64_t element_address(
        const struct gather *gather, const uint8_t *indexes, uint64_t base, unsigned i)
{
	int64_t index;
	int32_t narrow;

	memcpy(&index, indexes + 8 * i % VECTOR_BYTES, sizeof index);
	if (gather->index_size == 4) {
		memcpy(&narrow, indexes + 4 * i, sizeof narrow);
		index = narrow;
	}
	return base + (uint64_t)index * gather->scale;
}

/* The mask is used up, and what is behind the last element is zero, in it as in the result. */
static void clear_mask(const struct gather *gather, struct image *image)
{
	static const uint8_t zeros[VECTOR_BYTES];

	if (gather->by_mask_register)
		memset(image->bytes + VECTORS_AT_MASKS + MASK_BYTES * gather->mask, 0, MASK_BYTES);
	else
		write_vector(image, gather->mask, zeros);
}

void emulate_gather(struct thread *thread)
{
	struct gather gather = gather_of((uint32_t)thread->slots[SLOT_SCRATCH_B]);
	uint64_t base = thread->slots[SLOT_ADDRESS];
	uint8_t indexes[VECTOR_BYTES], result[VECTOR_BYTES];
	struct image image;

	vectors_save(image.bytes);
	read_vector(&image, gather.index, indexes);
	read_vector(&image, gather.to, result);
	uint32_t wanted = wanted_elements(&gather, &image);
	for (unsigned i = 0; i < gather.count; i++) {
		if (wanted >> i & 1 && !shadow_check(thread, element_address(&gather, indexes, base, i),
		                               gather.element_size))
			fault_natively(thread);
	}
	for (unsigned i = 0; i < gather.count; i++) {
		uint64_t address = element_address(&gather, indexes, base, i);
		if (wanted >> i & 1)
			memcpy(result + i * gather.element_size, shadow_of(thread, address),
			        gather.element_size);
	}
	memset(result + gather.count * gather.element_size, 0,
	        VECTOR_BYTES - gather.count * gather.element_size);
	write_vector(&image, gather.to, result);
	clear_mask(&gather, &image);
	vectors_load_registers(image.bytes);
	renew_fpstate(thread);
}
