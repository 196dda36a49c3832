#include "record/filters.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/attach.h"
#include "record/filter_program.h"
#include "record/process_facts.h"
#include "record/vector.h"
#include "record/why.h"

/* ---- what the stub calls ---- */

#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

struct own_call {
	struct filter_question question;
	bool dispensable; /* an error will do */
};

#define CALL(name)                                                                                           \
	{                                                                                                    \
		.question = {.number = SYS_##name }                                                          \
	}
#define CALL_OR_ERROR(name)                                                                                  \
	{                                                                                                    \
		.question = {.number = SYS_##name}, .dispensable = true                                      \
	}
#define CALL_WITH(name, index, value)                                                                        \
	{                                                                                                    \
		.question = {.number = SYS_##name, .arguments = {[index] = (value)}, .known = 1 << (index) } \
	}
#define MAP(protection, flags)                                                                               \
	{                                                                                                    \
		.question = {                                                                                \
			.number = SYS_mmap,                                                                  \
			.arguments = {[2] = (protection), [3] = (flags)},                                    \
			.known = 1 << 2 | 1 << 3                                                             \
		}                                                                                            \
	}

/* Everything in src/target that is not the program's own call, or part of one. */
static const struct own_call own_calls[] = {
        MAP(PROT_NONE, ANONYMOUS | MAP_FIXED_NOREPLACE),
        CALL_OR_ERROR(mremap),
        MAP(PROT_READ, MAP_SHARED | MAP_FIXED),
        MAP(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED),
        MAP(PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED),
        CALL(munmap),
        CALL_WITH(mprotect, 2, PROT_READ | PROT_WRITE),
        /* without it pages with code are not watched */
        {.question = {.number = SYS_mprotect, .arguments = {[2] = PROT_READ | PROT_EXEC}, .known = 1 << 2},
                .dispensable = true},
        CALL_WITH(madvise, 2, MADV_DONTNEED),
        CALL_WITH(madvise, 2, MADV_DONTDUMP),
        CALL_WITH(madvise, 2, MADV_POPULATE_WRITE),
        CALL(memfd_create),
        CALL(close),
        CALL(brk),
        CALL_WITH(futex, 1, FUTEX_WAIT),
        CALL_WITH(futex, 1, FUTEX_WAKE),
        CALL(restart_syscall), /* by which the kernel goes on with a wait that a stop has ended */
        CALL(ppoll),
        CALL(clock_gettime),
        CALL(gettid),
        CALL(getpid),
        CALL(rt_sigaction),
        CALL(rt_sigprocmask),
        CALL(rt_sigreturn),
        CALL(rt_tgsigqueueinfo),
        CALL(tgkill),
        CALL(sigaltstack),
        CALL(process_vm_readv),
        CALL(process_vm_writev),
        CALL(exit),
        CALL(exit_group),
        CALL_OR_ERROR(prlimit64),
        CALL_OR_ERROR(newfstatat),
        CALL_OR_ERROR(getxattr),
};

/* ---- putting them to sleep ---- */

static bool is_filtered(pid_t tid)
{
	return process_status(tid, "Seccomp") > 0;
}

bool filters_sleep(pid_t tid)
{
	return ptrace(PTRACE_SETOPTIONS, tid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_SUSPEND_SECCOMP) == 0;
}

static bool not_permitted(int error, char *why, size_t why_size)
{
	const char *what =
	        "it restricts its own system calls (seccomp), and the kernel lets nobody make others in its "
	        "name";

	if (error == EINVAL)
		return fail_because(why, why_size,
		        "%s, for it is built without CONFIG_CHECKPOINT_RESTORE; start it with 'bugnet "
		        "record' instead",
		        what);
	if (is_filtered(getpid()))
		return fail_because(why, why_size,
		        "%s who is restricted himself, as in a container; run bugnet outside, or start it "
		        "with "
		        "'bugnet record' instead",
		        what);
	return fail_because(why, why_size,
	        "%s but root, outside of user namespaces (CAP_SYS_ADMIN); become root, or start it with "
	        "'bugnet record' "
	        "instead",
	        what);
}

bool filters_there(const struct attachment *attachment)
{
	for (uint32_t i = 0; i < attachment->count; i++) {
		if (is_filtered(attachment->items[i].halted.tid))
			return true;
	}
	return false;
}

bool filters_sleep_all(const struct attachment *attachment, char *why, size_t why_size)
{
	for (uint32_t i = 0; i < attachment->count; i++) {
		pid_t tid = attachment->items[i].halted.tid;
		if (is_filtered(tid) && !filters_sleep(tid))
			return not_permitted(errno, why, why_size);
	}
	return true;
}

bool filters_could_sleep(pid_t tid, const struct memory *memory, char *why, size_t why_size)
{
	struct stragglers stragglers = {0};
	struct halted thread;
	bool could = true;
	int error = 0;

	if (is_filtered(tid) && halt_stop(&thread, tid, memory, &stragglers) == HALT_SAFE) {
		could = filters_sleep(tid);
		error = errno;
		halt_let_go(&thread, &stragglers);
	}
	vector_free(&stragglers); /* whoever is one is let go, or reaped, when we end */
	return could || not_permitted(error, why, why_size);
}

/* ---- reading them ---- */

struct program {
	struct sock_filter *instructions;
	uint32_t count;
};

/* Those that were judged; threads have the same ones for the most part. */
struct programs {
	struct program *items;
	uint32_t count, capacity;
	enum filters verdict;
	bool returns; /* they permit rt_sigreturn, */
	bool sleeps;  /* and futex */
};

static void judge_program(struct programs *programs, const struct program *program)
{
	for (size_t i = 0; i < sizeof own_calls / sizeof *own_calls; i++) {
		enum filter_answer answer =
		        filter_asked(program->instructions, program->count, &own_calls[i].question);
		if (answer == FILTER_PERMITS || (answer == FILTER_REFUSES && own_calls[i].dispensable))
			continue;
		programs->verdict = FILTERS_FORBID;
		programs->returns &= own_calls[i].question.number != SYS_rt_sigreturn;
		programs->sleeps &= own_calls[i].question.number != SYS_futex &&
		                    own_calls[i].question.number != SYS_restart_syscall;
	}
}

static bool was_judged(const struct programs *programs, const struct program *program)
{
	for (uint32_t i = 0; i < programs->count; i++) {
		const struct program *other = &programs->items[i];
		if (other->count == program->count &&
		        memcmp(other->instructions, program->instructions,
		                program->count * sizeof *program->instructions) == 0)
			return true;
	}
	return false;
}

/* The filter of that index, the newest being the first; 0: there is none any more, or -errno. */
static int read_program(pid_t tid, uint32_t index, struct program *program)
{
	long count = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, index, NULL);

	if (count <= 0)
		return count == 0 ? -EINVAL : errno == ENOENT ? 0 : -errno;
	program->count = (uint32_t)count;
	program->instructions = calloc(program->count, sizeof *program->instructions);
	if (!program->instructions)
		abort();
	if (ptrace(PTRACE_SECCOMP_GET_FILTER, tid, index, program->instructions) == count)
		return 1;
	int error = errno;
	free(program->instructions);
	return error ? -error : -EINVAL;
}

static int judge_thread(struct programs *programs, pid_t tid)
{
	struct program program;
	int found;

	for (uint32_t i = 0; (found = read_program(tid, i, &program)) > 0; i++) {
		if (programs->verdict == FILTERS_NONE)
			programs->verdict = FILTERS_PERMIT;
		if (was_judged(programs, &program)) {
			free(program.instructions);
			continue;
		}
		judge_program(programs, &program);
		vector_push(programs, program);
	}
	return found;
}

static bool judge_all(
        struct programs *programs, const struct attachment *attachment, char *why, size_t why_size)
{
	for (uint32_t i = 0; i < attachment->count; i++) {
		pid_t tid = attachment->items[i].halted.tid;
		if (!is_filtered(tid))
			continue;
		if (process_status(tid, "Seccomp") == SECCOMP_MODE_STRICT)
			return fail_because(why, why_size,
			        "it has restricted itself to reading, writing and the end (strict seccomp); "
			        "start it "
			        "with 'bugnet record' instead");
		int error = judge_thread(programs, tid);
		if (error < 0)
			return not_permitted(-error, why, why_size);
	}
	if (!programs->returns)
		return fail_because(why, why_size,
		        "its seccomp filter forbids to return from signal handlers (rt_sigreturn), so that "
		        "it could "
		        "not be recorded without harm; start it with 'bugnet record' before it restricts "
		        "itself");
	return filters_sleep_all(attachment, why, why_size);
}

bool filters_judge(struct attachment *attachment, char *why, size_t why_size)
{
	struct programs programs = {.verdict = FILTERS_NONE, .returns = true, .sleeps = true};
	bool good = judge_all(&programs, attachment, why, why_size);

	attachment->filters = programs.verdict;
	attachment->sleeps = programs.sleeps;
	for (uint32_t i = 0; i < programs.count; i++)
		free(programs.items[i].instructions);
	vector_free(&programs);
	return good;
}
