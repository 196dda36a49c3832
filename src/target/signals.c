/*
 * Signals. The kernel knows one handler, signal_entry; the program's handlers,
 * masks and alternate stacks are kept here and brought about by hand, with
 * frames laid out exactly as the kernel lays them out.
 *
 * A signal is delivered at a boundary between two program instructions:
 *
 *   in translated code, at a boundary        at once
 *   in translated code, inside a sequence    after single-stepping to the next boundary
 *   in a window of entry.S                   at once, from thread.regs
 *   elsewhere in the stub                    kept in thread.pending, all others blocked, until it resumes
 *
 * Faults of the program's own instructions are mapped back through the records
 * of the translation. A fault whose signal is blocked kills before anybody hears
 * of it, so the signals that faults raise are not blocked in the kernel while
 * translated code runs, only while the program is in a system call. One that was
 * sent, and finds the program's code although that blocks it, is put back into
 * the kernel's queue and is blocked there from then on (see keep_back).
 *
 * A signal that kills lets the program die of it natively, at its own pc with
 * its own registers, so that status, core file and core flag are the kernel's.
 */
#include "target/stub.h"

static struct kernel_stack kernel_altstack(struct thread *thread)
{
	return (struct kernel_stack){
	        .base = (uint64_t)thread + THREAD_ALTSTACK,
	        .size = THREAD_ALTSTACK_BYTES,
	};
}

bool install_altstack(struct thread *thread)
{
	struct kernel_stack stack = kernel_altstack(thread);
	long result = own_call2(thread, __NR_sigaltstack, &stack, 0);
	if (result < 0 && !is_assisted(thread))
		stub_panic("sigaltstack refused, error", -result);
	return result == 0;
}

/* Faults that the program must survive, whatever it blocks and wherever it is. */
static uint64_t needed_always(void)
{
	bool faults = process()->watches || process()->memory.veil_count ||
	              shadow_is_sparse(current_thread()->number);

	return faults ? SIGBIT(K_SIGSEGV) : 0;
}

/* Where our calls may be forbidden, what is sent could not be put back. */
uint64_t kernel_mask_for(uint64_t mask)
{
	uint64_t open = process()->seccomp ? 0 : FAULT_SIGNALS & ~current_thread()->sent;

	return mask & ~(open | needed_always());
}

/*
 * In a system call the kernel has the mask that the program believes in: what is sent then stays pending, and
 * is waited for, shown and read as always. Which signals that takes, to be given to open_faults.
 */
uint64_t close_faults(struct thread *thread)
{
	uint64_t faults = thread->mask & ~kernel_mask_for(thread->mask) & ~needed_always();

	if (faults)
		syscall4(__NR_rt_sigprocmask, K_SIG_BLOCK, &faults, 0, 8);
	return faults;
}

void open_faults(struct thread *thread, uint64_t faults)
{
	if (thread->sent && thread->regs.gpr[RAX] == __NR_rt_sigtimedwait && !process()->seccomp) {
		faults |= thread->sent; /* what was waited for; the others come again */
		thread->sent = 0;
	}
	if (faults)
		syscall4(__NR_rt_sigprocmask, K_SIG_UNBLOCK, &faults, 0, 8);
}

void set_kernel_mask(uint64_t mask)
{
	uint64_t value = kernel_mask_for(mask);
	own_call4(current_thread(), __NR_rt_sigprocmask, K_SIG_SETMASK, &value, 0, 8);
}

void unshield(struct thread *thread)
{
	thread->shielded = 0;
	set_kernel_mask(thread->mask);
}

/* ---- dispositions ---- */

/*
 * Signals whose default action comes to us first. A core file has to show the program's registers; and
 * while recording, any death is logged where it happens, and saved before the parent learns of it. Not
 * where the program restricts its system calls, since dying by ourselves takes some; and not in process 1 of
 * a namespace, whom the default action does not kill.
 */
static uint64_t taken_signals(void)
{
	bool restricted = process()->seccomp || info()->filtered;

	return recording() && !restricted && !process()->is_init ? CORE_SIGNALS | TERMINATING_SIGNALS
	                                                         : CORE_SIGNALS;
}

/* Makes the kernel's disposition follow the program's. `thread`: it is our own wish, see own_call6. */
static long install(struct thread *thread, int number, const struct signal_action *wanted)
{
	struct signal_action action = {.mask = ~FAULT_SIGNALS};
	uint64_t bit = SIGBIT(number);

	action.flags = (wanted->flags & (K_SA_RESTART | K_SA_NOCLDSTOP | K_SA_NOCLDWAIT)) | K_SA_RESTORER;
	action.restorer = wanted->restorer;
	if (wanted->handler == K_SIG_IGN && !(bit & FAULT_SIGNALS)) {
		action.handler = K_SIG_IGN;
	} else if (wanted->handler == K_SIG_DFL && !(bit & taken_signals())) {
		action.handler = K_SIG_DFL;
	} else {
		action.handler = (uint64_t)signal_entry;
		action.flags |= K_SA_SIGINFO | K_SA_ONSTACK;
		if (bit & FAULT_SIGNALS)
			action.flags |= K_SA_NODEFER; /* the handler itself touches the program's memory */
	}
	return own_call4(thread, __NR_rt_sigaction, number, &action, 0, 8);
}

/* A new image, or one that was running already: learns what the program has, and takes over what we must
 * have. */
void install_handlers(struct signal_action *actions)
{
	struct thread *thread = current_thread();

	process()->is_init = own_call0(thread, __NR_getpid) == 1;
	for (int number = 1; number <= 64; number++) {
		struct signal_action *action = &actions[number];
		if (SIGBIT(number) & UNBLOCKABLE)
			continue;
		own_call4(thread, __NR_rt_sigaction, number, 0, action, 8);
		if ((SIGBIT(number) & taken_signals()) || action->handler > K_SIG_IGN)
			install(thread, number, action);
	}
}

/* The program is about to restrict its system calls, or could not: see taken_signals. */
void reinstall_terminating(struct thread *thread)
{
	for (int number = 1; recording() && number <= 64; number++) {
		if ((SIGBIT(number) & TERMINATING_SIGNALS) && thread->actions[number].handler == K_SIG_DFL)
			install(thread, number, &thread->actions[number]);
	}
}

/*
 * Fault signals that the program ignores are caught all the same, because a fault
 * is never ignored; but across execve they must be ignored.
 */
void ignore_for_exec(struct thread *thread, bool ignore)
{
	static const struct signal_action ignored = {.handler = K_SIG_IGN, .flags = K_SA_RESTORER};

	for (int number = 1; number <= 31; number++) {
		if ((SIGBIT(number) & FAULT_SIGNALS) && thread->actions[number].handler == K_SIG_IGN) {
			if (ignore)
				syscall4(__NR_rt_sigaction, number, &ignored, 0, 8);
			else
				install(thread, number, &thread->actions[number]);
		}
	}
}

void syscall_sigaction(struct thread *thread)
{
	struct registers *regs = &thread->regs;
	int number = regs->gpr[RDI];
	struct signal_action action, old;
	uint64_t new_action = regs->gpr[RSI], old_action = regs->gpr[RDX];
	long result = 0;

	if (regs->gpr[R10] != 8 || number < 1 || number > 64 ||
	        (new_action && (SIGBIT(number) & UNBLOCKABLE))) {
		result = -K_EINVAL;
	} else if (new_action && read_program(&action, new_action, sizeof action) < 0) {
		result = -K_EFAULT;
	} else {
		lock(&process()->action_lock);
		old = thread->actions[number];
		if (new_action) {
			action.flags &= K_SA_KNOWN;
			action.mask &= ~UNBLOCKABLE;
			thread->actions[number] = action;
			result = install(NULL, number, &action);
		}
		unlock(&process()->action_lock);
		if (SIGBIT(number) & UNBLOCKABLE)
			old = (struct signal_action){0};
		if (result == 0 && old_action && write_program(old_action, &old, sizeof old) < 0)
			result = -K_EFAULT;
	}
	regs->gpr[RAX] = result;
}

/* ---- masks and alternate stacks ---- */

static int fault_index(int number)
{
	switch (number) {
	case K_SIGSEGV:
		return 0;
	case K_SIGBUS:
		return 1;
	case K_SIGFPE:
		return 2;
	case K_SIGILL:
		return 3;
	default:
		return 4;
	}
}

static const uint8_t fault_numbers[5] = {K_SIGSEGV, K_SIGBUS, K_SIGFPE, K_SIGILL, K_SIGTRAP};

static void queue_to(struct thread *thread, int number, const struct kernel_siginfo *siginfo)
{
	own_call4(thread, __NR_rt_tgsigqueueinfo, own_call0(thread, __NR_getpid),
	        own_call0(thread, __NR_gettid), number, siginfo);
}

static void queue_to_self(int number, const struct kernel_siginfo *siginfo)
{
	queue_to(current_thread(), number, siginfo);
}

static void hold(struct thread *thread, int number, const struct kernel_siginfo *siginfo)
{
	thread->held |= SIGBIT(number);
	thread->held_info[fault_index(number)] = *siginfo;
}

/* A fault signal that was held back and is not blocked any more becomes pending again, with its siginfo. */
static void requeue_held(struct thread *thread)
{
	uint64_t ready = thread->held & ~thread->mask;

	for (int i = 0; ready && i < 5; i++) {
		int number = fault_numbers[i];
		if (!(ready & SIGBIT(number)))
			continue;
		thread->held &= ~SIGBIT(number);
		queue_to_self(number, &thread->held_info[i]);
	}
}

/*
 * The same where the return from a handler follows, whose mask lets them in: until then they stay with the
 * kernel, which has room for all.
 */
static void requeue_for_return(struct thread *thread)
{
	uint64_t ready = thread->held & ~thread->mask;

	if (ready)
		own_call4(thread, __NR_rt_sigprocmask, K_SIG_BLOCK, &ready, 0, 8);
	requeue_held(thread);
}

/* A thread that blocks SIGSEGV would die of a write to a watched page: then pages are not watched. */
void count_segv_blocker(uint64_t old, uint64_t new)
{
	uint64_t bit = SIGBIT(K_SIGSEGV);

	if ((old ^ new) & bit)
		__atomic_fetch_add(&process()->segv_blockers, new &bit ? 1 : -1, __ATOMIC_RELAXED);
}

void syscall_sigprocmask(struct thread *thread)
{
	struct registers *regs = &thread->regs;
	uint64_t set = regs->gpr[RSI], old_set = regs->gpr[RDX];
	uint64_t old = thread->mask, value = 0;
	long result = 0;

	if (regs->gpr[R10] != 8)
		result = -K_EINVAL;
	else if (set && read_program(&value, set, 8) < 0)
		result = -K_EFAULT;
	if (result == 0 && set) {
		value &= ~UNBLOCKABLE;
		switch ((int)regs->gpr[RDI]) {
		case K_SIG_BLOCK:
			thread->mask |= value;
			break;
		case K_SIG_UNBLOCK:
			thread->mask &= ~value;
			break;
		case K_SIG_SETMASK:
			thread->mask = value;
			break;
		default:
			result = -K_EINVAL;
		}
		if (result == 0 && thread->mask != old) {
			uint64_t kernels = kernel_mask_for(thread->mask);
			result = syscall4(__NR_rt_sigprocmask, K_SIG_SETMASK, &kernels, 0, 8);
			if (result < 0) /* by the program's filter */
				thread->mask = old;
			thread->sent &= thread->mask;
			count_segv_blocker(old, thread->mask);
			requeue_held(thread);
		}
	}
	if (result == 0 && old_set && write_program(old_set, &old, 8) < 0)
		result = -K_EFAULT;
	regs->gpr[RAX] = result;
}

static bool on_altstack(const struct kernel_stack *stack, uint64_t sp)
{
	if (stack->flags & K_SS_AUTODISARM)
		return false;
	return sp > stack->base && sp - stack->base <= stack->size;
}

static uint32_t altstack_flags(const struct kernel_stack *stack, uint64_t sp)
{
	if (stack->size == 0)
		return K_SS_DISABLE;
	return (on_altstack(stack, sp) ? K_SS_ONSTACK : 0) | (stack->flags & K_SS_AUTODISARM);
}

static long set_altstack(struct thread *thread, const struct kernel_stack *wanted, uint64_t sp)
{
	uint32_t mode = wanted->flags & ~K_SS_AUTODISARM;

	if (thread->altstack.size && on_altstack(&thread->altstack, sp))
		return -K_EPERM;
	if (mode != K_SS_DISABLE && mode != K_SS_ONSTACK && mode != 0)
		return -K_EINVAL;
	if (mode == K_SS_DISABLE) {
		thread->altstack = (struct kernel_stack){.flags = wanted->flags};
		return 0;
	}
	if (wanted->size < K_MINSIGSTKSZ)
		return -K_ENOMEM;
	thread->altstack = *wanted;
	thread->altstack.flags = wanted->flags;
	return 0;
}

void syscall_sigaltstack(struct thread *thread)
{
	struct registers *regs = &thread->regs;
	uint64_t new_stack = regs->gpr[RDI], old_stack = regs->gpr[RSI];
	struct kernel_stack wanted, old = thread->altstack;
	long result = 0;

	old.flags = altstack_flags(&thread->altstack, regs->gpr[RSP]);
	old.padding = 0;
	if (new_stack) {
		if (read_program(&wanted, new_stack, sizeof wanted) < 0)
			result = -K_EFAULT;
		else
			result = set_altstack(thread, &wanted, regs->gpr[RSP]);
	}
	if (result == 0 && old_stack && write_program(old_stack, &old, sizeof old) < 0)
		result = -K_EFAULT;
	regs->gpr[RAX] = result;
}

/* ---- contexts ---- */

static void registers_from_context(struct registers *regs, const struct kernel_sigcontext *c)
{
	*regs = (struct registers){
	        .gpr = {c->rax, c->rcx, c->rdx, c->rbx, c->rsp, c->rbp, c->rsi, c->rdi, c->r8, c->r9, c->r10,
	                c->r11, c->r12, c->r13, c->r14, c->r15},
	        .pc = c->rip,
	        .flags = c->eflags,
	};
}

static void context_from_registers(struct kernel_sigcontext *c, const struct registers *regs)
{
	const uint64_t *g = regs->gpr;

	c->rax = g[RAX];
	c->rcx = g[RCX];
	c->rdx = g[RDX];
	c->rbx = g[RBX];
	c->rsp = g[RSP];
	c->rbp = g[RBP];
	c->rsi = g[RSI];
	c->rdi = g[RDI];
	c->r8 = g[R8];
	c->r9 = g[R9];
	c->r10 = g[R10];
	c->r11 = g[R11];
	c->r12 = g[R12];
	c->r13 = g[R13];
	c->r14 = g[R14];
	c->r15 = g[R15];
	c->rip = regs->pc;
	c->eflags = regs->flags;
}

#define FLAGS_OF_LAHF 0xd5ul
#define FLAG_OVERFLOW 0x800ul

static uint64_t saved_flags(uint64_t flags, uint64_t slot)
{
	return (flags & ~(FLAGS_OF_LAHF | FLAG_OVERFLOW)) | (slot >> 8 & FLAGS_OF_LAHF) |
	       (slot & 1 ? FLAG_OVERFLOW : 0);
}

/* Those of `before + number`, as SLOT_FLAGS has them. */
static uint64_t flags_of_addition(uint64_t before, uint64_t number)
{
	uint64_t slot;

	__asm__("add %2, %1 ; lahf ; seto %%al" : "=&a"(slot), "+&r"(before) : "r"(number) : "cc");
	return slot;
}

void registers_from_code(
        struct thread *thread, const struct kernel_sigcontext *c, const struct code_place *place)
{
	struct registers *regs = &thread->regs;
	uint64_t *slots = (uint64_t *)(place->slots + thread->distance);

	thread->inside = 0;
	registers_from_context(regs, c);
	regs->pc = place->pc;
	slots[SLOT_POSITION] += (int64_t)place->executed;
	if (place->state & RECORD_RCX)
		regs->gpr[RCX] = slots[SLOT_RCX];
	if (place->state & RECORD_R11)
		regs->gpr[R11] = slots[SLOT_R11];
	if (place->state & RECORD_POPPED)
		regs->gpr[RSP] -= 8;
	if (place->state & RECORD_FLAGS)
		regs->flags = saved_flags(regs->flags, slots[SLOT_FLAGS]);
	if (RECORD_ADDED(place->state)) {
		uint64_t number = (uint64_t)RECORD_ADDED_BYTES(place->state),
		         since = (uint64_t)RECORD_ADDED_POPS(place->state) * 8;

		regs->flags =
		        saved_flags(regs->flags, flags_of_addition(regs->gpr[RSP] - since - number, number));
	}
	if (place->state & RECORD_BIASED)
		regs->gpr[RECORD_BIASED_REGISTER(place->state)] -= slots[SLOT_PROGRAM_GS];
	if (place->state & RECORD_SCRATCH_A)
		regs->gpr[RECORD_A_REGISTER(place->state)] = slots[SLOT_SCRATCH_A];
	if (place->state & RECORD_SCRATCH_B)
		regs->gpr[RECORD_B_REGISTER(place->state)] = slots[SLOT_SCRATCH_B];
	if (place->state & RECORD_KEPT_A)
		regs->gpr[RECORD_KEPT_A_REGISTER(place->state)] =
		        slots[SLOT_KEPT + RECORD_KEPT_A_REGISTER(place->state)];
	if (place->state & RECORD_KEPT_B)
		regs->gpr[RECORD_KEPT_B_REGISTER(place->state)] =
		        slots[SLOT_KEPT + RECORD_KEPT_B_REGISTER(place->state)];
}

/* Makes the handler's return go to the stub's resume, which continues from thread.regs. */
static void context_to_resume(struct thread *thread, struct kernel_ucontext *context)
{
	thread->slots[SLOT_TARGET] = 0;
	context->mcontext.rip = (uint64_t)resume;
	context->mcontext.rsp = thread->stack;
	context->mcontext.eflags = 2;
	context->mask = kernel_mask_for(thread->mask);
	thread->shielded = 0;
	if (thread->pending)
		context->mask |= ~FAULT_SIGNALS; /* there is room for one */
	context->stack = kernel_altstack(thread);
}

/* The same for an instruction that is executed once more: a program that steps over it comes to its start
 * again. */
static void context_to_begin_again(struct thread *thread, struct kernel_ucontext *context)
{
	thread->step_armed = 0;
	context_to_resume(thread, context);
}

static void details_from_context(struct fault_details *details, const struct kernel_ucontext *context)
{
	const struct kernel_sigcontext *c = &context->mcontext;

	*details =
	        (struct fault_details){c->err, c->trapno, c->cr2, context->flags, c->cs, c->gs, c->fs, c->ss};
}

static uint32_t fpstate_size(uint64_t fpstate)
{
	const struct fpstate_software *software =
	        (const struct fpstate_software *)(fpstate + FPSTATE_SOFTWARE);

	return software->magic1 == FPSTATE_MAGIC1 ? software->extended_size : FPSTATE_LEGACY;
}

/* The x87 last-instruction pointer in a context is a code-cache address: show the program's. */
static void fix_fpstate_pc(uint64_t fpstate)
{
	uint64_t *pointer = (uint64_t *)(fpstate + 8), cached, pc;

	if (fpstate && program_pc_of(*pointer, &pc)) {
		cached = *pointer;
		*pointer = pc;
		fix_x87_opcode(fpstate + 6, cached, pc);
		fix_x87_data(fpstate + 16);
	}
}

/* ---- delivery ---- */

static uint64_t frame_stack(struct thread *thread, const struct signal_action *action, bool *alternate)
{
	uint64_t sp = thread->regs.gpr[RSP] - 128;

	*alternate = thread->altstack.size && on_altstack(&thread->altstack, sp);
	if ((action->flags & K_SA_ONSTACK) && thread->altstack.size && !*alternate) {
		*alternate = true;
		sp = thread->altstack.base + thread->altstack.size;
	}
	return sp;
}

/* Writes the frame the kernel would write, and points thread.regs at the handler. */
static bool build_frame(struct thread *thread, int number, const struct signal_action *action,
        const struct kernel_siginfo *siginfo, uint64_t fpstate, const struct fault_details *details)
{
	struct registers *regs = &thread->regs;
	struct signal_frame frame = {.restorer = action->restorer, .siginfo = *siginfo};
	struct kernel_sigcontext *c = &frame.context.mcontext;
	bool alternate;
	uint64_t sp = frame_stack(thread, action, &alternate);
	uint32_t fpsize = fpstate_size(fpstate);

	if (!(action->flags & K_SA_RESTORER))
		return false;
	uint64_t fp = (sp - fpsize) & -64ul;
	uint64_t at = ((fp - sizeof frame) & -16ul) - 8;
	if (alternate && !(at > thread->altstack.base && at - thread->altstack.base <= thread->altstack.size))
		return false;

	context_from_registers(c, regs);
	c->cs = details->cs;
	c->gs = details->gs;
	c->fs = details->fs;
	c->ss = details->ss;
	c->err = details->err;
	c->trapno = details->trapno;
	c->cr2 = details->cr2;
	c->oldmask = thread->mask;
	c->fpstate = fp;
	frame.context.flags = details->flags;
	frame.context.stack = thread->altstack;
	frame.context.mask = thread->mask;
	fix_fpstate_pc(fpstate);
	if (write_program(fp, (void *)fpstate, fpsize) < 0)
		return false;
	/* Without SA_SIGINFO the kernel leaves the siginfo part of the frame alone. */
	if (write_program(at, &frame,
	            action->flags & K_SA_SIGINFO ? sizeof frame : offsetof(struct signal_frame, siginfo)) < 0)
		return false;

	if (thread->altstack.flags & K_SS_AUTODISARM)
		thread->altstack = (struct kernel_stack){.flags = K_SS_DISABLE};
	regs->gpr[RDI] = number;
	regs->gpr[RSI] = at + offsetof(struct signal_frame, siginfo);
	regs->gpr[RDX] = at + offsetof(struct signal_frame, context);
	regs->gpr[RAX] = 0;
	regs->gpr[RSP] = at;
	regs->pc = action->handler;
	regs->flags &= ~(FLAG_DF | FLAG_RF | FLAG_TF);
	thread->mask |= action->mask | (action->flags & K_SA_NODEFER ? 0 : SIGBIT(number));
	return true;
}

enum outcome { DELIVERED, IGNORED, FATAL };

/* FATAL: of the signal in *siginfo, which is SIGSEGV when another one's frame could not be built. */
static enum outcome deliver(struct thread *thread, int number, bool fault, struct kernel_siginfo *siginfo,
        uint64_t fpstate, const struct fault_details *details)
{
	uint64_t bit = SIGBIT(number);

	lock(&process()->action_lock);
	struct signal_action action = thread->actions[number];
	bool fatal = fault && ((thread->mask & bit) || action.handler == K_SIG_IGN);
	if (!fatal && action.handler > K_SIG_IGN && (action.flags & K_SA_RESETHAND)) {
		thread->actions[number].handler = K_SIG_DFL;
		install(thread, number, &thread->actions[number]);
	}
	unlock(&process()->action_lock);

	if (fatal || action.handler == K_SIG_DFL)
		return FATAL;
	if (action.handler == K_SIG_IGN)
		return IGNORED;
	uint64_t iterations = take_iterations(thread);
	if (build_frame(thread, number, &action, siginfo, fpstate, details)) {
		log_signal(thread, siginfo, fault, iterations);
		pages_forget_kept(); /* of a call that will be made again */
		pages_log_written(thread, position(thread));
		/* What the frame tells a debugger of must not be what lay there before. */
		if (recording())
			shadow_check_at(
			        thread, position(thread), thread->regs.gpr[RSP], sizeof(struct signal_frame));
		debugged_signal(thread, number);
		return DELIVERED;
	}
	if (number == K_SIGSEGV)
		return FATAL;
	*siginfo = (struct kernel_siginfo){.number = K_SIGSEGV, .code = K_SI_KERNEL};
	return deliver(thread, K_SIGSEGV, true, siginfo, fpstate, details);
}

/*
 * Dies of the signal with the program's own registers: the signal is made
 * pending again, its disposition the default, and the context native.
 * Where our calls may be forbidden a fault is left to come again, while its signal is
 * blocked: the kernel kills by that, whatever handler there is. `faults`: the program is at the instruction.
 */
static void die(struct thread *thread, int number, bool faults, const struct kernel_siginfo *siginfo,
        struct kernel_ucontext *context)
{
	struct signal_action fallback = {.handler = K_SIG_DFL, .flags = K_SA_RESTORER};
	uint64_t all = ~0ul;

	publish_position(thread);
	log_end(thread, LOG_END_KILLED, number, siginfo);
	pages_end();
	if (recording() && info()->announce_exit)
		ask(thread, OP_EXIT, 0, 0, 0);
	bool again = faults && process()->seccomp;
	if (!again) {
		struct thread *by = supervisor_died() ? NULL : thread; /* then it is worth a try */
		own_call4(by, __NR_rt_sigprocmask, K_SIG_SETMASK, &all, 0, 8);
		own_call4(by, __NR_rt_sigaction, number, &fallback, 0, 8);
		queue_to(by, number, siginfo);
	}
	context_from_registers(&context->mcontext, &thread->regs);
	context->mask = again ? thread->mask | SIGBIT(number) : thread->mask & ~SIGBIT(number);
	fix_fpstate_pc(context->mcontext.fpstate);
	struct signal_frame *frame =
	        (struct signal_frame *)((char *)context - offsetof(struct signal_frame, context));
	return_natively(frame, thread->slots[SLOT_PROGRAM_GS]);
}

/* From within the kernel's handler: thread.regs hold the program's state. */
static void deliver_now(struct thread *thread, int number, bool fault, struct kernel_siginfo *siginfo,
        struct kernel_ucontext *context)
{
	struct fault_details details;

	details_from_context(&details, context);
	switch (deliver(thread, number, fault, siginfo, context->mcontext.fpstate, &details)) {
	case DELIVERED:
		context->mcontext.fpstate = 0; /* a handler starts with fresh vector state */
		                               /* fall through */
	case IGNORED:
		/* Several fault signals may have come at once, and there was room for one. */
		if (thread->held && !process()->seccomp)
			requeue_for_return(thread);
		context_to_resume(thread, context);
		return;
	case FATAL: /* after a trap the pc is behind the instruction; another signal is of a frame */
		die(thread, siginfo->number, fault && siginfo->number == number && number != K_SIGTRAP,
		        siginfo, context);
	}
}

/* Back to the kernel's queue, where it waits until it is unblocked: by the return that follows. */
void requeue_pending(struct thread *thread)
{
	int number = thread->pending;
	uint64_t bit = SIGBIT(number);

	thread->pending = 0;
	if ((bit & FAULT_SIGNALS) && process()->seccomp) {
		hold(thread, number, &thread->info);
		return;
	}
	if (bit & FAULT_SIGNALS)
		syscall4(__NR_rt_sigprocmask, K_SIG_BLOCK, &bit, 0, 8);
	queue_to_self(number, &thread->info);
}

void give_signals_back(struct thread *thread)
{
	uint64_t all = ~0ul;
	int pending = thread->pending;

	own_call4(thread, __NR_rt_sigprocmask, K_SIG_SETMASK, &all, 0, 8);
	thread->pending = 0;
	if (pending)
		queue_to_self(pending, &thread->info);
	for (int i = 0; i < 5; i++) {
		if (thread->held & SIGBIT(fault_numbers[i]))
			queue_to_self(fault_numbers[i], &thread->held_info[i]);
	}
	thread->held = 0;
}

/* ---- leaving where calls may be forbidden ---- */

#define XCR0_KEPT 0x2e7ul /* x87, SSE, AVX, AVX-512, protection keys: what a program may have in use */

/* Bytes of an image of these components in standard form. */
static uint32_t image_size(uint64_t features)
{
	uint32_t size = FPSTATE_LEGACY + 64; /* with the header */

	for (uint32_t i = 2; i < 64; i++) {
		uint32_t bytes, offset, c = i, d;
		if (!(features >> i & 1))
			continue;
		__asm__("cpuid" : "=a"(bytes), "=b"(offset), "+c"(c), "=d"(d) : "a"(0xd));
		if (offset + bytes > size)
			size = offset + bytes;
	}
	return size;
}

/* The vector registers as a signal frame has them; 0: the CPU has another form. */
static uint64_t save_for_frame(struct thread *thread)
{
	uint8_t *image = (uint8_t *)thread + THREAD_FPSTATE;
	struct fpstate_software *software = (struct fpstate_software *)(image + FPSTATE_SOFTWARE);
	uint32_t low, high, magic2 = FPSTATE_MAGIC2;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	uint64_t features = (low | (uint64_t)high << 32) & XCR0_KEPT;
	uint32_t size = image_size(features);
	if (size + sizeof magic2 > THREAD_FPSTATE_BYTES)
		stub_panic("vector state of bytes", size);
	memset(image, 0, size);
	__asm__ volatile("xsave64 %0"
	                 : "+m"(*(uint8_t(*)[THREAD_FPSTATE_BYTES])image)
	                 : "a"((uint32_t)features), "d"(0));
	*software = (struct fpstate_software){.magic1 = FPSTATE_MAGIC1,
	        .extended_size = size + sizeof magic2,
	        .features = features,
	        .size = size};
	memcpy(image + size, &magic2, sizeof magic2);
	return (uint64_t)image;
}

/*
 * The return from a signal that never came gives the thread its registers, its mask and its alternate stack
 * at once. Who has a filter that lets handlers return may always do that.
 */
_Noreturn void leave_by_frame(struct thread *thread)
{
	struct signal_frame frame = {0};

	frame.context.flags = 7; /* extended state, and ss is what it says */
	frame.context.mcontext.cs = 0x33;
	frame.context.mcontext.ss = 0x2b;
	context_from_registers(&frame.context.mcontext, &thread->regs);
	frame.context.mcontext.fpstate = save_for_frame(thread);
	fix_fpstate_pc(frame.context.mcontext.fpstate);
	frame.context.mask = thread->mask;
	frame.context.stack = thread->altstack;
	if (!thread->altstack.size)
		frame.context.stack.flags = K_SS_DISABLE;
	return_natively(&frame, thread->slots[SLOT_PROGRAM_GS]);
}

/* The vector state that the signal being kept will find. */
static void keep_fpstate(struct thread *thread, const struct kernel_ucontext *context)
{
	uint64_t fpstate = context->mcontext.fpstate;

	if (!fpstate)
		return;
	if (fpstate_size(fpstate) > THREAD_FPSTATE_BYTES)
		stub_panic("vector state of bytes", fpstate_size(fpstate));
	memcpy((char *)thread + THREAD_FPSTATE, (void *)fpstate, fpstate_size(fpstate));
}

/* The stub has changed the vector state for the program: a signal that is being kept comes after that. */
void renew_fpstate(struct thread *thread)
{
	uint8_t *kept = (uint8_t *)thread + THREAD_FPSTATE;
	const struct fpstate_software *software = (const struct fpstate_software *)(kept + FPSTATE_SOFTWARE);

	if (!thread->pending)
		return;
	if (software->magic1 == FPSTATE_MAGIC1)
		__asm__ volatile(
		        "xsave64 %0"
		        : "+m"(*(uint8_t(*)[THREAD_FPSTATE_BYTES])kept)
		        : "a"((uint32_t)software->features), "d"((uint32_t)(software->features >> 32)));
	else
		__asm__ volatile("fxsave64 %0" : "+m"(*(uint8_t(*)[FPSTATE_LEGACY])kept));
}

/* Puts the program's pc into the x87 unit itself, before the code cache forgets what was where. */
void settle_x87_pc(struct thread *thread)
{
	uint8_t image[FPSTATE_LEGACY] __attribute__((aligned(16))) = {0};

	__asm__ volatile("fxsave64 %0" : "+m"(image));
	fix_fpstate_pc((uint64_t)image);
	__asm__ volatile("fxrstor64 %0" : : "m"(image));
	renew_fpstate(thread);
}

/*
 * Keeps the signal until the stub is done. Only a fault signal sent by somebody
 * can come while another one is being kept.
 */
static void capture(struct thread *thread, int number, const struct kernel_siginfo *siginfo,
        struct kernel_ucontext *context)
{
	if (thread->pending || thread->stepping) {
		hold(thread, number, siginfo);
		context->mask |= ~FAULT_SIGNALS; /* as it is where the one that is being kept was found */
		return;
	}
	thread->info = *siginfo;
	details_from_context(&thread->details, context);
	keep_fpstate(thread, context);
	context->mask = ~FAULT_SIGNALS | kernel_mask_for(thread->mask);
	if (thread->probing)
		context->mask &= ~SIGBIT(K_SIGTRAP);
	thread->pending = number;
}

/* The program set the trap flag and an instruction was executed since: nothing else comes before that trap.
 */
static bool trap_is_due(const struct thread *thread)
{
	return (thread->regs.flags & FLAG_TF) && thread->step_armed && !process()->seccomp;
}

_Noreturn void deliver_pending(struct thread *thread)
{
	surface(thread);
	if (trap_is_due(thread))
		trap_here(thread);

	struct signal_frame frame = {0};
	uint64_t fpstate = (uint64_t)thread + THREAD_FPSTATE;
	int number = thread->pending;
	struct kernel_siginfo siginfo = thread->info;

	if (number == K_SIGSYS && siginfo.code == K_SYS_SECCOMP)
		siginfo.address = thread->regs.pc;
	frame.context.flags = thread->details.flags;
	frame.context.mcontext.cs = thread->details.cs;
	frame.context.mcontext.gs = thread->details.gs;
	frame.context.mcontext.fs = thread->details.fs;
	frame.context.mcontext.ss = thread->details.ss;
	frame.context.mcontext.fpstate = fpstate;
	thread->pending = 0;
	deliver_now(thread, number, false, &siginfo, &frame.context);
	return_from_frame(&frame);
}

/* ---- the handler ---- */

static bool within(uint64_t address, const char *start, const char *end)
{
	return address - (uint64_t)start < (uint64_t)(end - start);
}

static void start_stepping(
        struct thread *thread, const struct kernel_siginfo *siginfo, struct kernel_ucontext *context)
{
	thread->info = *siginfo;
	thread->stepping = STEP_TO_BOUNDARY;
	context->mcontext.eflags |= FLAG_TF;
	context->mask = ~FAULT_SIGNALS | (kernel_mask_for(thread->mask) & ~SIGBIT(K_SIGTRAP));
}

static void deliver_step(struct thread *thread, struct kernel_siginfo *siginfo,
        struct kernel_ucontext *context, const struct code_place *place)
{
	thread->step_armed = 0;
	registers_from_code(thread, &context->mcontext, place);
	/* Set when an interrupt came between two iterations of a rep instruction; a trap by itself leaves it
	 * clear. */
	thread->regs.flags &= ~FLAG_RF;
	siginfo->address = place->pc;
	deliver_now(thread, K_SIGTRAP, true, siginfo, context);
}

/* The program set the trap flag: it wants SIGTRAP after every instruction of its own. */
static void program_step(struct thread *thread, struct kernel_siginfo *siginfo,
        struct kernel_ucontext *context, const struct code_place *place)
{
	/* On the way to an instruction nothing was executed yet. */
	if (place->state & RECORD_TRANSIT)
		return;
	if (thread->step_armed)
		deliver_step(thread, siginfo, context, place);
	else
		thread->step_armed = 1;
}

/* At the boundary that was stepped to for a signal. A trap of the program's own comes first. */
static void end_stepping(struct thread *thread, struct kernel_siginfo *siginfo,
        struct kernel_ucontext *context, const struct code_place *place)
{
	struct kernel_siginfo waiting = thread->info;

	thread->stepping = STEP_NONE;
	if (trap_is_due(thread)) {
		queue_to_self(waiting.number, &waiting);
		deliver_step(thread, siginfo, context, place);
		return;
	}
	if (!(thread->regs.flags & FLAG_TF))
		context->mcontext.eflags &= ~FLAG_TF;
	registers_from_code(thread, &context->mcontext, place);
	deliver_now(thread, waiting.number, false, &waiting, context);
}

static void handle_step(
        struct thread *thread, struct kernel_siginfo *siginfo, struct kernel_ucontext *context)
{
	struct code_place place;
	uint64_t rip = context->mcontext.rip;
	bool program_traps = thread->regs.flags & FLAG_TF;

	if (within(rip, resume_window_start, resume_window_end))
		return;
	if (!code_lookup(rip, &place)) {
		/* In the stub, which switches TF off; the signal we stepped for waits there. */
		if (thread->stepping) {
			struct kernel_siginfo waiting = thread->info;
			thread->stepping = STEP_NONE;
			if (!program_traps) /* its flags are about to be saved */
				context->mcontext.eflags &= ~FLAG_TF;
			capture(thread, waiting.number, &waiting, context);
		}
		return;
	}
	if (!place.boundary)
		return;
	if (thread->stepping)
		end_stepping(thread, siginfo, context, &place);
	else
		program_step(thread, siginfo, context, &place);
}

/*
 * The signal that is being kept comes after this one, whose handler starts with
 * other vector state: let it come again then.
 */
static void deliver_fault(
        struct thread *thread, int number, struct kernel_siginfo *siginfo, struct kernel_ucontext *context)
{
	if (thread->pending)
		requeue_pending(thread);
	deliver_now(thread, number, true, siginfo, context);
}

/* The log keeps what it left: replay does not execute it. */
static void record_native(struct thread *thread, const struct kernel_ucontext *context, bool gs_changed)
{
	bool bases = gs_changed || read_fs_base() != thread->slots[SLOT_FS_BASE];
	uint64_t detail = thread->slots[SLOT_DETAIL];
	bool vectors = !thread->counted || EMULATE_KIND(detail) != EMULATE_STATE ||
	               EMULATE_ARGUMENT(detail) & STATE_VECTORS;

	note_program_fs(thread);
	log_state(thread, position(thread) - 1, bases ? STATE_WITH_BASES : STATE_OF_INSTRUCTION,
	        vectors ? (const void *)context->mcontext.fpstate : NULL);
}

#define PUSHED_MOST 8
#define STACK_SLACK 16 /* pop has moved the stack pointer before it computes an address */

/*
 * While whole pages are logged: what the instruction may have written. One that faults may have written some
 * of it before, as enter does.
 */
static void log_natively_stored(struct thread *thread, uint64_t stack, bool executed)
{
	uint64_t detail = thread->slots[SLOT_DETAIL], now = thread->regs.gpr[RSP];
	unsigned changes = EMULATE_ARGUMENT(detail);

	if (!thread->counted || EMULATE_KIND(detail) != EMULATE_STATE || changes & STATE_STORES) {
		thread->forgets = 1;
		return;
	}
	if (!executed)
		return;
	if (stack - now <= PUSHED_MOST)
		pages_log(thread, position(thread), now, stack - now);
	if (changes & STATE_STORES_AT)
		pages_log(thread, position(thread), thread->slots[SLOT_ADDRESS] - STACK_SLACK,
		        (changes >> STATE_BYTES_SHIFT) + 2 * STACK_SLACK);
}

/* One instruction was executed natively, or tried: see fault_natively. */
static void handle_probe(struct thread *thread, int number, struct kernel_siginfo *siginfo,
        struct kernel_ucontext *context, uint64_t gs_base)
{
	const struct kernel_sigcontext *c = &context->mcontext;
	bool trapping = thread->regs.flags & FLAG_TF;

	bool executed = number == K_SIGTRAP && siginfo->code == K_TRAP_TRACE;

	thread->probing = PROBE_NONE;
	thread->slots[SLOT_POSITION] += (uint64_t)executed - thread->counted;
	if (c->rip == (uint64_t)probe_jump) {
		/* No address at all: not even the jump got there. */
		deliver_fault(thread, number, siginfo, context);
		return;
	}
	bool gs_changed = gs_base != thread->slots[SLOT_PROGRAM_GS];
	uint64_t stack = thread->regs.gpr[RSP];
	set_program_gs(thread, gs_base);
	registers_from_context(&thread->regs, c);
	if (!trapping)
		thread->regs.flags &= ~FLAG_TF;
	if (executed && recording())
		record_native(thread, context, gs_changed);
	if (by_pages())
		log_natively_stored(thread, stack, executed);
	if (number == K_SIGTRAP && siginfo->code == K_TRAP_TRACE && !trapping)
		context_to_resume(thread, context);
	else if (thread->pending && process()->seccomp)
		context_to_begin_again(thread, context); /* deliver that first; the fault will come again */
	else if (c->trapno == TRAP_PAGE_FAULT && (c->err & PAGE_FAULT_WRITE) && process()->watches &&
	         write_watched_page(thread, siginfo->address, thread->regs.pc))
		context_to_begin_again(thread, context);
	else
		deliver_fault(thread, number, siginfo, context);
	if (thread->forgets && context->mcontext.rip == (uint64_t)resume)
		context->mcontext.rip = (uint64_t)fetched;
}

/*
 * A fault of an instruction that the stub performs, between two iterations of it: the program's registers are
 * in place but for what the CPU sets when it is to go on with the same instruction.
 */
static void handle_touch(
        struct thread *thread, int number, struct kernel_siginfo *siginfo, struct kernel_ucontext *context)
{
	if ((context->mcontext.err & PAGE_FAULT_WRITE) && process()->watches &&
	        write_watched_page(thread, siginfo->address, thread->regs.pc))
		return;
	thread->slots[SLOT_POSITION]--;
	thread->regs.flags |= FLAG_RF;
	deliver_fault(thread, number, siginfo, context);
}

/* See trap_here. */
static void handle_own_trap(
        struct thread *thread, struct kernel_siginfo *siginfo, struct kernel_ucontext *context)
{
	thread->probing = PROBE_NONE;
	if (thread->pending && process()->seccomp) {
		thread->step_armed = 1;
		context_to_resume(thread, context);
		return;
	}
	siginfo->address = thread->regs.pc;
	deliver_fault(thread, K_SIGTRAP, siginfo, context);
}

/* Makes the handler's return have the CPU say how the instruction at thread.regs faults. */
static void try_natively(struct thread *thread, struct kernel_ucontext *context)
{
	context_to_resume(thread, context);
	context->mcontext.rip = (uint64_t)probe_start;
	context->mask &= ~SIGBIT(K_SIGTRAP); /* it may work now */
	thread->probing = PROBE_NATIVE;
	thread->counted = 0;
}

static bool equal(const uint8_t *a, const uint8_t *b, size_t size)
{
	while (size && *a == *b)
		a++, b++, size--;
	return size == 0;
}

#define GS_PREFIX 0x65

/* No room for the shadow: the thread goes on natively. */
static void give_up(struct thread *thread, struct kernel_ucontext *context)
{
	__atomic_fetch_add(&channel()->threads_unrecorded, 1, __ATOMIC_RELAXED);
	context_to_resume(thread, context);
	context->mcontext.rip = (uint64_t)release_entry;
}

/*
 * A call has pushed the return address and was to mirror it (push_return in src/translate/shadow.c): it is
 * executed once more, and pushes the same to the same place. An indirect one looks first at what was there,
 * and must find that.
 */
static void take_back_push(
        struct thread *thread, const struct kernel_sigcontext *c, const struct code_place *place)
{
	static const uint8_t mirror[] = {GS_PREFIX, 0x4c, 0x89, 0x1c, 0x24}; /* mov gs:[rsp], r11 */
	bool borrowed = (place->state & RECORD_SCRATCH_B) && RECORD_B_REGISTER(place->state) == R11;
	bool indirect = place->state & RECORD_R11;
	const uint64_t *slots = (const uint64_t *)(place->slots + thread->distance);

	if (!(indirect || borrowed) || !equal((const uint8_t *)c->rip, mirror, sizeof mirror))
		return;
	if (indirect)
		write_program(thread->regs.gpr[RSP], &slots[SLOT_UNDER_STACK], 8);
	thread->regs.gpr[RSP] += 8;
}

/* Was it the access to the shadow, in memory that has none yet? Every such access has a prefix of its own. */
static bool handle_shadow_fault(
        struct thread *thread, const struct kernel_siginfo *siginfo, struct kernel_ucontext *context)
{
	struct kernel_sigcontext *c = &context->mcontext;
	uint64_t address = siginfo->address - thread->distance;
	struct code_place place;

	if (!recording() || c->trapno != TRAP_PAGE_FAULT || !in_code(c->rip) ||
	        *(const uint8_t *)c->rip != GS_PREFIX)
		return false;
	if (!shadow_is_needed(address))
		return false;
	if (shadow_fault(thread->number, address))
		return true;
	if (!code_lookup(c->rip, &place))
		stub_panic("no record of code at", c->rip);
	bool trapping = thread->regs.flags & FLAG_TF;
	registers_from_code(thread, c, &place);
	take_back_push(thread, c, &place);
	if (!trapping)
		thread->regs.flags &= ~FLAG_TF;
	if (thread->stepping) {
		thread->stepping = STEP_NONE;
		queue_to_self(thread->info.number, &thread->info);
	}
	fix_fpstate_pc(c->fpstate); /* all code is about to be translated anew */
	if (address < 1ul << FOLD_BIT && shadow_fold(thread, address, position(thread)))
		context_to_begin_again(thread, context);
	else
		give_up(thread, context);
	return true;
}

static void handle_fault(
        struct thread *thread, int number, struct kernel_siginfo *siginfo, struct kernel_ucontext *context)
{
	struct kernel_sigcontext *c = &context->mcontext;
	struct code_place place;

	if (handle_shadow_fault(thread, siginfo, context))
		return;
	if (!code_lookup(c->rip, &place))
		panic_at_fault(c, siginfo->address);
	bool trapping = thread->regs.flags & FLAG_TF;
	registers_from_code(thread, c, &place);
	if (thread->stepping) {
		thread->stepping = STEP_NONE;
		queue_to_self(thread->info.number, &thread->info);
	}
	if (!trapping)
		thread->regs.flags &= ~FLAG_TF;
	if (c->trapno == TRAP_PAGE_FAULT && (c->err & PAGE_FAULT_WRITE) && process()->watches &&
	        write_watched_page(thread, siginfo->address, place.pc)) {
		context_to_begin_again(thread, context);
		return;
	}
	/*
	 * A rewritten operand has lost its segment: #GP may have been #SS, and what
	 * is an address only together with the segment's base is none for some CPUs.
	 */
	bool beyond = c->trapno == TRAP_PAGE_FAULT && (int64_t)siginfo->address < 0;
	/* While recording, loads come before the instruction, some at its very start: it may have written
	 * first, or be aligned another way. */
	bool compared =
	        recording() && (!by_pages() || pages_is_vdso(place.pc)) &&
	        (c->trapno == TRAP_PAGE_FAULT || c->trapno == TRAP_ALIGNMENT || c->trapno == TRAP_STACK);
	if (compared || (!place.boundary && (c->trapno == TRAP_PROTECTION || beyond))) {
		try_natively(thread, context);
		return;
	}
	static const uint8_t call_peek[] = {CALL_PEEK_BYTES};
	if (c->trapno == TRAP_PAGE_FAULT && !place.boundary &&
	        equal((const uint8_t *)c->rip, call_peek, sizeof call_peek))
		c->err |= PAGE_FAULT_WRITE;
	if (place.state & RECORD_REFUSED)
		__atomic_fetch_add(&channel()->refused, 1, __ATOMIC_RELAXED);
	/* SIGILL, SIGFPE and SIGTRAP tell the pc as address. */
	if (siginfo->address == c->rip)
		siginfo->address = place.pc;
	deliver_now(thread, number, true, siginfo, context);
}

/*
 * A page that is closed, while whole pages are logged: it is opened, and the access made again. In translated
 * code that is where it stands, unless the supervisor has to be asked for room in the log: the code may be
 * another then.
 */
static void handle_closed_page(struct thread *thread, uint64_t address, struct kernel_ucontext *context)
{
	struct kernel_sigcontext *c = &context->mcontext;
	struct code_place place;

	if (!in_code(c->rip)) {
		pages_open_here(thread, address, 1);
		return;
	}
	if (!code_lookup(c->rip, &place))
		stub_panic("no record of code at", c->rip);
	if (log_fits_page(thread)) {
		pages_open(thread, position(thread) + (uint64_t)(int64_t)place.executed, address, 1);
		if (!thread->leaves_pages)
			return;
	}
	bool trapping = thread->regs.flags & FLAG_TF;
	registers_from_code(thread, c, &place);
	if (!trapping)
		thread->regs.flags &= ~FLAG_TF;
	if (thread->stepping) {
		thread->stepping = STEP_NONE;
		queue_to_self(thread->info.number, &thread->info);
	}
	fix_fpstate_pc(c->fpstate);
	pages_open(thread, position(thread), address, 1);
	context_to_begin_again(thread, context);
	if (thread->leaves_pages)
		context->mcontext.rip = (uint64_t)fetched;
}

static void handle_asynchronous(
        struct thread *thread, int number, struct kernel_siginfo *siginfo, struct kernel_ucontext *context)
{
	uint64_t rip = context->mcontext.rip;
	struct code_place place;

	if (within(rip, resume_window_start, resume_window_end)) {
		surface(thread);
		if (trap_is_due(thread)) {
			capture(thread, number, siginfo, context);
			context->mcontext.rip = (uint64_t)resume_window_start;
			return;
		}
		deliver_now(thread, number, false, siginfo, context);
	} else if (within(rip, syscall_window_start, syscall_window_end) ||
	           within(rip, int80_window_start, int80_window_end)) {
		thread->regs.pc -= 2;
		thread->slots[SLOT_POSITION]--;
		deliver_now(thread, number, false, siginfo, context);
	} else if (within(rip, return_window_start, return_window_end)) {
		capture(thread, number, siginfo, context);
		context->mcontext.rip = (uint64_t)return_window_start;
	} else if (thread->probing || thread->stepping || !in_code(rip)) {
		capture(thread, number, siginfo, context);
	} else if (!code_lookup(rip, &place)) {
		stub_panic("no record of code at", rip);
	} else if (place.boundary && !(trap_is_due(thread) && (place.state & RECORD_TRANSIT))) {
		registers_from_code(thread, &context->mcontext, &place);
		deliver_now(thread, number, false, siginfo, context);
	} else {
		start_stepping(thread, siginfo, context);
	}
}

/*
 * Which thread a signal is for, as its GS base; 0: one that runs natively for good.
 * It has the program's own GS base, which is never one of ours; a thread that does
 * so for one instruction only (thread.probing) is known by its alternate stack.
 */
uint64_t signal_thread(uint64_t gs_base, uint64_t stack)
{
	const volatile struct info *i = info();

	if (thread_of_distance(i, gs_base))
		return gs_base;
	for (uint64_t number = 1; number < process()->memory.threads_ready; number++) {
		struct thread *thread = thread_at(number);
		if (stack - (uint64_t)thread < THREAD_STRIDE)
			return thread->probing ? thread_distance(i, number) : 0;
	}
	return 0;
}

/* As if it had not come, also for the system call that it ended. */
static void drop(struct thread *thread, struct kernel_ucontext *context)
{
	const struct kernel_sigcontext *c = &context->mcontext;

	if ((c->rip != (uint64_t)syscall_window_end && c->rip != (uint64_t)int80_window_end) ||
	        c->rax != (uint64_t)-K_EINTR)
		return;
	thread->regs.pc -= 2;
	thread->slots[SLOT_POSITION]--;
	context_to_resume(thread, context);
}

/* Has the kernel another mask than the program's, by a system call that was given one? */
static bool is_let_in(const struct thread *thread, const struct kernel_sigcontext *c)
{
	const uint64_t *gpr = thread->regs.gpr;

	if (c->rax != (uint64_t)-K_EINTR)
		return false;
	if (c->rip == (uint64_t)int80_window_end)
		return true;
	if (c->rip != (uint64_t)syscall_window_end)
		return false;
	switch (gpr[RAX]) {
	case __NR_rt_sigsuspend:
		return true;
	case __NR_ppoll:
		return gpr[R10] != 0;
	case __NR_epoll_pwait:
	case __NR_epoll_pwait2:
		return gpr[R8] != 0;
	case __NR_pselect6:
	case __NR_io_pgetevents:
		return gpr[R9] != 0;
	default:
		return false;
	}
}

/* Only to itself may a thread send what looks as if it came from somebody else; by its number to all of its
 * process. */
static void queue_back(int number, const struct kernel_siginfo *siginfo)
{
	if (siginfo->code == K_SI_TKILL ||
	        syscall3(__NR_rt_sigqueueinfo, syscall0(__NR_gettid), number, siginfo) < 0)
		queue_to_self(number, siginfo);
}

/*
 * A fault signal that was sent while the program blocks it: pending it shall be, for all who look. If it was
 * sent to the process another thread may want it, and gets it then.
 */
static void keep_back(struct thread *thread, int number, const struct kernel_siginfo *siginfo,
        struct kernel_ucontext *context)
{
	uint64_t bit = SIGBIT(number);

	if (by_pages() && (bit & (SIGBIT(K_SIGSEGV) | SIGBIT(K_SIGBUS))))
		thread->leaves_pages =
		        LEAVES_FOR_SIGNAL; /* before anybody can look; these must not be blocked until then */
	if (process()->seccomp || thread->stepping || thread->probing || thread->leaves_pages ||
	        (needed_always() & bit)) {
		hold(thread, number, siginfo);
		drop(thread, context);
		return;
	}
	thread->sent |= bit;
	context->mask |= bit;
	syscall4(__NR_rt_sigprocmask, K_SIG_BLOCK, &bit, 0, 8);
	queue_back(number, siginfo);
}

void requeue_blocked(struct thread *thread)
{
	uint64_t blocked = thread->held & thread->mask & ~needed_always();

	if (!blocked || process()->seccomp)
		return;
	thread->sent |= blocked;
	thread->held &= ~blocked;
	syscall4(__NR_rt_sigprocmask, K_SIG_BLOCK, &blocked, 0, 8);
	for (int i = 0; i < 5; i++) {
		if (blocked & SIGBIT(fault_numbers[i]))
			queue_back(fault_numbers[i], &thread->held_info[i]);
	}
}

/* Then the access is made again, wherever it was. */
static bool is_veiled(const struct kernel_siginfo *siginfo, const struct kernel_ucontext *context)
{
	const struct kernel_sigcontext *c = &context->mcontext;

	return c->trapno == TRAP_PAGE_FAULT &&
	       veil_touched(siginfo->address, 1, (c->err & PAGE_FAULT_WRITE) != 0);
}

uint64_t handle_signal(int number, struct kernel_siginfo *siginfo, struct kernel_ucontext *context,
        struct thread *thread, uint64_t gs_base)
{
	bool fault = siginfo->code > 0 && (SIGBIT(number) & FAULT_SIGNALS);
	uint64_t rip = context->mcontext.rip;
	uint32_t parked = __atomic_exchange_n(&thread->parked, 0, __ATOMIC_SEQ_CST);

	if (replaying())
		return replay_signal(number, siginfo, context, thread, gs_base);
	if (fault && number == K_SIGSEGV && is_veiled(siginfo, context)) {
		__atomic_store_n(&thread->parked, parked, __ATOMIC_SEQ_CST);
		return gs_base;
	}
	uint64_t recovery = fault ? recovery_of(rip) : 0;
	if (fault && number == K_SIGSEGV && context->mcontext.trapno == TRAP_PAGE_FAULT &&
	        (pages_is_closed(thread, siginfo->address) ||
	                (by_pages() && thread->leaves_pages == LEAVES_FOR_STACK && in_code(rip))))
		handle_closed_page(thread, siginfo->address, context);
	else if (debugged_takes(number, siginfo))
		drop(thread, context);
	else if (recovery)
		context->mcontext.rip = recovery;
	else if (fault && within(rip, touch_start, touch_end))
		handle_touch(thread, number, siginfo, context);
	else if (fault && thread->probing == PROBE_VSYSCALL && rip == thread->regs.pc)
		context->mcontext.rip = (uint64_t)vsyscall_fault;
	else if (fault && thread->probing == PROBE_TRAP)
		handle_own_trap(thread, siginfo, context);
	else if (fault && thread->probing == PROBE_NATIVE)
		handle_probe(thread, number, siginfo, context, gs_base);
	else if (number == K_SIGTRAP && siginfo->code == K_TRAP_TRACE)
		handle_step(thread, siginfo, context);
	else if (fault && (in_code(rip) || rip == thread->faulted))
		handle_fault(thread, number, siginfo, context);
	else if ((SIGBIT(number) & FAULT_SIGNALS & thread->mask) && !is_let_in(thread, &context->mcontext)) {
		keep_back(thread, number, siginfo, context);
		fault = false;
	} else
		handle_asynchronous(thread, number, siginfo, context);
	/* Outside of translated code somebody sent what looks like a fault; if it is one it comes again. */
	thread->faulted = fault ? rip : 0;
	/* What happened since a signal was captured may have changed the vector state. */
	if (thread->pending)
		keep_fpstate(thread, context);
	__atomic_store_n(&thread->parked, parked, __ATOMIC_SEQ_CST);
	return thread->probing ? gs_base : thread->distance;
}

/* A thread that was released: the program's handler gets the kernel's own frame, with the program's mask. */
void *native_handler(int number, struct kernel_siginfo *siginfo, struct kernel_ucontext *context)
{
	struct signal_action *action = &process()->memory.actions[number];
	struct signal_action fallback = {.handler = K_SIG_DFL, .flags = K_SA_RESTORER};

	if (number == K_SIGSEGV && siginfo->code > 0 && context->mcontext.trapno == TRAP_PAGE_FAULT &&
	        (context->mcontext.err & PAGE_FAULT_WRITE) && supervisor_died() &&
	        write_orphaned_page(siginfo->address, context->mcontext.rip))
		return_from_frame(
		        (struct signal_frame *)((char *)context - offsetof(struct signal_frame, context)));
	if (number == K_SIGSEGV && siginfo->code > 0 && context->mcontext.trapno == TRAP_PAGE_FAULT &&
	        veil_touched_natively(siginfo->address, (context->mcontext.err & PAGE_FAULT_WRITE) != 0))
		return_from_frame(
		        (struct signal_frame *)((char *)context - offsetof(struct signal_frame, context)));
	uint64_t handler = action->handler;
	bool fault = siginfo->code > 0 && (SIGBIT(number) & FAULT_SIGNALS);
	if (handler <= K_SIG_IGN) {
		if (handler == K_SIG_IGN && !fault)
			return_from_frame((struct signal_frame *)((char *)context -
			                                          offsetof(struct signal_frame, context)));
		if (fault && number != K_SIGTRAP && process()->seccomp) {
			context->mask |= SIGBIT(number); /* see die() */
		} else {
			syscall4(__NR_rt_sigaction, number, &fallback, 0, 8);
			queue_to(NULL, number, siginfo);
		}
		return_from_frame(
		        (struct signal_frame *)((char *)context - offsetof(struct signal_frame, context)));
	}
	uint64_t mask = context->mask | action->mask | (action->flags & K_SA_NODEFER ? 0 : SIGBIT(number));
	if (action->flags & K_SA_RESETHAND)
		action->handler = K_SIG_DFL;
	/* Where our calls may be forbidden it has more blocked than the program wants until it returns. */
	if (!process()->seccomp) {
		if (action->flags & K_SA_RESETHAND)
			syscall4(__NR_rt_sigaction, number, &fallback, 0, 8);
		syscall4(__NR_rt_sigprocmask, K_SIG_SETMASK, &mask, 0, 8);
	}
	return (void *)handler;
}

#define LEGACY_STATE 3ul /* x87, SSE */

/* Does the kernel take the image for more than a legacy one? `room` bytes of it are there. */
static bool is_extended(const uint8_t *image, uint32_t room)
{
	const struct fpstate_software *software = (const struct fpstate_software *)(image + FPSTATE_SOFTWARE);
	uint32_t magic;

	if (software->magic1 != FPSTATE_MAGIC1 || software->size < VECTORS_AVX_BYTES ||
	        software->size > room - 4)
		return false;
	memcpy(&magic, image + software->size, sizeof magic);
	return magic == FPSTATE_MAGIC2;
}

/*
 * The vector state that the kernel will restore: to `image`, in a form that xrstor takes. Without an
 * image it is the initial one, and behind a legacy image the rest is. False: the kernel will refuse it.
 */
static bool read_fpstate(uint8_t *image, uint64_t fpstate)
{
	uint64_t legacy = LEGACY_STATE;
	uint32_t mxcsr = VECTORS_INITIAL_MXCSR, size;

	memset(image, 0, VECTORS_AVX_BYTES);
	if (!fpstate) {
		memcpy(image + VECTORS_AT_MXCSR, &mxcsr, sizeof mxcsr);
		return true;
	}
	if (read_program(image, fpstate, FPSTATE_LEGACY) < 0)
		return false;
	size = fpstate_size((uint64_t)image);
	if (size > FPSTATE_LEGACY && size <= THREAD_FPSTATE_BYTES &&
	        read_program(image, fpstate, size) == 0 && is_extended(image, size))
		return true;
	memset(image + FPSTATE_LEGACY, 0, VECTORS_AVX_BYTES - FPSTATE_LEGACY);
	memcpy(image + FPSTATE_LEGACY, &legacy, sizeof legacy);
	return true;
}

/*
 * The kernel shall restore the vector state that the log has, not what somebody may
 * put in the frame meanwhile. A signal that is captured before it does has a place of its own.
 */
static void record_sigreturn(struct thread *thread, struct kernel_ucontext *context)
{
	uint8_t *image = (uint8_t *)thread + THREAD_RETURNED;
	uint64_t fpstate = context->mcontext.fpstate;
	bool known = read_fpstate(image, fpstate);

	if (known && fpstate)
		context->mcontext.fpstate = (uint64_t)image;
	log_state(thread, position(thread) - 1, STATE_OF_CALL, known ? image : NULL);
}

_Noreturn void syscall_sigreturn(struct thread *thread)
{
	struct registers *regs = &thread->regs;
	struct signal_frame frame = {0};
	uint64_t at = regs->gpr[RSP] - 8 + offsetof(struct signal_frame, context);

	if (read_program(&frame.context, at, sizeof frame.context) < 0) {
		/* The kernel answers a bad frame with SIGSEGV; let it read the same frame and say so. */
		regs->pc -= 2;
		thread->slots[SLOT_POSITION]--;
		thread->info = (struct kernel_siginfo){.number = K_SIGSEGV, .code = K_SI_KERNEL};
		thread->details = (struct fault_details){.flags = 7, .cs = 0x33, .ss = 0x2b};
		memset((char *)thread + THREAD_FPSTATE, 0, 512);
		thread->pending = K_SIGSEGV;
		deliver_pending(thread);
	}
	/* With the stack pointer from before: the kernel does not change the stack it is on either. */
	set_altstack(thread, &frame.context.stack, regs->gpr[RSP]);
	uint64_t flags = regs->flags;
	registers_from_context(regs, &frame.context.mcontext);
	regs->flags = (flags & ~SIGRETURN_FLAGS) | (regs->flags & SIGRETURN_FLAGS);
	count_segv_blocker(thread->mask, frame.context.mask);
	thread->mask = frame.context.mask & ~UNBLOCKABLE;
	thread->sent &= thread->mask;
	if (process()->seccomp)
		requeue_held(thread);
	else
		requeue_for_return(thread);
	if (thread->pending)
		requeue_pending(thread); /* the mask that follows has to let it in */
	thread->step_armed = 0;
	context_to_resume(thread, &frame.context);
	if (recording())
		record_sigreturn(thread, &frame.context);
	/* A step takes many traps. Signals could come faster than that, and there would never be one. */
	if ((regs->flags & FLAG_TF) && !process()->seccomp) {
		thread->shielded = 1;
		frame.context.mask |= ~FAULT_SIGNALS;
	}
	frame.context.mcontext.cs = 0x33;
	return_from_frame(&frame);
}
