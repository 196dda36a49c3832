/*
 * Recording borrows registers for addresses and values: whatever an instruction itself needs, in every
 * encoding with a memory operand of two registers, there must be enough left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "code_bytes.h"
#include "translate/translate.h"

struct code {
	uint8_t bytes[64];
	size_t size;
};

static void add(struct code *code, const uint8_t *bytes, size_t size)
{
	memcpy(code->bytes + code->size, bytes, size);
	code->size += size;
}

#define ADD(code, ...) add(code, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

enum map { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A, MAP_VEX_0F, MAP_VEX_0F38, MAP_VEX_0F3A, MAP_COUNT };

/* opcode reg, [base+index+disp8], with prefixes that change with `variant`; some numbers follow. */
static void add_instruction(
        struct code *code, enum map map, uint8_t opcode, unsigned variant, uint8_t reg, uint8_t sib)
{
	static const uint8_t legacy[4] = {0, 0x66, 0xf2, 0xf3}, segments[4] = {0, 0x64, 0x67, 0};
	unsigned prefix = variant & 3, vex_register = variant >> 2 & 7;

	if (segments[variant >> 5 & 3])
		ADD(code, segments[variant >> 5 & 3]);
	if (map >= MAP_VEX_0F) {
		ADD(code, 0xc4, (uint8_t)(0xe0 | (map - MAP_VEX_0F + 1)),
		        (uint8_t)((variant & 0x80) | (vex_register ^ 15) << 3 | prefix));
	} else {
		if (legacy[prefix])
			ADD(code, legacy[prefix]);
		if (variant & 4)
			ADD(code, 0x48);
		if (map != MAP_ONE)
			ADD(code, 0x0f);
		if (map == MAP_0F38)
			ADD(code, 0x38);
		if (map == MAP_0F3A)
			ADD(code, 0x3a);
	}
	ADD(code, opcode, (uint8_t)(0x44 | reg << 3), sib, 0x10, 1, 2, 3, 4);
}

static bool never_known(void *context, uint64_t pc)
{
	(void)context;
	(void)pc;
	return false;
}

/* There is an answer, whatever it is: the bytes may be no instruction at all. */
static void translate_it(const struct code *code, bool low_memory, bool low_stack, bool far)
{
	struct program program = {code->bytes, code->size};
	uint64_t reach = far ? 0x100000000000 : 0x10000000;
	struct translate_request request = {
	        .pc = PC,
	        .read = program_read,
	        .known = never_known,
	        .context = &program,
	        .reach_low = reach,
	        .reach_high = reach + 0x4000000,
	        .max_instructions = 100,
	        .mode = TRANSLATE_RECORD,
	        .counter = 1,
	        .low_memory = low_memory,
	        .low_stack = low_stack,
	};
	struct translation translation;

	assert_int_equal(translate(&request, &translation), 0);
	assert_true(translation.record_count > 0);
	translation_free(&translation);
}

static void test_enough_registers(void **state)
{
	/* add eax, [rsp+8] ; paddq xmm0, [rbx] : borrow some before; ret */
	static const uint8_t before[] = {0x03, 0x44, 0x24, 0x08, 0x66, 0x0f, 0xd4, 0x03};
	unsigned variant = 1;

	(void)state;
	for (unsigned map = 0; map < MAP_COUNT; map++) {
		for (unsigned opcode = 0; opcode < 256; opcode++) {
			for (unsigned n = 0; n < 8 * 64; n += 1 + variant % 3) {
				struct code code = {.size = 0};

				variant = variant * 1103515245 + 12345;
				if (variant >> 16 & 1)
					add(&code, before, sizeof before);
				add_instruction(&code, map, (uint8_t)opcode, variant >> 8 & 0xff, n & 7,
				        (uint8_t)(n >> 3));
				ADD(&code, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
				        0x90, 0xc3);
				translate_it(&code, variant >> 17 & 1, (variant >> 17 & 3) == 3,
				        variant >> 19 & 1);
			}
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_enough_registers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
