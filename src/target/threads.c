/*
 * Threads and processes. A new thread gets a number, which is its GS base, its
 * records and its stacks; all of it is free again the moment it ends. The kernel
 * starts it on its stub stack, with all signals blocked until it is set up.
 *
 *   same memory, same process          a thread
 *   same memory, another process       vfork, posix_spawn: a thread to us, with its own signal actions
 *   a copy of the memory               fork: the one thread that the copy has goes on in it
 */
#include "target/stub.h"

#define READY_STEP 16
#define AT_FDCWD   -100
#define S_ISUID    04000
#define S_ISGID    02000

struct clone3_arguments {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	uint64_t more[24];
};

struct clone_plan {
	long number;
	uint64_t flags;
	uint64_t program_stack; /* where the program wants its child's rsp, or 0 */
	uint64_t arguments[5];
	struct clone3_arguments clone3;
};

/* ---- numbers ---- */

static uint64_t claim_number(void)
{
	struct process *p = process();
	uint32_t count = info()->thread_count;

	for (uint64_t word = 0; word * 64 < count; word++) {
		uint64_t bits = __atomic_load_n(&p->thread_bits[word], __ATOMIC_RELAXED);
		while (~bits) {
			uint64_t number = word * 64 + __builtin_ctzl(~bits);
			if (number >= count)
				return 0;
			if (__atomic_compare_exchange_n(&p->thread_bits[word], &bits,
			            bits | 1ul << (number & 63), false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
				return number;
		}
	}
	return 0;
}

static void free_number(uint64_t number)
{
	__atomic_fetch_and(&process()->thread_bits[number / 64], ~(1ul << (number & 63)), __ATOMIC_RELEASE);
}

static bool claim_this(uint64_t number)
{
	uint64_t bit = 1ul << (number & 63);

	return !(__atomic_fetch_or(&process()->thread_bits[number / 64], bit, __ATOMIC_ACQUIRE) & bit);
}

bool thread_is_unfit(uint64_t number)
{
	return process()->memory.unfit_bits[number / 64] >> (number & 63) & 1;
}

/* Nobody has the number, or gets it again. */
bool thread_retire(uint64_t number)
{
	if (!claim_this(number))
		return false;
	__atomic_fetch_or(&process()->memory.unfit_bits[number / 64], 1ul << (number & 63), __ATOMIC_SEQ_CST);
	return true;
}

/*
 * The thread that has it leaves, and nobody gets the number again; what it has of its own stays where it is.
 * See expel_threads.
 */
void thread_expel(uint64_t number)
{
	struct process_memory *memory = &process()->memory;
	uint64_t bit = 1ul << (number & 63);

	__atomic_fetch_or(&memory->expelled_bits[number / 64], bit, __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&memory->unfit_bits[number / 64], bit, __ATOMIC_SEQ_CST);
}

bool thread_is_expelled(uint64_t number)
{
	return process()->memory.expelled_bits[number / 64] >> (number & 63) & 1;
}

/* Also for numbers below it: who has claimed one of those may come later. */
static bool make_shadow(uint64_t number)
{
	struct process *p = process();

	for (; p->memory.threads_ready <= number; p->memory.threads_ready++) {
		uint64_t next = p->memory.threads_ready;
		if (!shadow_map(next))
			__atomic_fetch_or(
			        &p->memory.unfit_bits[next / 64], 1ul << (next & 63), __ATOMIC_SEQ_CST);
	}
	return !thread_is_unfit(number);
}

/* Memory for threads is taken a few at a time, so that no limit counts what is not used. */
static bool make_records(uint64_t number)
{
	struct process *p = process();
	uint64_t end = (number / READY_STEP + 1) * READY_STEP;
	long result = 0;

	if (number < p->memory.threads_ready)
		return true;
	for (uint32_t i = 0; i < p->segment_count && result == 0; i++)
		result = own_call3(current_thread(), __NR_mprotect,
		        p->segments[i].base + LAYOUT_THREADS + p->memory.threads_ready * THREAD_STRIDE,
		        (end - p->memory.threads_ready) * THREAD_STRIDE, K_PROT_READ | K_PROT_WRITE);
	if (result == 0)
		p->memory.threads_ready = end;
	return result == 0;
}

static bool make_ready(uint64_t number)
{
	struct process *p = process();

	lock(&p->thread_lock);
	bool ready = recording() ? make_shadow(number) : make_records(number);
	unlock(&p->thread_lock);
	return ready;
}

/* A number with memory, or 0. */
static uint64_t claim_ready_number(void)
{
	for (;;) {
		uint64_t number = claim_number();
		if (!number || make_ready(number))
			return number;
		if (!recording()) {
			free_number(number);
			return 0;
		}
	}
}

void thread_prepare(struct thread *thread, uint64_t number)
{
	struct process *p = process();

	memset(thread, 0, sizeof *thread);
	thread->number = number;
	thread->distance = thread_distance(info(), number);
	thread->stack = (uint64_t)thread + THREAD_STACK_TOP;
	for (uint32_t i = 0; i < p->segment_count; i++) {
		uint64_t *slots =
		        (uint64_t *)(p->segments[i].base + LAYOUT_THREADS + thread_distance(info(), number));
		slots[SLOT_THREAD] = (uint64_t)thread;
	}
	set_position(thread, 0);
}

/* ---- clone ---- */

static long plan_clone(struct thread *thread, long number, struct clone_plan *plan)
{
	uint64_t *gpr = thread->regs.gpr;

	*plan = (struct clone_plan){.number = __NR_clone};
	switch (number) {
	case __NR_fork:
		plan->flags = K_SIGCHLD;
		break;
	case __NR_vfork:
		plan->flags = K_CLONE_VM | K_CLONE_VFORK | K_SIGCHLD;
		break;
	case __NR_clone:
		plan->flags = gpr[RDI];
		plan->program_stack = gpr[RSI];
		plan->arguments[2] = gpr[RDX];
		plan->arguments[3] = gpr[R10];
		plan->arguments[4] = gpr[R8];
		break;
	default: {
		uint64_t size = gpr[RSI];
		if (size < 64)
			return -K_EINVAL;
		if (size > sizeof plan->clone3)
			return -K_E2BIG;
		if (read_program(&plan->clone3, gpr[RDI], size) < 0)
			return -K_EFAULT;
		if (!plan->clone3.stack != !plan->clone3.stack_size)
			return -K_EINVAL;
		plan->number = __NR_clone3;
		plan->flags = plan->clone3.flags;
		if (plan->clone3.stack)
			plan->program_stack = plan->clone3.stack + plan->clone3.stack_size;
		plan->clone3.stack = plan->clone3.stack_size = 0;
		plan->arguments[0] = (uint64_t)&plan->clone3;
		plan->arguments[1] = size;
		return 0;
	}
	}
	plan->arguments[0] = plan->flags;
	return 0;
}

static void block_signals(struct thread *thread)
{
	uint64_t all = ~FAULT_SIGNALS;
	own_call4(thread, __NR_rt_sigprocmask, K_SIG_BLOCK, &all, 0, 8);
}

/* CLONE_CLEAR_SIGHAND: the kernel forgot the child's handlers, ours among them. */
static void clear_actions(struct signal_action *actions)
{
	for (int number = 1; number <= 64; number++) {
		if (actions[number].handler != K_SIG_IGN)
			actions[number] = (struct signal_action){.handler = K_SIG_DFL};
	}
	install_handlers(actions);
}

static void child_registers(struct thread *child, const struct clone_plan *plan)
{
	child->regs.gpr[RAX] = 0;
	child->regs.gpr[RCX] = child->regs.pc;
	child->regs.gpr[R11] = child->regs.flags;
	if (plan->program_stack)
		child->regs.gpr[RSP] = plan->program_stack;
}

/* The copy has one thread, this one, and knows nobody at the supervisor's yet. */
static void begin_process(struct thread *thread, struct mailbox *mailbox, const struct clone_plan *plan)
{
	struct process *p = process();

	memset(p->thread_bits, 0, sizeof p->thread_bits);
	p->thread_bits[0] = 1;
	p->thread_bits[thread->number / 64] |= 1ul << (thread->number & 63);
	p->action_lock = 0;
	p->protect_lock = 0;
	p->thread_lock = 0;
	p->segv_blockers = 0;
	p->has_natives = 0;
	count_segv_blocker(0, thread->mask);
	set_position(thread, 0);
	thread->log = NULL; /* the log is its parent's */
	thread->forked = recording();
	thread->mailbox = mailbox;
	/* Who may not ask was told, by its parent's count. */
	thread->tid = is_assisted(thread) ? mailbox->forked : syscall0(__NR_gettid);
	thread->sent = thread->held = 0;
	if (mailbox)
		mailbox->tid = thread->tid;
	if (plan->flags & K_CLONE_CLEAR_SIGHAND)
		clear_actions(thread->actions);
	child_registers(thread, plan);
	forked_memory(thread);
}

/*
 * Has the kernel write the child's pid into its mailbox before the child runs:
 * by the parent's count, because the child's own may be that of a new namespace.
 */
static void announce_child(struct clone_plan *plan, struct mailbox *mailbox)
{
	struct clone3_arguments *c = &plan->clone3;
	uint64_t both = K_CLONE_PIDFD | K_CLONE_PARENT_SETTID;

	if (plan->number == __NR_clone && (plan->flags & both) == both)
		return; /* the kernel will refuse it */
	if (plan->number == __NR_clone &&
	        (plan->flags & K_CLONE_PIDFD)) { /* clone has one pointer for both */
		*c = (struct clone3_arguments){.flags = plan->flags & ~0xfful,
		        .pidfd = plan->arguments[2],
		        .child_tid = plan->arguments[3],
		        .exit_signal = plan->flags & 0xff,
		        .tls = plan->arguments[4]};
		plan->number = __NR_clone3;
		plan->arguments[0] = (uint64_t)c;
		plan->arguments[1] = 64;
	}
	if (plan->number == __NR_clone3) {
		c->flags |= K_CLONE_PARENT_SETTID;
		c->parent_tid = (uint64_t)&mailbox->forked;
	} else {
		plan->arguments[0] |= K_CLONE_PARENT_SETTID;
		plan->arguments[2] = (uint64_t)&mailbox->forked;
	}
}

static long clone_process(struct thread *thread, struct clone_plan *plan)
{
	struct mailbox *mailbox = thread->mailbox ? mailbox_claim() : NULL;
	uint64_t parent_tid = plan->number == __NR_clone3 ? plan->clone3.parent_tid : plan->arguments[2];

	if (mailbox) {
		if (!thread->mailbox->pid)
			ask(thread, OP_KNOW_ME, 0, 0, 0);
		mailbox->parent = thread->mailbox->pid;
		announce_child(plan, mailbox);
	}
	lock(&process()->protect_lock); /* what the copy finds protected is what the supervisor knows */
	lock(&process()->action_lock);  /* so that the copy's table is whole */
	long result = syscall5(plan->number, plan->arguments[0], plan->arguments[1], plan->arguments[2],
	        plan->arguments[3], plan->arguments[4]);
	if (result == 0) {
		begin_process(thread, mailbox, plan);
		return 0;
	}
	unlock(&process()->action_lock);
	if (result > 0 && mailbox) {
		int32_t tid = result;
		if (plan->flags & K_CLONE_PARENT_SETTID)
			write_program(parent_tid, &tid, sizeof tid);
		/* Before this process may change its code: the child shares the translations. */
		ask(thread, OP_FORKED, result, mailbox - channel()->mailboxes, 0);
	} else if (mailbox) {
		mailbox_release(mailbox);
	}
	unlock(&process()->protect_lock);
	return result;
}

static struct thread *prepare_child(struct thread *thread, const struct clone_plan *plan)
{
	uint64_t number = claim_ready_number();
	if (!number)
		return NULL;

	struct thread *child = thread_at(number);
	thread_prepare(child, number);
	bool forgot = recording() && shadow_forget_all(child, false);
	child->regs = thread->regs;
	child_registers(child, plan);
	order_begin(child, thread);
	child->mask = thread->mask;
	count_segv_blocker(0, child->mask);
	child->actions = thread->actions;
	child->altstack.flags = K_SS_DISABLE;
	if (plan->flags & K_CLONE_VFORK)
		child->altstack = thread->altstack;
	if (!(plan->flags & K_CLONE_SIGHAND)) {
		child->actions = (struct signal_action *)((char *)child + THREAD_ACTIONS);
		memcpy(child->actions, thread->actions, sizeof process()->memory.actions);
	}
	if (plan->flags & K_CLONE_VFORK)
		child->vfork_parent = thread;
	child->clear_actions = (plan->flags & K_CLONE_CLEAR_SIGHAND) != 0;
	set_program_gs(child, thread->slots[SLOT_PROGRAM_GS]);
	/* Not its own log yet: only that it shall have one. A process of its own has none. */
	child->log = forgot && plan->flags & K_CLONE_THREAD ? thread->log : NULL;
	child->mailbox = thread->mailbox ? mailbox_claim() : NULL;
	if (child->mailbox) {
		child->mailbox->pid = thread->mailbox->pid;
		child->mailbox->parent = thread->mailbox->parent;
		child->mailbox->forked = thread->mailbox->forked;
	}
	return child;
}

static void discard_child(struct thread *child)
{
	if (child->mailbox)
		mailbox_release(child->mailbox);
	count_segv_blocker(child->mask, 0);
	free_number(child->number);
}

/* Until its vfork child has gone a thread cannot be stopped, even by ptrace: see evacuate.c. */
static void be_absent(struct thread *thread)
{
	if (thread->mailbox)
		__atomic_store_n(&thread->mailbox->absent, 1, __ATOMIC_SEQ_CST);
}

static void be_back(struct thread *thread)
{
	if (!thread->mailbox)
		return;
	__atomic_store_n(&thread->mailbox->absent, 0, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&channel()->evacuating, __ATOMIC_SEQ_CST) && !supervisor_died())
		__builtin_ia32_pause();
}

/* The number of a thread that may not ask for it: has the kernel write it before the thread runs. */
static void announce_thread(struct clone_plan *plan, struct thread *child)
{
	struct clone3_arguments *c = &plan->clone3;
	bool wanted = plan->flags & K_CLONE_PARENT_SETTID;

	if (plan->number == __NR_clone3) {
		if (!wanted)
			c->parent_tid = (uint64_t)&child->tid;
		c->flags |= K_CLONE_PARENT_SETTID;
		child->tid_at = c->parent_tid;
	} else if (!(plan->flags & K_CLONE_PIDFD)) { /* clone has one pointer for both */
		if (!wanted)
			plan->arguments[2] = (uint64_t)&child->tid;
		plan->arguments[0] |= K_CLONE_PARENT_SETTID;
		child->tid_at = plan->arguments[2];
	}
}

/*
 * No number is left, or there is no room for another shadow: the child runs natively from its first
 * instruction on, and nothing of it is recorded but what others see of it.
 */
static long clone_unrecorded(struct thread *thread, struct clone_plan *plan)
{
	const uint64_t *gpr = thread->regs.gpr;
	uint64_t stack = plan->program_stack ? plan->program_stack : gpr[RSP];
	const uint64_t image[NATIVE_WORDS] = {thread->slots[SLOT_PROGRAM_GS], thread->mask, gpr[RDI],
	        gpr[RSI], gpr[RDX], gpr[R10], thread->regs.flags, thread->regs.pc, 0, thread->regs.flags,
	        thread->regs.pc};
	uint64_t at = stack - 128 - sizeof image;

	/* Its mask could not be set. */
	if (process()->seccomp)
		return -K_EAGAIN;
	if (write_program(at, image, sizeof image) < 0)
		return -K_EFAULT;
	leave_others_unwatched(thread);
	if (plan->number == __NR_clone3) {
		/* As much of a stack as there is needed, with its end where it is to be. */
		plan->clone3.stack = at - 0x10;
		plan->clone3.stack_size = 0x10;
		plan->arguments[2] = gpr[RDX];
		plan->arguments[3] = gpr[R10];
		plan->arguments[4] = gpr[R8];
	} else {
		plan->arguments[1] = at;
	}
	if (plan->flags & K_CLONE_VFORK)
		be_absent(thread);
	long result = clone_native(plan->number, plan->arguments);
	if (plan->flags & K_CLONE_VFORK)
		be_back(thread);
	/* A process of its own would not be recorded either. */
	if (result > 0 && plan->flags & K_CLONE_THREAD)
		__atomic_fetch_add(&channel()->threads_unrecorded, 1, __ATOMIC_RELAXED);
	return result;
}

static long clone_shared(struct thread *thread, struct clone_plan *plan)
{
	bool begun = begin_own_calls(thread);
	struct thread *child = prepare_child(thread, plan);
	end_own_calls(thread, begun);
	if (!child && is_assisted(thread) && supervisor_died())
		back_out(); /* to make it natively */
	if (!child)
		return clone_unrecorded(thread, plan);

	if (plan->number == __NR_clone3) {
		plan->clone3.stack = (uint64_t)child + THREAD_STACK_BOTTOM;
		plan->clone3.stack_size = child->stack - plan->clone3.stack;
	} else {
		plan->arguments[1] = child->stack;
	}
	if (is_assisted(thread))
		announce_thread(plan, child);
	bool vfork = plan->flags & K_CLONE_VFORK;
	if (vfork)
		be_absent(thread);
	long result = clone_thread(plan->number, plan->arguments, thread_distance(info(), child->number));
	if (vfork)
		be_back(thread);
	/* With CLONE_VFORK the child has left this memory by now; a thread of its own it cannot have. */
	if (result < 0 || (plan->flags & K_CLONE_VFORK))
		discard_child(child);
	return result;
}

static int32_t own_number(const struct thread *thread)
{
	int32_t tid;

	if (!is_assisted(thread) || !thread->tid_at || read_program(&tid, thread->tid_at, sizeof tid) < 0)
		return syscall0(__NR_gettid);
	return tid;
}

void thread_begin(struct thread *thread)
{
	thread->tid = own_number(thread);
	if (thread->mailbox)
		thread->mailbox->tid = thread->tid;
	bool begun = begin_own_calls(thread);
	if (!install_altstack(thread)) {
		thread->log = NULL;
		release(thread);
	}
	if (thread->clear_actions)
		clear_actions(thread->actions);
	if (recording()) {
		note_program_fs(thread);
		if (thread->log)
			log_begin(thread, thread->log->id);
	}
	set_kernel_mask(thread->mask);
	end_own_calls(thread, begun);
}

/* ---- a program that was running already ---- */

struct adoption *adoption_at(uint32_t index)
{
	const struct segment_layout *first = &process()->segments[0];

	return (struct adoption *)(first->base + first->logs + log_offset(index + 1) + LOG_DATA);
}

/* They are stopped, wherever they were. Who finds no room goes on natively. */
void adopt_others(struct thread *thread)
{
	for (uint32_t i = 1; i < info()->adopted; i++) {
		struct adoption *adoption = adoption_at(i);
		uint64_t number = claim_ready_number();
		struct mailbox *mailbox = number ? mailbox_claim() : NULL;
		if (!number || (info()->filtered && !mailbox)) {
			adoption->distance = 0;
			if (number)
				free_number(number);
			continue;
		}
		struct thread *other = thread_at(number);
		thread_prepare(other, number);
		other->regs = adoption->registers;
		other->mask = adoption->mask;
		other->actions = thread->actions;
		count_segv_blocker(0, other->mask);
		set_program_gs(other, adoption->program_gs);
		other->unfiltered = info()->filtered;
		other->mailbox = mailbox;
		if (mailbox)
			mailbox->pid = thread->mailbox->pid;
		adoption->distance = thread_distance(info(), number);
	}
}

void thread_adopted(struct thread *thread)
{
	own_call2(thread, __NR_sigaltstack, 0, &thread->altstack);
	thread->tid = (int32_t)own_call0(thread, __NR_gettid);
	if (thread->mailbox)
		thread->mailbox->tid = thread->tid;
	if (!install_altstack(thread))
		release(thread);
	note_program_fs(thread);
	if (thread->mailbox)
		log_begin(thread, LOG_NO_PARENT);
	if (info()->filtered) {
		thread->unfiltered = 0;
		ask(thread, OP_ADOPTED, kernel_mask_for(thread->mask), 0, 0);
	} else {
		set_kernel_mask(thread->mask);
	}
}

void syscall_clone(struct thread *thread, long number)
{
	struct clone_plan plan;
	long result = plan_clone(thread, number, &plan);

	if (result == 0) {
		block_signals(thread);
		if (thread->pending)
			back_out();
		result = plan.flags & K_CLONE_VM ? clone_shared(thread, &plan) : clone_process(thread, &plan);
		set_kernel_mask(thread->mask);
	}
	thread->regs.gpr[RAX] = result;
}

/* ---- the end ---- */

void syscall_exit(struct thread *thread)
{
	uint64_t number = thread->number;

	if (!is_on_its_own())
		block_signals(thread);
	if (thread->pending)
		back_out();
	if (info()->count)
		__atomic_fetch_add(&channel()->instructions, position(thread), __ATOMIC_RELAXED);
	order_entered(thread, position(thread) - 1);
	log_end(thread, LOG_END_THREAD, (int)thread->regs.gpr[RDI], NULL);
	if (thread->mailbox)
		thread->mailbox->instructions = 0;
	if (thread->vfork_parent) /* the parent frees it */
		syscall1(__NR_exit, thread->regs.gpr[RDI]);
	if (thread->mailbox)
		mailbox_release(thread->mailbox);
	count_segv_blocker(thread->mask, 0);
	leave_thread(&process()->thread_bits[number / 64], ~(1ul << (number & 63)));
}

/*
 * A program that gets rights from its file cannot be traced on its way in, or
 * the kernel would withhold them: it runs natively.
 */
static bool gains_rights(struct thread *thread, long number)
{
	uint64_t *gpr = thread->regs.gpr;
	bool at = number == __NR_execveat;
	struct {
		uint64_t dev, ino, nlink;
		uint32_t mode, uid, gid, padding;
		uint64_t rest[16];
	} status;
	char capability[64];

	long result = syscall4(__NR_newfstatat, at ? (int)gpr[RDI] : AT_FDCWD, at ? gpr[RSI] : gpr[RDI],
	        &status, at ? gpr[R8] : 0);
	if (result < 0)
		return false;
	if (status.mode & (S_ISUID | S_ISGID))
		return true;
	return !at &&
	       syscall4(__NR_getxattr, gpr[RDI], "security.capability", capability, sizeof capability) > 0;
}

void syscall_execve(struct thread *thread, long number)
{
	/* What is recorded is saved before the new program runs. */
	bool wanted = info()->children || (thread->log && !thread->vfork_parent);
	bool follow = wanted && !process()->seccomp && !gains_rights(thread, number);

	ask(thread, OP_EXEC, follow, thread->vfork_parent != NULL, 0);
	/* The new program inherits mask and ignored signals: now they must be exactly the program's. */
	if (!process()->seccomp) {
		ignore_for_exec(thread, true);
		syscall4(__NR_rt_sigprocmask, K_SIG_SETMASK, &thread->mask, 0, 8);
		limits_for_exec(false);
	}
	uint64_t result = syscall_window();
	if (!process()->seccomp) {
		limits_for_exec(true);
		set_kernel_mask(thread->mask);
		ignore_for_exec(thread, false);
	}
	ask(thread, OP_EXEC_FAILED, follow, thread->vfork_parent != NULL, 0);
	thread->regs.gpr[RAX] = result;
}
