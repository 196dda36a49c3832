/*
 * The trace of a replayed thread's accesses to memory, see feed.h: what translated code tells of
 * (src/translate/trace.c) is written down here.
 */
#include "target/feed.h"
#include "target/stub.h"

#define WORD 8ul

/* A string instruction tells of no more than this at a time, so that all of it fits. */
#define STRING_RECORDS (TRACE_RECORDS / 2)

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
	return feed()->trace_filter[address >> TRACE_SHIFT & (TRACE_FILTER_BYTES - 1)];
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

static void trace_string_range(const struct trace_record *common, uint64_t address, uint64_t count,
        unsigned size, bool down, unsigned what)
{
	if (down)
		address -= (count - 1) * size;
	trace_range(common, address, count * size, what, STRING_RECORDS / 2);
}

/* Those that compare may end early: what they were to look at is told. */
static void trace_string(struct thread *thread, const struct trace_record *common, unsigned argument)
{
	const struct registers *regs = &thread->regs;
	uint64_t mask = STRING_ADDRESS32(argument) ? UINT32_MAX : UINT64_MAX;
	uint64_t count = STRING_REPEAT(argument) ? regs->gpr[RCX] & mask : 1;
	unsigned size = STRING_SIZE(argument), kind = STRING_KIND(argument);
	bool down = regs->flags & FLAG_DF;
	uint64_t from = (regs->gpr[RSI] & mask) + segment_base(thread, STRING_SEGMENT(argument));
	uint64_t to = regs->gpr[RDI] & mask;

	/* A comparison of unknown length is left out: it says nothing of how far it goes. */
	if (count == 0 || ((kind == STRING_SCAS || kind == STRING_CMPS) && STRING_REPEAT(argument)))
		return;
	if (kind == STRING_MOVS || kind == STRING_LODS || kind == STRING_CMPS)
		trace_string_range(common, from, count, size, down, TRACE_READ);
	if (kind != STRING_LODS)
		trace_string_range(common, to, count, size, down,
		        kind == STRING_MOVS || kind == STRING_STOS ? TRACE_WRITE : TRACE_READ);
}

/* ---- what the code tells of ---- */

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
	if (what & TRACE_LOCKED) {
		struct trace_record operation = common;
		operation.kind = TRACE_OPERATION;
		append(operation);
		f->trace_epoch++;
	}
	if (what & TRACE_STRING)
		trace_string(thread, &common, size);
	else if (what & (TRACE_READ | TRACE_WRITE))
		trace_range(&common, thread->slots[SLOT_ADDRESS], size, what, STRING_RECORDS);
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
