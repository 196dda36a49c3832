/*
 * The order of threads, while recording.
 *
 * Every thread has a clock. Each operation through which one thread may learn from another
 * takes a stamp, one more than the thread's clock and than what others left where the
 * operation is performed, and leaves it there: in a word of the table for a locked
 * instruction, in one word for all system calls. So of two operations of one thread, of two
 * locked instructions on the same line, and of two system calls one of which ended before
 * the other began, the later one has the larger stamp; and no thread writes to memory that
 * others use unless it does so itself.
 *
 * A word is clock * 2 + held. A locked instruction is performed while the word is held:
 *
 *     word: clock, free -> clock, held      lock cmpxchg
 *     perform it                            (with what was in memory known, see atomic.c)
 *     word: clock, held -> stamp, free      lock cmpxchg
 *
 * Nobody waits for a thread that does not run: after a while the word is taken from it, with a
 * larger clock. It will find that when it gives it back, and then it knows only that it
 * was performed at some time since it took the word: its stamp is loose, and says since when.
 * It leaves its stamp in the word all the same, by which whoever has it now becomes loose, too:
 * neither knows who was first.
 *
 * What a reader can work out is not logged (Netzer's reduction): thread.told is the stamp
 * that it has for the operation before, and it gives the next one the next number. So a
 * thread that meets nobody logs nothing. But where there are several threads, a call or signal
 * behind locked instructions that are not in the log is told all the same (thread.unlogged): who
 * replays nothing cannot count those, and the stamps of calls and signals are right for him, too.
 */
#include "recording/event.h"
#include "target/stub.h"

#define HELD     1ul
#define LINE     64ul
#define PATIENCE 1000 /* times a held word is looked at: far longer than an instruction takes */

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- telling the log ---- */

/* `in_log`: the operation itself is, too. */
static void tell(struct thread *thread, uint64_t here, struct event_order order, bool in_log)
{
	bool needed = in_log && thread->unlogged && process()->thread_ids > 1;

	if (needed || order.loose || order.stamp != thread->told + 1) {
		log_order(thread, here, &order);
		thread->unlogged = false;
	} else if (!in_log) {
		thread->unlogged = true;
	}
	thread->told = order.stamp;
}

void order_keyframe(struct thread *thread, uint64_t here)
{
	if (thread->told)
		log_order(thread, here, &(struct event_order){.kind = ORDER_CLOCK, .stamp = thread->told});
	thread->unlogged = false;
}

void order_begin(struct thread *child, const struct thread *maker)
{
	child->clock = child->told = maker->clock;
	child->unlogged = true; /* its log does not say who made it */
}

void order_forget(struct thread *thread)
{
	struct process *p = process();

	memset(p->order_words, 0, sizeof p->order_words);
	p->order_calls.word = 0;
	thread->clock = thread->told = 0;
}

/* ---- locked instructions ---- */

static struct order_word *word_of(uint64_t line)
{
	return &process()->order_words[line * 0x9e3779b97f4a7c15ul >> 55];
}

_Static_assert(ORDER_WORDS == 1 << (64 - 55), "the hash gives numbers of words");

/* Returns what the word is from now on, until it is given back or taken away. */
static uint64_t take(uint64_t *word)
{
	uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

	for (unsigned looks = 0;;) {
		if (!(seen & HELD)) {
			if (__atomic_compare_exchange_n(
			            word, &seen, seen | HELD, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
				return seen | HELD;
			continue;
		}
		if (looks++ == PATIENCE) {
			/* A larger clock, so that whoever had it notices. */
			if (__atomic_compare_exchange_n(
			            word, &seen, seen + 2, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
				return seen + 2;
			looks = 0;
			continue;
		}
		__builtin_ia32_pause();
		uint64_t now = __atomic_load_n(word, __ATOMIC_RELAXED);
		if (now != seen)
			looks = 0;
		seen = now;
	}
}

/* Leaves a stamp, as large as it has to be, in a word that is no more ours. */
static uint64_t leave_stamp(uint64_t *word, uint64_t stamp)
{
	uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

	do
		stamp = larger(stamp, (seen >> 1) + 1);
	while (!__atomic_compare_exchange_n(
	        word, &seen, stamp << 1 | (seen & HELD), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	return stamp;
}

void order_take(struct thread *thread, struct order_hold *hold, uint64_t address, uint64_t size)
{
	struct order_word *first = word_of(address / LINE), *last = word_of((address + size - 1) / LINE);

	hold->count = 0;
	if (!thread->log)
		return;
	/* In the order of the table, so that two threads do not wait for each other. */
	hold->words[hold->count++] = first < last ? first : last;
	if (first != last)
		hold->words[hold->count++] = first < last ? last : first;
	for (unsigned i = 0; i < hold->count; i++)
		hold->held[i] = take(&hold->words[i]->word);
}

void order_drop(const struct order_hold *hold)
{
	for (unsigned i = 0; i < hold->count; i++) {
		uint64_t held = hold->held[i];
		__atomic_compare_exchange_n(&hold->words[i]->word, &held, held & ~HELD, false,
		        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	}
}

void order_give(struct thread *thread, const struct order_hold *hold, uint64_t here)
{
	struct event_order order = {.kind = ORDER_OPERATION, .stamp = thread->clock};
	uint64_t since = UINT64_MAX;

	if (!hold->count)
		return;
	for (unsigned i = 0; i < hold->count; i++) {
		order.stamp = larger(order.stamp, hold->held[i] >> 1);
		if (hold->held[i] >> 1 < since)
			since = hold->held[i] >> 1;
	}
	order.stamp++;
	for (unsigned i = 0; i < hold->count; i++) {
		uint64_t held = hold->held[i];
		if (__atomic_compare_exchange_n(&hold->words[i]->word, &held, order.stamp << 1, false,
		            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			continue;
		order.stamp = leave_stamp(&hold->words[i]->word, order.stamp);
		order.loose = true;
		order.since = since;
	}
	thread->clock = order.stamp;
	tell(thread, here, order, false);
}

/* ---- system calls and signals ---- */

static uint64_t stamp_call(struct thread *thread)
{
	uint64_t *word = &process()->order_calls.word;
	uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED), stamp;

	do
		stamp = larger(seen, thread->clock) + 1;
	while (!__atomic_compare_exchange_n(word, &seen, stamp, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	thread->clock = stamp;
	return stamp;
}

void order_enter(struct thread *thread)
{
	if (thread->log)
		thread->entered = stamp_call(thread);
}

void order_entered(struct thread *thread, uint64_t here)
{
	if (thread->log)
		tell(thread, here, (struct event_order){.kind = ORDER_OPERATION, .stamp = thread->entered},
		        true);
}

void order_returned(struct thread *thread, uint64_t here)
{
	if (thread->log)
		tell(thread, here, (struct event_order){.kind = ORDER_RETURN, .stamp = stamp_call(thread)},
		        true);
}

void order_signal(struct thread *thread, uint64_t here)
{
	if (thread->log)
		tell(thread, here, (struct event_order){.kind = ORDER_OPERATION, .stamp = stamp_call(thread)},
		        true);
}
