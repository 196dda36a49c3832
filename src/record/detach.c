#include "record/detach.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include "record/attach.h"
#include "record/inject.h"
#include "record/limits.h"
#include "record/shadows.h"
#include "record/tracee.h"
#include "record/user_registers.h"
#include "record/vector.h"

#define TRAP_FLAG 0x100

/* ---- where a thread is ---- */

static bool is_ours(const struct space *space, uint64_t address)
{
	for (unsigned i = 0; i < space->segment_count; i++) {
		const struct segment_layout *layout = &space->segments[i].layout;
		if (address - layout->base < layout->size)
			return true;
	}
	return false;
}

static uint64_t record_of(const struct space *space, uint64_t gs_base)
{
	return space->segments[0].layout.base + LAYOUT_THREADS + gs_base;
}

/* For good: it went on natively some time ago. One that executes a single instruction natively traps behind
 * it. */
static bool is_native(const struct space *space, const struct user_regs_struct *r)
{
	return !thread_of_distance(space_info(space, 0), r->gs_base) && !is_ours(space, r->rip) &&
	       !(r->eflags & TRAP_FLAG);
}

/* It waits for us in the stub, with nothing left to do there. */
static bool is_at_gate(
        const struct space *space, const struct memory *memory, const struct user_regs_struct *r)
{
	uint32_t parked;
	uint64_t at = record_of(space, r->gs_base) + THREAD_PARKED;

	return thread_of_distance(space_info(space, 0), r->gs_base) &&
	       pread(memory->mem_fd, &parked, sizeof parked, (off_t)at) == sizeof parked &&
	       parked == PARKED_AT_GATE;
}

/* ---- bringing threads out ---- */

/* Stopped: is it out already? If not it is put on its way, if that is possible where it is. */
static bool bring_out(const struct space *space, struct halted *thread)
{
	struct user_regs_struct r;
	bool moved;

	if (ptrace(PTRACE_GETREGS, thread->tid, 0, &r) < 0)
		return false;
	if (is_native(space, &r) || is_at_gate(space, thread->memory, &r))
		return true;
	if (thread->signal || thread->stopped)
		return false;
	if (attached_is_calling(space, &r))
		halt_put(space, thread, space->header.left);
	else
		halt_settle(space, thread, space->header.released, &moved);
	return false;
}

static bool bring_all_out(
        pid_t pid, const struct memory *memory, const struct space *space, struct stragglers *stragglers)
{
	char path[64];
	struct dirent *entry;
	bool out = true;

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	DIR *directory = opendir(path);
	if (!directory)
		return true; /* it has ended */
	while ((entry = readdir(directory))) {
		struct halted thread;
		pid_t tid = (pid_t)atoi(entry->d_name);
		if (tid <= 0)
			continue;
		enum halt_outcome stop = halt_stop(&thread, tid, memory, stragglers);
		if (stop == HALT_REFUSED)
			out = false;
		if (stop != HALT_SAFE)
			continue;
		out &= bring_out(space, &thread);
		halt_let_go(&thread, stragglers);
	}
	closedir(directory);
	return out;
}

/* ---- taking our things away ---- */

/* Threads that run natively may have set another action since: only handlers of ours are replaced. Number 0
 * is no signal's: there is room to look. */
static bool is_handled_by_us(
        struct tracee *tracee, const struct space *space, uint64_t number, uint64_t actions)
{
	struct signal_action now;

	return tracee_syscall(tracee, SYS_rt_sigaction, number, 0, actions, 8, 0, 0) == 0 &&
	       tracee_read(tracee, actions, &now, sizeof now) == 0 && is_ours(space, now.handler);
}

static void give_signals_back(struct tracee *tracee, const struct space *space, bool orphaned)
{
	uint64_t actions =
	        space->segments[0].layout.base + LAYOUT_PROCESS + offsetof(struct process_memory, actions);

	for (uint64_t number = 1; number <= 64; number++) {
		if (number != SIGKILL && number != SIGSTOP &&
		        (!orphaned || is_handled_by_us(tracee, space, number, actions)))
			tracee_syscall(tracee, SYS_rt_sigaction, number,
			        actions + number * sizeof(struct signal_action), 0, 8, 0, 0);
	}
}

static void give_pages_back(struct tracee *tracee, struct space *space, struct memory *memory)
{
	uint64_t range[2];

	while (space_unwatch(space, memory, 0, UINT64_MAX, range) == STATUS_OK)
		tracee_syscall(tracee, SYS_mprotect, range[0], range[1] - range[0],
		        PROT_READ | PROT_WRITE | PROT_EXEC, 0, 0, 0);
}

/* Memory that was kept without access until it is touched, see target/veil.c. */
static void lift_veils(struct tracee *tracee, const struct process_memory *ours)
{
	for (uint32_t i = 0; i < ours->veil_count; i++)
		if (!ours->veils[i].lifted)
			tracee_syscall(tracee, SYS_mprotect, ours->veils[i].start,
			        ours->veils[i].end - ours->veils[i].start, ours->veils[i].protection, 0, 0,
			        0);
}

static void unmap(struct tracee *tracee, struct range range)
{
	tracee_syscall(tracee, SYS_munmap, range.start, range.end - range.start, 0, 0, 0, 0);
}

struct shadow_list {
	VECTOR(struct range) ranges;
};

static bool list_shadow(void *context, struct range range)
{
	struct shadow_list *list = context;

	vector_push(&list->ranges, range);
	return true;
}

/* Sparse shadows say themselves where they are: all are listed before the first is gone. */
static void unmap_shadows(struct tracee *tracee, const struct space *space, const struct memory *memory,
        const struct process_memory *ours)
{
	struct shadow_list list = {0};

	shadows_each(memory, space, ours, list_shadow, &list);
	for (uint32_t i = 0; i < list.ranges.count; i++)
		unmap(tracee, list.ranges.items[i]);
	for (uint32_t i = 0; i < ours->fence_count; i++)
		unmap(tracee, ours->fences[i]);
	vector_free(&list.ranges);
}

static bool all_are_out(
        const struct attachment *threads, const struct memory *memory, const struct space *space)
{
	for (uint32_t i = 0; i < threads->count; i++) {
		const struct user_regs_struct *r = &threads->items[i].registers;
		if (!is_native(space, r) && !is_at_gate(space, memory, r))
			return false;
	}
	return true;
}

/* What the program's registers and masks are to be. */
static bool look_at_gate(struct attachment *threads, const struct memory *memory, const struct space *space)
{
	for (uint32_t i = 0; i < threads->count; i++) {
		struct user_regs_struct *r = &threads->items[i].registers;
		struct registers own;
		uint64_t record = record_of(space, r->gs_base);
		if (is_native(space, r))
			continue;
		if (pread(memory->mem_fd, &own, sizeof own, (off_t)(record + THREAD_REGS)) != sizeof own ||
		        pread(memory->mem_fd, &threads->items[i].mask, 8, (off_t)(record + THREAD_MASK)) !=
		                8 ||
		        pread(memory->mem_fd, &r->gs_base, 8, (off_t)(record + 8 * SLOT_PROGRAM_GS)) != 8)
			return false;
		registers_to_user(r, &own);
		halt_mend_x87(space, &threads->items[i].halted);
	}
	return true;
}

/* In the first thread, with all of them stopped. */
static bool clean_up(
        const struct attachment *threads, struct memory *memory, struct space *space, bool orphaned)
{
	static struct process_memory ours;
	struct tracee tracee;

	if (!shadows_read(memory, space, &ours) ||
	        tracee_init(&tracee, threads->pid, memory->mem_fd, inject_vdso(threads->pid)) < 0)
		return false;
	tracee.registers = threads->items[0].registers;
	give_signals_back(&tracee, space, orphaned);
	give_pages_back(&tracee, space, memory); /* an orphan's were given back by its own threads */
	if (space->mode == TRANSLATE_RECORD) {
		unmap_shadows(&tracee, space, memory, &ours);
		lift_veils(&tracee, &ours);
	}
	for (unsigned i = 0; i < space->segment_count; i++) {
		const struct segment_layout *layout = &space->segments[i].layout;
		unmap(&tracee, (struct range){layout->base, layout->base + layout->size});
	}
	limits_give_back(threads->pid, &ours);
	bool done = tracee_deinit(&tracee) == 0;
	for (uint32_t i = 1; i < threads->count; i++)
		done &= ptrace(PTRACE_SETREGS, threads->items[i].halted.tid, 0,
		                &threads->items[i].registers) == 0;
	return done;
}

/*
 * A program that restricted itself only after we had come: nobody knows what it permits, so its threads have
 * left with our alternate stacks, which must stay.
 */
static bool may_call(const struct attachment *threads, const struct space *space, char *why, size_t why_size)
{
	return !filters_there(threads) ||
	       (space_info(space, 0)->assists && filters_sleep_all(threads, why, why_size));
}

bool detach_round(
        pid_t pid, struct memory *memory, struct space *space, struct stragglers *stragglers, bool orphaned)
{
	struct attachment threads;
	char why[256];

	if (!bring_all_out(pid, memory, space, stragglers) ||
	        !attachment_stop(&threads, pid, memory, why, sizeof why))
		return false;
	/* One that executed another program meanwhile has nothing of ours, and must not be taken for one that
	 * has. Where the last two fail, it is being killed. */
	bool done =
	        !memory_alive(memory) ||
	        (all_are_out(&threads, memory, space) && may_call(&threads, space, why, sizeof why) &&
	                look_at_gate(&threads, memory, space) && clean_up(&threads, memory, space, orphaned));
	attachment_abandon(&threads);
	for (uint32_t i = 0; i < threads.stragglers.count; i++)
		vector_push(stragglers, threads.stragglers.items[i]);
	vector_free(&threads.stragglers);
	return done;
}
