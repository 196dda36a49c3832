/*
 * A thread is out of the way when it waits in the stub (thread.parked); one that is
 * stopped in translated code is stepped to the next boundary. One that is anywhere else
 * in the stub will be elsewhere soon.
 */
#include "record/halt.h"

#include <asm/processor-flags.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/process_facts.h"
#include "record/user_registers.h"
#include "record/vector.h"
#include "target/directory.h"

#define STEPS_TO_BOUNDARY 1000
#define STEPS_TO_ANOTHER  100
#define STOP_POLLS        2000 /* for a thread to stop */
#define POLL_NANOSECONDS  50000
#define RESTART_BY_BLOCK  516 /* what a call returns inside the kernel then (linux/errno.h) */

/* ---- stopping ---- */

/* Waits for the thread's next stop and keeps the signal it was to receive, if that is why. */
static enum halt_outcome wait_for_stop(struct halted *thread)
{
	int status;

	for (unsigned i = 0; i < STOP_POLLS; i++) {
		pid_t pid = waitpid(thread->tid, &status, __WALL | WNOHANG);
		if (pid < 0 || (pid > 0 && !WIFSTOPPED(status)))
			return HALT_GONE;
		if (pid > 0) {
			if (status >> 16 == 0)
				thread->signal = WSTOPSIG(status);
			thread->stopped = status >> 16 && WSTOPSIG(status) != SIGTRAP;
			return HALT_SAFE;
		}
		if (i > 20)
			nanosleep(&(struct timespec){.tv_nsec = POLL_NANOSECONDS}, NULL);
	}
	return HALT_REFUSED;
}

enum halt_outcome halt_stop(
        struct halted *thread, pid_t tid, const struct memory *memory, struct stragglers *stragglers)
{
	*thread = (struct halted){.tid = tid, .memory = memory};
	if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) < 0)
		/* One that has ended, and whose rest is still there, is refused like one that somebody
		 * traces. */
		return errno == ESRCH || process_is_over(tid) ? HALT_GONE : HALT_REFUSED;
	bool dying = ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0;
	enum halt_outcome outcome = dying ? HALT_GONE : wait_for_stop(thread);
	if (dying || outcome == HALT_REFUSED)
		vector_push(stragglers, tid);
	return outcome;
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

static bool read_word(const struct halted *thread, uint64_t address, uint32_t *word)
{
	return pread(thread->memory->mem_fd, word, sizeof *word, (off_t)address) == sizeof *word;
}

static bool write_memory(const struct halted *thread, uint64_t address, const void *bytes, size_t size)
{
	return pwrite(thread->memory->mem_fd, bytes, size, (off_t)address) == (ssize_t)size;
}

/* The x87 unit remembers where its last instruction was: that must be the program's pc from now on. */
void halt_mend_x87(const struct space *space, const struct halted *thread)
{
	pid_t tid = thread->tid;
	struct user_fpregs_struct registers;
	struct place place;

	if (ptrace(PTRACE_GETFPREGS, tid, 0, &registers) == 0 &&
	        program_place(space, registers.rip, &place)) {
		registers.rip = place.pc;
		ptrace(PTRACE_SETFPREGS, tid, 0, &registers);
	}
}

/* One by one: PTRACE_SETREGS takes no GS base like ours, and sets half of them before it says so. */
static bool set_register(const struct halted *thread, size_t offset, uint64_t value)
{
	return ptrace(PTRACE_POKEUSER, thread->tid, offsetof(struct user, regs) + offset, value) == 0;
}

/* At a boundary: the program's registers go to the stub's record of the thread, and the thread to `entry`. */
static bool move_to(const struct space *space, const struct halted *thread, const struct user_regs_struct *r,
        const struct place *place, uint64_t entry)
{
	uint64_t own = space->segments[0].layout.base + LAYOUT_THREADS + r->gs_base, stack;
	struct registers registers = registers_from_user(r);
	uint64_t none = 0, counter = place->slots + r->gs_base + SLOT_POSITION * 8, position;

	if (pread(thread->memory->mem_fd, &position, sizeof position, (off_t)counter) != sizeof position)
		return false;
	position += (uint64_t)(int64_t)place->executed;
	registers.pc = place->pc;
	if (!write_memory(thread, counter, &position, sizeof position) ||
	        !write_memory(thread, own + THREAD_REGS, &registers, sizeof registers) ||
	        !write_memory(thread, own + SLOT_TARGET * 8, &none, sizeof none) ||
	        pread(thread->memory->mem_fd, &stack, sizeof stack, (off_t)(own + THREAD_STACK)) !=
	                sizeof stack)
		return false;
	return set_register(thread, offsetof(struct user_regs_struct, rip),
	               space->segments[0].layout.base + entry) &&
	       set_register(thread, offsetof(struct user_regs_struct, rsp), stack) &&
	       set_register(thread, offsetof(struct user_regs_struct, eflags), 2);
}

void halt_put(const struct space *space, const struct halted *thread, uint64_t entry)
{
	set_register(thread, offsetof(struct user_regs_struct, rip), space->segments[0].layout.base + entry);
	set_register(thread, offsetof(struct user_regs_struct, orig_rax), (uint64_t)-1);
}

/* One instruction on; false when something else happened, and the thread runs on with it. */
static bool step(struct halted *thread)
{
	int status;

	if (ptrace(PTRACE_SINGLESTEP, thread->tid, 0, 0) < 0 || waitpid(thread->tid, &status, __WALL) < 0 ||
	        !WIFSTOPPED(status))
		return false;
	siginfo_t info;
	if (status >> 16 ||
	        (WSTOPSIG(status) == SIGTRAP && ptrace(PTRACE_GETSIGINFO, thread->tid, 0, &info) == 0 &&
	                info.si_code == TRAP_TRACE))
		return true;
	thread->signal = WSTOPSIG(status); /* also the program's own int3 */
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

static enum halt_outcome settle(const struct space *space, struct halted *thread, uint64_t entry, bool *moved)
{
	const struct segment_layout *first = &space->segments[0].layout;
	struct user_regs_struct r;
	uint32_t word;
	struct place place;
	uint64_t first_pc = 0;

	*moved = false;
	for (unsigned i = 0; i < STEPS_TO_BOUNDARY; i++) {
		if (ptrace(PTRACE_GETREGS, thread->tid, 0, &r) < 0)
			return HALT_UNSAFE;
		uint64_t own = first->base + LAYOUT_THREADS + r.gs_base;
		if (!thread_of_distance(space_info(space, 0), r.gs_base))
			return HALT_SAFE; /* released, or executing one instruction natively */
		if (!program_place(space, r.rip, &place))
			return read_word(thread, own + THREAD_PARKED, &word) && word ? HALT_SAFE
			                                                             : HALT_UNSAFE;
		/* The stub is about to take it out itself, or a trap of the program's own TF does. */
		if (!read_word(thread, own + THREAD_STEPPING, &word) || word || thread->signal ||
		        (r.eflags & X86_EFLAGS_TF) || fault_pending(thread->tid))
			return HALT_UNSAFE;
		if (i == 0)
			first_pc = place.pc;
		/* A branch to itself is another instruction, too, some time. */
		bool enough = !thread->further || place.pc != first_pc || i >= STEPS_TO_ANOTHER;
		if (place.boundary && enough) {
			*moved = move_to(space, thread, &r, &place, entry);
			return *moved ? HALT_SAFE : HALT_UNSAFE;
		}
		if (!step(thread))
			return HALT_UNSAFE;
	}
	return HALT_UNSAFE;
}

/*
 * The kernel forces the trap of a step on a thread that blocks SIGTRAP, and forgets the process's handler for
 * it then, although only we get to see the trap. So it is not blocked meanwhile.
 */
enum halt_outcome halt_settle(const struct space *space, struct halted *thread, uint64_t entry, bool *moved)
{
	uint64_t mask, open, trap = 1ul << (SIGTRAP - 1);

	if (ptrace(PTRACE_GETSIGMASK, thread->tid, sizeof mask, &mask) < 0)
		return HALT_UNSAFE;
	open = mask & ~trap;
	if (open != mask)
		ptrace(PTRACE_SETSIGMASK, thread->tid, sizeof open, &open);
	enum halt_outcome outcome = settle(space, thread, entry, moved);
	if (open != mask)
		ptrace(PTRACE_SETSIGMASK, thread->tid, sizeof mask, &mask);
	return outcome;
}

/* ---- letting go ---- */

/*
 * A system call that ended only because the thread was stopped is made again. The kernel would go on with
 * some of them by restart_syscall, which a seccomp filter need not know of: these are made again with their
 * whole timeout.
 */
static void resume_call(const struct halted *thread)
{
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, thread->tid, 0, &r) < 0 || (int64_t)r.orig_rax < 0 ||
	        ((int64_t)r.rax != -EINTR &&
	                !((int64_t)r.rax == -RESTART_BY_BLOCK && process_status(thread->tid, "Seccomp") > 0)))
		return;
	set_register(thread, offsetof(struct user_regs_struct, rax), r.orig_rax);
	set_register(thread, offsetof(struct user_regs_struct, rip), r.rip - 2);
	/* or the kernel would look at the result once more */
	set_register(thread, offsetof(struct user_regs_struct, orig_rax), (uint64_t)-1);
}

void halt_let_go(const struct halted *thread, struct stragglers *stragglers)
{
	if (!thread->signal)
		resume_call(thread);
	/* Killed meanwhile: nobody else can reap it before we do. */
	if (ptrace(PTRACE_DETACH, thread->tid, 0, thread->signal) < 0)
		vector_push(stragglers, thread->tid);
}
