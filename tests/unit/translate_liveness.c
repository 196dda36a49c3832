/* Liveness on small regions: what is dead where, and what keeps it alive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "code_bytes.h"
#include "translate/liveness.h"

static struct region region_of(struct program program)
{
	struct translate_request request = {
	        .pc = PC, .read = program_read, .context = &program, .max_instructions = 100};
	struct region region;

	assert_int_equal(region_discover(&region, &request), 0);
	liveness_compute(&region);
	return region;
}

#define REGION(...)                                                                                          \
	region_of((struct program){(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})})

static const struct instruction *at(const struct region *region, uint64_t offset)
{
	uint32_t index = map_find(&region->by_pc, PC + offset);

	assert_int_not_equal(index, MAP_NONE);
	return &region->instructions[index];
}

static unsigned flags_after(const struct region *region, uint64_t offset)
{
	return at(region, offset)->live_after >> 16 & FLAGS_ALL;
}

static unsigned flags_before(const struct region *region, uint64_t offset)
{
	return liveness_before(at(region, offset)) >> 16 & FLAGS_ALL;
}

static bool dead_before(const struct region *region, uint64_t offset, unsigned reg)
{
	return liveness_registers_dead_before(at(region, offset)) >> reg & 1;
}

static void test_straight(void **state)
{
	/* 0: mov ecx,eax  2: add ecx,edx  4: sbb ebx,ebx  6: xor eax,eax  8: ret */
	struct region region = REGION(0x89, 0xc1, 0x01, 0xd1, 0x19, 0xdb, 0x31, 0xc0, 0xc3);

	(void)state;
	assert_int_equal(flags_before(&region, 0), 0);
	assert_int_equal(flags_before(&region, 2), 0);
	assert_int_equal(flags_after(&region, 2), FLAG_CF);
	assert_true(liveness_flags_dead_after(at(&region, 4)));
	assert_true(liveness_flags_unseen_after(at(&region, 4)));
	assert_false(liveness_flags_dead_after(at(&region, 6)));
	assert_true(dead_before(&region, 0, RCX));
	assert_false(dead_before(&region, 2, RCX));
	assert_false(dead_before(&region, 0, RAX));
	assert_true(dead_before(&region, 2, RAX));
	/* xor eax,eax reads nothing */
	assert_true(dead_before(&region, 6, RAX));
	assert_false(dead_before(&region, 8, RAX));
	region_deinit(&region);
}

static void test_partial_flags(void **state)
{
	/* 0: inc eax  2: adc eax,eax  4: ret -- inc keeps CF */
	struct region inc = REGION(0xff, 0xc0, 0x11, 0xc0, 0xc3);
	/* 0: shl eax,cl  2: add eax,eax  4: ret -- a count of 0 keeps all, so they are not overwritten by it
	 */
	struct region shift = REGION(0xd3, 0xe0, 0x0f, 0x92, 0xc0, 0x01, 0xc0, 0xc3);
	/* 0: shl eax,3  3: setc al  6: add eax,eax */
	struct region shift_number = REGION(0xc1, 0xe0, 0x03, 0x0f, 0x92, 0xc0, 0x01, 0xc0, 0xc3);
	/* 0: bsf eax,ecx  3: setc al  6: add -- CF undefined: not overwritten for sure */
	struct region scan = REGION(0x0f, 0xbc, 0xc1, 0x0f, 0x92, 0xc0, 0x01, 0xc0, 0xc3);
	/* 0: repe cmpsb  2: sete al  5: add -- no iteration, no flags */
	struct region strings = REGION(0xf3, 0xa6, 0x0f, 0x94, 0xc0, 0x01, 0xc0, 0xc3);

	(void)state;
	assert_int_equal(flags_before(&inc, 0), FLAG_CF);
	assert_int_equal(flags_before(&shift, 0), FLAG_CF);
	assert_int_equal(flags_before(&shift_number, 0), 0);
	assert_int_equal(flags_before(&scan, 0), FLAG_CF);
	assert_int_equal(flags_before(&strings, 0), FLAG_ZF);
	assert_false(dead_before(&scan, 0, RAX));
	region_deinit(&inc);
	region_deinit(&shift);
	region_deinit(&shift_number);
	region_deinit(&scan);
	region_deinit(&strings);
}

static void test_shown(void **state)
{
	/* 0: mov rax,[rax]  3: test eax,eax  5: ret */
	struct region region = REGION(0x48, 0x8b, 0x00, 0x85, 0xc0, 0xc3);
	/* 0: div ecx  2: test eax,eax  4: ret */
	struct region division = REGION(0xf7, 0xf1, 0x85, 0xc0, 0xc3);
	/* 0: lea rax,[rcx]  3: nop [rax]  6: test  8: ret */
	struct region harmless = REGION(0x48, 0x8d, 0x01, 0x0f, 0x1f, 0x00, 0x85, 0xc0, 0xc3);
	/* 0: pushfq  1: test  3: ret */
	struct region push = REGION(0x9c, 0x85, 0xc0, 0xc3);

	(void)state;
	assert_int_equal(flags_before(&region, 0), 0);
	assert_false(liveness_flags_dead_at_entry(region_block(&region, PC)));
	assert_false(liveness_flags_dead_at_entry(region_block(&division, PC)));
	assert_true(liveness_flags_dead_at_entry(region_block(&harmless, PC)));
	assert_false(liveness_flags_dead_at_entry(region_block(&push, PC)));
	assert_int_equal(flags_before(&push, 0), FLAGS_ALL);
	region_deinit(&region);
	region_deinit(&division);
	region_deinit(&harmless);
	region_deinit(&push);
}

static void test_across_blocks(void **state)
{
	/* 0: mov esi,edx  2: jrcxz 8  4: test eax,eax  6: jmp 10  8: test eax,eax  10: xor eax,eax  12: ret
	 */
	struct region both =
	        REGION(0x89, 0xd6, 0xe3, 0x04, 0x85, 0xc0, 0xeb, 0x02, 0x85, 0xc0, 0x31, 0xc0, 0xc3);
	/* the same, but one way reads the carry: 8: adc eax,eax */
	struct region one =
	        REGION(0x89, 0xd6, 0xe3, 0x04, 0x85, 0xc0, 0xeb, 0x02, 0x11, 0xc0, 0x31, 0xc0, 0xc3);
	/* one way leaves: 2: jrcxz far away */
	struct region leaves = REGION(0x89, 0xd6, 0xe3, 0x40, 0x85, 0xc0, 0x31, 0xc0, 0xc3);

	(void)state;
	assert_int_equal(flags_before(&both, 0), 0);
	assert_true(liveness_flags_dead_at_entry(region_block(&both, PC)));
	assert_int_equal(flags_before(&one, 0), FLAG_CF);
	assert_int_equal(flags_before(&leaves, 0), FLAGS_ALL);
	region_deinit(&both);
	region_deinit(&one);
	region_deinit(&leaves);
}

static void test_loop(void **state)
{
	/* 0: xor eax,eax  2: adc edx,ecx  4: dec ecx  6: jnz 2  8: xor edx,edx  10: mov eax,1  15: ret */
	struct region region = REGION(0x31, 0xc0, 0x11, 0xca, 0xff, 0xc9, 0x75, 0xfa, 0x31, 0xd2, 0xb8, 0x01,
	        0x00, 0x00, 0x00, 0xc3);

	(void)state;
	/* The carry goes round the loop. */
	assert_int_equal(flags_after(&region, 4), FLAG_CF | FLAG_ZF);
	assert_int_equal(flags_after(&region, 6), FLAG_CF);
	assert_int_equal(flags_before(&region, 0), 0);
	assert_true(dead_before(&region, 2, RAX));
	assert_false(dead_before(&region, 2, RDX));
	assert_true(dead_before(&region, 8, RDX));
	region_deinit(&region);
}

static void test_leaving(void **state)
{
	/* 0: syscall ; 2: call ; 7: test eax,eax ; 9: ret */
	struct region region = REGION(0x0f, 0x05, 0xe8, 0x00, 0x01, 0x00, 0x00, 0x85, 0xc0, 0xc3);

	(void)state;
	assert_int_equal(liveness_before(at(&region, 0)), LIVE_ALL);
	assert_int_equal(liveness_before(at(&region, 2)), LIVE_ALL);
	assert_int_equal(liveness_before(at(&region, 9)), LIVE_ALL);
	assert_true(liveness_flags_dead_at_entry(region_block(&region, PC + 7)));
	region_deinit(&region);
}

/* The first instructions behind the region are looked at, too; for flags only. */
static void test_beyond(void **state)
{
	static const uint8_t code[] = {/* 0: mov esi,edx  2: jrcxz 32 */
	        0x89, 0xd6, 0xe3, 0x1c,
	        /* 4: mov edi,edx  6: call 48 */
	        0x89, 0xd7, 0xe8, 0x25, 0x00, 0x00, 0x00,
	        /* 11: jmp 64 */
	        0xeb, 0x33, [13 ... 31] = 0xcc,
	        /* 32: mov ecx,esi  34: jmp 40 */
	        0x89, 0xf1, 0xeb, 0x04, [36 ... 39] = 0xcc,
	        /* 40: xor eax,eax  42: ret */
	        0x31, 0xc0, 0xc3, [43 ... 47] = 0xcc,
	        /* 48: mov ecx,edi  50: add ecx,1  53: ret */
	        0x89, 0xf9, 0x83, 0xc1, 0x01, 0xc3, [54 ... 63] = 0xcc,
	        /* 64: inc ecx, which leaves the carry  66: adc ecx,ecx  68: ret */
	        0xff, 0xc1, 0x11, 0xc9, 0xc3};
	struct program program = {code, sizeof code};
	struct translate_request request = {.pc = PC,
	        .read = program_read,
	        .context = &program,
	        .max_instructions = 5,
	        .mode = TRANSLATE_REPLAY};
	struct region region;

	(void)state;
	assert_int_equal(region_discover(&region, &request), 0);
	liveness_compute(&region);
	assert_int_equal(region.instruction_count, 5);
	/* The way of the jump at 2 and that of the call overwrite all of them. */
	assert_int_equal(
	        liveness_at(&region, PC + 48), LIVE_ALL & ~(LIVE_FLAGS(FLAGS_ALL) | LIVE_SHOWN(FLAGS_ALL)));
	assert_int_equal(flags_before(&region, 0), 0);
	assert_int_equal(flags_before(&region, 4), 0);
	/* A flag that is read on one way counts, and what nobody looked at does. */
	assert_true(liveness_at(&region, PC + 64) & LIVE_FLAGS(FLAG_CF));
	assert_int_equal(liveness_at(&region, PC + 200), LIVE_ALL);
	region_deinit(&region);
	/* What was looked at is known, so that a change of it is noticed. */
	request.mode = TRANSLATE_RECORD;
	assert_int_equal(region_discover(&region, &request), 0);
	liveness_compute(&region);
	assert_int_equal(flags_before(&region, 4), 0);
	assert_true(region.glance_count >= 2);
	assert_int_equal(region.glances[0].pc, PC + 48);
	assert_int_equal(region.glances[0].length, 2);
	assert_memory_equal(region.glances[0].bytes, code + 48, 2);
	region_deinit(&region);
	/* Code that may change unnoticed tells nothing. */
	bool writable = true;
	request.writable = &writable;
	assert_int_equal(region_discover(&region, &request), 0);
	liveness_compute(&region);
	assert_int_equal(liveness_at(&region, PC + 48), LIVE_ALL);
	assert_int_equal(flags_before(&region, 4), FLAGS_ALL);
	assert_int_equal(region.glance_count, 0);
	region_deinit(&region);
}

static void test_partial_registers(void **state)
{
	/* 0: mov al,5  2: mov ah,6  4: mov ecx,eax  6: mov eax,7  11: cmovz edx,ecx  14: ret */
	struct region region = REGION(
	        0xb0, 0x05, 0xb4, 0x06, 0x89, 0xc1, 0xb8, 0x07, 0x00, 0x00, 0x00, 0x0f, 0x44, 0xd1, 0xc3);

	(void)state;
	assert_false(dead_before(&region, 0, RAX));
	assert_false(dead_before(&region, 2, RAX));
	assert_true(dead_before(&region, 6, RAX));
	assert_true(dead_before(&region, 0, RCX));
	assert_false(dead_before(&region, 11, RDX));
	region_deinit(&region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_straight),
	        cmocka_unit_test(test_partial_flags),
	        cmocka_unit_test(test_shown),
	        cmocka_unit_test(test_across_blocks),
	        cmocka_unit_test(test_loop),
	        cmocka_unit_test(test_leaving),
	        cmocka_unit_test(test_beyond),
	        cmocka_unit_test(test_partial_registers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
