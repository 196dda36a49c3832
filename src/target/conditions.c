/*
 * Conditions of breakpoints, evaluated where they are passed, see feed.h. A hit is dropped only if it is
 * certain that a condition is false: what depends on memory that the thread does not know here is for the
 * replayer to look at.
 */
#include "target/agent.h"
#include "target/feed.h"
#include "target/stub.h"

#define GDB_RIP    16
#define GDB_EFLAGS 17

struct place {
	const struct registers *regs;
	uint64_t pc;
};

static bool read_register(void *context, unsigned number, uint64_t *value)
{
	/* gdb's numbering into the CPU's. */
	static const uint8_t general[16] = {
	        RAX, RBX, RCX, RDX, RSI, RDI, RBP, RSP, 8, 9, 10, 11, 12, 13, 14, 15};
	const struct place *place = context;

	if (number < 16)
		*value = place->regs->gpr[general[number]];
	else if (number == GDB_RIP)
		*value = place->pc;
	else if (number == GDB_EFLAGS)
		*value = place->regs->flags;
	return number <= GDB_EFLAGS;
}

static bool read_memory(void *context, uint64_t address, void *to, size_t size)
{
	(void)context;
	if (!known_is(address, size))
		return false;
	memcpy(to, (const void *)address, size);
	return true;
}

/* The first condition of the pc, or of a higher one. */
static uint32_t first_of(uint64_t pc)
{
	const struct feed *f = feed();
	uint32_t low = 0, high = f->condition_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (f->conditions[middle].pc < pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool conditions_are_false(const struct thread *thread, uint64_t pc)
{
	const struct feed *f = feed();
	uint32_t first = first_of(pc), i;
	struct place place = {&thread->regs, pc};
	struct agent_world world = {read_register, read_memory, &place};
	uint64_t value;

	for (i = first; i < f->condition_count && f->conditions[i].pc == pc; i++) {
		const struct feed_condition *condition = &f->conditions[i];
		if (!agent_evaluate(f->condition_code + condition->start, condition->size, &world, &value) ||
		        value)
			return false;
	}
	return i > first;
}
