#include "target/agent.h"

enum agent_operation {
	AGENT_ADD = 0x02,
	AGENT_SUB,
	AGENT_MUL,
	AGENT_DIV_SIGNED,
	AGENT_DIV_UNSIGNED,
	AGENT_REM_SIGNED,
	AGENT_REM_UNSIGNED,
	AGENT_LSH,
	AGENT_RSH_SIGNED,
	AGENT_RSH_UNSIGNED,
	AGENT_LOG_NOT = 0x0e,
	AGENT_BIT_AND,
	AGENT_BIT_OR,
	AGENT_BIT_XOR,
	AGENT_BIT_NOT,
	AGENT_EQUAL,
	AGENT_LESS_SIGNED,
	AGENT_LESS_UNSIGNED,
	AGENT_EXT,
	AGENT_REF8,
	AGENT_REF16,
	AGENT_REF32,
	AGENT_REF64,
	AGENT_IF_GOTO = 0x20,
	AGENT_GOTO,
	AGENT_CONST8,
	AGENT_CONST16,
	AGENT_CONST32,
	AGENT_CONST64,
	AGENT_REG,
	AGENT_END,
	AGENT_DUP,
	AGENT_POP,
	AGENT_ZERO_EXT,
	AGENT_SWAP,
	AGENT_PICK = 0x32,
	AGENT_ROT,
};

struct evaluation {
	const uint8_t *code;
	size_t size, at;
	const struct agent_world *world;
	uint64_t stack[AGENT_STACK];
	unsigned depth;
	bool failed;
};

static uint64_t pop(struct evaluation *e)
{
	if (e->depth == 0) {
		e->failed = true;
		return 0;
	}
	return e->stack[--e->depth];
}

static void push(struct evaluation *e, uint64_t value)
{
	if (e->depth == AGENT_STACK)
		e->failed = true;
	else
		e->stack[e->depth++] = value;
}

/* What follows an operation, most significant byte first. */
static uint64_t immediate(struct evaluation *e, unsigned size)
{
	uint64_t value = 0;

	if (e->size - e->at < size) {
		e->failed = true;
		return 0;
	}
	for (unsigned i = 0; i < size; i++)
		value = value << 8 | e->code[e->at++];
	return value;
}

static uint64_t divide(struct evaluation *e, unsigned operation, uint64_t a, uint64_t b)
{
	bool is_signed = operation == AGENT_DIV_SIGNED || operation == AGENT_REM_SIGNED;

	if (b == 0 || (is_signed && (int64_t)a == INT64_MIN && (int64_t)b == -1)) {
		e->failed = true;
		return 0;
	}
	switch (operation) {
	case AGENT_DIV_SIGNED:
		return (uint64_t)((int64_t)a / (int64_t)b);
	case AGENT_DIV_UNSIGNED:
		return a / b;
	case AGENT_REM_SIGNED:
		return (uint64_t)((int64_t)a % (int64_t)b);
	default:
		return a % b;
	}
}

static uint64_t shift(struct evaluation *e, unsigned operation, uint64_t a, uint64_t b)
{
	if (b > 63) {
		e->failed = true;
		return 0;
	}
	return operation == AGENT_LSH          ? a << b
	       : operation == AGENT_RSH_SIGNED ? (uint64_t)((int64_t)a >> b)
	                                       : a >> b;
}

static uint64_t binary(struct evaluation *e, unsigned operation, uint64_t a, uint64_t b)
{
	switch (operation) {
	case AGENT_ADD:
		return a + b;
	case AGENT_SUB:
		return a - b;
	case AGENT_MUL:
		return a * b;
	case AGENT_DIV_SIGNED ... AGENT_REM_UNSIGNED:
		return divide(e, operation, a, b);
	case AGENT_LSH ... AGENT_RSH_UNSIGNED:
		return shift(e, operation, a, b);
	case AGENT_BIT_AND:
		return a & b;
	case AGENT_BIT_OR:
		return a | b;
	case AGENT_BIT_XOR:
		return a ^ b;
	case AGENT_EQUAL:
		return a == b;
	case AGENT_LESS_SIGNED:
		return (int64_t)a < (int64_t)b;
	default:
		return a < b;
	}
}

/* Only the lowest `bits` of a number are meant. */
static uint64_t extend(struct evaluation *e, uint64_t value, uint64_t bits, bool is_signed)
{
	if (bits == 0 || bits > 64) {
		e->failed = true;
		return 0;
	}
	uint64_t moved = value << (64 - bits);
	return is_signed ? (uint64_t)((int64_t)moved >> (64 - bits)) : moved >> (64 - bits);
}

static void load(struct evaluation *e, unsigned size)
{
	uint64_t address = pop(e), value = 0;

	if (e->failed || !e->world->read_memory(e->world->context, address, &value, size))
		e->failed = true;
	else
		push(e, value);
}

static void load_register(struct evaluation *e)
{
	unsigned number = (unsigned)immediate(e, 2);
	uint64_t value = 0;

	if (e->failed || !e->world->read_register(e->world->context, number, &value))
		e->failed = true;
	else
		push(e, value);
}

static void branch(struct evaluation *e, bool conditional)
{
	uint64_t target = immediate(e, 2);

	if (!conditional || pop(e))
		e->at = target;
}

static void pick(struct evaluation *e)
{
	uint64_t number = immediate(e, 1);

	if (number >= e->depth)
		e->failed = true;
	else
		push(e, e->stack[e->depth - 1 - number]);
}

/* The top goes below the two under it. */
static void rotate(struct evaluation *e)
{
	uint64_t c = pop(e), b = pop(e), a = pop(e);

	push(e, c);
	push(e, a);
	push(e, b);
}

static void execute(struct evaluation *e, unsigned operation)
{
	uint64_t a, b;

	switch (operation) {
	case AGENT_LOG_NOT:
		push(e, !pop(e));
		break;
	case AGENT_BIT_NOT:
		push(e, ~pop(e));
		break;
	case AGENT_ADD ... AGENT_RSH_UNSIGNED:
	case AGENT_BIT_AND ... AGENT_BIT_XOR:
	case AGENT_EQUAL ... AGENT_LESS_UNSIGNED:
		b = pop(e);
		a = pop(e);
		push(e, binary(e, operation, a, b));
		break;
	case AGENT_EXT:
	case AGENT_ZERO_EXT:
		b = immediate(e, 1);
		push(e, extend(e, pop(e), b, operation == AGENT_EXT));
		break;
	case AGENT_REF8 ... AGENT_REF64:
		load(e, 1u << (operation - AGENT_REF8));
		break;
	case AGENT_IF_GOTO:
	case AGENT_GOTO:
		branch(e, operation == AGENT_IF_GOTO);
		break;
	case AGENT_CONST8 ... AGENT_CONST64:
		push(e, immediate(e, 1u << (operation - AGENT_CONST8)));
		break;
	case AGENT_REG:
		load_register(e);
		break;
	case AGENT_DUP:
		a = pop(e);
		push(e, a);
		push(e, a);
		break;
	case AGENT_POP:
		pop(e);
		break;
	case AGENT_SWAP:
		b = pop(e);
		a = pop(e);
		push(e, b);
		push(e, a);
		break;
	case AGENT_PICK:
		pick(e);
		break;
	case AGENT_ROT:
		rotate(e);
		break;
	default: /* what traces and prints, floating point, and trace state variables */
		e->failed = true;
	}
}

bool agent_evaluate(const uint8_t *code, size_t size, const struct agent_world *world, uint64_t *value)
{
	struct evaluation e;

	/* The stack is left as it is: clearing it would be most of the work. */
	e.code = code;
	e.size = size;
	e.at = 0;
	e.world = world;
	e.depth = 0;
	e.failed = false;
	for (unsigned steps = 0; steps < AGENT_STEPS && e.at < size && !e.failed; steps++) {
		uint8_t operation = code[e.at++];
		if (operation == AGENT_END) {
			*value = pop(&e);
			return !e.failed;
		}
		execute(&e, operation);
	}
	return false;
}
