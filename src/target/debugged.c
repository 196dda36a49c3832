/*
 * Standing still for a debugger, while the program is recorded. A thread stands between two instructions of
 * the program, with its state complete in thread.regs and its vector registers in place, and waits in OP_HELD
 * for the supervisor (record/hold.h) to let it go: for good, or for one instruction.
 *
 * It comes here from `resume`, where channel.detaining leads it, or before an instruction that the supervisor
 * gives no code for because it is to stop there.
 */
#include "target/stub.h"

/* A load that missed has overwritten its register: until it is executed again, the state is not the
 * program's.
 */
static bool misses(const struct thread *thread)
{
	return thread->missed == position(thread) + 1;
}

static void stand(struct thread *thread, unsigned why, unsigned signal)
{
	uint64_t here = position(thread);

	thread->slots[SLOT_TARGET] = 0;
	log_reached(thread, here);
	log_show(thread);
	thread->single = 0;
	uint64_t status = ask(thread, OP_HELD, why, signal, 0);
	/* Also when the supervisor has died. */
	if (__atomic_load_n(&channel()->detaining, __ATOMIC_SEQ_CST) & DETAIN_LEAVING)
		leave_now(thread);
	if (status != STATUS_OK)
		return;
	thread->signalled = thread->delivered = 0;
	thread->single = thread->mailbox->reply[0] == HELD_STEP;
	thread->single_from = here;
}

void debugged_stop(struct thread *thread)
{
	if (thread->log)
		stand(thread, HELD_AT_STOP, 0);
}

/* Code for one instruction, from which it comes back. Where there is none it will hear why when it asks. */
static void take_step(struct thread *thread)
{
	while (ask(thread, OP_STEP, thread->regs.pc, 1, 0) == STATUS_OK) {
		if (!code_was_replaced(thread)) {
			thread->slots[SLOT_TARGET] = thread->mailbox->reply[0];
			return;
		}
		log_code(thread, position(thread));
	}
}

void detained(struct thread *thread)
{
	uint32_t detaining = __atomic_load_n(&channel()->detaining, __ATOMIC_SEQ_CST);
	unsigned why = HELD_WANTED;

	if (detaining & DETAIN_LEAVING)
		leave_now(thread);
	if ((detaining & DETAIN_EXPELLING) && recording() && thread_is_unfit(thread->number)) {
		__atomic_fetch_add(&channel()->threads_unrecorded, 1, __ATOMIC_RELAXED);
		leave_now(thread);
	}
	/* In the middle of an instruction it goes on: it comes back, or is brought here. */
	if (!thread->log || (thread->inside && thread->inside == thread->slots[SLOT_TARGET]))
		return;
	if (thread->single && (position(thread) != thread->single_from || thread->delivered)) {
		thread->single = 0;
		why = HELD_STEPPED;
	}
	if (thread->signalled)
		stand(thread, HELD_SIGNAL, thread->signalled);
	else if ((detaining & DETAIN_HOLDING) && !thread->single && !misses(thread))
		stand(thread, why, 0);
	bool holding = __atomic_load_n(&channel()->detaining, __ATOMIC_SEQ_CST) & DETAIN_HOLDING;
	if (!thread->pending && (thread->single || (holding && misses(thread))))
		take_step(thread);
}

void debugged_signal(struct thread *thread, int number)
{
	thread->delivered = 1;
	if (!info()->debugged || !thread->log || (info()->passed_signals & SIGBIT(number)))
		return;
	thread->signalled = number;
	__atomic_fetch_or(&channel()->detaining, DETAIN_SIGNAL, __ATOMIC_SEQ_CST);
}

bool debugged_takes(int number, const struct kernel_siginfo *siginfo)
{
	return info()->debugged && siginfo->code == K_SI_KERNEL &&
	       (number == K_SIGINT || number == K_SIGQUIT);
}
