/*
 * String instructions while recording, against the CPU: every kind, size, prefix
 * and direction, overlapping, at the borders of pages, faulting, interrupted.
 */
#include "target_harness.h"
#include "target/strings.c"

#define CASES 12000

/* Prefixes in any order, then REX and the opcode. */
static void random_code(struct rng *rng)
{
	static const uint8_t opcodes[] = {0xa4, 0xa6, 0xaa, 0xac, 0xae};
	uint8_t opcode = opcodes[rng_below(rng, 5)];
	unsigned width = rng_below(rng, 4);

	case_size = 0;
	if (width == 1)
		case_code[case_size++] = 0x66;
	if (rng_chance(rng, 15))
		case_code[case_size++] = 0x67;
	if (rng_chance(rng, 70))
		case_code[case_size++] = rng_chance(rng, 50) ? 0xf3 : 0xf2;
	if (rng_chance(rng, 5))
		case_code[case_size++] = rng_chance(rng, 50) ? 0xf3 : 0xf2;
	if (!memchr(case_code, 0x67, case_size) && rng_chance(rng, 15))
		case_code[case_size++] = rng_chance(rng, 50) ? 0x64 : 0x65;
	if (case_size == 2 && rng_chance(rng, 50)) {
		uint8_t first = case_code[0];

		case_code[0] = case_code[1];
		case_code[1] = first;
	}
	if (width == 3)
		case_code[case_size++] = 0x48;
	case_code[case_size++] = opcode | (width > 0);
}

static uint64_t random_count(struct rng *rng)
{
	switch (rng_below(rng, 6)) {
	case 0:
		return 0;
	case 1:
		return rng_below(rng, 4);
	case 2:
		return rng_below(rng, 200);
	case 3:
		return rng_next(rng); /* until something else ends it */
	default:
		return rng_below(rng, 9000);
	}
}

static void random_state(struct rng *rng, struct registers *regs, unsigned argument)
{
	random_registers(rng, regs);
	regs->gpr[RSI] = arena_address(rng);
	regs->gpr[RDI] = arena_address(rng);
	if (rng_chance(rng, 40))
		regs->gpr[RDI] = regs->gpr[RSI] + rng_between(rng, -40, 40);
	else if (rng_chance(rng, 20))
		regs->gpr[RDI] = regs->gpr[RSI] + rng_between(rng, -5000, 5000);
	regs->gpr[RCX] = random_count(rng);
	if (rng_chance(rng, 40))
		regs->flags |= FLAG_DF;
	if (rng_chance(rng, 3))
		regs->flags |= FLAG_AC;
	if (rng_chance(rng, 60)) /* so that scas finds it everywhere, or but for a few places */
		memcpy(&regs->gpr[RAX], image_before.bytes, 8);
	if (rng_chance(rng, 2))
		regs->gpr[rng_chance(rng, 50) ? RSI : RDI] = rng_next(rng);
	if (STRING_SEGMENT(argument) == 1)
		regs->gpr[RSI] -= segment_base(&stub_thread, 1);
	native_gs = rng_next(rng) >> 18;
	stub_thread.slots[SLOT_PROGRAM_GS] = native_gs;
	if (STRING_SEGMENT(argument) == 2)
		regs->gpr[RSI] -= native_gs;
	if (STRING_ADDRESS32(argument)) {
		for (int i = 0; i < 3; i++) {
			static const uint8_t used[] = {RSI, RDI, RCX};

			if (rng_chance(rng, 50))
				regs->gpr[used[i]] = (uint32_t)regs->gpr[used[i]] | rng_next(rng) << 32;
		}
	}
}

static unsigned decoded_argument(void)
{
	struct instruction instruction;

	decode_instruction(&instruction, 0x1000, case_code, case_size, TRANSLATE_RECORD);
	if (instruction.length != case_size || instruction.kind != KIND_EMULATE ||
	        EMULATE_KIND(instruction.detail) != EMULATE_STRING ||
	        EMULATE_LENGTH(instruction.detail) != case_size)
		MISMATCH("not decoded as a string instruction");
	return EMULATE_ARGUMENT(instruction.detail);
}

/* Executes the instruction as the stub does, entering it again whenever it was left; true: it faulted. */
static bool emulate(const struct registers *regs, unsigned argument)
{
	volatile uint64_t entered = 0;

	stub_thread.regs = *regs;
	stub_thread.pending = 0;
	stub_position += 5;
	touched_address = 0;
	if (setjmp(stub_fault))
		return true;
	while (!emulate_string(&stub_thread, argument)) {
		if (!STRING_REPEAT(argument) || !stub_thread.iterations)
			MISMATCH("left without an iteration");
		if (STRING_REPEAT(argument) && !STRING_ADDRESS32(argument) &&
		        regs->gpr[RCX] - stub_thread.regs.gpr[RCX] != stub_thread.iterations)
			MISMATCH("%lu iterations, not so many", stub_thread.iterations);
		if (regs->flags & FLAG_TF && stub_thread.iterations != ++entered)
			MISMATCH("%lu iterations after %lu traps", stub_thread.iterations, entered);
		stub_thread.pending = 0;
	}
	return false;
}

/* Intel shows the flags from before the instruction when a comparison faults, AMD those of the last
 * iteration. */
static uint64_t shown_flags(unsigned argument, bool faulted)
{
	bool compares = STRING_KIND(argument) == STRING_CMPS || STRING_KIND(argument) == STRING_SCAS;

	return faulted && compares ? ~(uint64_t)STATUS_FLAGS : ~0ul;
}

/* Nobody else changes memory: the stub must leave what the CPU leaves, and fault as it does. */
static void compare_with_cpu(unsigned argument, const struct outcome *native)
{
	bool faulted = emulate(&case_regs, argument);
	uint64_t flags = shown_flags(argument, faulted);

	if (faulted != native->faulted)
		MISMATCH("faulted %d, not %d", faulted, native->faulted);
	compare_registers("stub", &native->regs, &stub_thread.regs, flags & ~FLAG_TF);
	compare_bytes("memory", image_native.bytes, arena + 4096);
	stub_thread.regs.flags &= ~FLAG_TF;
	if (!faulted)
		return;
	if (touched_address && touched_address != native->address)
		MISMATCH("fault at %#lx, not %#lx", touched_address, native->address);
	struct outcome again = native_run(&stub_thread.regs, case_code, case_size);

	if (!again.faulted || again.signal != native->signal || again.address != native->address ||
	        again.error != native->error)
		MISMATCH("fault at %#lx error %lx, not %#lx error %lx", again.address, again.error,
		        native->address, native->error);
	compare_registers("fault", &native->regs, &again.regs, flags);
}

static void compare_with_replay(unsigned argument, bool faulted)
{
	struct registers end = stub_thread.regs;
	struct outcome replayed = replay_run(&case_regs);

	if (replayed.faulted != faulted)
		MISMATCH("replay faulted %d, not %d", replayed.faulted, faulted);
	compare_registers("replay", &replayed.regs, &end, shown_flags(argument, faulted));
	compare_bytes("replay", arena + 4096, arena_shadow + 4096);
}

static void random_cases(void **state)
{
	unsigned faults = 0, kinds[5] = {0};

	(void)state;
	native_handlers();
	case_seed = seed_from("SEED", 1);
	for (case_number = seed_from("CASE", 0); case_number < seed_from("CASE", 0) + CASES; case_number++) {
		struct rng rng = rng_stream(case_seed, case_number);

		world = rng_stream(case_seed + 1000, case_number);
		world_changes = world_signals = 0;
		arena_fill(&rng);
		random_code(&rng);
		unsigned argument = decoded_argument();

		random_state(&rng, &case_regs, argument);
		struct outcome native = native_run(&case_regs, case_code, case_size);

		image_take(&image_native);
		image_put(&image_before);
		faults += native.faulted;
		kinds[STRING_KIND(argument)]++;
		if (rng_chance(&rng, 10) && case_regs.gpr[RCX] < 300)
			case_regs.flags |= FLAG_TF;
		world_signals = rng_chance(&rng, 30) ? 20 : 0;
		compare_with_cpu(argument, &native);
		case_regs.flags &= ~FLAG_TF;
		compare_with_replay(argument, native.faulted);

		/* The same once more, with other threads. */
		image_put(&image_before);
		memcpy(arena_shadow + 4096, shadow_before.bytes, ARENA_USABLE);
		patch_count = 0;
		world_changes = 60;
		bool faulted = emulate(&case_regs, argument);

		compare_with_replay(argument, faulted);
	}
	print_message("%u faulted; movs %u stos %u lods %u cmps %u scas %u\n", faults, kinds[0], kinds[1],
	        kinds[2], kinds[3], kinds[4]);
}

/* Left for a signal that is delivered, the log gets the number of iterations, once; what comes after begins
 * anew. */
static void iterations_are_taken_once(void **state)
{
	static const uint8_t code[] = {0xf3, 0xaa};
	struct rng rng = world = rng_stream(2, 0);

	(void)state;
	world_changes = 0;
	world_signals = 100;
	memcpy(case_code, code, case_size = sizeof code);
	arena_fill(&rng);
	random_registers(&rng, &case_regs);
	case_regs.gpr[RDI] = (uint64_t)arena + 4096;
	case_regs.gpr[RCX] = 8000;
	stub_thread.regs = case_regs;
	stub_thread.pending = 0;
	stub_position = 1001;
	assert_false(emulate_string(&stub_thread, decoded_argument()));

	uint64_t done = 8000 - stub_thread.regs.gpr[RCX];

	assert_true(done > 0);
	stub_position = 1000;
	stub_thread.regs.pc += 8; /* some other instruction at the same position: the handler's first */
	assert_int_equal(take_iterations(&stub_thread), 0);
	stub_thread.regs.pc -= 8;
	stub_thread.iterations = done;
	assert_int_equal(take_iterations(&stub_thread), done);
	assert_int_equal(take_iterations(&stub_thread), 0);
	stub_position = 1001;
	assert_false(emulate_string(&stub_thread, decoded_argument()));
	assert_int_equal(stub_thread.iterations, 8000 - done - stub_thread.regs.gpr[RCX]);
}

/* Large ones must be done in large pieces. */
static void pieces_are_pages(void **state)
{
	static const uint8_t codes[2][3] = {{0xf3, 0xa4}, {0xf3, 0x48, 0xab}};
	struct rng rng = world = rng_stream(3, 0);

	(void)state;
	world_changes = 0;
	world_signals = 100;
	for (int i = 0; i < 2; i++) {
		unsigned entries = 1;

		memcpy(case_code, codes[i], 3);
		case_size = 2 + i;
		arena_fill(&rng);
		random_registers(&rng, &case_regs);
		case_regs.gpr[RDI] = (uint64_t)arena + 4096 + 16;
		case_regs.gpr[RSI] = (uint64_t)arena + 4 * 4096;
		case_regs.gpr[RCX] = i ? 8176 / 8 : 8176;
		stub_thread.regs = case_regs;
		stub_position += 10;
		while (!emulate_string(&stub_thread, decoded_argument()))
			entries++;
		assert_true(entries <= (i ? 10 : 5));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(random_cases),
	        cmocka_unit_test(iterations_are_taken_once),
	        cmocka_unit_test(pieces_are_pages),
	};

	native_init();
	arena_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
