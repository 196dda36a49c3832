/*
 * Translation for replay: a run is stopped at every position in turn, and must be there
 * what it is natively after so many single steps: registers, flags that the program may
 * read, and memory. What the log has is taken from the native run, as recording would.
 */
#include "translate_harness.h"

/* clang-format off */
__asm__(
".intel_syntax noprefix\n"
".text\n"

"replay_straight:\n"
"	add rax, rbx; adc rcx, 5; mov [rdi], rax; xor edx, edx; mov r8, [rdi]; inc r8\n"
"	mov [rsp-16], r9; mov r10, [rsp-16]; sbb r11, r12; lea r13, [rax+rbx*4+8]; ret\n"

"replay_branches:\n"
"	mov ecx, 10; xor eax, eax\n"
"1:	add rax, rcx; test cl, 1; jz 2f; add rax, 100; jmp 3f\n"
"2:	sub rax, 1; cmp rax, 300; ja 4f\n"
"3:	dec ecx; jnz 1b\n"
"4:	setc dl; ret\n"

/* Flags that live across blocks, loops that look at rcx, branches into the middle of a run of instructions. */
"replay_flags:\n"
"	stc; mov ecx, 4\n"
"1:	adc rax, rbx; inc edx; loop 1b\n"
"	jnc 2f; lea rax, [rax+1]\n"
"2:	seto r8b; jo 3f; mov r9, rax; jmp 4f\n"
"3:	lea r9, [rax+rax]\n"
"4:	lahf; mov r10, rax; jrcxz 5f; ud2\n"
"5:	lea rsi, [rsi+1]; cmp rsi, rdi; cmovb r11, r10; sbb r12, r12; ret\n"

"replay_calls:\n"
"	mov ecx, 5; call 1f; lea rdx, [rip+2f]; call rdx; mov [rsp-8], rdx; call [rsp-8]; mov rbx, rax; ret\n"
"1:	cmp ecx, 1; jbe 3f; push rcx; dec ecx; call 1b; pop rcx; imul rax, rcx; ret\n"
"3:	mov eax, 1; ret\n"
"2:	add rax, 17; push 1; push 2; push 3; call 4f; ret\n"
"4:	lea rax, [rax+2]; ret 24\n"

"replay_strings:\n"
"	mov r8, rdi; mov ecx, 33; cld; rep stosb; mov rdi, r8; add rdi, 64; mov ecx, 9; rep movsq\n"
"	mov rdi, r8; xor eax, eax; mov ecx, 100; repne scasb; xor ecx, ecx; rep stosd; ret\n"

/* Longer than what is counted by one byte, and longer than a region is. */
"replay_long:\n"
"	.rept 300\n	lea rax, [rax+rbx]\n	adc rdx, 1\n	.endr\n	ret\n"

"replay_loops:\n"
"	mov r8d, 400; xor eax, eax\n"
"1:	mov ecx, 9; test r8b, 3; jz 4f\n"
"2:	add rax, rcx; test al, 1; jz 3f; lea rax, [rax+rax*2]; cmp rax, rbx; jb 3f; ror rax, 7\n"
"3:	dec ecx; jnz 2b\n"
"4:	call 5f; sub r8d, 1; jnz 1b; ret\n"
"5:	cmp r8d, 200; ja 6f; inc rdx; ret\n"
"6:	add rdx, 3; ret\n"

"replay_clock:\n"
"	mov rbx, 1; rdtsc; mov r8, rax; shl rdx, 32; or r8, rdx; rdtsc; sub rax, r8; mov ecx, 0; xgetbv; mov r9, rax; ret\n"

"replay_images:\n"
"	fld1; fldpi; fnstenv [rsi]; fxsave64 [rsi+64]; mov eax, 7; xor edx, edx; fstp st(0); fnsave [rsi+640]; fninit; fld1; ret\n"
".att_syntax\n");
/* clang-format on */

extern const char replay_straight[], replay_branches[], replay_flags[], replay_calls[], replay_strings[],
        replay_long[], replay_loops[], replay_clock[], replay_images[];

static struct trace native;

/* The native run, step by step. */
static void trace_natively(const struct cpu *start)
{
	struct cpu cpu = *start;

	trace_install();
	native = (struct trace){.steps = malloc(TRACE_MAX * sizeof *native.steps)};
	trace_into = &native;
	cpu.flags |= TRAP_FLAG;
	harness_run_native(&cpu, 0);
	trace_into = NULL;
	assert_true(native.count < TRACE_MAX);
}

/* Code for `count` instructions, or for the rest of the block. */
static uint64_t exact_code(struct harness *harness, uint64_t pc, unsigned count)
{
	struct translate_request request = harness->request;
	struct translation translation;

	request.pc = pc;
	request.exact = count;
	assert_int_equal(translate(&request, &translation), 0);
	assert_true(translation.instruction_count <= count);
	const struct placed *placed = harness_place(harness, &translation);
	return (uint64_t)placed->code + translation.entries[0].offset;
}

/* What the log would have for the instruction at cpu->pc: what it left natively. */
static void from_the_log(struct cpu *cpu, int64_t *slot, int64_t stop)
{
	int64_t position = stop + *slot;

	*cpu = native.steps[position];
	cpu->flags &= ~(uint64_t)TRAP_FLAG;
}

static void leave_code(struct harness *harness, struct cpu *cpu)
{
	const uint64_t *slots = harness_slots(harness);

	*cpu = harness_cpu;
	cpu->pc = cpu->regs[1];
	cpu->regs[1] = slots[SLOT_RCX];
	if (harness_left == LEFT_MISS)
		cpu->regs[11] = slots[SLOT_R11];
}

/* Runs until exactly `stop` instructions have been executed. */
static void run_to(struct harness *harness, struct cpu *cpu, int64_t stop)
{
	int64_t *slot = (int64_t *)&harness_slots(harness)[SLOT_POSITION];
	uint64_t code = 0;

	*slot = -stop;
	while (*slot < 0 || code) {
		harness_cpu = *cpu;
		harness_cpu.pc = code ? code : harness_code_for(harness, cpu->pc);
		code = 0;
		harness_enter();
		leave_code(harness, cpu);
		assert_true(*slot <= 0 || harness_left == LEFT_STOP);
		if (harness_left == LEFT_POSITION && *slot < 0)
			code = exact_code(harness, cpu->pc, (unsigned)-*slot);
		else if (harness_left == LEFT_MISS && harness->link)
			harness_chain(harness, cpu->pc);
		else if (harness_left == LEFT_EMULATE &&
		         EMULATE_KIND(harness_slots(harness)[SLOT_DETAIL]) == EMULATE_FIX_X87_PC)
			cpu->pc += EMULATE_LENGTH(harness_slots(harness)[SLOT_DETAIL]);
		else if (harness_left == LEFT_EMULATE)
			from_the_log(cpu, slot, stop);
	}
	assert_int_equal(*slot, 0);
}

/* At each position, from the start; with code kept from one run to the next and without. */
static void check_regions(const char *code, bool keep_flags, unsigned every, unsigned max_instructions)
{
	struct harness harness;
	struct cpu start;
	char difference[512];

	program_fill();
	program_start(&start, code);
	memcpy(&program_initial, &program_memory, sizeof program_memory);
	trace_natively(&start);
	for (unsigned linked = 0; linked < 2; linked++) {
		harness_init(&harness, code);
		harness.request.mode = TRANSLATE_REPLAY;
		harness.request.keep_flags = &keep_flags;
		harness.request.max_instructions = max_instructions;
		harness.link = linked;
		/* steps[0] is the state before the first instruction, the last one that at the end. */
		for (uint32_t position = 0; position < native.count; position += every) {
			struct cpu cpu = start, expected = native.steps[position];

			memcpy(&program_memory, &program_initial, sizeof program_memory);
			run_to(&harness, &cpu, position);
			if (!keep_flags)
				cpu.flags = expected.flags;
			cpu_describe(difference, sizeof difference, &cpu, &expected);
			if (!cpu_equal(&cpu, &expected))
				fail_msg("position %u: %s", position, difference);
		}
		harness_deinit(&harness);
	}
	memcpy(&program_memory, &program_initial, sizeof program_memory);
	free(native.steps);
}

static void check_positions(const char *code, bool keep_flags, unsigned every)
{
	check_regions(code, keep_flags, every, 128);
}

static void check_all(const char *code, unsigned every)
{
	check_positions(code, true, every);
	check_positions(code, false, every);
}

static void test_straight(void **state)
{
	(void)state;
	check_all(replay_straight, 1);
}

static void test_branches(void **state)
{
	(void)state;
	check_all(replay_branches, 1);
}

static void test_flags(void **state)
{
	(void)state;
	check_all(replay_flags, 1);
}

/* Flags that are read in another region than the one that wrote them, and flags that are not. */
static void test_small_regions(void **state)
{
	(void)state;
	for (unsigned size = 1; size < 8; size++) {
		check_regions(replay_flags, false, 1, size);
		check_regions(replay_branches, false, 1, size);
		check_regions(replay_calls, false, 1, size);
	}
}

static void test_calls(void **state)
{
	(void)state;
	check_all(replay_calls, 1);
}

static void test_long(void **state)
{
	(void)state;
	check_all(replay_long, 7);
}

#define COUNTERS    64 /* their first slot */
#define SHARES_LEFT 400

static int64_t spread_left(struct harness *harness, bool share)
{
	int64_t *counters = (int64_t *)harness_slots(harness) + COUNTERS, left = 0;

	for (unsigned k = 0; k < REPLAY_POSITION_SLOTS; k++) {
		assert_true(counters[k] <= 0);
		left -= counters[k];
	}
	for (unsigned k = 0; share && k < REPLAY_POSITION_SLOTS; k++)
		counters[k] = -(left / REPLAY_POSITION_SLOTS) - (k < left % REPLAY_POSITION_SLOTS);
	return left;
}

/* Who stops says which counter had too little, and how much it wants. */
static void check_stop_detail(struct harness *harness)
{
	const uint64_t *slots = harness_slots(harness);
	uint64_t detail = slots[SLOT_DETAIL];

	assert_true(STOP_COUNTER(detail) < REPLAY_POSITION_SLOTS);
	assert_true((int64_t)slots[COUNTERS + STOP_COUNTER(detail)] + (int64_t)STOP_LONGEST(detail) > 0);
}

/* With counters that have a share of the way each: none is ever used beyond its share, and none is forgotten.
 */
static void test_spread(void **state)
{
	struct harness harness;
	struct cpu cpu;
	unsigned stops = 0;

	(void)state;
	program_fill();
	program_start(&cpu, replay_loops);
	struct cpu start = cpu;
	trace_natively(&start);
	assert_true(native.count > 30 * SHARES_LEFT);
	harness_init(&harness, replay_loops);
	harness.request.mode = TRANSLATE_REPLAY;
	harness.request.counter = COUNTERS;
	harness_slots(&harness)[COUNTERS] = -(uint64_t)(native.count - 1);
	spread_left(&harness, true);
	while (spread_left(&harness, false) > SHARES_LEFT) {
		harness_cpu = cpu;
		harness_cpu.pc = harness_code_for(&harness, cpu.pc);
		harness_enter();
		leave_code(&harness, &cpu);
		if (harness_left == LEFT_MISS)
			harness_chain(&harness, cpu.pc);

		struct cpu expected = native.steps[native.count - 1 - spread_left(&harness, false)];
		char difference[512];
		cpu_describe(difference, sizeof difference, &cpu, &expected);
		cpu.flags = expected.flags &= ~(uint64_t)TRAP_FLAG; /* those that the program does not read */
		if (!cpu_equal(&cpu, &expected))
			fail_msg("left %ld: %s", spread_left(&harness, false), difference);
		stops += harness_left == LEFT_POSITION;
		if (harness_left == LEFT_POSITION)
			check_stop_detail(&harness);
		spread_left(&harness, harness_left == LEFT_POSITION);
	}
	assert_true(stops > 3);
	harness_deinit(&harness);
	free(native.steps);
}

/* A rep instruction is one instruction, however often it is repeated: natively each iteration is a step. */
static void test_strings(void **state)
{
	struct harness harness;
	struct cpu cpu, last;
	uint32_t instructions = 0;
	bool keep = true;

	(void)state;
	program_fill();
	program_start(&cpu, replay_strings);
	memcpy(&program_initial, &program_memory, sizeof program_memory);
	trace_natively(&cpu);
	memcpy(&program_after, &program_memory, sizeof program_memory);
	memcpy(&program_memory, &program_initial, sizeof program_memory);
	for (uint32_t i = 1; i < native.count; i++)
		instructions += native.steps[i].pc != native.steps[i - 1].pc;
	last = native.steps[native.count - 1];
	harness_init(&harness, replay_strings);
	harness.request.mode = TRANSLATE_REPLAY;
	harness.request.keep_flags = &keep;
	run_to(&harness, &cpu, instructions);
	assert_true(cpu_equal(&cpu, &last));
	assert_memory_equal(&program_memory, &program_after, sizeof program_memory);
	harness_deinit(&harness);
	free(native.steps);
}

/* What no second run would give comes from the log: the program never sees our clock. */
static void test_clock(void **state)
{
	(void)state;
	check_positions(replay_clock, true, 1);
}

/* xsave and its kind do what they do to the x87 unit, and leave the program's memory alone. */
static void test_images(void **state)
{
	struct harness harness;
	struct cpu cpu;
	bool keep = false;

	(void)state;
	program_fill();
	program_start(&cpu, replay_images);
	memcpy(&program_initial, &program_memory, sizeof program_memory);
	harness_init(&harness, replay_images);
	harness.request.mode = TRANSLATE_REPLAY;
	harness.request.keep_flags = &keep;
	run_to(&harness, &cpu, 11);
	assert_int_equal(cpu.pc, (uint64_t)harness_leave_stop);
	assert_memory_equal(program_memory.data, program_initial.data, sizeof program_memory.data);
	/* fnsave and fninit have emptied it, and one was pushed: the tag word says so. */
	assert_int_equal(harness_vectors[4], 0x80);
	harness_deinit(&harness);
}

/* Just so many, or up to the end of the block. */
static void test_exact(void **state)
{
	static const struct {
		unsigned wanted, made;
	} cases[] = {{1, 1}, {5, 5}, {10, 10}, {11, 11}, {12, 11}, {500, 11}};
	struct harness harness;

	(void)state;
	harness_init(&harness, replay_straight);
	harness.request.mode = TRANSLATE_REPLAY;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct translate_request request = harness.request;
		struct translation translation;

		request.pc = (uint64_t)replay_straight;
		request.exact = cases[i].wanted;
		assert_int_equal(translate(&request, &translation), 0);
		assert_int_equal(translation.instruction_count, cases[i].made);
		assert_int_equal(translation.entry_count, 1);
		translation_free(&translation);
	}
	harness_deinit(&harness);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_straight),
	        cmocka_unit_test(test_branches),
	        cmocka_unit_test(test_flags),
	        cmocka_unit_test(test_small_regions),
	        cmocka_unit_test(test_calls),
	        cmocka_unit_test(test_long),
	        cmocka_unit_test(test_spread),
	        cmocka_unit_test(test_strings),
	        cmocka_unit_test(test_clock),
	        cmocka_unit_test(test_images),
	        cmocka_unit_test(test_exact),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
