/*
 * The trace of a replayed thread's accesses to memory, see feed.h: what translated code tells of
 * (src/translate/trace.c) is written down here.
 */
#include "target/feed.h"
#include "target/stub.h"

#define WORD 8ul

/* A string instruction tells of no more than this at a time, so that all of it fits. */
#define STRING_RECORDS  (TRACE_RECORDS / 2)
#define STRING_LONGEST  (1ul << 32) /* bytes */
#define STRING_LOOKED   4096ul      /* bytes of a comparison whose end is not known */
#define STRING_COMPARED (1ul << 20) /* bytes of a comparison that are looked for its end */

static uint64_t read_word(uint64_t address)
{
	return *(volatile uint64_t *)address;
}

void trace_finish(void)
{
	struct feed *f = feed();

	for (; f->trace_finished < f->trace_count; f->trace_finished++) {
		struct trace_record *record = &f->trace[f->trace_finished];
		if (record->kind == TRACE_ACCESS)
			record->after = record->writes ? read_word(record->address) : record->before;
	}
}

void trace_flush(struct thread *thread)
{
	struct feed *f = feed();

	if (!f->trace_count)
		return;
	trace_finish();
	ask_replayer(thread, FEED_ASK_TRACE, f->trace_count);
	f->trace_count = f->trace_finished = 0;
	f->trace_epoch++;
}

static struct trace_record *append(struct trace_record record)
{
	struct feed *f = feed();

	record.last = record.position;
	f->trace[f->trace_count] = record;
	return &f->trace[f->trace_count++];
}

static bool is_wanted(uint64_t address)
{
	const struct feed *f = feed();

	return f->trace_filter[address >> TRACE_SHIFT & (TRACE_FILTER_BYTES - 1)] &&
	       f->trace_words[address / WORD % TRACE_WORDS];
}

static bool is_line_wanted(uint64_t address)
{
	bool wanted = false;

	for (unsigned i = 0; i < EVENT_LINE_WORDS; i++)
		wanted |= is_wanted(address + i * WORD);
	return wanted;
}

/* A load that is in the trace already, since threads were ordered last; else it is from now on. */
static bool is_repeated(const struct trace_record *wanted)
{
	struct feed *f = feed();
	uint64_t hash = (wanted->address + (wanted->pc << 20)) * 0x9e3779b97f4a7c15ul >> 52;

	_Static_assert(TRACE_RECENT == 1 << (64 - 52), "the hash gives numbers of recent loads");
	if (f->trace_recent[hash].epoch == f->trace_epoch) {
		struct trace_record *record = &f->trace[f->trace_recent[hash].record];
		if (record->address == wanted->address && record->pc == wanted->pc &&
		        record->before == wanted->before && record->reads == wanted->reads) {
			record->last = wanted->position;
			return true;
		}
	}
	f->trace_recent[hash].epoch = f->trace_epoch;
	f->trace_recent[hash].record = f->trace_count;
	return false;
}

/* The part of [address, end) in the word at `word`. */
static void trace_word(
        const struct trace_record *common, uint64_t word, uint64_t address, uint64_t end, unsigned what)
{
	uint64_t first = address > word ? address - word : 0, last = end < word + WORD ? end - word : WORD;
	uint8_t bytes = (uint8_t)((0xffu >> (8 - last)) & (0xffu << first));
	struct trace_record record = *common;

	record.kind = TRACE_ACCESS;
	record.address = word;
	record.before = read_word(word);
	record.known = known_bytes(word);
	record.reads = what & TRACE_READ ? bytes : 0;
	record.writes = what & TRACE_WRITE ? bytes : 0;
	record.locked = (what & TRACE_LOCKED) != 0;
	if (what != TRACE_READ || !is_repeated(&record))
		append(record);
}

static void trace_range(
        const struct trace_record *common, uint64_t address, uint64_t size, unsigned what, uint32_t limit)
{
	uint32_t end = feed()->trace_count + limit;

	for (uint64_t word = address & -WORD; word < address + size && feed()->trace_count < end;
	        word += WORD) {
		if (is_wanted(word) || what & TRACE_LOCKED)
			trace_word(common, word, address, address + size, what);
	}
}

/* ---- string instructions ---- */

static uint64_t segment_base(const struct thread *thread, unsigned segment)
{
	return segment == 1 ? read_fs_base() : segment == 2 ? thread->slots[SLOT_PROGRAM_GS] : 0;
}

/* The two ranges of memory that a string instruction is to access: where it reads, and its destination. */
struct string_ranges {
	uint64_t source, destination, size; /* size 0: none of it */
	bool reads, accesses_destination, reads_destination;
};

static uint64_t read_element(uint64_t address, unsigned size)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < size; i++)
		value |= (uint64_t) * (volatile uint8_t *)(address + i) << 8 * i;
	return value;
}

static bool ends_early(unsigned argument)
{
	unsigned kind = STRING_KIND(argument);

	return (kind == STRING_SCAS || kind == STRING_CMPS) && STRING_REPEAT(argument);
}

/* How many elements a comparison comes to: memory is as the instruction will find it. */
static uint64_t compared(
        const struct registers *regs, unsigned argument, uint64_t source, uint64_t destination, uint64_t most)
{
	unsigned size = STRING_SIZE(argument);
	uint64_t step = regs->flags & FLAG_DF ? -(uint64_t)size : size, count = 0;
	uint64_t wanted = size == 8 ? regs->gpr[RAX] : regs->gpr[RAX] & ((1ul << 8 * size) - 1);
	bool equal;

	do {
		if ((int64_t)source < 0 || (int64_t)destination < 0)
			return count; /* it ends with a fault here */
		equal = read_element(destination, size) ==
		        (STRING_KIND(argument) == STRING_CMPS ? read_element(source, size) : wanted);
		source += step;
		destination += step;
		count++;
	} while (count < most && equal == (STRING_REPEAT(argument) == 1));
	return count;
}

/* `executed`: it will be, on memory as it is; else all that it may come to is meant. */
static struct string_ranges string_ranges(const struct thread *thread, unsigned argument, bool executed)
{
	const struct registers *regs = &thread->regs;
	uint64_t mask = STRING_ADDRESS32(argument) ? UINT32_MAX : UINT64_MAX;
	uint64_t count = STRING_REPEAT(argument) ? regs->gpr[RCX] & mask : 1;
	unsigned size = STRING_SIZE(argument), kind = STRING_KIND(argument);
	uint64_t source = (regs->gpr[RSI] & mask) + segment_base(thread, STRING_SEGMENT(argument)),
	         destination = regs->gpr[RDI] & mask, longest = executed ? STRING_COMPARED : STRING_LOOKED;

	if (ends_early(argument) && count > longest / size)
		count = longest / size;
	if (ends_early(argument) && executed && count)
		count = compared(regs, argument, kind == STRING_CMPS ? source : 0, destination, count);
	if (count == 0 || count > STRING_LONGEST / size) /* it ends with a fault long before */
		return (struct string_ranges){0};
	uint64_t back = regs->flags & FLAG_DF ? (count - 1) * size : 0;
	return (struct string_ranges){
	        .source = source - back,
	        .destination = destination - back,
	        .size = count * size,
	        .reads = kind == STRING_MOVS || kind == STRING_LODS || kind == STRING_CMPS,
	        .accesses_destination = kind != STRING_LODS,
	        .reads_destination = kind == STRING_SCAS || kind == STRING_CMPS,
	};
}

static void trace_string_range(
        const struct trace_record *common, unsigned argument, uint64_t address, uint64_t size, unsigned what)
{
	/* A comparison that a fault ends half-way comes to less. */
	if (!ends_early(argument))
		known_note(address, size);
	trace_range(common, address, size, what, STRING_RECORDS / 2);
}

static void trace_string(struct thread *thread, const struct trace_record *common, unsigned argument)
{
	struct string_ranges ranges = string_ranges(thread, argument, true);

	if (ranges.size == 0)
		return;
	if (ranges.reads)
		trace_string_range(common, argument, ranges.source, ranges.size, TRACE_READ);
	if (ranges.accesses_destination)
		trace_string_range(common, argument, ranges.destination, ranges.size,
		        ranges.reads_destination ? TRACE_READ : TRACE_WRITE);
}

/* Of a comparison all that it may come to must be known, also behind where it will end. */
static void divert_string(struct thread *thread, uint64_t pc, unsigned argument)
{
	struct string_ranges ranges = string_ranges(thread, argument, false);
	uint64_t size = ranges.size;

	if (size == 0 || (ranges.reads && divert_access(thread, pc, ranges.source, size, true)))
		return;
	if (ranges.accesses_destination &&
	        !divert_access(thread, pc, ranges.destination, size, ranges.reads_destination))
		known_note(ranges.destination, size);
}

/* ---- what the log tells of ---- */

void trace_patch(struct thread *thread, const struct feed_patch *patch)
{
	struct feed *f = feed();
	struct trace_record record = {
	        .position = replay_position(thread), .kind = TRACE_PATCH, .writes = 0xff};
	const uint64_t *word = patch->words;

	if (!(f->tracing & FEED_TRACES_PATCHES) || !is_line_wanted(patch->address))
		return;
	trace_finish();
	if (f->trace_count + EVENT_LINE_WORDS >= TRACE_RECORDS)
		trace_flush(thread);
	for (unsigned left = patch->head.detail; left; left &= left - 1) {
		record.address = patch->address + 8 * (uint64_t)__builtin_ctz(left);
		record.before = read_word(record.address);
		record.known = known_bytes(record.address);
		record.after = *word++;
		append(record);
	}
}

/* ---- what the code tells of ---- */

/* The same of a thread whose accesses are not wanted, but looked at. */
static void divert(struct thread *thread, uint64_t pc, unsigned what, unsigned size)
{
	uint64_t address = thread->slots[SLOT_ADDRESS];

	if (what == TRACE_EXECUTES) {
		if (!conditions_are_false(thread, address))
			divert_execution(thread, address);
	} else if (what & TRACE_STRING) {
		divert_string(thread, pc, size);
	} else if (what & (TRACE_READ | TRACE_WRITE)) {
		if (!divert_access(thread, pc, address, size, what & TRACE_READ))
			known_note(address, size);
	}
}

void trace_access(struct thread *thread)
{
	uint64_t detail = thread->slots[SLOT_DETAIL], resumed = thread->regs.pc;
	unsigned what = ACCESS_WHAT(detail), size = ACCESS_SIZE(detail);
	struct feed *f = feed();
	struct trace_record common = {.position = replay_position(thread) + ACCESS_EXECUTED(detail)};
	struct code_place place;

	thread->slots[SLOT_TARGET] = resumed;
	if (!code_lookup(resumed, &place))
		stub_panic("no record of code at", resumed);
	common.pc = place.pc;
	trace_finish();
	if (f->trace_count + STRING_RECORDS >= TRACE_RECORDS)
		trace_flush(thread);
	if (diverting()) {
		divert(thread, place.pc, what, size);
		return;
	}
	if (what & TRACE_LOCKED) {
		struct trace_record operation = common;
		operation.kind = TRACE_OPERATION;
		append(operation);
		f->trace_epoch++;
	}
	if (what == TRACE_EXECUTES) {
		if (conditions_are_false(thread, thread->slots[SLOT_ADDRESS]))
			return;
		common.kind = TRACE_EXECUTION;
		common.pc = thread->slots[SLOT_ADDRESS];
		common.address = thread->regs.gpr[RSP];
		common.before = thread->regs.gpr[RDI];
		common.after = thread->regs.gpr[RSI];
		common.result = thread->regs.gpr[RAX];
		common.top = known_is(common.address, 8) ? read_word(common.address) : 0;
		append(common);
	} else if (what & TRACE_STRING)
		trace_string(thread, &common, size);
	else if (what & (TRACE_READ | TRACE_WRITE)) {
		trace_range(&common, thread->slots[SLOT_ADDRESS], size, what, STRING_RECORDS);
		known_note(thread->slots[SLOT_ADDRESS], size);
	}
}

void trace_call(struct thread *thread, const struct feed_syscall *call)
{
	const uint64_t *gpr = thread->regs.gpr;
	struct feed *f = feed();

	if (!f->tracing)
		return;
	trace_finish();
	if (f->trace_count + STRING_RECORDS >= TRACE_RECORDS)
		trace_flush(thread);
	struct trace_record record = {.position = call->head.position,
	        .pc = thread->regs.pc,
	        .kind = TRACE_CALL,
	        .address = call->registers.gpr[RAX],
	        .before = call->result,
	        .after = gpr[RDI]};
	append(record);
	/* clone3 has its arguments in memory: flags and the word that is cleared at the thread's end are
	 * where clone has them. */
	bool clone3 = call->registers.gpr[RAX] == __NR_clone3;
	if (clone3)
		feed()->trace[f->trace_count - 1].after = read_word(gpr[RDI]);
	record.kind = TRACE_ARGUMENTS;
	record.address = gpr[RSI];
	record.before = gpr[RDX];
	record.after = clone3 ? read_word(gpr[RDI] + 16) : gpr[R10];
	append(record);
	f->trace_epoch++;
}
