/*
 * Replay: the program runs as it did, with the recording in place of the world.
 *
 * The thread runs translated code up to the position of the next record of the feed (see
 * feed.h), the record is applied, and so on. A block that would go beyond that position
 * leaves to replay_stop at its start, which has just as many instructions executed as are
 * missing. Nothing of the program but its own instructions is ever executed: system calls,
 * clocks and signals are what the feed says.
 *
 * Memory is what the thread stored and what was patched; all else is zero, and appears
 * when it is touched.
 *
 * Whatever is not as recorded ends the replay, with the thread's state for the replayer.
 */
#include "target/feed.h"
#include "target/forget.h"
#include "target/stub.h"

#define ARCH_SET_GS 0x1001
#define ARCH_SET_FS 0x1002

#define PAGE  0x1000ul
#define CHUNK 0x10000ul /* memory that appears at once */

#define STEPPED 1024 /* instructions at most that are executed block by block */

#define TRAP_DEBUG      1
#define TRAP_BREAKPOINT 3
#define TRAP_OVERFLOW   4

struct feed *feed(void)
{
	const struct segment_layout *segment = &process()->segments[0];

	return (struct feed *)(segment->base + segment->logs);
}

/* ---- positions ---- */

/* In replay there is one thread, whose slots are the same in all segments, and the replayer's to see. */
void replay_map(int memfd)
{
	const struct process *p = process();
	uint64_t own = LAYOUT_THREADS + THREAD_STRIDE;

	for (uint32_t n = 0; n < p->segment_count; n++) {
		uint64_t at = p->segments[n].base + own;
		if (syscall6(__NR_mmap, (long)at, THREAD_FPSTATE, K_PROT_READ | K_PROT_WRITE,
		            K_MAP_SHARED | K_MAP_FIXED, memfd, (long)(p->segments[0].file + own)) != (long)at)
			stub_panic("cannot map slots at", at);
	}
}

static int64_t *counters(const struct thread *thread)
{
	return (int64_t *)thread + SLOT_POSITIONS;
}

/* How many instructions there are up to the stop. */
static uint64_t instructions_left(const struct thread *thread)
{
	uint64_t left = -thread->slots[SLOT_POSITION];

	for (unsigned k = 0; k < REPLAY_POSITION_SLOTS; k++)
		left -= (uint64_t)counters(thread)[k];
	return left;
}

/* The counters have nothing: the next block that looks at one of them stops. */
static void set_instructions_left(struct thread *thread, uint64_t left)
{
	thread->slots[SLOT_POSITION] = -left;
	for (unsigned k = 0; k < REPLAY_POSITION_SLOTS; k++)
		counters(thread)[k] = feed()->shares[k] = 0;
}

/* How much each counter was used since the last time; what was long ago counts less and less. */
static void weigh_counters(const struct thread *thread)
{
	uint64_t *weights = feed()->weights, used[REPLAY_POSITION_SLOTS], all = 0;
	unsigned shift = 0;

	for (unsigned k = 0; k < REPLAY_POSITION_SLOTS; k++) {
		used[k] = (uint64_t)(feed()->shares[k] + counters(thread)[k]);
		all += used[k];
	}
	while (all >> shift >= FEED_WEIGHT)
		shift++;
	for (unsigned k = 0; k < REPLAY_POSITION_SLOTS; k++)
		weights[k] = (shift ? 0 : weights[k] / 2) + (used[k] >> shift);
}

/*
 * Shares out what is left: to each counter in proportion to its use, so that all of them are
 * used up at about the same time; `needed` to the one that somebody waits for.
 */
static void share_out(struct thread *thread, uint64_t left, unsigned waiting, uint64_t needed)
{
	const uint64_t *weights = feed()->weights;
	uint64_t all = 0, shared = left - needed < FEED_SHARED ? left - needed : FEED_SHARED;

	for (unsigned k = 0; k < REPLAY_POSITION_SLOTS; k++)
		all += weights[k];

	uint64_t least = all / 64 + 1, scale = (shared << 16) / (all + REPLAY_POSITION_SLOTS * least);

	for (unsigned k = 0; k < REPLAY_POSITION_SLOTS; k++) {
		uint64_t share = (scale * (weights[k] + least) >> 16) + (k == waiting ? needed : 0);
		feed()->shares[k] = (int64_t)share;
		counters(thread)[k] = -(int64_t)share;
		left -= share;
	}
	thread->slots[SLOT_POSITION] = -left;
}

uint64_t replay_position(const struct thread *thread)
{
	return feed()->stop - instructions_left(thread);
}

/* ---- vector state and segment bases ---- */

static void load_vectors(const void *image)
{
	struct feed *f = feed();

	memcpy(f->loaded, image, sizeof f->loaded);
	vectors_load(f->loaded);
}

static void write_fs_base(uint64_t base)
{
	__asm__ volatile("wrfsbase %0" : : "r"(base));
}

/* ---- talking to the replayer ---- */

void replay_show(const struct thread *thread)
{
	struct feed *f = feed();

	f->position = replay_position(thread);
	f->fs_base = read_fs_base();
	vectors_save(f->shown);
}

/* The replayer is gone, or wants us gone. */
static _Noreturn void leave(void)
{
	for (;;)
		syscall1(__NR_exit_group, 1);
}

void ask_replayer(struct thread *thread, uint64_t what, uint64_t number)
{
	if (ask(thread, OP_FEED, what, number, 0) != STATUS_OK)
		leave();
}

_Noreturn void replay_diverged(struct thread *thread, unsigned how, uint64_t detail)
{
	replay_show(thread);
	ask(thread, OP_DIVERGED, how, detail, 0);
	leave();
}

/* ---- memory ---- */

static bool appear(uint64_t start, uint64_t size)
{
	return syscall6(__NR_mmap, (long)start, (long)size, K_PROT_READ | K_PROT_WRITE,
	               K_MAP_PRIVATE | K_MAP_ANONYMOUS | K_MAP_NORESERVE | K_MAP_FIXED_NOREPLACE, -1,
	               0) == (long)start;
}

/* One page at a time, each of which is told of. */
static bool page_appears(uint64_t page)
{
	struct feed *f = feed();

	if (!appear(page, PAGE))
		return false;
	if (f->touched_count < FEED_TOUCHED)
		f->touched[f->touched_count++] = page;
	else
		f->touched[FEED_TOUCHED - 1] = UINT64_MAX;
	return true;
}

/* Memory that was never touched; false: it is there, or it is ours. */
static bool memory_appears(uint64_t address)
{
	feed()->counts.faults++;
	if (feed()->surveying)
		return page_appears(address & -PAGE);
	return appear(address & -CHUNK, CHUNK) || appear(address & -PAGE, PAGE);
}

static void empty_memory(uint64_t start, uint64_t end)
{
	if (end > USER_ADDRESS_END)
		end = USER_ADDRESS_END;
	if (start < end && unmap_around_us(start, end))
		stub_panic("memory cannot be emptied at", start);
	if (start < end)
		known_forget(start, end);
}

/* ---- records ---- */

static const struct feed_record *next_record(struct thread *thread)
{
	struct feed *f = feed();
	const struct feed_record *record = (const struct feed_record *)((const char *)f + f->next);

	while (record->kind == FEED_MORE) {
		ask_replayer(thread, FEED_ASK_MORE, 0);
		f->next = thread->mailbox->reply[0];
		record = (const struct feed_record *)((const char *)f + f->next);
	}
	return record;
}

static void consume(const struct feed_record *record)
{
	feed()->next += record->size;
	feed()->counts.records++;
}

/* Is it what an instruction gives? Else it comes before the instruction. */
static bool is_expected(const struct feed_record *record)
{
	return record->kind >= FEED_SYSCALL;
}

static void apply_state(struct thread *thread, const struct feed_state *state)
{
	thread->regs = state->registers;
	if (state->head.detail & FEED_HAS_XSAVE)
		load_vectors(state->xsave);
	if (state->head.detail & FEED_HAS_BASES) {
		write_fs_base(state->fs_base);
		set_program_gs(thread, state->gs_base);
	}
}

static void begin(struct thread *thread, const struct feed_state *state)
{
	if (state->head.detail & FEED_HAS_EMPTY)
		empty_memory(0, USER_ADDRESS_END);
	apply_state(thread, state);
}

/* The whole words of a line that changed. */
static void apply_patch(const struct feed_patch *patch)
{
	volatile uint64_t *line = (volatile uint64_t *)patch->address;
	const uint64_t *word = patch->words;

	for (unsigned left = patch->head.detail; left; left &= left - 1)
		line[__builtin_ctz(left)] = *word++;
	known_note(patch->address, EVENT_LINE_BYTES);
}

static void apply_changes(struct registers *regs, const struct event_changes *changes)
{
	for (unsigned left = changes->mask; left; left &= left - 1)
		regs->gpr[__builtin_ctz(left)] = changes->gpr[__builtin_ctz(left)];
	if (changes->has_flags)
		regs->flags = changes->flags;
}

/* ---- running up to a record ---- */

static struct feed_step *step_slot(uint64_t pc, uint64_t wanted)
{
	uint64_t hash = (pc + wanted * 0x9e3779b97f4a7c15u) * 0x9e3779b97f4a7c15u;

	return &feed()->steps[(hash >> 40) % FEED_STEPS];
}

static bool step_is(const struct feed_step *step, uint64_t pc, uint64_t wanted)
{
	return step->pc == pc && step->wanted == wanted && step->generation == feed()->generation;
}

/* Code for so many instructions from pc on, or for the rest of the block if that is less. */
static uint64_t step_code(struct thread *thread, uint64_t pc, uint64_t wanted)
{
	struct feed_step *block = step_slot(pc, 0), *step = step_slot(pc, wanted);

	if (step_is(block, pc, 0) && block->length <= wanted)
		return block->code;
	if (!step_is(step, pc, wanted)) {
		feed()->counts.step_requests++;
		if (ask(thread, OP_STEP, pc, wanted, 0) != STATUS_OK)
			replay_diverged(thread, DIVERGED_NO_CODE, pc);
		uint32_t length = (uint32_t)thread->mailbox->reply[1];
		if (length < wanted) {
			step = block;
			wanted = 0;
		}
		*step = (struct feed_step){
		        pc, thread->mailbox->reply[0], (uint32_t)wanted, length, feed()->generation, 0};
	}
	return step->code;
}

/* Part of a rep instruction: the whole of it with a smaller count, and then as if it had been interrupted. */
static void begin_repeat(struct thread *thread, uint64_t iterations)
{
	struct feed *f = feed();

	f->repeating = 1;
	f->repeat_pc = thread->regs.pc;
	f->repeat_rcx = thread->regs.gpr[RCX] - iterations;
	thread->regs.gpr[RCX] = iterations;
	thread->slots[SLOT_TARGET] = step_code(thread, thread->regs.pc, 1);
}

static void end_repeat(struct thread *thread)
{
	struct feed *f = feed();

	f->repeating = 0;
	thread->slots[SLOT_POSITION]--;
	thread->regs.pc = f->repeat_pc;
	thread->regs.gpr[RCX] = f->repeat_rcx;
}

/* Applies what comes before the instruction at this position. */
static void apply(struct thread *thread, const struct feed_record *record)
{
	switch (record->kind) {
	case FEED_STATE:
		begin(thread, (const struct feed_state *)record);
		break;
	case FEED_CODE:
		ask_replayer(thread, FEED_ASK_CODE, ((const struct feed_number *)record)->number);
		break;
	case FEED_REPORT:
		replay_show(thread);
		ask_replayer(thread, FEED_ASK_REPORT, ((const struct feed_number *)record)->number);
		if (thread->mailbox->reply[0])
			park((unsigned)thread->mailbox->reply[0] - 1);
		break;
	case FEED_PATCH:
		trace_patch(thread, (const struct feed_patch *)record);
		apply_patch((const struct feed_patch *)record);
		break;
	case FEED_REPEAT:
		begin_repeat(thread, ((const struct feed_number *)record)->number);
		break;
	case FEED_SIGNAL:
	case FEED_INSTEAD:
		apply_state(thread, (const struct feed_state *)record);
		break;
	}
}

/*
 * The thread is at a boundary: applies all records that are due, and sets the next stop.
 * The program goes on at thread.regs, or at SLOT_TARGET if that is set then.
 */
static void advance(struct thread *thread)
{
	struct feed *f = feed();
	uint64_t now = replay_position(thread);

	weigh_counters(thread);
	const struct feed_record *record;

	thread->slots[SLOT_TARGET] = 0;
	f->stepping = 0;
	trace_finish();
	for (;;) {
		record = next_record(thread);
		if (record->kind == FEED_STATE)
			now = record->position;
		if (record->position != now || is_expected(record))
			break;
		/* Where it is must be right for whoever looks. */
		f->stop = now;
		set_instructions_left(thread, 0);
		if (record->kind == FEED_STATE || record->kind == FEED_REPORT)
			trace_flush(thread);
		now += record->kind == FEED_INSTEAD;
		/* Before it is applied: where it was parked, the feed may be another one then. */
		consume(record);
		apply(thread, record);
		if (f->repeating)
			return;
	}
	if (record->position < now)
		replay_diverged(thread, DIVERGED_PASSED, record->position);
	f->stop = record->position + is_expected(record);
	share_out(thread, f->stop - now, 0, 0);
}

void replay_go_on(struct thread *thread)
{
	feed()->stop = replay_position(thread);
	set_instructions_left(thread, 0);
	advance(thread);
}

void replay_start(struct thread *thread)
{
	struct feed *f = feed();

	confine(f->parking);
	thread->wanted = f->trace_words;
	f->next = offsetof(struct feed, buffers);
	advance(thread);
}

/* Executes the block at pc, or as much of it as is left. */
static void step(struct thread *thread, uint64_t left)
{
	set_instructions_left(thread, left);
	thread->slots[SLOT_TARGET] = step_code(thread, thread->regs.pc, left);
	feed()->stepping = 1;
	feed()->counts.steps++;
}

/* The block at pc might go beyond the next record, or beyond what its counter has. */
void replay_stop(struct thread *thread)
{
	uint64_t detail = thread->slots[SLOT_DETAIL], left = instructions_left(thread);

	thread->slots[SLOT_TARGET] = 0;
	if (left == 0) {
		advance(thread);
		return;
	}
	weigh_counters(thread);
	if (left < STOP_LONGEST(detail)) {
		step(thread, left);
		return;
	}
	share_out(thread, left, STOP_COUNTER(detail), STOP_LONGEST(detail));
	feed()->counts.shares++;
}

void replay_exit(struct thread *thread, uint64_t indirect)
{
	struct feed *f = feed();
	bool stepping = f->stepping;

	f->stepping = 0;
	if (f->repeating)
		end_repeat(thread);

	uint64_t left = instructions_left(thread);

	if (left == 0) {
		advance(thread);
		return;
	}
	/* It goes on block by block, now that the stop is near. (An indirect branch may have led out of
	 * that.) */
	if (stepping && left < STEPPED) {
		step(thread, left);
		return;
	}
	f->counts.requests++;
	if (ask(thread, OP_TRANSLATE, thread->regs.pc, indirect, 0) != STATUS_OK) {
		/* gdb has functions return to a breakpoint on the stack. */
		if (diverting() && divert_execution(thread, thread->regs.pc))
			return;
		replay_diverged(thread, DIVERGED_NO_CODE, thread->regs.pc);
	}
	thread->slots[SLOT_TARGET] = thread->mailbox->reply[0];
}

/* ---- what instructions give ---- */

/* The record for the instruction that has just been counted. */
static const struct feed_record *expect(struct thread *thread)
{
	const struct feed_record *record = next_record(thread);

	if (!is_expected(record) || record->position + 1 != replay_position(thread))
		replay_diverged(thread, DIVERGED_UNLOGGED, record->position);
	return record;
}

static void call_effects(struct thread *thread, const struct feed_syscall *call)
{
	const uint64_t *gpr = thread->regs.gpr;
	uint64_t arguments[6] = {gpr[RDI], gpr[RSI], gpr[RDX], gpr[R10], gpr[R8], gpr[R9]};
	uint64_t number = call->registers.gpr[RAX];
	struct forgotten forgotten = forgotten_by(number, arguments, call->result);

	if (call->head.detail & FEED_HAS_FORGET && forgotten.start < forgotten.end)
		empty_memory(forgotten.start, forgotten.end);
	if (number == __NR_arch_prctl && call->result == 0) {
		if (gpr[RDI] == ARCH_SET_FS)
			write_fs_base(gpr[RSI]);
		else if (gpr[RDI] == ARCH_SET_GS)
			set_program_gs(thread, gpr[RSI]);
	}
}

static bool same_at_call(const struct registers *here, const struct registers *recorded)
{
	for (unsigned i = 0; i < 16; i++) {
		if (here->gpr[i] != recorded->gpr[i])
			return false;
	}
	return here->pc == recorded->pc && (here->flags & EVENT_CALL_FLAGS) == recorded->flags;
}

static void take_call(struct thread *thread, const struct feed_syscall *call)
{
	struct registers *regs = &thread->regs;

	if (regs->gpr[RAX] != call->registers.gpr[RAX])
		replay_diverged(thread, DIVERGED_SYSCALL, call->head.position);
	if (!same_at_call(regs, &call->registers))
		replay_diverged(thread, DIVERGED_REGISTERS, call->head.position);
	if (call->head.detail & FEED_HAS_CALL) {
		replay_show(thread);
		ask_replayer(thread, FEED_ASK_CALL, call->result);
	}
	trace_call(thread, call);
	call_effects(thread, call);
	regs->gpr[RAX] = call->result;
}

/* Is this where the log ends? A thread's last system call has no record, as it never came back. */
static bool ends_here(struct thread *thread)
{
	const struct feed_record *record = next_record(thread);

	return record->kind == FEED_REPORT && record->position == replay_position(thread);
}

void replay_syscall(struct thread *thread)
{
	if (diverting()) {
		divert_syscall(thread);
		return;
	}
	if (ends_here(thread)) {
		advance(thread);
		return;
	}
	const struct feed_record *record = expect(thread);
	struct registers *regs = &thread->regs;

	const struct feed_syscall *call = (const struct feed_syscall *)record;

	if (record->kind != FEED_SYSCALL)
		replay_diverged(thread, DIVERGED_UNLOGGED, record->position);
	take_call(thread, call);
	regs->gpr[RCX] = regs->pc;
	regs->gpr[R11] = regs->flags;
	apply_changes(regs, &call->changes);
	consume(record);
	advance(thread);
}

static void take_result(struct thread *thread)
{
	const struct feed_record *record = expect(thread);

	if (record->kind != FEED_RESULT)
		replay_diverged(thread, DIVERGED_UNLOGGED, record->position);
	apply_changes(&thread->regs, &((const struct feed_result *)record)->changes);
	consume(record);
	thread->regs.pc += EMULATE_LENGTH(thread->slots[SLOT_DETAIL]);
}

/* What fnsave and fnstenv do besides storing. */
static void take_x87_env16(struct thread *thread, bool save)
{
	uint8_t image[108];

	if (save)
		__asm__ volatile("fnsave %0" : "=m"(image));
	else
		__asm__ volatile("fnstenv %0" : "=m"(image));
	thread->regs.pc += EMULATE_LENGTH(thread->slots[SLOT_DETAIL]);
}

/* False: it is performed as in any other run. */
bool replay_emulate(struct thread *thread)
{
	uint64_t detail = thread->slots[SLOT_DETAIL];

	switch (EMULATE_KIND(detail)) {
	case EMULATE_CPUID:
	case EMULATE_XGETBV:
	case EMULATE_RESULT:
		if (diverting())
			return false;
		take_result(thread);
		break;
	case EMULATE_X87_ENV16:
		take_x87_env16(thread, EMULATE_ARGUMENT(detail));
		break;
	case EMULATE_FIX_X87_PC: /* the image went elsewhere */
		if (diverting())
			divert_image(thread, EMULATE_ARGUMENT(detail));
		thread->regs.pc += EMULATE_LENGTH(detail);
		break;
	case EMULATE_NATIVE:
	case EMULATE_STATE:
	case EMULATE_INT80:
	case EMULATE_VSYSCALL:
		replay_diverged(thread, DIVERGED_UNLOGGED, next_record(thread)->position);
	default:
		return false;
	}
	if (instructions_left(thread) == 0)
		advance(thread);
	return true;
}

/* ---- signals of this process ---- */

/*
 * Memory appears when it is touched. Traps of the program's own making have their
 * signals in the log, behind the instruction. Everything else was not recorded.
 */
uint64_t replay_signal(int number, struct kernel_siginfo *siginfo, struct kernel_ucontext *context,
        struct thread *thread, uint64_t gs_base)
{
	const struct kernel_sigcontext *c = &context->mcontext;
	struct code_place place;

	if (siginfo->code <= 0)
		return gs_base;
	if (c->trapno == TRAP_PAGE_FAULT && known_appears(siginfo->address, thread, &context->mcontext))
		return gs_base;
	if (c->trapno == TRAP_PAGE_FAULT && memory_appears(siginfo->address))
		return gs_base;
	if (c->trapno == TRAP_DEBUG || c->trapno == TRAP_BREAKPOINT || c->trapno == TRAP_OVERFLOW)
		return gs_base;
	if (!code_lookup(c->rip, &place))
		panic_at_fault(c, siginfo->address);
	registers_from_code(thread, c, &place);
	replay_diverged(thread, DIVERGED_FAULT, (uint64_t)number);
}
