#include "debug/gdb_registers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What Linux gives to every 64-bit program; the log does not have them. */
#define USER_CS 0x33
#define USER_SS 0x2b

/* Offsets in an XSAVE image. */
#define IMAGE_FSW   2
#define IMAGE_FTW   4
#define IMAGE_FOP   6
#define IMAGE_MXCSR 24
#define IMAGE_ST    32
#define IMAGE_XMM   160
#define IMAGE_YMM   VECTORS_AT_AVX

static const char *const general_names[16] = {"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8",
        "r9", "r10", "r11", "r12", "r13", "r14", "r15"};
/* In the CPU's numbering. */
static const uint8_t general_numbers[16] = {0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};

static size_t number_bytes(uint64_t number, size_t size, uint8_t *bytes)
{
	memcpy(bytes, &number, size);
	return size;
}

/* The image has a bit for each register that is not empty; the CPU's tag word says more. */
static uint16_t tag_word(const uint8_t *image)
{
	unsigned top = image[IMAGE_FSW + 1] >> 3 & 7, word = 0;

	for (unsigned physical = 0; physical < 8; physical++) {
		const uint8_t *value = image + IMAGE_ST + 16 * ((physical - top) & 7);
		uint64_t mantissa;
		uint16_t exponent;
		memcpy(&mantissa, value, 8);
		memcpy(&exponent, value + 8, 2);
		exponent &= 0x7fff;
		unsigned tag = 3;
		if (image[IMAGE_FTW] >> physical & 1)
			tag = exponent == 0x7fff           ? 2
			      : exponent == 0 && !mantissa ? 1
			      : mantissa >> 63 && exponent ? 0
			                                   : 2;
		word |= tag << 2 * physical;
	}
	return (uint16_t)word;
}

/* fctrl, fstat, ftag, fiseg, fioff, foseg, fooff, fop: where the last instruction was is not in the log. */
static uint32_t x87_control(const uint8_t *image, unsigned which)
{
	uint16_t word = 0;

	if (which == 2)
		return tag_word(image);
	if (which < 2)
		memcpy(&word, image + IMAGE_FSW * which, 2);
	return word;
}

/* Where a register from GDB_YMM0H on is in the image, and of which component. */
struct wide_place {
	size_t at, size;
	unsigned component;
};

static struct wide_place wide_place(unsigned number)
{
	if (number < GDB_XMM16)
		return (struct wide_place){IMAGE_YMM + 16 * (number - GDB_YMM0H), 16, VECTORS_AVX};
	if (number < GDB_YMM16H)
		return (struct wide_place){
		        VECTORS_AT_ZMM_MORE + 64 * (number - GDB_XMM16), 16, VECTORS_ZMM_MORE};
	if (number < GDB_K0)
		return (struct wide_place){
		        VECTORS_AT_ZMM_MORE + 64 * (number - GDB_YMM16H) + 16, 16, VECTORS_ZMM_MORE};
	if (number < GDB_ZMM0H)
		return (struct wide_place){VECTORS_AT_MASKS + 8 * (number - GDB_K0), 8, VECTORS_MASKS};
	if (number < GDB_ZMM0H + 16)
		return (struct wide_place){
		        VECTORS_AT_ZMM_HIGH + 32 * (number - GDB_ZMM0H), 32, VECTORS_ZMM_HIGH};
	return (struct wide_place){
	        VECTORS_AT_ZMM_MORE + 64 * (number - GDB_ZMM0H - 16) + 32, 32, VECTORS_ZMM_MORE};
}

size_t gdb_register_bytes(const struct state *state, unsigned number, uint8_t bytes[GDB_REGISTER_BYTES])
{
	const uint8_t *image = state->vectors;

	if (number < GDB_RIP)
		return number_bytes(state->registers.gpr[general_numbers[number]], 8, bytes);
	if (number == GDB_RIP)
		return number_bytes(state->registers.pc, 8, bytes);
	if (number == GDB_EFLAGS)
		return number_bytes(state->registers.flags, 4, bytes);
	if (number < GDB_ST0)
		return number_bytes(number == GDB_CS       ? USER_CS
		                    : number == GDB_CS + 1 ? USER_SS
		                                           : 0,
		        4, bytes);
	if (number < GDB_FCTRL) {
		memcpy(bytes, image + IMAGE_ST + 16 * (number - GDB_ST0), 10);
		return 10;
	}
	if (number < GDB_XMM0)
		return number_bytes(x87_control(image, number - GDB_FCTRL), 4, bytes);
	if (number < GDB_MXCSR) {
		memcpy(bytes, image + IMAGE_XMM + 16 * (number - GDB_XMM0), 16);
		return 16;
	}
	if (number == GDB_MXCSR) {
		memcpy(bytes, image + IMAGE_MXCSR, 4);
		return 4;
	}
	if (number == GDB_ORIG_RAX)
		return number_bytes(UINT64_MAX, 8, bytes);
	if (number == GDB_FS_BASE)
		return number_bytes(state->fs_base, 8, bytes);
	if (number == GDB_GS_BASE)
		return number_bytes(state->gs_base, 8, bytes);
	struct wide_place place = wide_place(number);
	memcpy(bytes, image + place.at, place.size);
	return place.size;
}

#define IMAGE_PRESENT 512 /* which components are not in their initial state */

static void set_vector(
        struct state *state, size_t offset, const uint8_t *bytes, size_t size, unsigned component)
{
	memcpy(state->vectors + offset, bytes, size);
	state->vectors[IMAGE_PRESENT] |= (uint8_t)component;
}

/* The CPU's tag word has two bits for each register; the image says which are not empty. */
static void set_x87_control(struct state *state, unsigned which, const uint8_t *bytes)
{
	uint16_t word;
	uint8_t tags = 0;

	memcpy(&word, bytes, 2);
	for (unsigned i = 0; i < 8; i++)
		tags |= (uint8_t)(((word >> 2 * i & 3) != 3) << i);
	if (which < 2)
		set_vector(state, IMAGE_FSW * which, bytes, 2, 1);
	else if (which == 2)
		set_vector(state, IMAGE_FTW, &tags, 1, 1);
}

void gdb_register_set(struct state *state, unsigned number, const uint8_t *bytes)
{
	uint64_t value = 0;

	if (number <= GDB_EFLAGS || number == GDB_FS_BASE || number == GDB_GS_BASE)
		memcpy(&value, bytes, number == GDB_EFLAGS ? 4 : 8);
	if (number < GDB_RIP)
		state->registers.gpr[general_numbers[number]] = value;
	else if (number == GDB_RIP)
		state->registers.pc = value;
	else if (number == GDB_EFLAGS)
		state->registers.flags = value;
	else if (number == GDB_FS_BASE)
		state->fs_base = value;
	else if (number == GDB_GS_BASE)
		state->gs_base = value;
	else if (number >= GDB_ST0 && number < GDB_FCTRL)
		set_vector(state, IMAGE_ST + 16 * (number - GDB_ST0), bytes, 10, 1);
	else if (number >= GDB_FCTRL && number < GDB_XMM0)
		set_x87_control(state, number - GDB_FCTRL, bytes);
	else if (number >= GDB_XMM0 && number < GDB_MXCSR)
		set_vector(state, IMAGE_XMM + 16 * (number - GDB_XMM0), bytes, 16, 2);
	else if (number == GDB_MXCSR)
		set_vector(state, IMAGE_MXCSR, bytes, 4, 2);
	if (number >= GDB_YMM0H) {
		struct wide_place place = wide_place(number);
		set_vector(state, place.at, bytes, place.size, place.component);
	}
}

static void describe_core(FILE *out)
{
	static const char *const selectors[] = {"cs", "ss", "ds", "es", "fs", "gs"};
	static const char *const control[] = {
	        "fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop"};
	static const char *const flags[] = {"CF", "", "PF", NULL, "AF", NULL, "ZF", "SF", "TF", "IF", "DF",
	        "OF", NULL, NULL, "NT", NULL, "RF", "VM", "AC", "VIF", "VIP", "ID"};

	fputs("<feature name=\"org.gnu.gdb.i386.core\"><flags id=\"i386_eflags\" size=\"4\">", out);
	for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++) {
		if (flags[i])
			fprintf(out, "<field name=\"%s\" start=\"%u\" end=\"%u\"/>", flags[i], i, i);
	}
	fputs("</flags>", out);
	for (unsigned i = 0; i < 16; i++)
		fprintf(out, "<reg name=\"%s\" bitsize=\"64\" type=\"%s\" regnum=\"%u\"/>", general_names[i],
		        i == GDB_RBP || i == GDB_RSP ? "data_ptr" : "int64", i);
	fputs("<reg name=\"rip\" bitsize=\"64\" type=\"code_ptr\"/>"
	      "<reg name=\"eflags\" bitsize=\"32\" type=\"i386_eflags\"/>",
	        out);
	for (unsigned i = 0; i < 6; i++)
		fprintf(out, "<reg name=\"%s\" bitsize=\"32\" type=\"int32\"/>", selectors[i]);
	for (unsigned i = 0; i < 8; i++)
		fprintf(out, "<reg name=\"st%u\" bitsize=\"80\" type=\"i387_ext\"/>", i);
	for (unsigned i = 0; i < 8; i++)
		fprintf(out, "<reg name=\"%s\" bitsize=\"32\" type=\"int\" group=\"float\"/>", control[i]);
	fputs("</feature>", out);
}

/* Types are known within one feature only. */
static void describe_vec128(FILE *out)
{
	fputs("<vector id=\"v4f\" type=\"ieee_single\" count=\"4\"/>"
	      "<vector id=\"v2d\" type=\"ieee_double\" count=\"2\"/>"
	      "<vector id=\"v16i8\" type=\"int8\" count=\"16\"/>"
	      "<vector id=\"v8i16\" type=\"int16\" count=\"8\"/>"
	      "<vector id=\"v4i32\" type=\"int32\" count=\"4\"/>"
	      "<vector id=\"v2i64\" type=\"int64\" count=\"2\"/>"
	      "<union id=\"vec128\"><field name=\"v4_float\" type=\"v4f\"/><field name=\"v2_double\" "
	      "type=\"v2d\"/>"
	      "<field name=\"v16_int8\" type=\"v16i8\"/><field name=\"v8_int16\" type=\"v8i16\"/>"
	      "<field name=\"v4_int32\" type=\"v4i32\"/><field name=\"v2_int64\" type=\"v2i64\"/>"
	      "<field name=\"uint128\" type=\"uint128\"/></union>",
	        out);
}

static void describe_vectors(FILE *out)
{
	fputs("<feature name=\"org.gnu.gdb.i386.sse\">", out);
	describe_vec128(out);
	fputs("<flags id=\"i386_mxcsr\" size=\"4\"><field name=\"IE\" start=\"0\" end=\"0\"/>"
	      "<field name=\"DE\" start=\"1\" end=\"1\"/><field name=\"ZE\" start=\"2\" end=\"2\"/>"
	      "<field name=\"OE\" start=\"3\" end=\"3\"/><field name=\"UE\" start=\"4\" end=\"4\"/>"
	      "<field name=\"PE\" start=\"5\" end=\"5\"/><field name=\"DAZ\" start=\"6\" end=\"6\"/>"
	      "<field name=\"IM\" start=\"7\" end=\"7\"/><field name=\"DM\" start=\"8\" end=\"8\"/>"
	      "<field name=\"ZM\" start=\"9\" end=\"9\"/><field name=\"OM\" start=\"10\" end=\"10\"/>"
	      "<field name=\"UM\" start=\"11\" end=\"11\"/><field name=\"PM\" start=\"12\" end=\"12\"/>"
	      "<field name=\"FZ\" start=\"15\" end=\"15\"/></flags>",
	        out);
	for (unsigned i = 0; i < 16; i++)
		fprintf(out, "<reg name=\"xmm%u\" bitsize=\"128\" type=\"vec128\"/>", i);
	fputs("<reg name=\"mxcsr\" bitsize=\"32\" type=\"i386_mxcsr\" group=\"vector\"/></feature>"
	      "<feature name=\"org.gnu.gdb.i386.linux\"><reg name=\"orig_rax\" bitsize=\"64\" "
	      "type=\"int\"/></feature>"
	      "<feature name=\"org.gnu.gdb.i386.segments\"><reg name=\"fs_base\" bitsize=\"64\" "
	      "type=\"int\"/>"
	      "<reg name=\"gs_base\" bitsize=\"64\" type=\"int\"/></feature>"
	      "<feature name=\"org.gnu.gdb.i386.avx\">",
	        out);
	for (unsigned i = 0; i < 16; i++)
		fprintf(out, "<reg name=\"ymm%uh\" bitsize=\"128\" type=\"uint128\"/>", i);
	fputs("</feature>", out);
}

static void describe_each(FILE *out, const char *name, unsigned first, unsigned end, const char *rest)
{
	for (unsigned i = first; i < end; i++) {
		fputs("<reg name=\"", out);
		fprintf(out, name, i);
		fprintf(out, "\" %s/>", rest);
	}
}

static void describe_avx512(FILE *out)
{
	fputs("<feature name=\"org.gnu.gdb.i386.avx512\">", out);
	describe_vec128(out);
	fputs("<vector id=\"v2ui128\" type=\"uint128\" count=\"2\"/>", out);
	describe_each(out, "xmm%u", 16, 32, "bitsize=\"128\" type=\"vec128\"");
	describe_each(out, "ymm%uh", 16, 32, "bitsize=\"128\" type=\"uint128\"");
	describe_each(out, "k%u", 0, 8, "bitsize=\"64\" type=\"uint64\"");
	describe_each(out, "zmm%uh", 0, 32, "bitsize=\"256\" type=\"v2ui128\"");
	fputs("</feature>", out);
}

char *gdb_description(unsigned count)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		abort();
	fputs("<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target>"
	      "<architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>",
	        out);
	describe_core(out);
	describe_vectors(out);
	if (count > GDB_REGISTERS_AVX)
		describe_avx512(out);
	fputs("</target>", out);
	if (fclose(out))
		abort();
	return text;
}
