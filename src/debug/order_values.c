/*
 * Which values were ever stored to which words: a filter that tells at once of most loads from outside that
 * nobody has stored what they have. Without it every one of them would be compared with every store to the
 * word.
 */
#include "debug/order_search.h"

#define HALVES 2
#define BITS_OF_ONE                                                                                          \
	16 /* of the filter, for each half of a word that is stored: few are taken for another               \
	    */

static uint8_t bytes_of_half(uint8_t bytes, unsigned half)
{
	return half ? bytes >> 4 : bytes & 0xf;
}

static uint32_t half_of(uint64_t value, unsigned half)
{
	return (uint32_t)(value >> 32 * half);
}

/* Of a half that was stored as a whole; or, with `parts`, of which some bytes were. */
static uint64_t bit_of(const struct search *s, uint32_t word, unsigned half, uint32_t value, bool parts)
{
	uint64_t key = ((uint64_t)word << 2 | half << 1 | parts) * 0x9e3779b97f4a7c15ul ^ (parts ? 0 : value);

	key *= 0xc2b2ae3d27d4eb4ful;
	key ^= key >> 29;
	return key * 0x9e3779b97f4a7c15ul >> 20 & s->value_mask;
}

static bool has_bit(const struct search *s, uint64_t bit)
{
	return s->values[bit / 64] >> bit % 64 & 1;
}

void values_collect(struct search *s)
{
	const struct accesses *accesses = s->accesses;
	uint64_t stores = 1, bits = 1024;

	for (uint32_t t = 0; t < accesses->thread_count; t++) {
		for (uint32_t i = 0; i < accesses->threads[t].steps.count; i++)
			stores += step_at(s, t, i)->kind == STEP_ACCESS && step_at(s, t, i)->writes;
	}
	while (bits < stores * HALVES * BITS_OF_ONE && bits < 1ul << 40)
		bits *= 2;
	s->values = calloc(bits / 64, sizeof *s->values);
	if (!s->values)
		abort();
	s->value_mask = bits - 1;
	for (uint32_t t = 0; t < accesses->thread_count; t++) {
		for (uint32_t i = 0; i < accesses->threads[t].steps.count; i++) {
			const struct step *step = step_at(s, t, i);
			for (unsigned half = 0; step->kind == STEP_ACCESS && half < HALVES; half++) {
				uint8_t bytes = bytes_of_half(step->writes, half);
				if (!bytes)
					continue;
				uint64_t bit =
				        bit_of(s, step->word, half, half_of(step->after, half), bytes != 0xf);
				s->values[bit / 64] |= 1ul << bit % 64;
			}
		}
	}
}

bool values_may_have(const struct search *s, const struct step *load)
{
	for (unsigned half = 0; half < HALVES; half++) {
		uint32_t value = half_of(load->before, half);
		uint8_t bytes = bytes_of_half(load->reads, half);
		if (!bytes || has_bit(s, bit_of(s, load->word, half, value, true)))
			continue;
		if (!s->accesses->initial || bytes != 0xf ||
		        half_of(s->accesses->initial[load->word], half) == value)
			continue;
		if (!has_bit(s, bit_of(s, load->word, half, value, false)))
			return false;
	}
	return true;
}
