/*
 * Limits on address space. What we reserve in the program counts for the kernel as the program's, so where
 * the program has a limit, the kernel's is higher by that: the program can have as much memory as natively,
 * and is told what it set.
 *
 * The kernel's hard limit is higher by more than any address space, since it can only be lowered by most
 * programs, and new threads need more. That keeps the order of hard limits, so that it is still the kernel
 * who says whether a program may raise its own.
 */
#include "target/stub.h"

#define AMPLE          (1ul << 47)
#define PROGRAMS_SHARE 8

static const int resources[LIMITS] = {[LIMIT_SPACE] = K_RLIMIT_AS, [LIMIT_DATA] = K_RLIMIT_DATA};

static struct limit_pair raised(struct limit_pair limit, uint64_t soft, uint64_t hard)
{
	if (limit.hard != K_RLIM_INFINITY)
		limit.hard = limit.hard < K_RLIM_INFINITY - hard ? limit.hard + hard : K_RLIM_INFINITY - 1;
	if (limit.soft != K_RLIM_INFINITY)
		limit.soft = limit.soft < limit.hard - soft ? limit.soft + soft : limit.hard;
	return limit;
}

static bool same(struct limit_pair a, struct limit_pair b)
{
	return a.soft == b.soft && a.hard == b.hard;
}

/* What the program has, given what the kernel says: somebody else may have set that. */
static struct limit_pair programs(const struct limit *limit, struct limit_pair kernels)
{
	return same(limit->kernels, kernels) ? limit->own : kernels;
}

/* The kernel's soft limit follows what we have. */
static void follow(struct limit *limit, int resource)
{
	struct limit_pair kernels = limit->kernels;

	if (limit->own.soft == K_RLIM_INFINITY || is_on_its_own())
		return;
	kernels.soft = limit->own.soft;
	kernels = raised(kernels, limit->reserved, 0);
	if (!same(kernels, limit->kernels) &&
	        own_call4(thread_here(), __NR_prlimit64, 0, resource, &kernels, 0) == 0)
		limit->kernels = kernels;
}

void limits_reserve(enum limited what, int64_t size)
{
	for (unsigned i = 0; i <= what; i++) {
		struct limit *limit = &process()->memory.limits[i];
		limit->reserved += (uint64_t)size;
		follow(limit, resources[i]);
	}
}

/*
 * A hard limit that was there before us counts what is ours as the program's: is enough left for the program
 * if we take this much more?
 */
bool limits_are_set(void)
{
	const struct limit *limits = process()->memory.limits;

	return limits[LIMIT_SPACE].own.soft != UINT64_MAX || limits[LIMIT_DATA].own.soft != UINT64_MAX;
}

bool limits_leave_room(uint64_t size)
{
	for (unsigned i = 0; i < LIMITS; i++) {
		const struct limit *limit = &process()->memory.limits[i];
		uint64_t hard = limit->kernels.hard;
		if (hard < AMPLE && limit->reserved + size > hard - hard / PROGRAMS_SHARE)
			return false;
	}
	return true;
}

void limits_start(void)
{
	struct process *p = process();

	for (unsigned i = 0; i < LIMITS; i++) {
		struct limit *limit = &p->memory.limits[i];
		limit->own = limit->kernels = (struct limit_pair){K_RLIM_INFINITY, K_RLIM_INFINITY};
		if (syscall4(__NR_prlimit64, 0, resources[i], 0, &limit->kernels) == 0)
			limit->own = limit->kernels;
	}
	for (uint32_t i = 0; i < p->segment_count; i++)
		limits_reserve(LIMIT_SPACE, (int64_t)p->segments[i].size);
}

/*
 * A program that is executed has nothing of ours; `back`: there was none. The hard limit stays, or it could
 * not be taken back.
 */
void limits_for_exec(bool back)
{
	for (unsigned i = 0; i < LIMITS; i++) {
		const struct limit *limit = &process()->memory.limits[i];
		struct limit_pair kernels, executed = limit->kernels;
		executed.soft = limit->own.soft;
		/* A child of vfork may have others. */
		if (syscall4(__NR_prlimit64, 0, resources[i], 0, &kernels) == 0 &&
		        same(kernels, back ? executed : limit->kernels))
			syscall4(__NR_prlimit64, 0, resources[i], back ? &limit->kernels : &executed, 0);
	}
}

/* ---- the program's calls ---- */

/* The call as the program makes it, but with these: its filter may know of no other. */
static long make_call(long number, uint64_t pid, int resource, struct limit_pair *new, struct limit_pair *old)
{
	if (number == __NR_prlimit64)
		return syscall4(number, pid, resource, new, old);
	return syscall2(number, resource, number == __NR_setrlimit ? new : old);
}

static long set(struct limit *limit, long number, uint64_t pid, int resource, struct limit_pair wanted,
        struct limit_pair *old)
{
	struct limit_pair kernels;

	if (!process()->seccomp && syscall4(__NR_prlimit64, 0, resource, 0, &kernels) == 0) {
		limit->own = programs(limit, kernels);
		limit->kernels = kernels;
	}
	kernels = raised(wanted, 0, AMPLE);
	if (wanted.hard <= limit->own.hard && kernels.hard > limit->kernels.hard)
		kernels.hard = limit->kernels.hard;
	kernels.soft = wanted.soft;
	kernels = raised(kernels, limit->reserved, 0);
	*old = limit->own;
	long result = make_call(number, pid, resource, &kernels, &(struct limit_pair){0});
	if (result == 0) {
		limit->own = wanted;
		limit->kernels = kernels;
	}
	return result;
}

static long get(const struct limit *limit, long number, uint64_t pid, int resource, struct limit_pair *old)
{
	struct limit_pair kernels;
	long result = make_call(number, pid, resource, 0, &kernels);

	if (result == 0)
		*old = programs(limit, kernels);
	return result;
}

/* New memory for a thread would change what is reserved. */
static long get_or_set(struct limit *limit, long number, uint64_t pid, int resource,
        const struct limit_pair *wanted, struct limit_pair *old)
{
	lock(&process()->thread_lock);
	long result = wanted ? set(limit, number, pid, resource, *wanted, old)
	                     : get(limit, number, pid, resource, old);
	unlock(&process()->thread_lock);
	return result;
}

static bool is_own(uint64_t pid)
{
	return (int)pid == 0 || (!process()->seccomp && (long)(int)pid == syscall0(__NR_getpid));
}

bool syscall_limit(struct thread *thread, long number)
{
	uint64_t *gpr = thread->regs.gpr;
	bool sets = number == __NR_setrlimit, gets = number == __NR_getrlimit;
	uint64_t pid = sets || gets ? 0 : gpr[RDI], new = sets ? gpr[RSI] : gets ? 0 : gpr[RDX];
	uint64_t old = gets ? gpr[RSI] : sets ? 0 : gpr[R10];
	uint32_t resource = sets || gets ? gpr[RDI] : gpr[RSI];
	struct limit_pair wanted, was;
	struct limit *limit = NULL;

	for (unsigned i = 0; i < LIMITS; i++) {
		if (resource == (uint32_t)resources[i])
			limit = &process()->memory.limits[i];
	}
	/* What a child of vfork sets is for what it executes. */
	if (!limit || !is_own(pid) || (new &&shares_memory(thread)))
		return false;
	if (new &&read_program(&wanted, new, sizeof wanted) < 0)
		gpr[RAX] = -K_EFAULT;
	else if (new &&wanted.soft > wanted.hard)
		gpr[RAX] = -K_EINVAL;
	else
		gpr[RAX] = (uint64_t)get_or_set(limit, number, pid, resource, new ? &wanted : NULL, &was);
	if (gpr[RAX] == 0 && old && write_program(old, &was, sizeof was) < 0)
		gpr[RAX] = -K_EFAULT;
	return true;
}
