/*
 * The x87 and vector registers, which are the program's all the time: seen, loaded, and read from images that
 * others have made. What the log keeps has the form of recording/vectors.h. With AVX-512 that is what XSAVEC
 * writes; without, the standard form, which every CPU can do.
 */
#include "recording/vectors.h"
#include "target/stub.h"

static bool are_wide(void)
{
	return info()->vectors & VECTORS_AVX512;
}

uint32_t vectors_bytes(void)
{
	return are_wide() ? VECTORS_BYTES : VECTORS_AVX_BYTES;
}

void vectors_save(uint8_t *image)
{
	const uint32_t mxcsr = VECTORS_INITIAL_MXCSR; /* XSAVEC leaves out what is initial */
	uint8_t(*area)[VECTORS_BYTES] = (void *)image;

	memset(image, 0, vectors_bytes());
	memcpy(image + VECTORS_AT_MXCSR, &mxcsr, sizeof mxcsr);
	if (are_wide())
		__asm__ volatile("xsavec64 %0" : "+m"(*area) : "a"(VECTORS_WIDE), "d"(0));
	else
		__asm__ volatile("xsave64 %0" : "+m"(*area) : "a"(VECTORS_UP_TO_AVX), "d"(0));
}

static void load(uint8_t *image, uint32_t which)
{
	const uint64_t form = VECTORS_COMPACT | VECTORS_WIDE;
	uint8_t(*area)[VECTORS_BYTES] = (void *)image;

	if (are_wide()) {
		memcpy(image + VECTORS_AT_FORM, &form, sizeof form);
		image[VECTORS_AT_PRESENT] |= VECTORS_SSE; /* or mxcsr would be left out */
		__asm__ volatile("xrstor64 %0" : : "m"(*area), "a"(which & VECTORS_WIDE), "d"(0));
	} else {
		__asm__ volatile("xrstor64 %0" : : "m"(*area), "a"(which & VECTORS_UP_TO_AVX), "d"(0));
	}
}

void vectors_load(uint8_t *image)
{
	load(image, VECTORS_WIDE);
}

void vectors_load_registers(uint8_t *image)
{
	image[VECTORS_AT_PRESENT] |= info()->vectors & ~VECTORS_X87;
	load(image, VECTORS_WIDE & ~VECTORS_X87);
}

/* A state component that the standard form has somewhere else. */
static const struct component {
	uint16_t bit, at, size;
} components[INFO_COMPONENTS] = {
        {VECTORS_MASKS, VECTORS_AT_MASKS, VECTORS_AT_ZMM_HIGH - VECTORS_AT_MASKS},
        {VECTORS_ZMM_HIGH, VECTORS_AT_ZMM_HIGH, VECTORS_AT_ZMM_MORE - VECTORS_AT_ZMM_HIGH},
        {VECTORS_ZMM_MORE, VECTORS_AT_ZMM_MORE, VECTORS_BYTES - VECTORS_AT_ZMM_MORE},
};

uint32_t vectors_from_standard(uint8_t to[VECTORS_BYTES], const uint8_t *image)
{
	uint64_t present;

	memcpy(to, image, VECTORS_AVX_BYTES);
	if (!are_wide())
		return VECTORS_AVX_BYTES;
	memset(to + VECTORS_AVX_BYTES, 0, VECTORS_BYTES - VECTORS_AVX_BYTES);
	memcpy(&present, image + VECTORS_AT_PRESENT, sizeof present);
	for (unsigned i = 0; i < INFO_COMPONENTS; i++) {
		const struct component *component = &components[i];
		if (present & component->bit)
			memcpy(to + component->at, image + info()->standard_at[i], component->size);
	}
	return VECTORS_BYTES;
}

uint32_t vectors_restored_bytes(uint64_t wanted, uint64_t present, uint64_t form)
{
	uint64_t restored = wanted & present;
	uint32_t end = VECTORS_AT_AVX;

	/* In the compact form the components before it that are there, restored or not, make room for it. */
	if (form & VECTORS_COMPACT)
		restored =
		        form & (restored ? (2ul << (63 - __builtin_clzl(restored))) - 1 : 0) & VECTORS_WIDE;
	if (restored & VECTORS_AVX)
		end = VECTORS_AVX_BYTES;
	for (unsigned i = 0; i < INFO_COMPONENTS; i++) {
		const struct component *component = &components[i];
		if (!(restored & component->bit))
			continue;
		if (form & VECTORS_COMPACT)
			end += component->size;
		else if (info()->standard_at[i] + component->size > end)
			end = info()->standard_at[i] + component->size;
	}
	return end;
}
