#include "replay/state.h"

#include <string.h>

#define LEGACY_BYTES  512
#define HEADER_BYTES  64
#define AVX_OFFSET    (LEGACY_BYTES + HEADER_BYTES)
#define AVX_BYTES     256
#define X87_CONTROL   6 /* fcw, fsw, ftw: then opcode and pointers */
#define MXCSR_OFFSET  24
#define MXCSR_INITIAL 0x1f80u
#define X87_REGISTERS 32
#define SSE_REGISTERS 160
#define SSE_BYTES     256
#define COMPACT       (1ul << 63)

enum { X87 = 1, SSE = 2, AVX = 4 };

static const char *const register_names[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8",
        "r9", "r10", "r11", "r12", "r13", "r14", "r15"};

/* ---- vector state ---- */

void state_initial_vectors(uint8_t to[FEED_XSAVE_BYTES])
{
	uint32_t mxcsr = MXCSR_INITIAL;

	memset(to, 0, FEED_XSAVE_BYTES);
	to[0] = 0x7f;
	to[1] = 0x03;
	memcpy(to + MXCSR_OFFSET, &mxcsr, sizeof mxcsr);
}

static void copy_x87(uint8_t *to, const uint8_t *image)
{
	memcpy(to, image, X87_CONTROL);
	for (unsigned i = 0; i < 8; i++)
		memcpy(to + X87_REGISTERS + 16 * i, image + X87_REGISTERS + 16 * i, 10);
}

bool state_vectors(uint8_t to[FEED_XSAVE_BYTES], const uint8_t *image, uint32_t size)
{
	uint64_t present, form;
	uint32_t mxcsr;

	if (size < AVX_OFFSET)
		return false;
	memcpy(&present, image + LEGACY_BYTES, sizeof present);
	memcpy(&form, image + LEGACY_BYTES + 8, sizeof form);
	present &= FEED_XSTATE;
	if (present & AVX && size < AVX_OFFSET + AVX_BYTES)
		return false;
	state_initial_vectors(to);
	if (present & X87)
		copy_x87(to, image);
	/* The compact form has it only together with the registers. */
	if (present & SSE || !(form & COMPACT)) {
		memcpy(&mxcsr, image + MXCSR_OFFSET, sizeof mxcsr);
		mxcsr &= 0xffff;
		memcpy(to + MXCSR_OFFSET, &mxcsr, sizeof mxcsr);
	}
	if (present & SSE)
		memcpy(to + SSE_REGISTERS, image + SSE_REGISTERS, SSE_BYTES);
	if (present & AVX)
		memcpy(to + AVX_OFFSET, image + AVX_OFFSET, AVX_BYTES);
	memcpy(to + LEGACY_BYTES, &present, sizeof present);
	return true;
}

/* The name of what lies at an offset of the image. */
static void name_vector(size_t offset, char *name, size_t size)
{
	if (offset >= AVX_OFFSET)
		snprintf(name, size, "the upper half of ymm%zu", (offset - AVX_OFFSET) / 16);
	else if (offset >= SSE_REGISTERS)
		snprintf(name, size, "xmm%zu", (offset - SSE_REGISTERS) / 16);
	else if (offset >= X87_REGISTERS)
		snprintf(name, size, "st%zu", (offset - X87_REGISTERS) / 16);
	else if (offset >= MXCSR_OFFSET)
		snprintf(name, size, "mxcsr");
	else
		snprintf(name, size, "the x87 %s word",
		        offset < 2   ? "control"
		        : offset < 4 ? "status"
		                     : "tag");
}

static bool vectors_equal(const uint8_t *recorded, const uint8_t *replayed, char *what, size_t size)
{
	char name[64];

	for (size_t i = 0; i < FEED_XSAVE_BYTES; i++) {
		if (recorded[i] == replayed[i] || (i >= LEGACY_BYTES && i < AVX_OFFSET))
			continue;
		name_vector(i, name, sizeof name);
		snprintf(what, size, "%s differs: recorded byte %zu of it is %02x, replayed %02x", name,
		        i >= MXCSR_OFFSET + 8 ? i % 16 : i % 2, recorded[i], replayed[i]);
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
