/*
 * Locked instructions while recording, and those that go the same way, against
 * the CPU: every kind, size and register, misaligned, across lines and pages, on
 * memory that cannot be written, and in a race.
 */
#include "target_harness.h"
#include "target/atomic.c"

/* Their order has its own test, target_order.c. */
void order_take(struct thread *thread, struct order_hold *hold, uint64_t address, uint64_t size)
{
	(void)thread;
	(void)hold;
	(void)address;
	(void)size;
}
void order_drop(const struct order_hold *hold)
{
	(void)hold;
}
void order_give(struct thread *thread, const struct order_hold *hold, uint64_t here)
{
	(void)thread;
	(void)hold;
	(void)here;
}
void log_make_room(struct thread *thread)
{
	(void)thread;
}

#define CASES 10000

static unsigned operand_bytes; /* of the case's operand in memory */
static bool address32;         /* it has a 67 prefix */

static void byte(unsigned value)
{
	case_code[case_size++] = value;
}

/* modrm and disp8 for [rdi + disp8] */
static void memory_operand(unsigned reg, int8_t displacement)
{
	byte(0x40 | (reg & 7) << 3 | RDI);
	byte((uint8_t)displacement);
}

struct form {
	uint8_t opcode[2];  /* 0f and the other one, or one and 0 */
	uint8_t extension;  /* the reg field; REGISTER: it is a register */
	uint8_t immediate;  /* bytes of it, 4: two with a 16-bit operand */
	bool sized, locked; /* the lowest bit of the opcode is set for words; may have a lock prefix */
	uint8_t fixed;      /* operand size, or 0: any */
};

#define REGISTER 8

static const struct form forms[] = {
        {{0x80}, 0, 1, true, true, 1},
        {{0x81}, 0, 4, false, true, 0},
        {{0x83}, 0, 1, false, true, 0},
        {{0x00}, REGISTER, 0, true, true, 0},
        {{0x08}, REGISTER, 0, true, true, 0},
        {{0x10}, REGISTER, 0, true, true, 0},
        {{0x18}, REGISTER, 0, true, true, 0},
        {{0x20}, REGISTER, 0, true, true, 0},
        {{0x28}, REGISTER, 0, true, true, 0},
        {{0x30}, REGISTER, 0, true, true, 0},
        {{0xfe}, 0, 0, true, true, 0},
        {{0xfe}, 1, 0, true, true, 0},
        {{0xf6}, 2, 0, true, true, 0},
        {{0xf6}, 3, 0, true, true, 0},
        {{0x86}, REGISTER, 0, true, false, 0},
        {{0x86}, REGISTER, 0, true, true, 0},
        {{0x0f, 0xc0}, REGISTER, 0, true, false, 0},
        {{0x0f, 0xc0}, REGISTER, 0, true, true, 0},
        {{0x0f, 0xb0}, REGISTER, 0, true, false, 0},
        {{0x0f, 0xb0}, REGISTER, 0, true, true, 0},
        {{0x0f, 0xb0}, REGISTER, 0, true, true, 0},
        {{0x0f, 0xc7}, 1, 0, false, true, 8},
        {{0x0f, 0xc7}, 1, 0, false, false, 8},
        {{0x0f, 0xc7}, 1, 0, false, true, 16},
        {{0x0f, 0xc7}, 1, 0, false, false, 16},
        {{0x0f, 0xa3}, REGISTER, 0, false, false, 0},
        {{0x0f, 0xab}, REGISTER, 0, false, true, 0},
        {{0x0f, 0xab}, REGISTER, 0, false, false, 0},
        {{0x0f, 0xb3}, REGISTER, 0, false, true, 0},
        {{0x0f, 0xbb}, REGISTER, 0, false, true, 0},
        {{0x0f, 0xba}, 5, 1, false, true, 0},
        {{0x0f, 0xba}, 6, 1, false, true, 0},
        {{0x0f, 0xba}, 7, 1, false, true, 0},
};

static bool is_wide_form(const struct form *form)
{
	return form->opcode[0] == 0x0f && form->opcode[1] == 0xc7;
}

static void random_code(struct rng *rng, const struct form *form, int8_t displacement)
{
	static const uint8_t sizes[] = {1, 2, 4, 8};
	unsigned reg = form->extension, rex = 0, size = form->fixed;
	bool arithmetic = (form->opcode[0] & 0xfc) == 0x80;

	if (!size)
		size = sizes[rng_between(rng, form->sized ? 0 : 1, 3)];
	if (arithmetic)
		reg = rng_below(rng, 7);
	if (reg == REGISTER) {
		do {
			reg = rng_below(rng, 16);
			rex = rng_chance(rng, 30) ? 0x40 : 0;
		} while (reg == RSP && (size > 1 || rex)); /* the test's own */
		rex |= reg >> 3 ? 0x44 : 0;
	}
	if (size == (is_wide_form(form) ? 16 : 8))
		rex |= 0x48;
	case_size = 0;
	operand_bytes = size;
	if (size == 2)
		byte(0x66);
	if (form->locked)
		byte(0xf0);
	address32 = rng_chance(rng, 10);
	if (address32)
		byte(0x67);
	if (rex)
		byte(rex);
	byte(form->opcode[0] | (form->opcode[0] != 0x0f && form->sized && size > 1));
	if (form->opcode[0] == 0x0f)
		byte(form->opcode[1] | (form->sized && size > 1));
	memory_operand(reg, displacement);
	for (unsigned n = form->immediate == 4 && size == 2 ? 2 : form->immediate; n; n--)
		byte(rng_chance(rng, 20) ? 0xff : rng_next(rng));
}

/* Registers that make comparisons succeed, and bits that lead somewhere. */
static void random_state(
        struct rng *rng, struct registers *regs, const struct form *form, int8_t displacement)
{
	uint64_t address = arena_address(rng), old[2];

	random_registers(rng, regs);
	if (rng_chance(rng, 70))
		address &= -(uint64_t)operand_bytes;
	if (page_readable(address) && page_readable(address + 15)) {
		memcpy(old, (void *)address, 16);
		if (rng_chance(rng, 50)) {
			uint64_t mask = operand_bytes >= 8 ? ~0ul : (1ul << 8 * operand_bytes) - 1;

			regs->gpr[RAX] = (regs->gpr[RAX] & ~mask) | (old[0] & mask);
			if (is_wide_form(form)) {
				uint64_t half = operand_bytes == 16 ? ~0ul : UINT32_MAX;

				regs->gpr[RAX] = (old[0] & half) | (regs->gpr[RAX] & ~half);
				regs->gpr[RDX] =
				        operand_bytes == 16 ? old[1] : old[0] >> 32 | regs->gpr[RDX] << 32;
			}
		}
	}
	for (int i = 0; i < 16; i++) {
		if (form->extension == REGISTER && rng_chance(rng, 40))
			regs->gpr[i] = rng_between(rng, -20000, 20000);
	}
	if (rng_chance(rng, 1))
		address = rng_next(rng);
	regs->gpr[RSP] = 0;
	regs->gpr[RDI] = address - displacement;
	if (address32)
		regs->gpr[RDI] = (uint32_t)regs->gpr[RDI] | rng_next(rng) << 32;
	if (rng_chance(rng, 3))
		regs->flags |= FLAG_AC;
}

static unsigned decode(struct instruction *instruction)
{
	decode_instruction(instruction, 0x1000, case_code, case_size, TRANSLATE_RECORD);
	if (instruction->length != case_size || instruction->kind != KIND_EMULATE ||
	        EMULATE_KIND(instruction->detail) != EMULATE_ATOMIC ||
	        EMULATE_LENGTH(instruction->detail) != case_size || !instruction->is_memory)
		MISMATCH("not decoded as an atomic instruction");
	return EMULATE_ARGUMENT(instruction->detail);
}

/* As translated code hands it over; true: it faulted. */
static bool emulate(const struct registers *regs, const struct instruction *instruction, int8_t displacement)
{
	uint64_t address = regs->gpr[RDI] + displacement;

	stub_thread.regs = *regs;
	stub_thread.slots[SLOT_ADDRESS] = address32 ? (uint32_t)address : address;
	stub_thread.slots[SLOT_SCRATCH_B] = instruction->number;
	if (setjmp(stub_fault))
		return true;
	emulate_atomic(&stub_thread, EMULATE_ARGUMENT(instruction->detail));
	return false;
}

static void compare_with_cpu(
        const struct instruction *instruction, const struct outcome *native, int8_t displacement)
{
	bool faulted = emulate(&case_regs, instruction, displacement);

	if (faulted != native->faulted)
		MISMATCH("faulted %d, not %d", faulted, native->faulted);
	compare_registers("stub", &native->regs, &stub_thread.regs, ~0ul);
	compare_bytes("memory", image_native.bytes, arena + 4096);
}

static void compare_with_replay(bool faulted)
{
	struct registers end = stub_thread.regs;
	struct outcome replayed = replay_run(&case_regs);

	if (replayed.faulted != faulted)
		MISMATCH("replay faulted %d, not %d", replayed.faulted, faulted);
	compare_registers("replay", &replayed.regs, &end, ~0ul);
	compare_bytes("replay", arena + 4096, arena_shadow + 4096);
}

static void random_case(struct rng *rng, const struct form *form, unsigned *faults)
{
	int8_t displacement = rng_between(rng, -128, 127);
	struct instruction instruction;

	random_code(rng, form, displacement);
	decode(&instruction);
	random_state(rng, &case_regs, form, displacement);
	struct outcome native = native_run(&case_regs, case_code, case_size);

	image_take(&image_native);
	image_put(&image_before);
	*faults += native.faulted;
	world_changes = 0;
	compare_with_cpu(&instruction, &native, displacement);
	compare_with_replay(native.faulted);

	/* The same once more, with other threads. */
	image_put(&image_before);
	memcpy(arena_shadow + 4096, shadow_before.bytes, ARENA_USABLE);
	patch_count = 0;
	world_changes = 50;
	compare_with_replay(emulate(&case_regs, &instruction, displacement));
}

static void random_cases(void **state)
{
	unsigned faults = 0;

	(void)state;
	native_handlers();
	case_seed = seed_from("SEED", 1);
	for (case_number = seed_from("CASE", 0); case_number < seed_from("CASE", 0) + CASES; case_number++) {
		struct rng rng = rng_stream(case_seed, case_number);

		world = rng_stream(case_seed + 1000, case_number);
		arena_fill(&rng);
		random_case(&rng, &forms[case_number % (sizeof forms / sizeof forms[0])], &faults);
	}
	print_message("%u of %u faulted\n", faults, CASES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_cases)};

	native_init();
	arena_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
