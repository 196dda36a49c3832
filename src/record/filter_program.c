#include "record/filter_program.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* What a place of the machine holds, on all ways that lead to an instruction. */
struct value {
	bool known;
	uint32_t number;
};

static const struct value unknown;

struct state {
	bool reached;
	struct value a, x, memory[BPF_MEMWORDS];
};

static struct value number(uint32_t n)
{
	return (struct value){true, n};
}

static void merge_value(struct value *to, struct value from)
{
	if (!from.known || from.number != to->number)
		*to = unknown;
}

static void merge(struct state *to, const struct state *from)
{
	if (!to->reached) {
		*to = *from;
		return;
	}
	merge_value(&to->a, from->a);
	merge_value(&to->x, from->x);
	for (unsigned i = 0; i < BPF_MEMWORDS; i++)
		merge_value(&to->memory[i], from->memory[i]);
}

/* A word of struct seccomp_data. */
static struct value load(const struct filter_question *question, uint32_t offset)
{
	if (offset == offsetof(struct seccomp_data, nr))
		return number((uint32_t)question->number);
	if (offset == offsetof(struct seccomp_data, arch))
		return number(AUDIT_ARCH_X86_64);
	if (offset < offsetof(struct seccomp_data, args) || offset >= sizeof(struct seccomp_data))
		return unknown;
	offset -= offsetof(struct seccomp_data, args);
	if (!(question->known >> offset / 8 & 1))
		return unknown;
	return number((uint32_t)(question->arguments[offset / 8] >> offset % 8 * 8));
}

static bool is_load(uint32_t offset)
{
	return offset < sizeof(struct seccomp_data) && offset % 4 == 0;
}

/* False: it ends the filter, or is none of the instructions. */
static bool compute(uint16_t operation, uint32_t a, uint32_t b, uint32_t *result)
{
	switch (operation) {
	case BPF_ADD:
		*result = a + b;
		return true;
	case BPF_SUB:
		*result = a - b;
		return true;
	case BPF_MUL:
		*result = a * b;
		return true;
	case BPF_DIV:
		*result = b ? a / b : 0;
		return b;
	case BPF_AND:
		*result = a & b;
		return true;
	case BPF_OR:
		*result = a | b;
		return true;
	case BPF_XOR:
		*result = a ^ b;
		return true;
	case BPF_LSH:
		*result = b < 32 ? a << b : 0;
		return b < 32;
	case BPF_RSH:
		*result = b < 32 ? a >> b : 0;
		return b < 32;
	case BPF_NEG:
		*result = -a;
		return true;
	}
	return false;
}

static bool is_operation(uint16_t operation)
{
	uint32_t result;

	return compute(operation, 1, 1, &result);
}

static bool step_alu(struct state *state, const struct sock_filter *instruction)
{
	uint16_t operation = BPF_OP(instruction->code);
	struct value b = BPF_SRC(instruction->code) == BPF_X ? state->x : number(instruction->k);

	if (!is_operation(operation))
		return false;
	if (operation == BPF_NEG)
		b = number(0);
	if (!state->a.known || !b.known) {
		state->a = unknown;
		return true;
	}
	if ((operation == BPF_LSH || operation == BPF_RSH) && b.number > 31) {
		state->a = unknown; /* what that gives is the processor's choice */
		return true;
	}
	return compute(operation, state->a.number, b.number, &state->a.number);
}

static bool step_load(
        struct value *to, struct state *state, const struct sock_filter *i, const struct filter_question *q)
{
	switch (BPF_MODE(i->code)) {
	case BPF_IMM:
		*to = number(i->k);
		return true;
	case BPF_ABS:
		*to = load(q, i->k);
		return to == &state->a && is_load(i->k);
	case BPF_MEM:
		if (i->k >= BPF_MEMWORDS)
			return false;
		*to = state->memory[i->k];
		return true;
	case BPF_LEN:
		*to = number(sizeof(struct seccomp_data));
		return true;
	}
	return false;
}

/* One that goes on behind itself; false: it is not understood. */
static bool step(struct state *state, const struct sock_filter *i, const struct filter_question *question)
{
	switch (BPF_CLASS(i->code)) {
	case BPF_LD:
	case BPF_LDX:
		return BPF_SIZE(i->code) == BPF_W &&
		       step_load(BPF_CLASS(i->code) == BPF_LD ? &state->a : &state->x, state, i, question);
	case BPF_ST:
	case BPF_STX:
		if (i->k >= BPF_MEMWORDS)
			return false;
		state->memory[i->k] = BPF_CLASS(i->code) == BPF_ST ? state->a : state->x;
		return true;
	case BPF_ALU:
		return step_alu(state, i);
	case BPF_MISC:
		if (BPF_MISCOP(i->code) == BPF_TAX)
			state->x = state->a;
		else if (BPF_MISCOP(i->code) == BPF_TXA)
			state->a = state->x;
		else
			return false;
		return true;
	}
	return false;
}

/* Whether a jump may be taken, and may not be; false: it is none. */
static bool compare(const struct state *state, const struct sock_filter *i, bool *yes, bool *no)
{
	struct value b = BPF_SRC(i->code) == BPF_X ? state->x : number(i->k);
	uint32_t a = state->a.number;

	*yes = *no = true;
	bool known = state->a.known && b.known, holds;
	switch (BPF_OP(i->code)) {
	case BPF_JEQ:
		holds = a == b.number;
		break;
	case BPF_JGT:
		holds = a > b.number;
		break;
	case BPF_JGE:
		holds = a >= b.number;
		break;
	case BPF_JSET:
		holds = a & b.number;
		break;
	default:
		return false;
	}
	if (known) {
		*yes = holds;
		*no = !holds;
	}
	return true;
}

static enum filter_answer answer_of(struct value value)
{
	if (!value.known)
		return FILTER_FORBIDS;
	switch (value.number & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
	case SECCOMP_RET_LOG:
		return FILTER_PERMITS;
	case SECCOMP_RET_ERRNO: /* an error of 0 is a success that is none */
		return value.number & SECCOMP_RET_DATA ? FILTER_REFUSES : FILTER_FORBIDS;
	}
	return FILTER_FORBIDS;
}

/* Jumps lead forwards only, so that everything that leads to an instruction was seen before it. */
static enum filter_answer follow(struct state *states, const struct sock_filter *program, uint32_t count,
        const struct filter_question *question)
{
	enum filter_answer worst = FILTER_PERMITS;

	for (uint32_t at = 0; at < count; at++) {
		const struct sock_filter *i = &program[at];
		struct state state = states[at];
		bool yes = false, no = true; /* one that is no jump goes on as if it was not taken */
		uint64_t to = 0, otherwise = 0;

		if (!state.reached)
			continue;
		if (BPF_CLASS(i->code) == BPF_RET) {
			struct value value = BPF_RVAL(i->code) == BPF_A ? state.a : number(i->k);
			enum filter_answer answer = answer_of(value);
			worst = answer > worst ? answer : worst;
			continue;
		}
		if (BPF_CLASS(i->code) != BPF_JMP) {
			if (!step(&state, i, question))
				return FILTER_FORBIDS;
		} else if (BPF_OP(i->code) == BPF_JA) {
			otherwise = i->k;
		} else if (!compare(&state, i, &yes, &no)) {
			return FILTER_FORBIDS;
		} else {
			to = i->jt;
			otherwise = i->jf;
		}
		if ((yes && at + 1 + to >= count) || (no && at + 1 + otherwise >= count))
			return FILTER_FORBIDS;
		if (yes)
			merge(&states[at + 1 + to], &state);
		if (no)
			merge(&states[at + 1 + otherwise], &state);
	}
	return worst;
}

enum filter_answer filter_asked(
        const struct sock_filter *program, uint32_t count, const struct filter_question *question)
{
	struct state *states = count ? calloc(count, sizeof *states) : NULL;

	if (!states)
		return FILTER_FORBIDS;
	states[0].reached = true;
	states[0].a = states[0].x = number(0);
	enum filter_answer answer = follow(states, program, count, question);
	free(states);
	return answer;
}
