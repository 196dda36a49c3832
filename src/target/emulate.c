/*
 * Instructions that the stub performs for the program: those that would show
 * the program our machine instead of its own, or that would take the processor
 * out of our hands.
 */
#include "target/flags.h"
#include "target/stub.h"

#include "../../include/bugnet/bugnet.h"

#define CODE_SELECTOR       0x33
#define COMPATIBLE_SELECTOR 0x20 /* without its privilege */
#define SELECTOR_LOCAL      4    /* in the local descriptor table */

static void emulate_cpuid(struct registers *regs)
{
	struct cpuid r = offered_cpuid(regs->gpr[RAX], regs->gpr[RCX]);

	regs->gpr[RAX] = r.a;
	regs->gpr[RBX] = r.b;
	regs->gpr[RCX] = r.c;
	regs->gpr[RDX] = r.d;
}

/* bugnet_save() of include/bugnet/bugnet.h: to a processor it is a leaf that it does not have. */
static bool save_by_cpuid(struct thread *thread)
{
	struct registers *regs = &thread->regs;

	if ((uint32_t)regs->gpr[RAX] != BUGNET_LEAF || (uint32_t)regs->gpr[RCX] != BUGNET_LEAF_SAVE ||
	        !recording() || !thread->log)
		return false;
	surface(thread);
	bool saved = ask(thread, OP_SAVE, SAVE_PROGRAM, regs->gpr[RDI], 0) == STATUS_OK;
	regs->gpr[RAX] = BUGNET_LEAF;
	regs->gpr[RBX] = BUGNET_SIGNATURE;
	regs->gpr[RCX] = saved;
	regs->gpr[RDX] = 0;
	return true;
}

static void emulate_xgetbv(struct thread *thread)
{
	struct registers *regs = &thread->regs;
	uint32_t index = regs->gpr[RCX];

	if (index > 1)
		fault_natively(thread);
	uint64_t value = offered_xgetbv(index);
	regs->gpr[RAX] = (uint32_t)value;
	regs->gpr[RDX] = value >> 32;
}

/* The flags a program may change: all but IOPL, IF, VM, RF. */
#define FLAGS_WRITABLE 0x244dd5ul

static void emulate_popf(struct thread *thread, unsigned size)
{
	struct registers *regs = &thread->regs;
	uint64_t value = 0, writable = size == 2 ? FLAGS_WRITABLE & 0xffff : FLAGS_WRITABLE;

	/* What is traced is trapped behind it even when it switches that off. */
	if (regs->flags & FLAG_TF)
		step_natively(thread);
	check_alignment(thread, regs->gpr[RSP], size);
	if (load_program(thread, &value, regs->gpr[RSP], size) < 0)
		fault_natively(thread);
	regs->gpr[RSP] += size;
	regs->flags = (regs->flags & ~writable & ~FLAG_RF) | (value & writable) | 2;
}

#define FLAGS_NOT_PUSHED 0x30000ul /* RF, VM */

static void emulate_pushf(struct thread *thread, unsigned size)
{
	struct registers *regs = &thread->regs;
	uint64_t value = regs->flags & ~FLAGS_NOT_PUSHED;

	check_alignment(thread, regs->gpr[RSP] - size, size);
	if (store_program(thread, regs->gpr[RSP] - size, &value, size) < 0)
		fault_natively(thread);
	regs->gpr[RSP] -= size;
}

static void emulate_gs_base(struct thread *thread, bool write, unsigned argument)
{
	uint64_t *reg = &thread->regs.gpr[argument & 15];
	bool wide = argument >> 4 == 8;

	if (!write) {
		*reg = wide ? thread->slots[SLOT_PROGRAM_GS] : (uint32_t)thread->slots[SLOT_PROGRAM_GS];
		return;
	}
	uint64_t base = wide ? *reg : (uint32_t)*reg;
	if ((int64_t)(base << 16) >> 16 != (int64_t)base)
		fault_natively(thread);
	set_program_gs(thread, base);
}

/*
 * The kernel runs the functions of the vsyscall page when they are called, and
 * kills by SIGSEGV where a system call would say EFAULT. Called from here it
 * comes back to us; a call that fails is made again as the program made it.
 */
static void emulate_vsyscall(struct thread *thread)
{
	struct registers *regs = &thread->regs;
	uint64_t caller;

	if (load_program(thread, &caller, regs->gpr[RSP], 8) < 0)
		fault_natively(thread);
	thread->probing = PROBE_VSYSCALL;
	long result = call_vsyscall();
	if (result == -1 && process()->watches) {
		unwatch_range(thread, 0, -1ul);
		result = call_vsyscall();
	}
	thread->probing = PROBE_NONE;
	if (result == -1)
		fault_natively(thread);
	regs->gpr[RAX] = result;
	regs->gpr[RSP] += 8;
	regs->pc = caller;
	log_state(thread, position(thread) - 1, STATE_OF_INSTRUCTION, NULL);
}

/* Where the last-instruction pointer and the opcode are in an image, and how wide the pointer is. */
static const struct x87_image {
	uint8_t pointer, size, opcode;
} x87_images[] = {
        [X87_IMAGE_ENV32] = {12, 4, 18},
        [X87_IMAGE_FX32] = {8, 4, 6},
        [X87_IMAGE_FX64] = {8, 8, 6},
};

/* The 11 bits by which the x87 unit remembers an instruction; -1: it is none of its own. */
static int x87_opcode(const uint8_t code[16])
{
	unsigned i = 0;

	while (i < 14 && is_prefix(code[i]))
		i++;
	return (code[i] & 0xf8) == 0xd8 ? (code[i] & 7) << 8 | code[i + 1] : -1;
}

/*
 * The opcode that the x87 unit remembers: the program's, not that of a rewritten
 * operand. A CPU may remember none together with the pointer, or an older one:
 * only that of the instruction in the cache is ours to mend.
 */
void fix_x87_opcode(uint64_t at, uint64_t cached, uint64_t pc)
{
	uint8_t code[16] = {0};
	uint16_t opcode;

	for (unsigned n = 0; n < sizeof code && read_program(&code[n], pc + n, 1) == 0; n++)
		if (x87_opcode(code) >= 0 && n && !is_prefix(code[n - 1]))
			break;
	int wanted = x87_opcode(code);
	if (wanted < 0 || read_program(&opcode, at, 2) < 0 ||
	        (opcode & 0x7ff) != x87_opcode((const uint8_t *)cached))
		return;
	opcode = (opcode & 0xf800) | wanted;
	write_program(at, &opcode, 2);
}

/*
 * The address of the operand that the x87 unit remembers, in an image of 64 bits: that of the shadow, which
 * has one bit more where it is folded. Nothing else is mapped so far from where the kernel puts things.
 */
void fix_x87_data(uint64_t at)
{
	uint64_t fold = 1ul << FOLD_BIT, data;

	if (!recording() || !info()->low_memory || read_program(&data, at, 8) < 0 || data - fold >= LOW_END)
		return;
	data -= fold;
	write_program(at, &data, 8);
}

/* 32 bits of an address in the code cache stand for the only place there that ends so. */
static bool program_pc_of_low(uint32_t pointer, uint64_t *cached, uint64_t *pc)
{
	struct process *p = process();

	for (uint32_t i = 0; i < p->segment_count; i++) {
		uint64_t code = p->segments[i].base + p->segments[i].code;
		uint64_t address = (code & ~0xfffffffful) | pointer;
		if (address < code)
			address += 1ul << 32;
		if (program_pc_of(address, pc)) {
			*cached = address;
			return true;
		}
	}
	return false;
}

/*
 * The x87 unit remembers where its last instruction was: in the code cache.
 * Where that pointer was just stored for the program to see, put the program's
 * own address instead.
 */
static void fix_x87_pc(struct thread *thread, unsigned kind)
{
	const struct x87_image *image = &x87_images[kind & X87_IMAGE_KIND];
	uint64_t at = thread->slots[SLOT_ADDRESS], pointer = 0, pc;
	bool found;

	if (read_program(&pointer, at + image->pointer, image->size) < 0 || pointer == 0)
		return;
	if (image->size == 8)
		found = program_pc_of(pointer, &pc);
	else
		found = program_pc_of_low(pointer, &pointer, &pc);
	if (!found)
		return;
	write_program(at + image->pointer, &pc, image->size);
	fix_x87_opcode(at + image->opcode, pointer, pc);
	if (image->size == 8)
		fix_x87_data(at + image->pointer + 8);
}

/*
 * The image is made here, because 16 bits of a code-cache address tell nothing.
 * fnstenv in its wider form leaves everything but the exception masks alone.
 */
static void emulate_x87_env16(struct thread *thread, bool save)
{
	struct {
		uint8_t bytes[94];
	} image;
	struct {
		uint32_t control, rest[6];
	} environment;
	uint64_t cached, pc, at = thread->slots[SLOT_ADDRESS];
	size_t size = save ? 94 : 14;

	check_alignment(thread, at, 2);
	if (read_program(&image, at, size) < 0 || write_program(at, &image, size) < 0)
		fault_natively(thread);
	__asm__ volatile("fnstenv %0; fldcw %0" : "=m"(environment));
	if (save)
		__asm__ volatile("data16 fnsave %0" : "=m"(image));
	else
		__asm__ volatile("data16 fnstenv %0" : "=m"(image));
	if (environment.rest[2] && program_pc_of_low(environment.rest[2], &cached, &pc))
		memcpy(&image.bytes[6], &pc, 2);
	renew_fpstate(thread);
	write_program(at, &image, size);
}

/*
 * Only to the kernel's 32-bit code segment or one of the program's own table can
 * a transfer succeed and leave 64-bit mode, which is not ours to translate: the
 * thread goes on natively. All others fault.
 */
static _Noreturn void leave_64_bit(struct thread *thread, uint16_t selector)
{
	if ((selector & ~3) == COMPATIBLE_SELECTOR || (selector & SELECTOR_LOCAL))
		release(thread);
	fault_natively(thread);
}

/* Far transfers. To the 64-bit code segment they are plain branches. */
static void emulate_far(struct thread *thread, unsigned argument)
{
	struct registers *regs = &thread->regs;
	unsigned kind = argument & 15, size = argument >> 4 & 15;
	uint64_t words[5] = {0}, address = thread->slots[SLOT_ADDRESS];
	bool natively = regs->flags & (FLAG_TF | FLAG_NT | FLAG_AC); /* the CPU knows what these mean here */

	if (kind == FAR_RET || kind == FAR_IRET) {
		unsigned count = kind == FAR_RET ? 2 : 5;
		for (unsigned i = 0; i < count; i++) {
			if (load_program(thread, &words[i], regs->gpr[RSP] + i * size, size) < 0)
				fault_natively(thread);
		}
		if ((uint16_t)words[1] != CODE_SELECTOR)
			leave_64_bit(thread, words[1]);
		if (natively)
			step_natively(thread);
		regs->pc = words[0];
		if (kind == FAR_RET) {
			regs->gpr[RSP] += 2 * size + address;
		} else {
			regs->flags = (regs->flags & ~FLAGS_WRITABLE) | (words[2] & FLAGS_WRITABLE) | 2;
			regs->gpr[RSP] = words[3];
		}
		return;
	}
	if (load_program(thread, &words[0], address, size) < 0 ||
	        load_program(thread, &words[1], address + size, 2) < 0)
		fault_natively(thread);
	if ((uint16_t)words[1] != CODE_SELECTOR)
		leave_64_bit(thread, words[1]);
	if (natively)
		step_natively(thread);
	if (kind == FAR_CALL) {
		uint64_t back[2] = {regs->pc + EMULATE_LENGTH(thread->slots[SLOT_DETAIL]), CODE_SELECTOR};
		for (unsigned i = 0; i < 2; i++) {
			if (store_program(thread, regs->gpr[RSP] - (2 - i) * size, &back[i], size) < 0)
				fault_natively(thread);
		}
		regs->gpr[RSP] -= 2 * size;
	}
	regs->pc = words[0];
}

/* ---- recording ---- */

static uint64_t rdtsc(void)
{
	uint32_t low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

static void set_register(struct registers *regs, unsigned number, unsigned width, uint64_t value)
{
	uint64_t *reg = &regs->gpr[number];

	if (width == 2)
		*reg = (*reg & ~0xfffful) | (value & 0xffff);
	else
		*reg = width == 4 ? (uint32_t)value : value;
}

#define RANDOM(instruction, type)                                                                            \
	({                                                                                                   \
		type value_;                                                                                 \
		__asm__ volatile(WITH_FLAGS(instruction " %[value]")                                         \
		                 : [value] "=&r"(value_), [flags] "+&r"(flags)                               \
		                 :                                                                           \
		                 : "cc", "memory");                                                          \
		(uint64_t) value_;                                                                           \
	})

static void emulate_random(struct registers *regs, bool seed, unsigned number, unsigned width)
{
	uint64_t value, flags = regs->flags & STATUS_FLAGS;

	if (width == 2)
		value = seed ? RANDOM("rdseed", uint16_t) : RANDOM("rdrand", uint16_t);
	else if (width == 4)
		value = seed ? RANDOM("rdseed", uint32_t) : RANDOM("rdrand", uint32_t);
	else
		value = seed ? RANDOM("rdseed", uint64_t) : RANDOM("rdrand", uint64_t);
	set_register(regs, number, width, value);
	regs->flags = merge_status(regs->flags, flags);
}

/* The stub has never changed one. */
static uint16_t selector(unsigned number)
{
	uint16_t value;

	switch (number) {
	case 0:
		__asm__("mov %%es, %0" : "=r"(value));
		break;
	case 1:
		__asm__("mov %%cs, %0" : "=r"(value));
		break;
	case 2:
		__asm__("mov %%ss, %0" : "=r"(value));
		break;
	case 3:
		__asm__("mov %%ds, %0" : "=r"(value));
		break;
	case 4:
		__asm__("mov %%fs, %0" : "=r"(value));
		break;
	default:
		__asm__("mov %%gs, %0" : "=r"(value));
	}
	return value;
}

static void emulate_result(struct registers *regs, unsigned argument)
{
	unsigned number = argument >> 4 & 15, width = argument >> 8;
	uint64_t value;
	uint32_t processor;

	switch (argument & 15) {
	case RESULT_RDTSCP:
		__asm__ volatile("rdtscp" : "=c"(processor) : : "rax", "rdx");
		regs->gpr[RCX] = processor;
		/* fall through */
	case RESULT_RDTSC:
		value = rdtsc();
		regs->gpr[RAX] = (uint32_t)value;
		regs->gpr[RDX] = value >> 32;
		break;
	case RESULT_RDPID:
		__asm__ volatile("rdtscp" : "=c"(processor) : : "rax", "rdx");
		set_register(regs, number, width, processor);
		break;
	case RESULT_SELECTOR ... 15:
		set_register(regs, number, width, selector((argument & 15) - RESULT_SELECTOR));
		break;
	default:
		emulate_random(regs, (argument & 15) == RESULT_RDSEED, number, width);
	}
}

/*
 * fxrstor and xrstor, from the shadow. The registers are the program's all the time, so this
 * is it.
 */
static void emulate_restore(struct thread *thread, unsigned what)
{
	uint64_t address = thread->slots[SLOT_ADDRESS], header[2];
	uint64_t wanted = thread->regs.gpr[RAX] & info()->vectors;

	if (!shadow_check(thread, address, what & RESTORE_EXTENDED ? VECTORS_AT_AVX : VECTORS_AT_PRESENT))
		fault_natively(thread);
	if (what & RESTORE_EXTENDED) {
		memcpy(header, (char *)shadow_of(thread, address) + VECTORS_AT_PRESENT, sizeof header);
		uint32_t size = vectors_restored_bytes(wanted, header[0], header[1]);
		if (size > VECTORS_AT_AVX && !shadow_check(thread, address, size))
			fault_natively(thread);
	}
	if (restore_direct(shadow_of(thread, address), what, (uint32_t)wanted, 0) < 0)
		fault_natively(thread);
	renew_fpstate(thread);
}

static void emulate_fs_base(struct thread *thread, unsigned argument)
{
	uint64_t base = thread->regs.gpr[argument & 15];

	if (argument >> 4 == 4)
		base = (uint32_t)base;
	if ((int64_t)(base << 16) >> 16 != (int64_t)base)
		fault_natively(thread);
	__asm__ volatile("wrfsbase %0" : : "r"(base));
	note_program_fs(thread);
}

/* At most. */
static uint64_t image_bytes(unsigned kind)
{
	if (kind & X87_IMAGE_XSAVE)
		return VECTORS_BYTES;
	return (kind & X87_IMAGE_KIND) == X87_IMAGE_ENV32 ? 108 : FPSTATE_LEGACY;
}

void handle_emulate(struct thread *thread)
{
	uint64_t detail = thread->slots[SLOT_DETAIL];
	unsigned argument = EMULATE_ARGUMENT(detail);

	thread->slots[SLOT_TARGET] = 0;
	thread->counted = 1;
	if (replaying() && replay_emulate(thread))
		return;
	const struct registers before = thread->regs;
	unsigned kind = EMULATE_KIND(detail);
	if (by_pages() && (kind == EMULATE_VSYSCALL || kind == EMULATE_INT80)) {
		thread->slots[SLOT_POSITION]--;
		thread->leaves_pages = LEAVES_FOR_INSTRUCTION;
		log_keyframe(thread);
		return;
	}
	switch (kind) {
	case EMULATE_CPUID:
		if (!save_by_cpuid(thread))
			emulate_cpuid(&thread->regs);
		log_result(thread, position(thread) - 1, &before);
		break;
	case EMULATE_XGETBV:
		emulate_xgetbv(thread);
		log_result(thread, position(thread) - 1, &before);
		break;
	case EMULATE_RESULT:
		emulate_result(&thread->regs, argument);
		log_result(thread, position(thread) - 1, &before);
		break;
	case EMULATE_WRFSBASE:
		emulate_fs_base(thread, argument);
		break;
	case EMULATE_POPF:
		thread->step_armed = 0;
		emulate_popf(thread, argument);
		break;
	case EMULATE_PUSHF:
		emulate_pushf(thread, argument);
		break;
	case EMULATE_RDGSBASE:
		emulate_gs_base(thread, false, argument);
		break;
	case EMULATE_WRGSBASE:
		emulate_gs_base(thread, true, argument);
		break;
	case EMULATE_NATIVE:
	case EMULATE_STATE:
		step_natively(thread);
	case EMULATE_GATHER:
		emulate_gather(thread);
		break;
	case EMULATE_RESTORE:
		emulate_restore(thread, argument);
		break;
	case EMULATE_VSYSCALL:
		emulate_vsyscall(thread);
		return;
	case EMULATE_INT80:
		syscall_int80(thread);
		return;
	case EMULATE_FAR:
		emulate_far(thread, argument);
		return;
	case EMULATE_X87_ENV16:
		emulate_x87_env16(thread, argument);
		break;
	case EMULATE_FIX_X87_PC:
		fix_x87_pc(thread, argument);
		pages_note_written(thread, thread->slots[SLOT_ADDRESS], image_bytes(argument));
		break;
	case EMULATE_STRING:
		if (emulate_string(thread, argument))
			break;
		thread->slots[SLOT_POSITION]--;
		return;
	case EMULATE_ATOMIC:
		emulate_atomic(thread, argument);
		note_code(thread, position(thread));
		break;
	default:
		stub_panic("unknown emulation", detail);
	}
	thread->regs.pc += EMULATE_LENGTH(detail);
	if (by_pages())
		pages_log_written(thread, position(thread));
}
