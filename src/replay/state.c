#include "replay/state.h"

#include <string.h>

#define X87_CONTROL   6 /* fcw, fsw, ftw: then opcode and pointers */
#define X87_REGISTERS 32
#define SSE_REGISTERS 160
#define SSE_BYTES     256

static const char *const register_names[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8",
        "r9", "r10", "r11", "r12", "r13", "r14", "r15"};

/* ---- vector state ---- */

void state_initial_vectors(uint8_t to[FEED_XSAVE_BYTES])
{
	uint32_t mxcsr = VECTORS_INITIAL_MXCSR;

	memset(to, 0, FEED_XSAVE_BYTES);
	to[0] = 0x7f;
	to[1] = 0x03;
	memcpy(to + VECTORS_AT_MXCSR, &mxcsr, sizeof mxcsr);
}

static void copy_x87(uint8_t *to, const uint8_t *image)
{
	memcpy(to, image, X87_CONTROL);
	for (unsigned i = 0; i < 8; i++)
		memcpy(to + X87_REGISTERS + 16 * i, image + X87_REGISTERS + 16 * i, 10);
}

static const struct {
	uint16_t bit, at, size;
} components[] = {
        {VECTORS_AVX, VECTORS_AT_AVX, VECTORS_AT_MASKS - VECTORS_AT_AVX},
        {VECTORS_MASKS, VECTORS_AT_MASKS, VECTORS_AT_ZMM_HIGH - VECTORS_AT_MASKS},
        {VECTORS_ZMM_HIGH, VECTORS_AT_ZMM_HIGH, VECTORS_AT_ZMM_MORE - VECTORS_AT_ZMM_HIGH},
        {VECTORS_ZMM_MORE, VECTORS_AT_ZMM_MORE, VECTORS_BYTES - VECTORS_AT_ZMM_MORE},
};

bool state_vectors(uint8_t to[FEED_XSAVE_BYTES], const uint8_t *image, uint32_t size)
{
	uint64_t present, form;
	uint32_t mxcsr;

	if (size < VECTORS_AT_AVX)
		return false;
	memcpy(&present, image + VECTORS_AT_PRESENT, sizeof present);
	memcpy(&form, image + VECTORS_AT_FORM, sizeof form);
	/* Standard images of before there was AVX-512 may have some of it behind what was kept. */
	present &= size > VECTORS_AVX_BYTES ? VECTORS_WIDE : VECTORS_UP_TO_AVX;
	if (size < (present & VECTORS_AVX512 ? VECTORS_BYTES : present & VECTORS_AVX ? VECTORS_AVX_BYTES : 0))
		return false;
	state_initial_vectors(to);
	if (present & VECTORS_X87)
		copy_x87(to, image);
	/* The compact form has it only together with the registers. */
	if (present & VECTORS_SSE || !(form & VECTORS_COMPACT)) {
		memcpy(&mxcsr, image + VECTORS_AT_MXCSR, sizeof mxcsr);
		mxcsr &= 0xffff;
		memcpy(to + VECTORS_AT_MXCSR, &mxcsr, sizeof mxcsr);
	}
	if (present & VECTORS_SSE)
		memcpy(to + SSE_REGISTERS, image + SSE_REGISTERS, SSE_BYTES);
	for (unsigned i = 0; i < sizeof components / sizeof *components; i++) {
		if (present & components[i].bit)
			memcpy(to + components[i].at, image + components[i].at, components[i].size);
	}
	memcpy(to + VECTORS_AT_PRESENT, &present, sizeof present);
	return true;
}

/* The name of what lies at an offset of the image. */
static void name_vector(size_t offset, char *name, size_t size)
{
	if (offset >= VECTORS_AT_ZMM_MORE)
		snprintf(name, size, "zmm%zu", 16 + (offset - VECTORS_AT_ZMM_MORE) / 64);
	else if (offset >= VECTORS_AT_ZMM_HIGH)
		snprintf(name, size, "the upper half of zmm%zu", (offset - VECTORS_AT_ZMM_HIGH) / 32);
	else if (offset >= VECTORS_AT_MASKS)
		snprintf(name, size, "k%zu", (offset - VECTORS_AT_MASKS) / 8);
	else if (offset >= VECTORS_AT_AVX)
		snprintf(name, size, "the upper half of ymm%zu", (offset - VECTORS_AT_AVX) / 16);
	else if (offset >= SSE_REGISTERS)
		snprintf(name, size, "xmm%zu", (offset - SSE_REGISTERS) / 16);
	else if (offset >= X87_REGISTERS)
		snprintf(name, size, "st%zu", (offset - X87_REGISTERS) / 16);
	else if (offset >= VECTORS_AT_MXCSR)
		snprintf(name, size, "mxcsr");
	else
		snprintf(name, size, "the x87 %s word",
		        offset < 2   ? "control"
		        : offset < 4 ? "status"
		                     : "tag");
}

/* Of the register at an offset; the sizes divide the offsets. */
static size_t vector_size(size_t offset)
{
	if (offset >= VECTORS_AT_ZMM_MORE)
		return 64;
	if (offset >= VECTORS_AT_ZMM_HIGH)
		return 32;
	if (offset >= VECTORS_AT_MASKS)
		return 8;
	return offset >= VECTORS_AT_MXCSR + 8 ? 16 : 2;
}

static bool vectors_equal(const uint8_t *recorded, const uint8_t *replayed, char *what, size_t size)
{
	char name[64];

	for (size_t i = 0; i < FEED_XSAVE_BYTES; i++) {
		if (recorded[i] == replayed[i] || (i >= VECTORS_AT_PRESENT && i < VECTORS_AT_AVX))
			continue;
		name_vector(i, name, sizeof name);
		snprintf(what, size, "%s differs: recorded byte %zu of it is %02x, replayed %02x", name,
		        i % vector_size(i), recorded[i], replayed[i]);
		return false;
	}
	return true;
}

/* ---- registers ---- */

static bool number_equal(const char *name, uint64_t recorded, uint64_t replayed, char *what, size_t size)
{
	if (recorded == replayed)
		return true;
	snprintf(what, size, "%s differs: recorded %#lx, replayed %#lx", name, recorded, replayed);
	return false;
}

/* One more that differs. The first one was told with its values; all values are in the states. */
static void append(char *what, size_t size, const char *name)
{
	size_t used = strlen(what);

	snprintf(what + used, size - used, "; %s, too", name);
}

static bool registers_equal(const struct event_registers *recorded, const struct event_registers *replayed,
        const struct state_live *live, char *what, size_t size)
{
	bool equal = number_equal("pc", recorded->pc, replayed->pc, what, size);

	for (unsigned i = 0; i < 16; i++) {
		uint64_t mask = live->registers[i];
		if (equal)
			equal = number_equal(register_names[i], recorded->gpr[i] & mask,
			        replayed->gpr[i] & mask, what, size);
		else if ((recorded->gpr[i] ^ replayed->gpr[i]) & mask)
			append(what, size, register_names[i]);
	}
	if (equal)
		return number_equal(
		        "eflags", recorded->flags & live->flags, replayed->flags & live->flags, what, size);
	return false;
}

bool state_equal(const struct state *recorded, const struct state *replayed, const struct state_live *live,
        char *what, size_t size)
{
	if (!number_equal("position", recorded->position, replayed->position, what, size) ||
	        !registers_equal(&recorded->registers, &replayed->registers, live, what, size))
		return false;
	if (recorded->has_bases && replayed->has_bases &&
	        (!number_equal("the FS base", recorded->fs_base, replayed->fs_base, what, size) ||
	                !number_equal("the GS base", recorded->gs_base, replayed->gs_base, what, size)))
		return false;
	return !recorded->has_vectors || !replayed->has_vectors ||
	       vectors_equal(recorded->vectors, replayed->vectors, what, size);
}

void state_print(FILE *stream, const char *title, const struct state *state)
{
	const struct event_registers *registers = &state->registers;

	fprintf(stream, "%s:\n  position %lu  pc %#lx  eflags %#lx\n", title, state->position, registers->pc,
	        registers->flags);
	for (unsigned i = 0; i < 16; i++)
		fprintf(stream, "%s%-3s %016lx%s", i % 4 ? "  " : "  ", register_names[i], registers->gpr[i],
		        i % 4 == 3 ? "\n" : "");
	if (state->has_bases)
		fprintf(stream, "  fs base %#lx  gs base %#lx\n", state->fs_base, state->gs_base);
}
