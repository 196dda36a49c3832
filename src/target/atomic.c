/*
 * Locked instructions while recording. Memory and shadow cannot be changed
 * together, and what was in memory has to be known exactly:
 *
 *     make the shadow what memory is, and log what differed
 *     take the line's place in the order of threads (order.c)
 *     old = shadow
 *     new = what the instruction makes of old
 *     lock cmpxchg memory, old -> new; the same again if that fails, with what memory is by now
 *     give the place back, with a stamp
 *     shadow = new
 *
 * What the instruction makes of old the CPU says itself: it executes it, without
 * the lock, on a copy and on the program's registers. So the flags, undefined ones
 * included, and the upper parts of registers are as it leaves them.
 *
 * An instruction whose comparison fails stores the old value again, as the CPU
 * does; it may fault by that. Before the exchange nothing is changed that the
 * program could see, so that a fault finds everything as it was.
 */
#include "target/flags.h"
#include "target/stub.h"

struct atomic {
	_Alignas(16) uint64_t memory[2]; /* the copy */
	uint64_t
	        operand; /* the register, ah..bh in its lowest byte, or the number; a bit's within the copy */
	uint64_t rax, rdx, rbx, rcx;
	uint64_t flags;
	unsigned kind, size;
};

/* ---- on a copy ---- */

#define EXECUTE(instruction)                                                                                 \
	__asm__ volatile(WITH_FLAGS(instruction)                                                             \
	                 : [flags] "+r"(o->flags), [operand] "+r"(o->operand), "+a"(o->rax)                  \
	                 : [at] "r"(o->memory)                                                               \
	                 : "cc", "memory")

#define WIDE(name)                                                                                           \
	case 2:                                                                                              \
		EXECUTE(name "w %w[operand], (%[at])");                                                      \
		break;                                                                                       \
	case 4:                                                                                              \
		EXECUTE(name "l %k[operand], (%[at])");                                                      \
		break;                                                                                       \
	default:                                                                                             \
		EXECUTE(name "q %q[operand], (%[at])")

#define BIT(name)                                                                                            \
	do {                                                                                                 \
		switch (o->size) {                                                                           \
			WIDE(name);                                                                          \
		}                                                                                            \
	} while (0)

#define BINARY(name)                                                                                         \
	do {                                                                                                 \
		switch (o->size) {                                                                           \
		case 1:                                                                                      \
			EXECUTE(name "b %b[operand], (%[at])");                                              \
			break;                                                                               \
			WIDE(name);                                                                          \
		}                                                                                            \
	} while (0)

#define UNARY(name)                                                                                          \
	do {                                                                                                 \
		switch (o->size) {                                                                           \
		case 1:                                                                                      \
			EXECUTE(name "b (%[at])");                                                           \
			break;                                                                               \
		case 2:                                                                                      \
			EXECUTE(name "w (%[at])");                                                           \
			break;                                                                               \
		case 4:                                                                                      \
			EXECUTE(name "l (%[at])");                                                           \
			break;                                                                               \
		default:                                                                                     \
			EXECUTE(name "q (%[at])");                                                           \
		}                                                                                            \
	} while (0)

#define EXECUTE_PAIR(instruction)                                                                            \
	__asm__ volatile(WITH_FLAGS(instruction)                                                             \
	                 : [flags] "+r"(o->flags), "+a"(o->rax), "+d"(o->rdx)                                \
	                 : [at] "r"(o->memory), "b"(o->rbx), "c"(o->rcx)                                     \
	                 : "cc", "memory")

static void compare_pair(struct atomic *o)
{
	if (o->size == 4)
		EXECUTE_PAIR("cmpxchg8b (%[at])");
	else
		EXECUTE_PAIR("cmpxchg16b (%[at])");
}

static void execute(struct atomic *o)
{
	switch (o->kind) {
	case ATOMIC_CMPXCHG:
		BINARY("cmpxchg");
		break;
	case ATOMIC_XCHG:
		BINARY("xchg");
		break;
	case ATOMIC_XADD:
		BINARY("xadd");
		break;
	case ATOMIC_ADD:
		BINARY("add");
		break;
	case ATOMIC_OR:
		BINARY("or");
		break;
	case ATOMIC_ADC:
		BINARY("adc");
		break;
	case ATOMIC_SBB:
		BINARY("sbb");
		break;
	case ATOMIC_AND:
		BINARY("and");
		break;
	case ATOMIC_SUB:
		BINARY("sub");
		break;
	case ATOMIC_XOR:
		BINARY("xor");
		break;
	case ATOMIC_INC:
		UNARY("inc");
		break;
	case ATOMIC_DEC:
		UNARY("dec");
		break;
	case ATOMIC_NOT:
		UNARY("not");
		break;
	case ATOMIC_NEG:
		UNARY("neg");
		break;
	case ATOMIC_CMPXCHG2:
		compare_pair(o);
		break;
	case ATOMIC_BT:
		BIT("bt");
		break;
	case ATOMIC_BTS:
		BIT("bts");
		break;
	case ATOMIC_BTR:
		BIT("btr");
		break;
	case ATOMIC_BTC:
		BIT("btc");
		break;
	default:
		stub_panic("unknown atomic instruction", o->kind);
	}
}

/* ---- registers ---- */

static void take_registers(const struct thread *thread, unsigned argument, struct atomic *o)
{
	const uint64_t *gpr = thread->regs.gpr;

	o->rax = gpr[RAX];
	o->rdx = gpr[RDX];
	o->rbx = gpr[RBX];
	o->rcx = gpr[RCX];
	o->flags = thread->regs.flags & STATUS_FLAGS;
	if (argument & ATOMIC_IMMEDIATE)
		o->operand = thread->slots[SLOT_SCRATCH_B];
	else
		o->operand = gpr[ATOMIC_REGISTER(argument)] >> (argument & ATOMIC_HIGH_BYTE ? 8 : 0);
}

static void give_operand(struct thread *thread, unsigned argument, uint64_t value)
{
	uint64_t *reg = &thread->regs.gpr[ATOMIC_REGISTER(argument)];

	*reg = argument & ATOMIC_HIGH_BYTE ? (*reg & ~0xff00ul) | (value & 0xff) << 8 : value;
}

static void give_registers(struct thread *thread, unsigned argument, const struct atomic *o)
{
	struct registers *regs = &thread->regs;

	regs->flags = merge_status(regs->flags, o->flags);
	if (o->kind == ATOMIC_XCHG || o->kind == ATOMIC_XADD) {
		give_operand(thread, argument, o->operand);
	} else if (o->kind == ATOMIC_CMPXCHG) {
		regs->gpr[RAX] = o->rax;
	} else if (o->kind == ATOMIC_CMPXCHG2) {
		regs->gpr[RAX] = o->rax;
		regs->gpr[RDX] = o->rdx;
	}
}

/* ---- memory ---- */

/*
 * The bit's number may lead away from the operand, in units of it, up and down;
 * an immediate one may not.
 */
static uint64_t move_to_bit(uint64_t address, unsigned argument, unsigned size, uint64_t number)
{
	int64_t bit = size == 8 ? (int64_t)number : size == 4 ? (int32_t)number : (int16_t)number;

	if (argument & ATOMIC_IMMEDIATE)
		return address;
	address += (bit >> __builtin_ctz(size * 8)) * size;
	return argument & ATOMIC_ADDRESS32 ? (uint32_t)address : address;
}

/* The two parts of what crosses a page may be anywhere. */
static unsigned in_first_page(uint64_t address, unsigned size)
{
	unsigned room = 0x1000 - (address & 0xfff);

	return size < room ? size : room;
}

/* As whole numbers: rep movsb takes its time to begin. */
static void copy_few(void *to, const void *from, unsigned size)
{
	switch (size) {
	case 4:
		__builtin_memcpy(to, from, 4);
		break;
	case 8:
		__builtin_memcpy(to, from, 8);
		break;
	case 16:
		__builtin_memcpy(to, from, 16);
		break;
	default:
		memcpy(to, from, size);
	}
}

static void read_shadow(struct thread *thread, void *to, uint64_t address, unsigned size)
{
	unsigned first = in_first_page(address, size);

	copy_few(to, shadow_of(thread, address), first);
	if (first < size)
		memcpy((char *)to + first, shadow_of(thread, address + first), size - first);
}

static void write_shadow(struct thread *thread, uint64_t address, const void *from, unsigned size)
{
	unsigned first = in_first_page(address, size);

	copy_few(shadow_of(thread, address), from, first);
	if (first < size)
		memcpy(shadow_of(thread, address + first), (const char *)from + first, size - first);
}

/* What it makes of what is in memory, as the shadow has it. */
static void compute(struct thread *thread, unsigned argument, uint64_t address, unsigned bytes,
        struct atomic *o, uint64_t old[2])
{
	read_shadow(thread, old, address, bytes);
	take_registers(thread, argument, o);
	if (o->kind >= ATOMIC_BT)
		o->operand &= 8 * o->size - 1;
	o->memory[0] = old[0];
	o->memory[1] = old[1];
	execute(o);
}

/* Until nobody comes between. 0, or -EFAULT. */
static long perform(
        struct thread *thread, unsigned argument, uint64_t address, unsigned bytes, struct atomic *o)
{
	uint64_t old[2] = {0};

	for (;;) {
		compute(thread, argument, address, bytes, o, old);
		if (o->kind == ATOMIC_BT)
			return 0;
		long differs = exchange_program(address, old, o->memory, bytes);
		if (differs <= 0)
			return differs;
		if (!shadow_check(thread, address, bytes))
			return -K_EFAULT;
	}
}

void emulate_atomic(struct thread *thread, unsigned argument)
{
	struct atomic o = {.kind = ATOMIC_KIND(argument), .size = ATOMIC_SIZE(argument)};
	unsigned bytes = o.kind == ATOMIC_CMPXCHG2 ? 2 * o.size : o.size;
	uint64_t address = thread->slots[SLOT_ADDRESS];
	struct order_hold hold = {0};

	take_registers(thread, argument, &o);
	if (o.kind >= ATOMIC_BT)
		address = move_to_bit(address, argument, o.size, o.operand);
	if (bytes == 16 && address % 16)
		fault_natively(thread);
	check_alignment(thread, address, bytes);
	/* What may take long comes before others have to wait. */
	if (!shadow_check(thread, address, bytes))
		fault_natively(thread);
	if (argument & ATOMIC_LOCKED) {
		log_make_room(thread);
		order_take(thread, &hold, address, bytes);
	}
	if (perform(thread, argument, address, bytes, &o) < 0) {
		order_drop(&hold);
		fault_natively(thread);
	}
	order_give(thread, &hold, position(thread) - 1);
	if (o.kind != ATOMIC_BT)
		write_shadow(thread, address, o.memory, bytes);
	give_registers(thread, argument, &o);
}
