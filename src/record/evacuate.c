/*
 * ptrace is used for this alone while a program runs, and only for a moment. A
 * thread is out of the way when it waits in the stub (thread.parked); one that is
 * stopped in translated code is stepped to the next boundary between two program
 * instructions and put at the stub's resume, as a signal handler of the stub
 * would do it. One that is anywhere else in the stub will be elsewhere soon: all
 * are let go and stopped again.
 */
#include "record/evacuate.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/namespace.h"
#include "record/vector.h"
#include "target/directory.h"

#define ATTEMPTS          500
#define PAUSE_NANOSECONDS 1000000
#define STEPS_TO_BOUNDARY 1000
#define STOP_POLLS        2000 /* for a thread to stop */
#define POLL_NANOSECONDS  50000

struct stopped {
	pid_t tid;
	int signal; /* that it was about to receive */
	const struct memory *memory;
};

struct evacuation {
	const struct space *space;
	VECTOR(struct stopped) threads;
	struct stragglers *stragglers;
};

enum outcome { SAFE, UNSAFE, GONE, REFUSED };

/* ---- stopping ---- */

static bool is_stopped(const struct evacuation *evacuation, pid_t tid)
{
	for (uint32_t i = 0; i < evacuation->threads.count; i++) {
		if (evacuation->threads.items[i].tid == tid)
			return true;
	}
	return false;
}

/* Waits for the thread's next stop and keeps the signal it was to receive, if that is why. */
static enum outcome wait_for_stop(struct stopped *thread)
{
	int status;

	for (unsigned i = 0; i < STOP_POLLS; i++) {
		pid_t pid = waitpid(thread->tid, &status, __WALL | WNOHANG);
		if (pid < 0 || (pid > 0 && !WIFSTOPPED(status)))
			return GONE;
		if (pid > 0) {
			if (status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP)
				thread->signal = WSTOPSIG(status);
			return SAFE;
		}
		if (i > 20)
			nanosleep(&(struct timespec){.tv_nsec = POLL_NANOSECONDS}, NULL);
	}
	return REFUSED;
}

static enum outcome stop(struct evacuation *evacuation, const struct evacuee *process, pid_t tid)
{
	struct stopped thread = {.tid = tid, .memory = process->memory};

	if (ptrace(PTRACE_SEIZE, tid, 0, 0) < 0)
		return errno == ESRCH ? GONE : REFUSED;
	bool dying = ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0;
	enum outcome outcome = dying ? GONE : wait_for_stop(&thread);
	if (outcome == SAFE)
		vector_push(&evacuation->threads, thread);
	else if (dying || outcome == REFUSED)
		vector_push(evacuation->stragglers, tid);
	return outcome;
}

/* Everybody with a mailbox; threads that start meanwhile are found by looking until there are no more. */
static enum outcome stop_process(struct evacuation *evacuation, const struct evacuee *process)
{
	const struct channel *channel = process->channel;
	bool found;

	do {
		found = false;
		uint32_t high = __atomic_load_n(&channel->mailbox_high, __ATOMIC_ACQUIRE);
		for (uint32_t i = 0; i < high; i++) {
			const struct mailbox *mailbox = &channel->mailboxes[i];
			if (__atomic_load_n(&mailbox->state, __ATOMIC_ACQUIRE) == MAILBOX_FREE ||
			        mailbox->pid != process->pid ||
			        __atomic_load_n(&mailbox->absent, __ATOMIC_SEQ_CST))
				continue;
			if (!mailbox->tid)
				return UNSAFE; /* it is just being made */
			pid_t tid = namespace_resolve(process->pid, mailbox->tid);
			if (!tid || is_stopped(evacuation, tid))
				continue;
			switch (stop(evacuation, process, tid)) {
			case REFUSED:
				return REFUSED;
			case SAFE:
				found = true;
			default:
				break;
			}
		}
	} while (found);
	return SAFE;
}

/* ---- where they are ---- */

static const struct space_segment *segment_of(const struct space *space, uint64_t address)
{
	for (unsigned i = 0; i < space->segment_count; i++) {
		const struct segment_layout *layout = &space->segments[i].layout;
		if (address - (layout->base + layout->code) < layout->code_size)
			return &space->segments[i];
	}
	return NULL;
}

struct place {
	uint64_t pc;
	bool boundary; /* see directory.h */
	int32_t executed;
	uint64_t slots; /* of thread 0 in its segment */
};

/* Where in the program translated code at `address` belongs to. */
static bool program_place(const struct space *space, uint64_t address, struct place *place)
{
	const struct space_segment *segment = segment_of(space, address);
	const struct code_range *range;

	if (!segment)
		return false;
	const struct placed_record *records =
	        (const struct placed_record *)(segment->memory + segment->layout.records);
	uint64_t code = address - segment->layout.base - segment->layout.code;
	const struct placed_record *record =
	        directory_find((const struct code_range *)(segment->memory + segment->layout.directory),
	                segment->directory_count, records, code, &range);
	if (!record)
		return false;
	*place = (struct place){
	        .pc = range->pc + (uint64_t)(int64_t)record->pc,
	        .boundary = directory_boundary(range, record, code) && !(record->state & RECORD_PUT_ASIDE),
	        .executed = record->executed,
	        .slots = segment->layout.base + LAYOUT_THREADS,
	};
	return true;
}

static bool read_word(const struct stopped *thread, uint64_t address, uint32_t *word)
{
	return pread(thread->memory->mem_fd, word, sizeof *word, (off_t)address) == sizeof *word;
}

static bool write_memory(const struct stopped *thread, uint64_t address, const void *bytes, size_t size)
{
	return pwrite(thread->memory->mem_fd, bytes, size, (off_t)address) == (ssize_t)size;
}

/* The x87 unit remembers where its last instruction was: that must be the program's pc from now on. */
static void mend_x87_pointer(const struct space *space, pid_t tid)
{
	struct user_fpregs_struct registers;
	struct place place;

	if (ptrace(PTRACE_GETFPREGS, tid, 0, &registers) == 0 &&
	        program_place(space, registers.rip, &place)) {
		registers.rip = place.pc;
		ptrace(PTRACE_SETFPREGS, tid, 0, &registers);
	}
}

/* At a boundary: the program's registers go to the stub's record of the thread, and the thread to resume. */
static bool move_to_resume(const struct space *space, const struct stopped *thread,
        struct user_regs_struct *r, const struct place *place)
{
	uint64_t own = space->segments[0].layout.base + LAYOUT_THREADS + r->gs_base, stack;
	struct registers registers = {
	        .gpr = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi, r->r8, r->r9, r->r10,
	                r->r11, r->r12, r->r13, r->r14, r->r15},
	        .pc = place->pc,
	        .flags = r->eflags,
	};
	uint64_t none = 0, counter = place->slots + r->gs_base + SLOT_POSITION * 8, position;

	if (pread(thread->memory->mem_fd, &position, sizeof position, (off_t)counter) != sizeof position)
		return false;
	position += (uint64_t)(int64_t)place->executed;
	if (!write_memory(thread, counter, &position, sizeof position) ||
	        !write_memory(thread, own + THREAD_REGS, &registers, sizeof registers) ||
	        !write_memory(thread, own + SLOT_TARGET * 8, &none, sizeof none) ||
	        pread(thread->memory->mem_fd, &stack, sizeof stack, (off_t)(own + THREAD_STACK)) !=
	                sizeof stack)
		return false;
	r->rip = space->segments[0].layout.base + space->header.resume;
	r->rsp = stack;
	r->eflags = 2;
	return ptrace(PTRACE_SETREGS, thread->tid, 0, r) == 0;
}

/* One instruction on; false when something else happened, and the thread runs on with it. */
static bool step(struct stopped *thread)
{
	int status;

	if (ptrace(PTRACE_SINGLESTEP, thread->tid, 0, 0) < 0 || waitpid(thread->tid, &status, __WALL) < 0 ||
	        !WIFSTOPPED(status))
		return false;
	if (status >> 16 || WSTOPSIG(status) == SIGTRAP)
		return true;
	thread->signal = WSTOPSIG(status);
	return false;
}

/*
 * Has the instruction it stands at faulted already? The kernel stops it for us
 * before it delivers that signal, which must find the thread where it was.
 */
static bool fault_pending(pid_t tid)
{
	siginfo_t pending[32];
	struct __ptrace_peeksiginfo_args all = {.nr = sizeof pending / sizeof *pending};
	long count = ptrace(PTRACE_PEEKSIGINFO, tid, &all, pending);

	for (long i = 0; i < count; i++) {
		int number = pending[i].si_signo;
		if (pending[i].si_code > 0 && (number == SIGSEGV || number == SIGBUS || number == SIGFPE ||
		                                      number == SIGILL || number == SIGTRAP))
			return true;
	}
	return count < 0;
}

static enum outcome settle(const struct space *space, struct stopped *thread)
{
	const struct segment_layout *first = &space->segments[0].layout;
	struct user_regs_struct r;
	uint32_t word;
	struct place place;

	for (unsigned i = 0; i < STEPS_TO_BOUNDARY; i++) {
		if (ptrace(PTRACE_GETREGS, thread->tid, 0, &r) < 0)
			return UNSAFE;
		uint64_t own = first->base + LAYOUT_THREADS + r.gs_base;
		if (!thread_of_distance(space_info(space, 0), r.gs_base))
			return SAFE; /* released, or executing one instruction natively */
		if (!program_place(space, r.rip, &place))
			return read_word(thread, own + THREAD_PARKED, &word) && word ? SAFE : UNSAFE;
		if (!read_word(thread, own + THREAD_STEPPING, &word) || word || thread->signal ||
		        fault_pending(thread->tid))
			return UNSAFE; /* the stub is about to take it out itself */
		if (place.boundary)
			return move_to_resume(space, thread, &r, &place) ? SAFE : UNSAFE;
		if (!step(thread))
			return UNSAFE;
	}
	return UNSAFE;
}

/* ---- all together ---- */

static void let_go(struct evacuation *evacuation)
{
	for (uint32_t i = 0; i < evacuation->threads.count; i++) {
		const struct stopped *thread = &evacuation->threads.items[i];
		/* Killed meanwhile: nobody else can reap it before we do. */
		if (ptrace(PTRACE_DETACH, thread->tid, 0, thread->signal) < 0)
			vector_push(evacuation->stragglers, thread->tid);
	}
	evacuation->threads.count = 0;
}

static enum outcome attempt(struct evacuation *evacuation, const struct evacuee *evacuees, unsigned count)
{
	enum outcome outcome = SAFE;

	for (unsigned i = 0; i < count && outcome == SAFE; i++)
		outcome = stop_process(evacuation, &evacuees[i]);
	for (uint32_t i = 0; i < evacuation->threads.count && outcome == SAFE; i++)
		outcome = settle(evacuation->space, &evacuation->threads.items[i]);
	for (uint32_t i = 0; i < evacuation->threads.count && outcome == SAFE; i++)
		mend_x87_pointer(evacuation->space, evacuation->threads.items[i].tid);
	return outcome;
}

static void set_evacuating(const struct evacuee *evacuees, unsigned count, uint32_t value)
{
	for (unsigned i = 0; i < count; i++)
		__atomic_store_n(&evacuees[i].channel->evacuating, value, __ATOMIC_SEQ_CST);
}

struct evacuation *evacuation_begin(const struct space *space, const struct evacuee *evacuees, unsigned count,
        struct stragglers *stragglers)
{
	struct evacuation *evacuation = calloc(1, sizeof *evacuation);
	enum outcome outcome = UNSAFE;

	if (!evacuation)
		abort();
	evacuation->space = space;
	evacuation->stragglers = stragglers;
	for (unsigned i = 0; i < ATTEMPTS && outcome == UNSAFE; i++) {
		set_evacuating(evacuees, count, 1);
		outcome = attempt(evacuation, evacuees, count);
		if (outcome == SAFE)
			return evacuation;
		set_evacuating(evacuees, count, 0);
		let_go(evacuation);
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOSECONDS}, NULL);
	}
	vector_free(&evacuation->threads);
	free(evacuation);
	return NULL;
}

void evacuation_end(struct evacuation *evacuation, const struct evacuee *evacuees, unsigned count)
{
	set_evacuating(evacuees, count, 0);
	let_go(evacuation);
	vector_free(&evacuation->threads);
	free(evacuation);
}
