/*
 * System calls. Nearly all of them go to the kernel as they are, from
 * syscall_window; here are those that would show us to the program, take the
 * processor from us, or tell us that code changes.
 */
#include "target/stub.h"

#define PR_SET_SECCOMP               22
#define PR_SET_SYSCALL_USER_DISPATCH 59

#define ARCH_SET_GS               0x1001
#define ARCH_GET_GS               0x1004
#define ARCH_SET_CPUID            0x1012
#define ARCH_REQ_XCOMP_PERM       0x1023
#define ARCH_REQ_XCOMP_GUEST_PERM 0x1025
#define ARCH_CET_STATUS           0x3001
#define ARCH_SHSTK_LAST           0x5fff

#define MCL_ONFAULT 4

/*
 * A buffer on a watched page: the kernel finds it read-only although the program
 * may write there. Give up watching and try again.
 */
static void plain(struct thread *thread)
{
	uint64_t faults = close_faults(thread), result = syscall_window();

	if (result == (uint64_t)-K_EFAULT && process()->watches) {
		unwatch_range(thread, 0, -1ul);
		result = syscall_window();
	}
	/* Some structure led to memory that was not touched yet: nobody knows where. */
	if (result == (uint64_t)-K_EFAULT && process()->memory.veil_count && recording()) {
		veil_end(0, -1ul);
		result = syscall_window();
	}
	open_faults(thread, faults);
	thread->regs.gpr[RAX] = result;
}

/* A short read is not an error, so a buffer on a watched page must be seen before. */
static void read_into(struct thread *thread)
{
	uint64_t start = thread->regs.gpr[RSI];

	if (process()->watches)
		unwatch_range(thread, start, start + thread->regs.gpr[RDX]);
	plain(thread);
}

static void syscall_arch_prctl(struct thread *thread)
{
	uint64_t code = thread->regs.gpr[RDI], value = thread->regs.gpr[RSI];

	if (code == ARCH_SET_GS) {
		if (value >= USER_ADDRESS_END) {
			thread->regs.gpr[RAX] = -K_EPERM;
		} else {
			set_program_gs(thread, value);
			thread->regs.gpr[RAX] = 0;
		}
	} else if (code == ARCH_GET_GS) {
		thread->regs.gpr[RAX] = write_program(value, &thread->slots[SLOT_PROGRAM_GS], 8);
	} else if (code == ARCH_SET_CPUID) {
		thread->regs.gpr[RAX] = -K_ENODEV; /* as a CPU without CPUID faulting: the stub needs cpuid */
	} else if (code == ARCH_REQ_XCOMP_PERM || code == ARCH_REQ_XCOMP_GUEST_PERM ||
	           (code >= ARCH_CET_STATUS && code <= ARCH_SHSTK_LAST)) {
		thread->regs.gpr[RAX] = -K_EINVAL; /* as a kernel without AMX and shadow stacks says */
	} else {
		plain(thread);
	}
}

/* From now on a system call of ours might kill the program. */
bool restrict_own_calls(void)
{
	return !__atomic_exchange_n(&process()->seccomp, 1, __ATOMIC_SEQ_CST);
}

bool be_quiet(void)
{
	if (__atomic_exchange_n(&process()->quiet, 1, __ATOMIC_SEQ_CST))
		return false;
	__atomic_fetch_add(&channel()->quiet_processes, 1, __ATOMIC_SEQ_CST);
	return true;
}

static void restrict_system_calls(struct thread *thread)
{
	uint64_t faults = close_faults(thread);
	bool restricted = restrict_own_calls(), quiet = be_quiet();

	if (restricted)
		reinstall_terminating(thread);
	plain(thread);
	if (!is_error(thread->regs.gpr[RAX]))
		return;
	if (quiet) {
		process()->quiet = 0;
		__atomic_fetch_sub(&channel()->quiet_processes, 1, __ATOMIC_SEQ_CST);
	}
	if (restricted) {
		process()->seccomp = 0;
		reinstall_terminating(thread);
	}
	open_faults(thread, faults);
}

static void syscall_prctl(struct thread *thread)
{
	int option = thread->regs.gpr[RDI];

	if (option == PR_SET_SECCOMP)
		restrict_system_calls(thread);
	else if (option == PR_SET_SYSCALL_USER_DISPATCH && thread->regs.gpr[RSI])
		thread->regs.gpr[RAX] = -K_EINVAL; /* it would catch the stub's calls: not offered */
	else
		plain(thread);
}

static void syscall_seccomp(struct thread *thread)
{
	if (thread->regs.gpr[RDI] <= 1) /* SECCOMP_SET_MODE_STRICT, SECCOMP_SET_MODE_FILTER */
		restrict_system_calls(thread);
	else
		plain(thread);
}

static void syscall_exit_group(struct thread *thread)
{
	publish_position(thread);
	order_entered(thread, position(thread) - 1);
	log_end(thread, LOG_END_EXIT, (int)thread->regs.gpr[RDI], NULL);
	if (info()->announce_exit)
		ask(thread, OP_EXIT, thread->regs.gpr[RDI], 0, 0);
	plain(thread);
}

/* 32-bit system calls that create threads or change what we keep would need a second set of everything. */
static bool int80_refused(uint32_t number)
{
	static const uint16_t refused[] = {2, 11, 45, 67, 90, 91, 119, 120, 125, 126, 163, 172, 173, 174, 175,
	        186, 190, 192, 354, 358, 435};

	for (unsigned i = 0; i < sizeof refused / sizeof *refused; i++) {
		if (refused[i] == number)
			return true;
	}
	return false;
}

void syscall_int80(struct thread *thread)
{
	uint64_t here = position(thread) - 1;

	thread->regs.pc += 2;
	if (thread->shielded)
		unshield(thread);
	if (int80_refused(thread->regs.gpr[RAX]))
		thread->regs.gpr[RAX] = -K_ENOSYS;
	else {
		uint64_t faults = close_faults(thread), result = int80_window();
		open_faults(thread, faults);
		thread->regs.gpr[RAX] = result;
	}
	log_state(thread, here, STATE_OF_INSTRUCTION, NULL);
}

/* ---- recording ---- */

#define OUTPUT_CHECKED (1ul << 20) /* bytes of one buffer; more than that nobody prints at once */

static void check_buffer(struct thread *thread, uint64_t address, uint64_t size)
{
	if (size > OUTPUT_CHECKED)
		size = OUTPUT_CHECKED;
	if (size)
		shadow_check(thread, address, size);
}

/*
 * What goes to the terminal is shown again by replay, also where the program itself
 * never looked at it: to the log, that is a load.
 */
static void record_output(struct thread *thread, uint64_t number)
{
	const uint64_t *gpr = thread->regs.gpr;
	struct {
		uint64_t base, size;
	} vector;

	if (!thread->log || (gpr[RDI] != 1 && gpr[RDI] != 2))
		return;
	if (number == __NR_write || number == __NR_pwrite64)
		check_buffer(thread, gpr[RSI], gpr[RDX]);
	for (uint64_t i = 0; number == __NR_writev && i < gpr[RDX] && i < 1024; i++) {
		if (load_program(thread, &vector, gpr[RSI] + i * sizeof vector, sizeof vector) < 0)
			break;
		check_buffer(thread, vector.base, vector.size);
	}
}

static void record_syscall(struct thread *thread, uint64_t here, const struct registers *before)
{
	const uint64_t *gpr = thread->regs.gpr;
	uint64_t arguments[6] = {gpr[RDI], gpr[RSI], gpr[RDX], gpr[R10], gpr[R8], gpr[R9]};
	uint64_t number = before->gpr[RAX];

	if (number == __NR_arch_prctl)
		note_program_fs(thread);
	bool forgets = shadow_forget(thread, number, arguments, gpr[RAX]);
	order_entered(thread, here);
	log_syscall(thread, here, before, forgets);
	order_returned(thread, here);
}

/* The user wants to know of this one: the supervisor looks at it, and may save what was recorded. */
static void tell_call(struct thread *thread, uint64_t number)
{
	const uint64_t *gpr = thread->regs.gpr;

	for (uint32_t i = 0; i < info()->save_call_count; i++) {
		const volatile struct save_call *call = &info()->save_calls[i];
		if (call->number != number || (call->has_argument && call->argument != gpr[RDI]))
			continue;
		surface(thread);
		ask(thread, OP_SAVE, number | gpr[RDI] << 32, gpr[RSI], gpr[RDX]);
		return;
	}
}

void handle_syscall(struct thread *thread)
{
	struct registers *regs = &thread->regs;
	uint64_t number = regs->gpr[RAX], argument = regs->gpr[RDI];

	thread->slots[SLOT_TARGET] = 0;
	thread->faulted = 0;
	if (replaying()) {
		replay_syscall(thread);
		return;
	}
	uint64_t here = 0;
	struct registers before;
	if (recording()) {
		here = position(thread) - 1;
		before = *regs;
		if (by_pages() && (thread->leaves_pages || !calls_prepare(thread, &before, here))) {
			/* It is made again, with loads compared. */
			regs->pc -= SYSCALL_LENGTH;
			thread->slots[SLOT_POSITION]--;
			if (!thread->leaves_pages)
				thread->leaves_pages = LEAVES_FOR_CALL | (uint32_t)number;
			log_keyframe(thread);
			return;
		}
		if (process()->memory.pages_again && !by_pages())
			calls_look_at(&before);
		record_arguments(thread, &before, here);
		record_output(thread, number);
		order_enter(thread);
		log_reached(thread, here);
		if (info()->save_call_count && thread->log)
			tell_call(thread, number);
	}
	if (process()->memory.veil_count)
		veils_lift_for_call(thread, number);
	publish_position(thread);
	thread->step_armed = 0; /* the trap flag works from the instruction after the next on */
	if (thread->shielded)
		unshield(thread);
	switch (number) {
	case __NR_rt_sigreturn:
		syscall_sigreturn(thread);
	case __NR_rt_sigaction:
		syscall_sigaction(thread);
		break;
	case __NR_rt_sigprocmask:
		syscall_sigprocmask(thread);
		break;
	case __NR_sigaltstack:
		syscall_sigaltstack(thread);
		break;
	case __NR_clone:
	case __NR_fork:
	case __NR_vfork:
	case __NR_clone3:
		syscall_clone(thread, number);
		break;
	case __NR_exit:
		syscall_exit(thread);
		break;
	case __NR_exit_group:
		syscall_exit_group(thread);
		break;
	case __NR_execve:
	case __NR_execveat:
		syscall_execve(thread, number);
		break;
	case __NR_mmap:
	case __NR_munmap:
	case __NR_mremap:
	case __NR_mprotect:
	case __NR_pkey_mprotect:
	case __NR_madvise:
	case __NR_remap_file_pages:
	case __NR_brk:
	case K_NR_mseal:
	case K_NR_process_madvise:
	case __NR_shmat:
	case __NR_shmdt:
		syscall_memory(thread, number);
		break;
	case __NR_mlockall:
		/* Lock what is touched: our own reservations must not become memory. */
		regs->gpr[RDI] |= MCL_ONFAULT;
		plain(thread);
		regs->gpr[RDI] = argument;
		break;
	case __NR_read:
	case __NR_pread64:
	case __NR_recvfrom:
		read_into(thread);
		break;
	case __NR_arch_prctl:
		syscall_arch_prctl(thread);
		break;
	case __NR_prctl:
		syscall_prctl(thread);
		break;
	case __NR_seccomp:
		syscall_seccomp(thread);
		break;
	case __NR_getrlimit:
	case __NR_setrlimit:
	case __NR_prlimit64:
		if (!syscall_limit(thread, number))
			plain(thread);
		break;
	case __NR_rseq:
		/* A sequence could not be aborted at the right place: refused as by a kernel that has none.
		 * Who was running already knows that there is one, and glibc insists on it for new threads.
		 */
		if (info()->adopted)
			plain(thread);
		else
			regs->gpr[RAX] = -K_ENOSYS;
		break;
	default:
		plain(thread);
	}
	if (recording() && !thread->forked) {
		record_syscall(thread, here, &before);
		note_code(thread, here + 1);
		if (by_pages())
			calls_done(thread, &before, here + 1);
		record_results(thread, &before, here + 1);
	}
	/* What the syscall instruction leaves behind; a fork's child passes here as well. */
	regs->gpr[RCX] = regs->pc;
	regs->gpr[R11] = regs->flags;
	if (thread->forked)
		record_child(thread);
	else if (recording())
		log_keyframe(thread);
}
