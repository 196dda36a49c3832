#include "record/attach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/orphan.h"
#include "record/process_facts.h"
#include "record/user_registers.h"
#include "record/vector.h"
#include "record/why.h"

#define CODE_SELECTOR_64 0x33
#define MASK_BYTES       8
#define ROUNDS           50 /* of looking for threads that others made meanwhile */

/* What a call returns inside the kernel when it is to be made again (linux/errno.h). */
#define RESTART_SYSTEM   512
#define RESTART_ALWAYS   513
#define RESTART_NO_HAND  514
#define RESTART_BY_BLOCK 516

#define FIRST_THREAD_ENDED                                                                                   \
	"its first thread has ended, in which things would have to be done; start it with 'bugnet record'"

/* ---- what the kernel says of it ---- */

bool attachment_program(pid_t pid, char program[PATH_MAX], char *why, size_t why_size)
{
	if (process_link(pid, "exe", program))
		return true;
	int error = errno;
	if (kill(pid, 0) < 0 && errno == ESRCH)
		return fail_because(why, why_size, "there is no such process; 'ps' lists them");
	if (process_is_kernels(pid))
		return fail_because(why, why_size,
		        "it is a thread of the kernel, and runs no program; 'ps' lists others");
	if (process_is_over(pid) && process_status(pid, "Threads") > 1)
		return fail_because(why, why_size, FIRST_THREAD_ENDED);
	if (process_is_over(pid))
		return fail_because(why, why_size,
		        "it has ended, and only its parent, process %ld, has not asked how; 'ps' lists "
		        "others",
		        process_status(pid, "PPid"));
	return fail_because(why, why_size,
	        "cannot tell what it runs: %s; it must be yours: become its user, or root", strerror(error));
}

static bool check(pid_t pid, const struct memory *memory, char *why, size_t why_size)
{
	long tracer = process_status(pid, "TracerPid");
	char program[PATH_MAX];

	if (!attachment_program(pid, program, why, why_size))
		return false;
	if (process_status(pid, "Tgid") != pid)
		return fail_because(why, why_size, "it is a thread of process %ld; give that number",
		        process_status(pid, "Tgid"));
	if (strncmp(program, "/memfd:bugnet-replay", 20) == 0)
		return fail_because(why, why_size,
		        "it is a program that bugnet replays: what it does was recorded already");
	if (tracer > 0)
		return fail_because(why, why_size, "process %ld traces it; end that one first", tracer);
	switch (orphan_look(memory)) {
	case ORPHAN_BUGNET:
		return fail_because(why, why_size,
		        "it is bugnet itself, which records or replays another program; 'bugnet ps' lists "
		        "what "
		        "is recorded");
	case ORPHAN_SERVED:
		return fail_because(
		        why, why_size, "bugnet runs it already; 'bugnet ps' lists what is recorded");
	case ORPHAN_STRANGE:
		return fail_because(why, why_size,
		        "another version of bugnet runs it already, or was killed while it did; let it go "
		        "with that "
		        "one's 'bugnet detach %d'",
		        pid);
	default:
		return true;
	}
}

/* ---- stopping ---- */

bool attached_call_is_undone(const struct user_regs_struct *r)
{
	int64_t result = (int64_t)r->rax;

	return (int64_t)r->orig_rax >= 0 &&
	       (result == -RESTART_SYSTEM || result == -RESTART_ALWAYS || result == -RESTART_NO_HAND ||
	               result == -RESTART_BY_BLOCK || result == -EINTR);
}

bool attached_is_calling(const struct space *space, const struct user_regs_struct *r)
{
	return thread_of_distance(space_info(space, 0), r->gs_base) &&
	       r->rip == space->segments[0].layout.base + space->header.called && attached_call_is_undone(r);
}

/*
 * A call that ended only because the thread was stopped is made again, with its whole timeout. The kernel
 * would do the same, had it not been told that the thread is somewhere else.
 */
static void make_call_again(struct user_regs_struct *r)
{
	if (attached_call_is_undone(r)) {
		r->rax = r->orig_rax;
		r->rip -= 2;
	}
	r->orig_rax = (uint64_t)-1;
}

/* A signal that it was about to receive has its effect first, natively: it may have to end a system call. */
static enum halt_outcome deliver_first(struct attached_thread *thread, struct stragglers *stragglers)
{
	const struct memory *memory = thread->halted.memory;
	pid_t tid = thread->halted.tid;

	for (unsigned i = 0; thread->halted.signal && i < ROUNDS; i++) {
		halt_let_go(&thread->halted, stragglers);
		enum halt_outcome outcome = halt_stop(&thread->halted, tid, memory, stragglers);
		if (outcome != HALT_SAFE)
			return outcome;
	}
	return thread->halted.signal ? HALT_REFUSED : HALT_SAFE;
}

/* No signal gets in the way from here on. */
static bool look_at(struct attached_thread *thread, char *why, size_t why_size)
{
	static const uint64_t all = ~UINT64_C(0);
	pid_t tid = thread->halted.tid;

	if (thread->halted.stopped)
		return fail_because(why, why_size, "it is stopped; continue it first ('kill -CONT')");
	if (ptrace(PTRACE_GETREGS, tid, 0, &thread->registers) < 0 ||
	        ptrace(PTRACE_GETSIGMASK, tid, MASK_BYTES, &thread->mask) < 0)
		return fail_because(why, why_size, "cannot look at thread %d: %s", tid, strerror(errno));
	if (thread->registers.cs != CODE_SELECTOR_64)
		return fail_because(why, why_size, "it is not a 64-bit program");
	make_call_again(&thread->registers);
	ptrace(PTRACE_SETSIGMASK, tid, MASK_BYTES, &all);
	thread->looked_at = true;
	return true;
}

static bool has_thread(const struct attachment *attachment, pid_t tid)
{
	for (uint32_t i = 0; i < attachment->count; i++) {
		if (attachment->items[i].halted.tid == tid)
			return true;
	}
	return false;
}

/* In vfork, which nothing interrupts. */
static bool waits_for_child(pid_t tid, const struct memory *memory)
{
	char path[64];
	long number = -1;
	uint64_t flags = 0;

	snprintf(path, sizeof path, "/proc/%d/syscall", tid);
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	if (fscanf(file, "%ld %lx", &number, &flags) < 1)
		number = -1;
	fclose(file);
	if (number == SYS_clone3 && pread(memory->mem_fd, &flags, sizeof flags, (off_t)flags) != sizeof flags)
		return false;
	return number == SYS_vfork || ((number == SYS_clone || number == SYS_clone3) && flags & CLONE_VFORK);
}

static bool stop_thread(
        struct attachment *attachment, pid_t tid, const struct memory *memory, char *why, size_t why_size)
{
	struct attached_thread thread = {0};
	enum halt_outcome outcome = halt_stop(&thread.halted, tid, memory, &attachment->stragglers);
	int error = errno;

	if (outcome == HALT_SAFE)
		outcome = deliver_first(&thread, &attachment->stragglers);
	if (outcome == HALT_GONE)
		return true;
	if (outcome != HALT_SAFE && error == EPERM)
		return fail_because(why, why_size,
		        "you may not trace it; it must be yours, and the kernel must permit it: see "
		        "'bugnet doctor', or become root");
	if (outcome != HALT_SAFE)
		return fail_because(why, why_size,
		        waits_for_child(tid, memory) ? "thread %d waits in vfork for its child to execute a "
		                                       "program, or to end; try "
		                                       "again then"
		                                     : "thread %d is in a call of the kernel that nothing "
		                                       "interrupts, or traced; try "
		                                       "again later",
		        tid);
	vector_push(attachment, thread);
	return look_at(&attachment->items[attachment->count - 1], why, why_size);
}

/* Those that there are now; *found: some were not stopped yet. */
static bool stop_round(
        struct attachment *attachment, const struct memory *memory, bool *found, char *why, size_t why_size)
{
	char path[64];
	struct dirent *entry;
	bool good = true;

	*found = false;
	snprintf(path, sizeof path, "/proc/%d/task", attachment->pid);
	DIR *directory = opendir(path);
	if (!directory)
		return fail_because(why, why_size, "there is no such process");
	while (good && (entry = readdir(directory))) {
		pid_t tid = (pid_t)atoi(entry->d_name);
		if (tid <= 0 || has_thread(attachment, tid))
			continue;
		*found = true;
		good = stop_thread(attachment, tid, memory, why, why_size);
	}
	closedir(directory);
	return good;
}

static bool stop_all(struct attachment *attachment, const struct memory *memory, char *why, size_t why_size)
{
	bool found = true;

	for (unsigned i = 0; found && i < ROUNDS; i++) {
		if (!stop_round(attachment, memory, &found, why, why_size))
			return false;
	}
	if (found)
		return fail_because(why, why_size, "it makes threads faster than they can be stopped");
	if (!attachment->count || attachment->items[0].halted.tid != attachment->pid)
		return fail_because(why, why_size, FIRST_THREAD_ENDED);
	if (attachment->count >= MAX_RECORDED_THREADS)
		return fail_because(why, why_size, "it has %u threads, more than the %u that can be recorded",
		        attachment->count, MAX_RECORDED_THREADS - 1);
	return true;
}

bool attachment_begin(
        struct attachment *attachment, pid_t pid, const struct memory *memory, char *why, size_t why_size)
{
	*attachment = (struct attachment){.pid = pid};
	if (!check(pid, memory, why, why_size) || !attachment_stop(attachment, pid, memory, why, why_size))
		return false;
	if (filters_judge(attachment, why, why_size))
		return true;
	attachment_abandon(attachment);
	return false;
}

bool attachment_stop(
        struct attachment *attachment, pid_t pid, const struct memory *memory, char *why, size_t why_size)
{
	*attachment = (struct attachment){.pid = pid};
	if (stop_all(attachment, memory, why, why_size))
		return true;
	attachment_abandon(attachment);
	return false;
}

/* ---- on their way ---- */

void attachment_describe(const struct attachment *attachment, struct space *space)
{
	uint8_t *logs = space->segments[0].memory + space->segments[0].layout.logs;

	for (uint32_t i = 0; i < attachment->count; i++) {
		const struct attached_thread *thread = &attachment->items[i];
		struct adoption *adoption = (struct adoption *)(logs + log_offset(i + 1) + LOG_DATA);
		*adoption = (struct adoption){.mask = thread->mask,
		        .program_gs = thread->registers.gs_base,
		        .registers = registers_from_user(&thread->registers)};
	}
}

static void detach(struct attachment *attachment, const struct attached_thread *thread)
{
	if (ptrace(PTRACE_DETACH, thread->halted.tid, 0, thread->halted.signal) < 0)
		vector_push(&attachment->stragglers, thread->halted.tid);
}

/* One that is about to make calls of ours; true: it is still traced. */
static bool go_on(struct attachment *attachment, const struct attached_thread *thread)
{
	if (attachment->filters == FILTERS_FORBID && ptrace(PTRACE_CONT, thread->halted.tid, 0, 0) == 0)
		return true;
	detach(attachment, thread);
	return false;
}

void attachment_start(struct attachment *attachment)
{
	go_on(attachment, &attachment->items[0]);
}

void attachment_finish(struct attachment *attachment, const struct space *space, struct stragglers *traced)
{
	const struct segment_layout *first = &space->segments[0].layout;
	const uint8_t *logs = space->segments[0].memory + first->logs;

	/* All before the first of them goes on: that one's log is where the description of another was. */
	for (uint32_t i = 1; i < attachment->count; i++) {
		struct attached_thread *thread = &attachment->items[i];
		uint64_t distance =
		        ((const struct adoption *)(logs + log_offset(i + 1) + LOG_DATA))->distance;
		thread->adopted = distance != 0;
		if (distance) {
			thread->registers.rax = distance;
			thread->registers.rip = first->base + space->header.adopted;
		} else {
			ptrace(PTRACE_SETSIGMASK, thread->halted.tid, MASK_BYTES, &thread->mask);
		}
		ptrace(PTRACE_SETREGS, thread->halted.tid, 0, &thread->registers);
	}
	for (uint32_t i = 1; i < attachment->count; i++) {
		const struct attached_thread *thread = &attachment->items[i];
		if (!thread->adopted)
			detach(attachment, thread);
		else if (go_on(attachment, thread))
			vector_push(traced, thread->halted.tid);
	}
	vector_free(attachment);
}

void attachment_abandon(struct attachment *attachment)
{
	for (uint32_t i = 0; i < attachment->count; i++) {
		const struct attached_thread *thread = &attachment->items[i];
		if (thread->looked_at)
			ptrace(PTRACE_SETSIGMASK, thread->halted.tid, MASK_BYTES, &thread->mask);
		halt_let_go(&thread->halted, &attachment->stragglers);
	}
	vector_free(attachment);
}
