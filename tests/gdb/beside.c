/*
 * Stores of all sizes beside what is watched, over its ends and into it, and flags that live across them.
 *
 * gdb: watched by tests/gdb.sh; the program counts itself what is to be found.
 */
#include <emmintrin.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORD  96  /* watched: 8 bytes here, */
#define BYTES 141 /* and 3 there */

struct {
	_Alignas(64) unsigned char area[256];
	long result;
} busy;
long word_changes, bytes_changes;

static void store(unsigned char *at, unsigned kind, unsigned char byte)
{
	uint64_t number = byte * 0x0101010101010101ul;

	switch (kind) {
	case 0:
		__asm__ volatile("movb %1, %0" : "=m"(*at) : "q"(byte));
		break;
	case 1:
		__asm__ volatile("movw %w1, %0" : "=m"(*at) : "r"(number) : "memory");
		break;
	case 2:
		__asm__ volatile("movl %k1, %0" : "=m"(*at) : "r"(number) : "memory");
		break;
	case 3:
		__asm__ volatile("movq %1, %0" : "=m"(*at) : "r"(number) : "memory");
		break;
	case 4:
		_mm_storeu_si128((__m128i *)at, _mm_set1_epi8((char)byte));
		break;
	default: /* ten bytes */
		__asm__ volatile("fldt %1 ; fstpt %0" : "=m"(*at) : "m"(*(busy.area + 16)) : "memory");
	}
}

/* What the flags are behind a store that they live across. */
__attribute__((noinline)) static long flags_across(unsigned char *at, long left, long right)
{
	unsigned char overflow;
	long flags;

	__asm__ volatile("add %3, %2 ; movb $7, %4 ; seto %1 ; lahf ; mov %%rax, %0"
	                 : "=&r"(flags), "=&q"(overflow), "+&r"(left)
	                 : "r"(right), "m"(*at)
	                 : "rax", "cc", "memory");
	return (flags >> 8 & 0xff) + 256 * overflow + left % 251;
}

int main(void)
{
	static const long numbers[] = {0, 1, -1, INT64_MAX, INT64_MIN, 0x0f, 0xf1};
	unsigned char before[256], byte = 0;

	for (unsigned kind = 0; kind < 6; kind++) {
		for (unsigned offset = WORD - 20; offset < BYTES + 6; offset++) {
			memcpy(before, busy.area, sizeof before);
			store(busy.area + offset, kind, ++byte);
			word_changes += memcmp(before + WORD, busy.area + WORD, 8) != 0;
			bytes_changes += memcmp(before + BYTES, busy.area + BYTES, 3) != 0;
		}
	}
	for (unsigned i = 0; i < 49; i++)
		busy.result = busy.result * 3 +
		              flags_across(busy.area + 192 + i, numbers[i / 7], numbers[i % 7]);
	abort();
}
