/*
 * The translator on bytes: what each class of instruction becomes, how regions
 * are found, what cannot be read or decoded, and the small pieces.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>
#include <cmocka.h>

#include "translate/translate.h"

#define PC 0x400000ull

/* -- a program that is a few bytes ---------------------------------------- */

struct program {
	uint64_t pc;
	const uint8_t *bytes;
	size_t size;
	uint64_t known[8];
	unsigned known_count;
};

static size_t program_read(void *context, uint64_t pc, uint8_t *bytes, size_t size)
{
	const struct program *program = context;

	if (pc < program->pc || pc >= program->pc + program->size)
		return 0;
	if (size > program->pc + program->size - pc)
		size = program->pc + program->size - pc;
	memcpy(bytes, program->bytes + (pc - program->pc), size);
	return size;
}

static bool program_known(void *context, uint64_t pc)
{
	const struct program *program = context;

	for (unsigned i = 0; i < program->known_count; i++)
		if (program->known[i] == pc)
			return true;
	return false;
}

static struct translate_request request_for(struct program *program, bool near)
{
	uint64_t low = near ? 0x10000000 : 0x100000000000;

	return (struct translate_request){
	        .pc = program->pc,
	        .read = program_read,
	        .known = program_known,
	        .context = program,
	        .reach_low = low,
	        .reach_high = low + 0x4000000,
	        .max_instructions = 100,
	};
}

static struct translation translate_program(struct program *program, bool near)
{
	struct translate_request request = request_for(program, near);
	struct translation translation;

	assert_int_equal(translate(&request, &translation), 0);
	assert_int_equal(translation.entries[0].pc, 0);
	return translation;
}

#define TRANSLATE(near, ...)                                                                                 \
	translate_program(&(struct program){.pc = PC,                                                        \
	                          .bytes = (const uint8_t[]){__VA_ARGS__},                                   \
	                          .size = sizeof((const uint8_t[]){__VA_ARGS__})},                           \
	        near)

/* -- reading the output --------------------------------------------------- */

struct decoded {
	ZydisDecodedInstruction instruction;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

static bool decode(const uint8_t *bytes, size_t size, struct decoded *decoded)
{
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return ZYAN_SUCCESS(
	        ZydisDecoderDecodeFull(&decoder, bytes, size, &decoded->instruction, decoded->operands));
}

/* The mnemonics from `offset` on, for comparing with what is expected in one go. */
static void expect(const struct translation *translation, uint32_t offset, const char *expected)
{
	char text[1024] = "";
	unsigned wanted = 1;

	for (const char *c = expected; *c; c++)
		wanted += *c == ' ';
	while (wanted--) {
		struct decoded decoded;

		assert_true(decode(translation->code + offset, translation->code_size - offset, &decoded));
		offset += decoded.instruction.length;
		strcat(text, ZydisMnemonicGetString(decoded.instruction.mnemonic));
		if (wanted)
			strcat(text, " ");
	}
	assert_string_equal(text, expected);
}

static const struct fixup *fixup_at(const struct translation *translation, uint32_t offset)
{
	for (uint32_t i = 0; i < translation->fixup_count; i++)
		if (translation->fixups[i].offset == offset)
			return &translation->fixups[i];
	return NULL;
}

static const struct entry *entry_for(const struct translation *translation, int64_t pc)
{
	for (uint32_t i = 0; i < translation->entry_count; i++)
		if (translation->entries[i].pc == pc)
			return &translation->entries[i];
	return NULL;
}

static const struct site *site_for(const struct translation *translation, int64_t target)
{
	for (uint32_t i = 0; i < translation->site_count; i++)
		if (translation->sites[i].target == target)
			return &translation->sites[i];
	return NULL;
}

static uint32_t rel32_target(const struct translation *translation, uint32_t field)
{
	int32_t rel32;

	memcpy(&rel32, translation->code + field, 4);
	return field + 4 + rel32;
}

static void expect_exit(const struct translation *translation, uint32_t offset, int64_t pc)
{
	expect(translation, offset, "mov mov jmp");
	assert_int_equal(fixup_at(translation, offset + 4)->kind, FIXUP_SLOT);
	assert_int_equal(fixup_at(translation, offset + 4)->value, SLOT_RCX);
	assert_int_equal(fixup_at(translation, offset + 10)->kind, FIXUP_ABSOLUTE);
	assert_int_equal(fixup_at(translation, offset + 10)->value, pc);
	assert_int_equal(fixup_at(translation, offset + 19)->kind, FIXUP_ROUTINE);
	assert_int_equal(fixup_at(translation, offset + 19)->value, ROUTINE_EXIT);
}

static const struct record *record_at(const struct translation *translation, uint32_t offset)
{
	const struct record *best = NULL;

	for (uint32_t i = 0; i < translation->record_count && translation->records[i].offset <= offset; i++)
		best = &translation->records[i];
	return best;
}

/* -- plain instructions ---------------------------------------------------- */

static void test_verbatim(void **state)
{
	/* add eax, ebx ; int3 ; fld1 ; vaddps ymm0, ymm1, ymm2 ; rdtsc ; ret */
	static const uint8_t code[] = {
	        0x01, 0xd8, 0xcc, 0xd9, 0xe8, 0xc5, 0xf4, 0x58, 0xc2, 0x0f, 0x31, 0xc3};
	struct program program = {.pc = PC, .bytes = code, .size = sizeof(code)};
	struct translation translation = translate_program(&program, true);

	(void)state;
	assert_memory_equal(translation.code, code, sizeof(code) - 1);
	assert_int_equal(translation.instruction_count, 6);
	assert_int_equal(translation.block_count, 1);
	assert_int_equal(translation.source_count, 1);
	assert_int_equal(translation.sources[0].size, sizeof(code));
	assert_memory_equal(translation.source_bytes, code, sizeof(code));
	/* int3 traps with the pc behind it: there must be the next instruction, and nothing else */
	assert_int_equal(record_at(&translation, 3)->pc, 3);
	assert_true(record_at(&translation, 3)->state & RECORD_BOUNDARY);
	translation_free(&translation);
}

static void test_rip_near(void **state)
{
	/* cmp dword [rip+0x100], 0x12345678 ; ret */
	struct translation translation =
	        TRANSLATE(true, 0x81, 0x3d, 0x00, 0x01, 0x00, 0x00, 0x78, 0x56, 0x34, 0x12, 0xc3);

	(void)state;
	expect(&translation, 0, "cmp mov mov mov pop");
	assert_int_equal(fixup_at(&translation, 2)->kind, FIXUP_NEAR);
	assert_int_equal(fixup_at(&translation, 2)->value, 0x10a);
	assert_int_equal(fixup_at(&translation, 2)->end, 8);
	translation_free(&translation);
}

static void test_rip_far(void **state)
{
	/* cmp dword [rip+0x100], 0x12345678 ; mov r9, [rip] ; mov rbx, [rip] ; lea rsi, [rip] ; ret */
	struct translation translation =
	        TRANSLATE(false, 0x81, 0x3d, 0x00, 0x01, 0x00, 0x00, 0x78, 0x56, 0x34, 0x12, 0x4c, 0x8b, 0x0d,
	                0, 0, 0, 0, 0x48, 0x8b, 0x1d, 0, 0, 0, 0, 0x48, 0x8d, 0x35, 0, 0, 0, 0, 0xc3);

	(void)state;
	expect(&translation, 0, "mov mov cmp mov mov mov mov mov mov mov mov mov mov mov mov pop");
	assert_int_equal(fixup_at(&translation, 10)->kind, FIXUP_ABSOLUTE);
	assert_int_equal(fixup_at(&translation, 10)->value, 0x10a);
	assert_int_equal(record_at(&translation, 8)->state, RECORD_SCRATCH_A);
	translation_free(&translation);
}

/* -- branches -------------------------------------------------------------- */

static void test_branches(void **state)
{
	/* 0: test eax,eax  2: je 6  4: jmp 0  6: jmp far away */
	struct translation translation =
	        TRANSLATE(true, 0x85, 0xc0, 0x74, 0x02, 0xeb, 0xfa, 0xe9, 0x00, 0x00, 0x01, 0x00);
	const struct site *out = site_for(&translation, 0x1000b), *back = site_for(&translation, 0),
	                  *over = site_for(&translation, 6);

	(void)state;
	assert_int_equal(translation.site_count, 3);
	assert_int_equal(translation.entry_count, 3);
	assert_int_equal(back->exit, 0);
	assert_int_equal(over->exit, 0);
	assert_int_equal(rel32_target(&translation, back->offset), entry_for(&translation, 0)->offset);
	assert_int_equal(rel32_target(&translation, over->offset), entry_for(&translation, 6)->offset);
	assert_int_not_equal(out->exit, 0);
	assert_int_equal(rel32_target(&translation, out->offset), out->exit);
	expect_exit(&translation, out->exit, 0x1000b);
	assert_int_equal(record_at(&translation, out->exit)->pc, 0x1000b);
	assert_true(record_at(&translation, out->exit)->state & RECORD_BOUNDARY);
	translation_free(&translation);
}

static void test_patchable_fields(void **state)
{
	(void)state;
	/* Every length of code in front of a branch: its field never crosses a line. */
	for (unsigned lead = 0; lead < 80; lead++) {
		uint8_t code[90];
		struct program program = {.pc = PC, .bytes = code, .size = lead + 3};

		memset(code, 0x90, sizeof(code));
		memcpy(code + lead, (uint8_t[]){0x74, 0x40, 0xc3}, 3);

		struct translation translation = translate_program(&program, true);

		assert_int_equal(translation.site_count, 1);
		assert_true(translation.sites[0].offset % 32 <= 28);
		/* The padding belongs to the branch. */
		assert_int_equal(record_at(&translation, lead)->pc, lead);
		assert_int_equal(record_at(&translation, translation.sites[0].offset)->pc, lead);
		translation_free(&translation);
	}
}

static void test_call(void **state)
{
	/* 0: call 0x10005  5: test eax,eax  7: ret */
	struct translation translation = TRANSLATE(true, 0xe8, 0x00, 0x00, 0x01, 0x00, 0x85, 0xc0, 0xc3);
	const struct entry *back = entry_for(&translation, 5);
	const struct site *site = site_for(&translation, 0x10005);

	(void)state;
	expect(&translation, 0, "push jmp mov lea jrcxz mov lea jmp mov mov test");
	assert_int_equal(translation.callee_count, 1);
	assert_int_equal(translation.callees[0], 0x10005);
	assert_true(back->wants_thunk);
	assert_int_not_equal(back->thunk, 0);
	assert_true(back->thunk_next % 32 <= 28);
	assert_int_equal(fixup_at(&translation, back->thunk_next)->kind, FIXUP_ROUTINE);
	assert_int_equal(fixup_at(&translation, back->thunk_next)->value, ROUTINE_MISS);
	assert_int_equal(record_at(&translation, back->thunk)->pc, 5);
	assert_int_equal(record_at(&translation, back->thunk)->state, RECORD_RCX | RECORD_R11);
	expect_exit(&translation, site->exit, 0x10005);

	/* The literal: aligned, and the return address. */
	uint32_t literal = rel32_target(&translation, 2);

	assert_int_equal(literal % 8, 0);
	assert_int_equal(fixup_at(&translation, literal)->kind, FIXUP_ABSOLUTE);
	assert_int_equal(fixup_at(&translation, literal)->value, 5);
	/* Behind the push the program is at the target. */
	assert_int_equal(record_at(&translation, 6)->pc, 0x10005);
	assert_true(record_at(&translation, 6)->state & RECORD_BOUNDARY);
	translation_free(&translation);
}

static void test_thunk_keeps_flags(void **state)
{
	/* call ; jc -- reads them; call ; mov rax,[rax] ; test -- may fault first */
	struct translation reads = TRANSLATE(true, 0xe8, 0x00, 0x00, 0x01, 0x00, 0x72, 0x00, 0xc3);
	struct translation faults =
	        TRANSLATE(true, 0xe8, 0x00, 0x00, 0x01, 0x00, 0x48, 0x8b, 0x00, 0x85, 0xc0, 0xc3);

	(void)state;
	expect(&reads, entry_for(&reads, 5)->thunk, "mov lea jrcxz mov lea");
	expect(&faults, entry_for(&faults, 5)->thunk, "mov lea jrcxz mov lea");
	assert_int_equal(fixup_at(&reads, entry_for(&reads, 5)->thunk + 2)->kind, FIXUP_NEGATED);
	translation_free(&reads);
	translation_free(&faults);
}

static void test_known_and_budget(void **state)
{
	/* 0: nop 1: nop 2: je 5 4: nop 5: nop 6: ret */
	static const uint8_t code[] = {0x90, 0x90, 0x74, 0x01, 0x90, 0x90, 0xc3};
	struct program program = {.pc = PC, .bytes = code, .size = sizeof(code)};
	struct translate_request request = request_for(&program, true);
	struct translation translation;

	(void)state;
	program.known[program.known_count++] = PC + 5;
	program.known[program.known_count++] = PC; /* does not count: it is what was asked for */
	assert_int_equal(translate(&request, &translation), 0);
	assert_int_equal(translation.instruction_count, 4);
	assert_null(entry_for(&translation, 5));
	for (uint32_t i = 0; i < translation.site_count; i++)
		assert_int_equal(translation.sites[i].target, 5);
	assert_int_equal(translation.site_count, 2);
	assert_int_equal(translation.sites[0].exit, translation.sites[1].exit);
	translation_free(&translation);

	program.known_count = 0;
	request.max_instructions = 1;
	assert_int_equal(translate(&request, &translation), 0);
	assert_int_equal(translation.instruction_count, 1);
	expect_exit(&translation, site_for(&translation, 1)->exit, 1);
	translation_free(&translation);
}

/* -- what cannot be read or decoded ---------------------------------------- */

static void test_unreadable(void **state)
{
	static const uint8_t code[] = {0x90, 0x48, 0xb8, 0x00};
	struct program program = {.pc = 0x400ffc, .bytes = code, .size = sizeof(code)};
	struct translate_request request = request_for(&program, true);
	struct translation translation;

	(void)state;
	/* An instruction that runs on to a page that is not there: leave for it. */
	assert_int_equal(translate(&request, &translation), 0);
	assert_int_equal(translation.instruction_count, 1);
	expect_exit(&translation, site_for(&translation, 1)->exit, 1);
	translation_free(&translation);
	request.pc = 0x400ffd;
	assert_int_equal(translate(&request, &translation), -EFAULT);
	request.pc = 0x500000;
	assert_int_equal(translate(&request, &translation), -EFAULT);
}

static void test_undecodable(void **state)
{
	struct translation undefined =
	        TRANSLATE(true, 0x06, 0x90, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	struct translation evex = TRANSLATE(true, 0x62, 0xf1, 0x7c, 0x48, 0x58, 0xc1, 0xc3);
	struct translation xbegin = TRANSLATE(true, 0xc7, 0xf8, 0, 0, 0, 0, 0xc3);
	struct translation sysenter = TRANSLATE(true, 0x0f, 0x34, 0xc3);
	uint8_t bytes[20];
	struct program program = {.pc = PC, .bytes = bytes, .size = sizeof(bytes)};

	(void)state;
	expect(&undefined, 0, "ud2");
	assert_int_equal(undefined.records[0].state, RECORD_BOUNDARY);
	expect(&evex, 0, "ud2");
	assert_int_equal(evex.records[0].state, RECORD_BOUNDARY | RECORD_REFUSED);
	expect(&xbegin, 0, "ud2");
	assert_int_equal(xbegin.records[0].state, RECORD_BOUNDARY | RECORD_REFUSED);
	expect(&sysenter, 0, "ud2");
	translation_free(&undefined);
	translation_free(&evex);
	translation_free(&xbegin);
	translation_free(&sysenter);

	memset(bytes, 0x66, sizeof(bytes));

	struct translation too_long = translate_program(&program, true);

	expect(&too_long, 0, "hlt");
	translation_free(&too_long);

	/* ea takes 7 bytes: where they cannot all be fetched, that is the fault. */
	program.size = 5;
	bytes[0] = 0xea;

	struct translate_request request = request_for(&program, true);

	assert_int_equal(translate(&request, &too_long), -EFAULT);
}

/* -- for the stub ----------------------------------------------------------- */

/* The constant that an emulated instruction leaves in SLOT_DETAIL. */
static uint32_t detail_of(const struct translation *translation)
{
	for (uint32_t i = 0; i < translation->fixup_count; i++) {
		const struct fixup *fixup = &translation->fixups[i];

		if (fixup->kind == FIXUP_SLOT && fixup->value == SLOT_DETAIL) {
			uint32_t detail;

			assert_int_equal(fixup->end, 8);
			memcpy(&detail, translation->code + fixup->offset + 4, 4);
			return detail;
		}
	}
	return UINT32_MAX;
}

static size_t read_nothing(void *context, uint64_t pc, uint8_t *bytes, size_t size)
{
	(void)context, (void)pc, (void)bytes, (void)size;
	return 0;
}

static void test_vsyscall(void **state)
{
	struct translate_request request = {
	        .read = read_nothing, .reach_high = 0x10000000, .max_instructions = 10};
	struct translation translation;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		request.pc = 0xffffffffff600000 + i * 0x400;
		assert_int_equal(translate(&request, &translation), 0);
		expect(&translation, 0, "mov mov mov jmp");
		assert_int_equal(detail_of(&translation) & 0xff, EMULATE_DETAIL(EMULATE_VSYSCALL, 0, 0));
		assert_int_equal(translation.entry_count, 1);
		assert_int_equal(translation.source_count, 0);
		translation_free(&translation);
		request.pc += 9;
		assert_int_equal(translate(&request, &translation), -EFAULT);
	}
	request.pc = 0xffffffffff600c00;
	assert_int_equal(translate(&request, &translation), -EFAULT);
}

static void test_emulated(void **state)
{
	static const struct {
		uint8_t bytes[8], length;
		uint32_t detail;
		const char *code;
	} cases[] = {
	        {{0x0f, 0xa2}, 2, EMULATE_DETAIL(EMULATE_CPUID, 2, 0), "mov mov mov jmp"},
	        {{0x0f, 0x01, 0xd0}, 3, EMULATE_DETAIL(EMULATE_XGETBV, 3, 0), "mov mov mov jmp"},
	        {{0x9d}, 1, EMULATE_DETAIL(EMULATE_POPF, 1, 8), "mov mov mov jmp"},
	        {{0x66, 0x9d}, 2, EMULATE_DETAIL(EMULATE_POPF, 2, 2), "mov mov mov jmp"},
	        {{0xf3, 0x49, 0x0f, 0xae, 0xcb}, 5, EMULATE_DETAIL(EMULATE_RDGSBASE, 5, 11 | 8 << 4),
	                "mov mov mov jmp"},
	        {{0xf3, 0x0f, 0xae, 0xd9}, 4, EMULATE_DETAIL(EMULATE_WRGSBASE, 4, 1 | 4 << 4),
	                "mov mov mov jmp"},
	        {{0x8e, 0xe8}, 2, EMULATE_DETAIL(EMULATE_NATIVE, 2, 0), "mov mov mov jmp"},
	        {{0x65, 0x8e, 0x28}, 3, EMULATE_DETAIL(EMULATE_NATIVE, 3, 0), "mov mov mov jmp"},
	        {{0x0f, 0xa9}, 2, EMULATE_DETAIL(EMULATE_NATIVE, 2, 0), "mov mov mov jmp"},
	        {{0x0f, 0xb5, 0x08}, 3, EMULATE_DETAIL(EMULATE_NATIVE, 3, 0), "mov mov mov jmp"},
	        {{0x65, 0x67, 0xf3, 0xa5}, 4, EMULATE_DETAIL(EMULATE_NATIVE, 4, 0), "mov mov mov jmp"},
	        {{0xcd, 0x80}, 2, EMULATE_DETAIL(EMULATE_INT80, 2, 0), "mov mov mov jmp"},
	        {{0xcb}, 1, EMULATE_DETAIL(EMULATE_FAR, 1, FAR_RET | 4 << 4), "mov mov mov mov jmp"},
	        {{0x48, 0xca, 0x10, 0x00}, 4, EMULATE_DETAIL(EMULATE_FAR, 4, FAR_RET | 8 << 4),
	                "mov mov mov mov jmp"},
	        {{0x48, 0xcf}, 2, EMULATE_DETAIL(EMULATE_FAR, 2, FAR_IRET | 8 << 4), "mov mov mov mov jmp"},
	        {{0xff, 0x28}, 2, EMULATE_DETAIL(EMULATE_FAR, 2, FAR_JMP | 4 << 4),
	                "mov lea mov mov mov jmp"},
	        {{0x48, 0xff, 0x58, 0x08}, 4, EMULATE_DETAIL(EMULATE_FAR, 4, FAR_CALL | 8 << 4),
	                "mov lea mov mov mov jmp"},
	        {{0xd9, 0x30}, 2, EMULATE_DETAIL(EMULATE_FIX_X87_PC, 2, X87_IMAGE_ENV32),
	                "mov lea fnstenv mov mov mov jmp"},
	        {{0x66, 0xdd, 0x30}, 3, EMULATE_DETAIL(EMULATE_X87_ENV16, 3, 1), "mov lea mov mov mov jmp"},
	        {{0x0f, 0xae, 0x00}, 3, EMULATE_DETAIL(EMULATE_FIX_X87_PC, 3, X87_IMAGE_FX32),
	                "mov lea fxsave mov mov mov jmp"},
	        {{0x48, 0x0f, 0xc7, 0x20}, 4,
	                EMULATE_DETAIL(EMULATE_FIX_X87_PC, 4, X87_IMAGE_FX64 | X87_IMAGE_XSAVE),
	                "mov lea xsavec64 mov mov mov jmp"},
	        {{0x64, 0x0f, 0xae, 0x20}, 4,
	                EMULATE_DETAIL(EMULATE_FIX_X87_PC, 4, X87_IMAGE_FX32 | X87_IMAGE_XSAVE),
	                "mov lea mov rdfsbase lea mov xsave mov mov mov jmp"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct program program = {.pc = PC, .bytes = cases[i].bytes, .size = cases[i].length};
		struct translation translation = translate_program(&program, true);

		expect(&translation, 0, cases[i].code);
		assert_int_equal(detail_of(&translation), cases[i].detail);
		translation_free(&translation);
	}
}

static void test_syscall(void **state)
{
	struct translation translation =
	        TRANSLATE(true, 0x0f, 0x05, 0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff, 0xc3);

	(void)state;
	expect(&translation, 0, "mov mov jmp mov lea jrcxz mov lea jmp mov mov cmp");
	assert_int_equal(fixup_at(&translation, 10)->value, 2);
	assert_int_equal(fixup_at(&translation, 19)->value, ROUTINE_SYSCALL);
	assert_true(entry_for(&translation, 2)->wants_thunk);
	translation_free(&translation);
}

static void test_pieces(void **state)
{
	struct translation translation;
	uint32_t literal;
	uint64_t address;

	(void)state;
	assert_int_equal(translate_thunk(PC, false, &translation), 0);
	expect(&translation, 0, "mov lea jrcxz mov lea");
	assert_int_equal(translation.entry_count, 1);
	assert_int_equal(translation.site_count, 1);
	assert_int_equal(translation.sites[0].target, 0);
	assert_true(translation.entries[0].thunk_next % 32 <= 28);
	assert_true(translation.sites[0].offset % 32 <= 28);
	expect_exit(&translation, translation.sites[0].exit, 0);
	translation_free(&translation);

	assert_int_equal(translate_exit(PC, &translation), 0);
	expect_exit(&translation, 0, 0);
	assert_int_equal(translation.entry_count, 1);
	translation_free(&translation);

	assert_int_equal(translate_bridge(PC, &translation, &literal), 0);
	expect(&translation, 0, "jmp");
	assert_int_equal(literal, 8);
	assert_int_equal(rel32_target(&translation, 2), literal);
	assert_int_equal(translation.code_size, 16);
	translation_free(&translation);

	for (unsigned routine = 0; routine < ROUTINE_COUNT; routine++) {
		static const char *const code[ROUTINE_COUNT] = {
		        [ROUTINE_EXIT] = "mov mov mov mov jmp",
		        [ROUTINE_MISS] = "mov mov mov mov mov mov mov mov mov mov jmp",
		        [ROUTINE_SYSCALL] = "mov mov mov mov jmp",
		        [ROUTINE_EMULATE] = "mov mov mov mov mov mov mov mov mov mov jmp",
		        [ROUTINE_ACCESS] = "mov mov mov mov mov mov mov mov jmp",
		        [ROUTINE_STOP] = "mov mov mov mov jmp",
		        [ROUTINE_FILTERED] = "mov mov mov mov mov mov mov mov jmp",
		};

		assert_int_equal(translate_veneer(routine, 0x7000, 0x123456789abc, &translation), 0);
		expect(&translation, 0, code[routine]);
		memcpy(&address, translation.code + 16 + 3, 8);
		assert_int_equal(address, 0x7000 + 8 * SLOT_RCX);
		memcpy(&address, translation.code + translation.code_size - 8, 8);
		assert_int_equal(address, 0x123456789abc);
		translation_free(&translation);
	}
}

static void test_self_check(void **state)
{
	/* 9 nops ; mov [rax],eax ; nop ; ret: a write ends the block */
	static const uint8_t code[] = {
	        0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x89, 0x00, 0x90, 0xc3};
	struct program program = {.pc = PC, .bytes = code, .size = sizeof(code)};
	struct translate_request request = request_for(&program, true);
	struct translation translation;

	(void)state;
	request.self_check = true;
	assert_int_equal(translate(&request, &translation), 0);
	assert_int_equal(translation.block_count, 2);
	assert_non_null(entry_for(&translation, 11));
	/* 8 + 2 + 1 bytes */
	expect(&translation, 0,
	        "mov mov mov mov lea jrcxz jmp mov movzx lea jrcxz jmp mov movzx lea jrcxz jmp mov mov nop");
	assert_int_equal(record_at(&translation, 0)->state, RECORD_BOUNDARY | RECORD_TRANSIT);
	assert_int_equal(record_at(&translation, 30)->state, RECORD_RCX | RECORD_R11);
	translation_free(&translation);
}

/* -- rewriting, on whatever decodes ------------------------------------------ */

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_number(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static int memory_operand(const struct decoded *decoded)
{
	for (unsigned i = 0; i < decoded->instruction.operand_count_visible; i++)
		if (decoded->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		        decoded->operands[i].encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM)
			return i;
	return -1;
}

/* Is `is` the instruction `was` with [base] as its memory operand, and does nothing else of it use base? */
static bool is_rewritten(const struct decoded *was, const struct decoded *is, unsigned memory)
{
	ZydisRegister base = is->operands[memory].mem.base;
	bool vector = was->operands[memory].mem.type == ZYDIS_MEMOP_TYPE_VSIB;

	if (was->instruction.mnemonic != is->instruction.mnemonic ||
	        was->instruction.operand_count != is->instruction.operand_count ||
	        was->instruction.operand_width != is->instruction.operand_width ||
	        was->instruction.avx.vector_length != is->instruction.avx.vector_length)
		return false;
	for (unsigned i = 0; i < was->instruction.operand_count; i++) {
		const ZydisDecodedOperand *a = &was->operands[i], *b = &is->operands[i];

		if (a->type != b->type || a->size != b->size || a->actions != b->actions)
			return false;
		if (i == memory) {
			if (vector ? b->mem.index != a->mem.index || b->mem.scale != a->mem.scale ||
			                        b->mem.disp.value != a->mem.disp.value
			           : b->mem.index || b->mem.disp.value)
				return false;
		} else if (a->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			if (a->reg.value != b->reg.value)
				return false;
			/* May only be what the load overwrites. */
			if (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, b->reg.value) ==
			                base &&
			        (b->actions != ZYDIS_OPERAND_ACTION_WRITE || b->size < 32))
				return false;
		} else if (a->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && a->imm.value.u != b->imm.value.u) {
			return false;
		}
	}
	return true;
}

static bool find_rewritten(const struct translation *translation, const struct decoded *was, unsigned memory)
{
	for (uint32_t offset = 0; offset < translation->code_size;) {
		struct decoded is;

		if (!decode(translation->code + offset, translation->code_size - offset, &is))
			return false;
		if (is.instruction.mnemonic == was->instruction.mnemonic &&
		        memory_operand(&is) == (int)memory &&
		        is.operands[memory].mem.base != ZYDIS_REGISTER_RIP && is_rewritten(was, &is, memory))
			return true;
		offset += is.instruction.length;
	}
	return false;
}

/* What needs the real GS base: x87 instructions, bit strings, those that show system registers. */
static bool runs_natively(const struct decoded *decoded, const ZydisDecodedOperand *operand)
{
	switch (decoded->instruction.mnemonic) {
	case ZYDIS_MNEMONIC_SGDT:
	case ZYDIS_MNEMONIC_SIDT:
	case ZYDIS_MNEMONIC_SLDT:
	case ZYDIS_MNEMONIC_SMSW:
	case ZYDIS_MNEMONIC_STR:
		return operand->mem.segment == ZYDIS_REGISTER_GS || decoded->instruction.address_width == 32;
	case ZYDIS_MNEMONIC_BT:
	case ZYDIS_MNEMONIC_BTS:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTC:
		return operand->mem.segment == ZYDIS_REGISTER_GS && decoded->instruction.address_width == 32;
	default:
		break;
	}
	return operand->mem.segment == ZYDIS_REGISTER_GS &&
	       decoded->instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
	       decoded->instruction.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
	       (decoded->instruction.opcode & 0xf8) == 0xd8 &&
	       decoded->instruction.mnemonic != ZYDIS_MNEMONIC_FNSTENV &&
	       decoded->instruction.mnemonic != ZYDIS_MNEMONIC_FNSAVE;
}

/* Those that become something else altogether. */
static bool is_special(const struct decoded *decoded)
{
	switch (decoded->instruction.mnemonic) {
	case ZYDIS_MNEMONIC_LEA:
	case ZYDIS_MNEMONIC_CALL:
	case ZYDIS_MNEMONIC_JMP:
	case ZYDIS_MNEMONIC_LGS:
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_RSTORSSP:
	case ZYDIS_MNEMONIC_WRSSD:
	case ZYDIS_MNEMONIC_WRSSQ:
	case ZYDIS_MNEMONIC_WRUSSD:
	case ZYDIS_MNEMONIC_WRUSSQ:
		return true;
	case ZYDIS_MNEMONIC_MOV:
		return decoded->operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		       decoded->operands[0].reg.value == ZYDIS_REGISTER_GS;
	case ZYDIS_MNEMONIC_FNSTENV:
	case ZYDIS_MNEMONIC_FNSAVE:
		return decoded->instruction.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE; /* the stub's */
	default:
		return decoded->instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX ||
		       decoded->instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX ||
		       decoded->instruction.meta.category == ZYDIS_CATEGORY_AMX_TILE ||
		       decoded->instruction.meta.category == ZYDIS_CATEGORY_KMASK ||
		       decoded->instruction.meta.category == ZYDIS_CATEGORY_UINTR ||
		       decoded->instruction.meta.category == ZYDIS_CATEGORY_WIDENOP ||
		       decoded->instruction.meta.category == ZYDIS_CATEGORY_PREFETCH;
	}
}

static void test_rewriting(void **state)
{
	unsigned gs = 0, rip = 0;

	(void)state;
	for (unsigned tries = 0; tries < 300000; tries++) {
		static const uint8_t openings[] = {
		        0x0f, 0xc4, 0xc5, 0x8f, 0x66, 0xf2, 0xf3, 0x48, 0x4f, 0x43, 0xf0, 0x41};
		uint8_t bytes[24];
		struct program program = {.pc = PC, .bytes = bytes, .size = sizeof(bytes)};
		struct translate_request request = request_for(&program, false);
		struct translation translation;
		struct decoded decoded;
		unsigned start = random_number() & 1;

		for (unsigned i = 0; i < sizeof(bytes); i += 8)
			memcpy(bytes + i, &(uint64_t){random_number()}, 8);
		if (start)
			bytes[0] = 0x65;
		if (random_number() & 1)
			bytes[start] = openings[random_number() % sizeof(openings)];
		if (!decode(bytes, 15, &decoded) || is_special(&decoded))
			continue;

		int memory = memory_operand(&decoded);

		if (memory < 0)
			continue;
		if (!start && decoded.operands[memory].mem.base != ZYDIS_REGISTER_RIP) {
			/* Make it [rip+x] where the encoding allows. */
			bytes[decoded.instruction.raw.modrm.offset] &= 0x3f;
			bytes[decoded.instruction.raw.modrm.offset] &= 0xf8;
			bytes[decoded.instruction.raw.modrm.offset] |= 5;
			if (!decode(bytes, 15, &decoded) || memory_operand(&decoded) != memory ||
			        is_special(&decoded))
				continue;
		}

		const ZydisDecodedOperand *operand = &decoded.operands[memory];

		if (operand->mem.segment != ZYDIS_REGISTER_GS && operand->mem.base != ZYDIS_REGISTER_RIP)
			continue;
		if (operand->mem.type == ZYDIS_MEMOP_TYPE_VSIB && decoded.instruction.address_width == 32)
			continue;
		if (runs_natively(&decoded, operand))
			continue;
		*(operand->mem.segment == ZYDIS_REGISTER_GS ? &gs : &rip) += 1;
		request.max_instructions = 1;
		assert_int_equal(translate(&request, &translation), 0);
		if (!find_rewritten(&translation, &decoded, memory)) {
			char text[128] = "", *end = text;

			for (unsigned i = 0; i < decoded.instruction.length; i++)
				end += sprintf(end, "%02x ", bytes[i]);
			fail_msg("not found again: %s (%s)", text,
			        ZydisMnemonicGetString(decoded.instruction.mnemonic));
		}
		translation_free(&translation);
	}
	assert_true(gs > 10000);
	assert_true(rip > 10000);
}

/* Random bytes must never do harm: run with sanitizers. */
static void test_random_bytes(void **state)
{
	static uint8_t bytes[512];
	struct program program = {.pc = PC, .bytes = bytes, .size = sizeof(bytes)};

	(void)state;
	for (unsigned tries = 0; tries < 3000; tries++) {
		struct translate_request request = request_for(&program, tries & 1);
		struct translation translation;

		for (unsigned i = 0; i < sizeof(bytes); i += 8)
			memcpy(bytes + i, &(uint64_t){random_number()}, 8);
		request.pc = PC + random_number() % 64;
		request.max_instructions = random_number() % 200;
		request.self_check = random_number() & 1;
		request.xstate_mask = random_number() & 1 ? 7 : 0;
		assert_int_equal(translate(&request, &translation), 0);
		for (uint32_t i = 1; i < translation.record_count; i++)
			assert_true(translation.records[i - 1].offset < translation.records[i].offset);
		for (uint32_t i = 0; i < translation.site_count; i++) {
			const struct entry *entry = entry_for(&translation, translation.sites[i].target);

			assert_true(translation.sites[i].offset % 32 <= 28);
			assert_true(!entry == !!translation.sites[i].exit);
		}
		for (uint32_t i = 0; i < translation.entry_count; i++)
			assert_true(record_at(&translation, translation.entries[i].offset)->state &
			            RECORD_BOUNDARY);
		translation_free(&translation);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_verbatim),
	        cmocka_unit_test(test_rip_near),
	        cmocka_unit_test(test_rip_far),
	        cmocka_unit_test(test_branches),
	        cmocka_unit_test(test_patchable_fields),
	        cmocka_unit_test(test_call),
	        cmocka_unit_test(test_thunk_keeps_flags),
	        cmocka_unit_test(test_known_and_budget),
	        cmocka_unit_test(test_unreadable),
	        cmocka_unit_test(test_undecodable),
	        cmocka_unit_test(test_vsyscall),
	        cmocka_unit_test(test_emulated),
	        cmocka_unit_test(test_syscall),
	        cmocka_unit_test(test_pieces),
	        cmocka_unit_test(test_self_check),
	        cmocka_unit_test(test_rewriting),
	        cmocka_unit_test(test_random_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
