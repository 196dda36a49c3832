/*
 * The stub's side of the channel: one mailbox per thread, filled, rung and
 * waited on. Requests come in bursts when new code runs, so both sides spin for
 * a little before they sleep. Not for long: where others want the processors, a
 * spinning waiter keeps the one it waits for from running, and sched_yield gives
 * a whole time slice to anybody but him (measured: both cost more than sleeping).
 * The supervisor holds a robust mutex in the channel for life; the kernel marks it
 * when the supervisor dies, however it dies, and then the thread goes on natively.
 */
#include "target/stub.h"

#define SPINS             600
#define LOCK_SPINS        100
#define SLEEP_NANOSECONDS 20000000
#define SLEEP_MOST        320000000
#define NAP_NANOSECONDS   1000000

struct mailbox *mailbox_claim(void)
{
	struct channel *c = channel();

	for (uint32_t i = 0; i < MAILBOX_COUNT; i++) {
		struct mailbox *mailbox = &c->mailboxes[i];
		uint32_t expected = MAILBOX_FREE;
		if (__atomic_load_n(&mailbox->state, __ATOMIC_RELAXED) != MAILBOX_FREE ||
		        !__atomic_compare_exchange_n(&mailbox->state, &expected, MAILBOX_IDLE, false,
		                __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		uint32_t high = __atomic_load_n(&c->mailbox_high, __ATOMIC_RELAXED);
		while (high <= i && !__atomic_compare_exchange_n(&c->mailbox_high, &high, i + 1, false,
		                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			;
		return mailbox;
	}
	return NULL;
}

void mailbox_release(struct mailbox *mailbox)
{
	mailbox->pid = mailbox->forked = 0;
	__atomic_store_n(&mailbox->state, MAILBOX_FREE, __ATOMIC_RELEASE);
}

bool supervisor_died(void)
{
	return __atomic_load_n(&channel()->owner[0], __ATOMIC_RELAXED) & OWNER_DIED;
}

static void ring(void)
{
	struct channel *c = channel();

	__atomic_fetch_add(&c->doorbell, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&c->sleeping, __ATOMIC_SEQ_CST) && !process()->quiet)
		syscall3(__NR_futex, &c->doorbell, K_FUTEX_WAKE, 1);
}

static void post(struct mailbox *mailbox)
{
	struct channel *c = channel();
	uint64_t index = mailbox - c->mailboxes;

	__atomic_fetch_or(&c->pending[index / 64], 1ul << (index & 63), __ATOMIC_SEQ_CST);
	ring();
}

void tell_returned(void)
{
	__atomic_fetch_add(&channel()->returned, 1, __ATOMIC_SEQ_CST);
	ring();
}

/*
 * The supervisor takes everybody out of translated code once, and who comes back from the stub looks whether
 * he may (detained). Who is in a system call meanwhile is told when that returns.
 */
void expel_threads(void)
{
	struct channel *c = channel();
	struct thread *thread = thread_here();
	uint32_t parked = thread ? __atomic_exchange_n(&thread->parked, 1, __ATOMIC_SEQ_CST) : 0;

	__atomic_fetch_or(&c->detaining, DETAIN_EXPELLING, __ATOMIC_SEQ_CST);
	__atomic_store_n(&c->expelling, 1, __ATOMIC_SEQ_CST);
	ring();
	while (__atomic_load_n(&c->expelling, __ATOMIC_SEQ_CST) && !supervisor_died()) {
		struct kernel_timespec nap = {0, NAP_NANOSECONDS};
		if (process()->quiet)
			__builtin_ia32_pause();
		else
			syscall4(__NR_futex, &c->expelling, K_FUTEX_WAIT, 1, &nap);
	}
	if (thread)
		__atomic_store_n(&thread->parked, parked, __ATOMIC_SEQ_CST);
}

/*
 * The kernel keeps one note for each thread of how to go on with a wait that was interrupted. A thread that
 * was attached to in restart_syscall, because it had been stopped and continued, will yet go on by that note.
 * A futex wait with a timeout writes its own there when we are stopped in it; a sleep in ppoll writes none.
 */
static bool must_keep_restart(const struct thread *thread)
{
	return info()->adopted && thread->regs.gpr[RAX] == __NR_restart_syscall;
}

static void sleep_for(const struct thread *thread, const uint32_t *word, uint32_t value, long nanoseconds)
{
	struct kernel_timespec time = {0, nanoseconds}, nap = {0, NAP_NANOSECONDS};

	if (must_keep_restart(thread) && process()->seccomp)
		__builtin_ia32_pause(); /* ppoll may be forbidden */
	else if (must_keep_restart(thread))
		syscall5(__NR_ppoll, 0, 0, &nap, 0, 0);
	else
		syscall4(__NR_futex, word, K_FUTEX_WAIT, value, &time);
}

void sleep_on(const struct thread *thread, const uint32_t *word, uint32_t value)
{
	sleep_for(thread, word, value, SLEEP_NANOSECONDS);
}

/*
 * With hundreds of threads on few processors whoever has the lock hardly ever runs: to wait for it by
 * spinning alone took whole time slices. Who sleeps looks again after a while, since a thread that may not
 * make system calls wakes nobody.
 */
void lock_contended(uint32_t *word)
{
	/* Whoever has it may be waiting for the supervisor, and that one for us. */
	struct thread *thread = current_thread();
	uint32_t parked = __atomic_exchange_n(&thread->parked, 1, __ATOMIC_SEQ_CST);
	uint32_t taken = LOCK_HELD;

	for (unsigned spins = 0;; spins++) {
		uint32_t expected = LOCK_FREE;
		if (__atomic_compare_exchange_n(
		            word, &expected, taken, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			break;
		if (spins < LOCK_SPINS || process()->seccomp) {
			__builtin_ia32_pause();
			continue;
		}
		taken = LOCK_SLEPT_FOR; /* there may be others who sleep */
		if (__atomic_exchange_n(word, LOCK_SLEPT_FOR, __ATOMIC_ACQUIRE) == LOCK_FREE)
			break;
		sleep_on(thread, word, LOCK_SLEPT_FOR);
	}
	__atomic_store_n(&thread->parked, parked, __ATOMIC_SEQ_CST);
}

void unlock_contended(uint32_t *word)
{
	if (!process()->seccomp)
		syscall3(__NR_futex, word, K_FUTEX_WAKE, 1);
}

/*
 * Who has slept does not spin again, and sleeps longer each time: where thousands wait for one who serves
 * them, each that looks after him takes from his time.
 */
static bool wait_for_reply(const struct thread *thread)
{
	struct mailbox *mailbox = thread->mailbox;
	long sleep = SLEEP_NANOSECONDS;
	int spins = SPINS;

	for (;;) {
		for (int i = 0; i < spins; i++) {
			if (__atomic_load_n(&mailbox->state, __ATOMIC_ACQUIRE) == MAILBOX_REPLY)
				return true;
			__builtin_ia32_pause();
		}
		if (supervisor_died())
			return __atomic_load_n(&mailbox->state, __ATOMIC_ACQUIRE) == MAILBOX_REPLY;
		if (!process()->quiet) {
			__atomic_store_n(&mailbox->sleeping, 1, __ATOMIC_SEQ_CST);
			sleep_for(thread, &mailbox->state, MAILBOX_REQUEST, sleep);
			__atomic_store_n(&mailbox->sleeping, 0, __ATOMIC_RELAXED);
			spins = 1;
			sleep = sleep < SLEEP_MOST ? 2 * sleep : sleep;
		}
	}
}

/*
 * Nobody tells of code that is written from now on: whoever comes to the stub does not go back to translated
 * code, so that threads which wait for each other run the same code.
 */
static void all_leave(void)
{
	__atomic_store_n(&channel()->detaining, DETAIN_LEAVING, __ATOMIC_SEQ_CST);
}

uint64_t ask(struct thread *thread, enum operation operation, uint64_t a, uint64_t b, uint64_t c)
{
	struct mailbox *mailbox = thread->mailbox;

	if (!mailbox)
		return STATUS_RELEASE;
	if (supervisor_died()) {
		all_leave();
		return STATUS_RELEASE;
	}
	mailbox->operation = operation;
	mailbox->space = process()->space;
	mailbox->quiet = process()->quiet;
	mailbox->arguments[0] = a;
	mailbox->arguments[1] = b;
	mailbox->arguments[2] = c;
	mailbox->log = thread->log ? thread->log->id : MAILBOX_NO_LOG;
	if (thread->log)
		publish_position(thread);
	/* Who makes calls of ours may come back to code that it was in before. */
	bool parks = operation != OP_UNFILTER && operation != OP_FILTER;
	if (parks)
		thread->parked = operation == OP_HELD ? PARKED_HELD : 1;
	__atomic_store_n(&mailbox->state, MAILBOX_REQUEST, __ATOMIC_RELEASE);
	post(mailbox);
	bool answered = wait_for_reply(thread);
	if (parks)
		__atomic_store_n(&thread->parked, 0, __ATOMIC_SEQ_CST);
	if (!answered) {
		all_leave();
		return STATUS_RELEASE;
	}
	__atomic_store_n(&mailbox->state, MAILBOX_IDLE, __ATOMIC_RELAXED);
	return mailbox->status;
}

/* ---- calls that a filter may forbid ---- */

bool is_assisted(const struct thread *thread)
{
	return process()->seccomp && info()->assists && thread && thread->mailbox;
}

bool is_on_its_own(void)
{
	return process()->seccomp && !info()->assists;
}

bool begin_own_calls(struct thread *thread)
{
	if (!is_assisted(thread) || thread->unfiltered || ask(thread, OP_UNFILTER, 0, 0, 0) != STATUS_OK)
		return false;
	thread->unfiltered = 1;
	return true;
}

void end_own_calls(struct thread *thread, bool begun)
{
	if (!begun)
		return;
	thread->unfiltered = 0;
	ask(thread, OP_FILTER, 0, 0, 0);
}

/*
 * A supervisor that dies is marked as dead before the kernel lets go of whom it traced: a call that is made
 * right behind the look at the mark finds the filters asleep.
 */
long own_call6(struct thread *thread, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
        uint64_t f)
{
	if (!is_assisted(thread))
		return syscall6(number, (long)a, (long)b, (long)c, (long)d, (long)e, (long)f);
	bool begun = begin_own_calls(thread);
	long result = -K_EPERM;
	if (thread->unfiltered && !supervisor_died())
		result = syscall6(number, (long)a, (long)b, (long)c, (long)d, (long)e, (long)f);
	end_own_calls(thread, begun);
	return result;
}
