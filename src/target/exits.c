/*
 * Leaving translated code for code that has none yet, and leaving it for good.
 */
#include "target/feed.h"
#include "target/stub.h"

bool is_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64 ... 0x67:
	case 0xf0:
	case 0xf2:
	case 0xf3:
	case 0x40 ... 0x4f:
		return true;
	default:
		return false;
	}
}

static uint64_t *slots_of(const struct thread *thread, uint32_t segment)
{
	return (uint64_t *)(process()->segments[segment].base + LAYOUT_THREADS + thread->distance);
}

void set_program_gs(struct thread *thread, uint64_t base)
{
	for (uint32_t i = 0; i < process()->segment_count; i++)
		slots_of(thread, i)[SLOT_PROGRAM_GS] = base;
}

void note_program_fs(struct thread *thread)
{
	for (uint32_t i = 0; i < process()->segment_count; i++)
		slots_of(thread, i)[SLOT_FS_BASE] = read_fs_base();
}

uint64_t position(const struct thread *thread)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < process()->segment_count; i++) {
		const uint64_t *slots = slots_of(thread, i);
		sum += slots[SLOT_POSITION];
		for (unsigned k = 0; k < POSITION_SLOTS; k++)
			sum += slots[SLOT_POSITIONS + k];
	}
	return sum;
}

void set_position(struct thread *thread, uint64_t value)
{
	for (uint32_t i = 0; i < process()->segment_count; i++) {
		uint64_t *slots = slots_of(thread, i);
		slots[SLOT_POSITION] = i ? 0 : value;
		for (unsigned k = 0; k < POSITION_SLOTS; k++)
			slots[SLOT_POSITIONS + k] = 0;
	}
}

/* What each counter has until the thread comes out; the position stays what it is. */
void arm_counters(struct thread *thread, uint64_t share)
{
	for (uint32_t i = 0; i < process()->segment_count; i++) {
		uint64_t *slots = slots_of(thread, i);
		for (unsigned k = 0; k < POSITION_SLOTS; k++) {
			slots[SLOT_POSITION] += slots[SLOT_POSITIONS + k] + share;
			slots[SLOT_POSITIONS + k] = -share;
		}
	}
}

void publish_position(struct thread *thread)
{
	if ((info()->count || recording()) && thread->mailbox)
		thread->mailbox->instructions = position(thread);
}

/* The stub itself stays where it is: it never changes. */
static void map_space(struct thread *thread, long memfd, bool logs)
{
	struct process *p = process();

	for (uint32_t i = 0; i < p->segment_count; i++) {
		struct segment_layout *segment = &p->segments[i];
		uint64_t base = segment->base;
		own_call6(thread, __NR_mmap, base + LAYOUT_INFO, LAYOUT_PROCESS - LAYOUT_INFO, K_PROT_READ,
		        K_MAP_SHARED | K_MAP_FIXED, memfd, segment->file + LAYOUT_INFO);
		own_call6(thread, __NR_mmap, base + segment->code, segment->code_size,
		        K_PROT_READ | K_PROT_EXEC, K_MAP_SHARED | K_MAP_FIXED, memfd,
		        segment->file + segment->code);
		own_call6(thread, __NR_mmap, base + segment->directory,
		        segment->directory_size + segment->records_size, K_PROT_READ,
		        K_MAP_SHARED | K_MAP_FIXED, memfd, segment->file + segment->directory);
		if (logs && segment->logs_size)
			own_call6(thread, __NR_mmap, base + segment->logs, segment->logs_size,
			        K_PROT_READ | K_PROT_WRITE, K_MAP_SHARED | K_MAP_FIXED, memfd,
			        segment->file + segment->logs);
		own_call3(thread, __NR_madvise, base, segment->size, K_MADV_DONTDUMP);
	}
}

/* Moves to a copy of the code cache; with logs of its own, too. Is the process recorded there? */
static bool move_space(struct thread *thread, bool logs, uint64_t parent)
{
	long memfd = own_call2(thread, __NR_memfd_create, "bugnet", 1 /* MFD_CLOEXEC */);
	bool recorded = false;

	if (memfd < 0)
		return false;
	if (ask(thread, OP_NEW_SPACE, memfd, logs, parent) == STATUS_OK) {
		process()->space = thread->mailbox->reply[0];
		recorded = thread->mailbox->reply[1];
		map_space(thread, memfd, logs);
		/* Until now no other thread got an answer: it would have been about the new memory. */
		ask(thread, OP_MOVED, 0, 0, 0);
	}
	own_call1(thread, __NR_close, memfd);
	return recorded;
}

/* A process that was forked shares its parent's code cache until one of them changes its code. */
void leave_space(struct thread *thread)
{
	move_space(thread, false, 0);
}

void record_child(struct thread *thread)
{
	thread->forked = 0;
	if (!thread->mailbox || process()->seccomp || !info()->children ||
	        !move_space(thread, true, thread->mailbox->parent)) {
		pages_end();
		return;
	}
	process()->thread_ids = 0;
	order_forget(thread);
	if (by_pages())
		pages_close();
	if (shadow_forget_all(thread, by_pages()))
		log_begin(thread, LOG_NO_PARENT);
}

/*
 * Everybody leaves: none may run natively while others still need pages to be watched. The supervisor takes
 * the thread from here, with its registers and mask, when all have come.
 */
static void wait_at_gate(struct thread *thread)
{
	__atomic_store_n(&thread->parked, PARKED_AT_GATE, __ATOMIC_SEQ_CST);
	uint32_t detaining;

	while (((detaining = __atomic_load_n(&channel()->detaining, __ATOMIC_SEQ_CST)) & DETAIN_LEAVING) &&
	        !supervisor_died())
		if (process()->quiet)
			__builtin_ia32_pause();
		else
			sleep_on(thread, &channel()->detaining, detaining);
	/* It takes signals again from here on, and must not be taken from where it takes none. */
	__atomic_store_n(&thread->parked, 0, __ATOMIC_SEQ_CST);
}

/* Others stay: what they run is checked from now on instead of being watched. */
void leave_others_unwatched(struct thread *thread)
{
	__atomic_store_n(&process()->has_natives, 1, __ATOMIC_SEQ_CST);
	if (process()->watches)
		unwatch_range(thread, 0, -1ul);
}

/*
 * The thread runs natively from here on: nothing of ours is on its way any
 * more but the signal handler, which passes signals on (see native_handler).
 */
_Noreturn void release(struct thread *thread)
{
	const uint64_t *gpr = thread->regs.gpr;
	const uint64_t image[LEAVE_WORDS] = {thread->mask, gpr[RDI], gpr[RSI], gpr[RDX], gpr[R10], gpr[R11],
	        gpr[RCX], gpr[RAX], thread->regs.flags, thread->regs.pc};

	if (replaying())
		replay_diverged(thread, DIVERGED_UNLOGGED, 0);
	bool gate = channel()->detaining & DETAIN_LEAVING;
	/* Nobody makes calls for it. */
	bool alone = process()->seccomp && (!is_assisted(thread) || !gate || supervisor_died());
	if (alone && thread->pending)
		deliver_pending(thread); /* and then it leaves */
	publish_position(thread);
	log_end(thread, LOG_END_RELEASED, 0, NULL);
	pages_end();
	if (!gate)
		leave_others_unwatched(thread);
	__atomic_fetch_add(&channel()->released, 1, __ATOMIC_RELAXED);
	if (write_program(gpr[RSP] - 128 - sizeof image, image, sizeof image) < 0)
		stub_panic("no stack to leave on at", gpr[RSP]);
	if (alone && info()->assists)
		leave_by_frame(thread);
	if (alone)
		run_natively(); /* not even the return from a signal is known to be permitted */
	struct kernel_stack none = {.flags = K_SS_DISABLE};
	give_signals_back(thread); /* a signal that came from here on would stay with us */
	own_call2(thread, __NR_sigaltstack, thread->altstack.size ? &thread->altstack : &none, 0);
	if (gate)
		wait_at_gate(thread);
	if (process()->seccomp)
		leave_by_frame(thread); /* the supervisor has died just now */
	if (supervisor_died())
		unwatch_all();
	leave_with_mask();
}

/* Everybody is to leave, and the thread was about to go back to translated code. */
_Noreturn void leave_now(struct thread *thread)
{
	surface(thread);
	release(thread);
}

/*
 * The program is at an instruction that will fault: have the CPU say how, by
 * executing it where it stands. See `probing` in handle_signal.
 */
_Noreturn void fault_natively(struct thread *thread)
{
	if (replaying())
		replay_diverged(thread, DIVERGED_FAULT, K_SIGSEGV);
	thread->probing = PROBE_NATIVE;
	probe_natively();
}

/* A trap of ours must come through, whatever the program blocks. */
static void let_trap_through(struct thread *thread)
{
	uint64_t trap = SIGBIT(K_SIGTRAP);

	if (thread->mask & trap)
		own_call4(thread, __NR_rt_sigprocmask, K_SIG_UNBLOCK, &trap, 0, 8);
	thread->step_armed = 0;
}

/* Has the CPU execute one instruction where it stands. */
_Noreturn void step_natively(struct thread *thread)
{
	let_trap_through(thread);
	fault_natively(thread);
}

/* The program traps itself and has just gone where no code is: the trap comes before that fault. */
_Noreturn void trap_here(struct thread *thread)
{
	let_trap_through(thread);
	thread->probing = PROBE_TRAP;
	raise_trap();
}

/*
 * A branch to an address that is none. The CPU blames the branch and leaves
 * everything as it was before it; so take it back and have the CPU do it again.
 */
static _Noreturn void fault_at_branch(struct thread *thread)
{
	struct registers *regs = &thread->regs;
	uint32_t place = thread->slots[SLOT_BRANCH];
	const struct segment_layout *segment = &process()->segments[PLACE_SEGMENT(place)];
	uint8_t code[16] = {0};
	unsigned at = 0, size = 0;

	thread->counted = 1;
	if (!program_pc_of(segment->base + segment->code + PLACE_OFFSET(place), &regs->pc))
		stub_panic("no record of the branch at", place);
	while (size < sizeof code && read_program(&code[size], regs->pc + size, 1) == 0)
		size++;
	while (at < 14 && is_prefix(code[at]))
		at++;
	if (code[at] == 0xc3)
		regs->gpr[RSP] -= 8;
	else if (code[at] == 0xc2)
		regs->gpr[RSP] -= 8 + (code[at + 1] | code[at + 2] << 8);
	else if (code[at] == 0xff && (code[at + 1] >> 3 & 7) == 2) {
		write_program(regs->gpr[RSP], &thread->slots[SLOT_UNDER_STACK], 8);
		if (recording())
			shadow_revert(thread, regs->gpr[RSP]);
		regs->gpr[RSP] += 8;
	}
	fault_natively(thread);
}

/*
 * May a write to a watched page come to nobody? Or may we not be allowed to make it writable again, because
 * the program restricts its system calls?
 */
static bool must_not_watch(void)
{
	const struct process *p = process();

	return p->has_natives || p->seccomp || (p->segv_blockers && !p->watches);
}

/*
 * Takes the write permission from a page with code on it and has it translated
 * then: what is translated must not change unnoticed.
 */
static uint64_t protect_and_translate(struct thread *thread, uint64_t indirect)
{
	uint64_t status;

	lock(&process()->protect_lock);
	if (!process()->watches) {
		process()->watches = 1;
		set_kernel_mask(thread->mask);
	}
	/* Ask again: what the answer was about may have changed before the lock was ours. */
	status = ask(thread, OP_TRANSLATE, thread->regs.pc, indirect,
	        process()->has_natives || process()->seccomp ? TRANSLATE_UNWATCHED : 0);
	while (status == STATUS_PROTECT) {
		const uint64_t *reply = thread->mailbox->reply;
		uint64_t start = reply[0], size = reply[1] - reply[0];
		long refused = syscall3(__NR_mprotect, start, size, K_PROT_READ | K_PROT_EXEC);
		status = ask(thread, OP_TRANSLATE, thread->regs.pc, indirect,
		        refused < 0 ? TRANSLATE_UNWATCHED : TRANSLATE_PROTECTED);
		if (status == STATUS_RELEASE &&
		        refused >= 0) /* others may have been through unwatch_all before */
			syscall3(__NR_mprotect, start, size, K_PROT_READ | K_PROT_WRITE | K_PROT_EXEC);
	}
	unlock(&process()->protect_lock);
	return status;
}

/*
 * Where an indirect branch has looked for the pc: INDIRECT(). The stub's own looks into the first table;
 * those of replay do not say which they are.
 */
static uint64_t searched(const struct thread *thread)
{
	if (replaying())
		return INDIRECT_ANYWHERE;

	uint32_t place = thread->slots[SLOT_BRANCH];

	return place == BRANCH_NONE ? INDIRECT(0, 0) : INDIRECT(PLACE_SEGMENT(place), PLACE_TABLE(place));
}

void handle_stop(struct thread *thread)
{
	if (replaying()) {
		replay_stop(thread);
		return;
	}
	thread->counted = 0;
	thread->slots[SLOT_TARGET] = thread->inside = thread->regs.pc;
	/* The branch is done: a program that steps over it has come to its end. */
	thread->slots[SLOT_DETAIL] = ACCESS_COPY;
	if (!log_pause(thread)) {
		thread->regs.flags |= FLAG_SF;
		return;
	}
	surface(thread);
	log_keyframe(thread);
}

void handle_exit(struct thread *thread, int missed)
{
	uint64_t indirect = missed ? searched(thread) : 0;

	thread->counted = 0;
	thread->slots[SLOT_TARGET] = 0; /* where it once went on in the middle of code, see surface */
	if (replaying()) {
		replay_exit(thread, indirect);
		return;
	}
	if (indirect && (int64_t)(thread->regs.pc << 16) >> 16 != (int64_t)thread->regs.pc) {
		if ((uint32_t)thread->slots[SLOT_BRANCH] == BRANCH_NONE)
			fault_natively(thread);
		fault_at_branch(thread);
	}
	if (recording())
		log_keyframe(thread);
	if (thread->single && position(thread) != thread->single_from)
		return; /* to stand still, see detained() */
	for (;;) {
		uint64_t status = ask(thread, OP_TRANSLATE, thread->regs.pc, indirect,
		        must_not_watch() ? TRANSLATE_UNWATCHED : 0);
		if (status == STATUS_PROTECT && by_pages()) {
			thread->leaves_pages = LEAVES_FOR_CODE;
			log_keyframe(thread);
			continue;
		}
		if (status == STATUS_PROTECT)
			status = protect_and_translate(thread, indirect);
		switch (status) {
		case STATUS_OK:
			if (code_was_replaced(thread)) {
				log_code(thread, position(thread));
				break; /* that may have taken time: ask again */
			}
			thread->slots[SLOT_TARGET] = thread->mailbox->reply[0];
			return;
		case STATUS_SPLIT:
			leave_space(thread);
			break;
		case STATUS_HOLD:
			debugged_stop(thread);
			break;
		case STATUS_AGAIN:
			break;
		case STATUS_FAULT:
			if ((thread->regs.flags & FLAG_TF) && thread->step_armed)
				trap_here(thread);
			fault_natively(thread);
		default:
			if (thread->pending)
				deliver_pending(thread);
			release(thread);
		}
	}
}
