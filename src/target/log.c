/*
 * The thread's log: what recording/encode.h makes of events, in memory that the
 * supervisor shares, so that what is in there survives the process. When it is full
 * the supervisor takes it.
 *
 * A thread without a log goes on unrecorded: the child of a fork, or anybody when
 * the supervisor has died.
 */
#include "recording/encode.h"
#include "target/stub.h"

/* Inside a thread's LOG_STRIDE, before LOG_DATA. */
#define LOG_CODER   0x100
#define LOG_ENTRIES 0x1000

#define STRETCH_MAXIMUM (32ul << 20) /* bytes of a stretch, before it is time for a keyframe */

/* A thread comes out after this part of what is left of its interval, but not sooner than this. */
#define PAUSE_SHARE 4
#define PAUSE_LEAST 4096
#define PAUSE_MOST  (1ul << 40)

#define REFILL_SHARE 8    /* what is in use is logged again in the first eighth of an interval, about */
#define REFILL_WORTH 8192 /* instructions by which each line of it puts the next keyframe off */
#define REFILL_MOST  3    /* intervals from one to the next at most */

_Static_assert(sizeof(struct log) <= LOG_CODER, "the log's head");
_Static_assert(LOG_CODER + sizeof(struct coder) <= LOG_ENTRIES, "the encoder's place");
_Static_assert(LOG_ENTRIES + DICTIONARY_MAXIMUM * sizeof(struct dictionary_entry) <= LOG_XSAVE,
        "the dictionary's place");
_Static_assert(LOG_XSAVE + VECTORS_BYTES <= LOG_DATA, "the vector state's place");
_Static_assert(sizeof(struct registers) == sizeof(struct event_registers), "registers are copied as a whole");

static struct coder *coder_of(struct log *log)
{
	return (struct coder *)((char *)log + LOG_CODER);
}

static uint8_t *data_of(struct log *log)
{
	return (uint8_t *)log + LOG_DATA;
}

/* The supervisor takes what there is. Nobody may be waiting for in translated code: that may change
 * meanwhile. */
static void hand_over(struct thread *thread, unsigned reason)
{
	surface(thread);
	if (ask(thread, OP_LOG, thread->number, reason, 0) != STATUS_OK)
		thread->log = NULL;
}

/* Where the next event goes, or NULL. */
static uint8_t *room(struct thread *thread)
{
	if (thread->log && thread->log->used + ENCODE_MAXIMUM > log_room(thread->number))
		hand_over(thread, LOG_FULL);
	return thread->log ? data_of(thread->log) + thread->log->used : NULL;
}

static void commit(struct thread *thread, uint8_t *end, uint64_t position)
{
	struct log *log = thread->log;
	uint64_t used = end - data_of(log);

	thread->stretch += used - log->used;
	__atomic_store_n(&log->used, used, __ATOMIC_RELEASE);
	/* Whoever reads this first finds all events up to there, also when the thread is killed right now. */
	__atomic_store_n(&log->position, position, __ATOMIC_RELEASE);
	if (__atomic_load_n(&log->unwatched, __ATOMIC_RELAXED)) {
		__atomic_store_n(&log->unwatched, 0, __ATOMIC_RELEASE);
		tell_returned();
	}
}

static struct event_registers registers_of(const struct thread *thread)
{
	struct event_registers registers;

	memcpy(&registers, &thread->regs, sizeof registers);
	return registers;
}

static struct event_xsave save_vectors(struct thread *thread)
{
	uint8_t *area = (uint8_t *)thread->log + LOG_XSAVE;

	vectors_save(area);
	return (struct event_xsave){area, vectors_bytes()};
}

void log_show(struct thread *thread)
{
	save_vectors(thread);
}

static uint64_t read_clock(int clock)
{
	struct kernel_timespec time = {0};

	syscall2(__NR_clock_gettime, clock, &time);
	return (uint64_t)time.seconds * 1000000000 + (uint64_t)time.nanoseconds;
}

struct times {
	uint64_t realtime, monotonic;
};

static struct times now(struct thread *thread)
{
	if (!process()->seccomp)
		return (struct times){read_clock(0), read_clock(1)};
	if (ask(thread, OP_TIME, 0, 0, 0) != STATUS_OK)
		return (struct times){0, 0};
	return (struct times){thread->mailbox->reply[0], thread->mailbox->reply[1]};
}

/* ---- keyframes ---- */

/* The thread comes out again before its interval is over: there are several counters. */
static void arm(struct thread *thread, uint64_t here)
{
	uint64_t due = thread->log ? __atomic_load_n(&thread->log->due, __ATOMIC_RELAXED) : UINT64_MAX;
	uint64_t share = (due > here ? due - here : 0) / PAUSE_SHARE;

	arm_counters(thread, share < PAUSE_LEAST ? PAUSE_LEAST : share > PAUSE_MOST ? PAUSE_MOST : share);
}

/* The shadow is what replay will have: nothing, or the image. The state is complete in thread.regs. */
static void keyframe(struct thread *thread)
{
	struct times time = now(thread);
	uint8_t *at = room(thread);

	if (!at)
		return;
	uint64_t here = position(thread);
	struct event_keyframe event = {
	        .registers = registers_of(thread),
	        .fs_base = read_fs_base(),
	        .gs_base = thread->slots[SLOT_PROGRAM_GS],
	        .leans_on = thread->leans_on,
	        .realtime = time.realtime,
	        .monotonic = time.monotonic,
	        .xsave = save_vectors(thread),
	};
	commit(thread, encode_keyframe(coder_of(thread->log), at, here, &event), here);
	thread->stretch = 0;
	thread->done = here;
	uint64_t interval = info()->interval;
	thread->log->due = here + interval < here ? UINT64_MAX : here + interval;
	__atomic_store_n(&thread->log->keyframe, here, __ATOMIC_RELEASE);
	arm(thread, here);
	/* Not earlier: whoever has not seen it yet would ask for another one. */
	__atomic_store_n(&thread->log->wanted, LOG_NOT_WANTED, __ATOMIC_RELEASE);
	thread->code_pieces = 0;
	note_code(thread, here);
	order_keyframe(thread, here);
	if (by_pages())
		pages_log_whole(thread, here);
}

/*
 * Code that others replaced: what the history had when this thread could first know of
 * it. Called wherever a thread may have learnt something from another, right behind that.
 */
void log_code(struct thread *thread, uint64_t here)
{
	uint8_t *at = room(thread);
	struct event_code event = {__atomic_load_n(&info()->code_pieces, __ATOMIC_ACQUIRE)};

	thread->code_pieces = event.pieces;
	if (at)
		commit(thread, encode_code(coder_of(thread->log), at, here, &event), here);
}

/* Before anybody is to look at its log. */
static void note_number(struct logs_head *head, uint32_t number)
{
	uint32_t highest = __atomic_load_n(&head->highest, __ATOMIC_RELAXED);

	while (highest < number && !__atomic_compare_exchange_n(&head->highest, &highest, number, false,
	                                   __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

void log_begin(struct thread *thread, uint32_t parent)
{
	struct process *p = process();
	const struct segment_layout *first = &p->segments[0];
	struct log *log = (struct log *)(first->base + first->logs + log_offset(thread->number));

	memset(log, 0, LOG_ENTRIES);
	log->id = __atomic_fetch_add(&p->thread_ids, 1, __ATOMIC_RELAXED);
	log->parent = parent;
	note_number((struct logs_head *)(first->base + first->logs), (uint32_t)thread->number);
	log->tid = thread->tid;
	log->unwatched = 1;
	coder_init(coder_of(log), (struct dictionary_entry *)((char *)log + LOG_ENTRIES),
	        info()->dictionary_bits);
	thread->log = log;
	thread->leans_on = 0;
	keyframe(thread);
}

bool log_due(const struct thread *thread, uint64_t here)
{
	if (!thread->log || (process()->seccomp && !channel()->clears))
		return false;
	return here >= thread->log->due || thread->stretch >= STRETCH_MAXIMUM ||
	       __atomic_load_n(&thread->log->wanted, __ATOMIC_RELAXED);
}

bool log_pause(struct thread *thread)
{
	uint64_t here = position(thread);

	arm(thread, here);
	return log_due(thread, here);
}

/* A keyframe, if it is time for one; the state is complete in thread.regs. */
void log_keyframe(struct thread *thread)
{
	if (!log_due(thread, position(thread)) && !thread->leaves_pages && !thread->forgets)
		return;
	thread->forgets = 0;
	thread->written_count = 0;
	if (by_pages() && thread->log && pages_are_costly(position(thread) - thread->log->keyframe))
		thread->leaves_pages = LEAVES_FOR_SIZE;
	if (thread->leaves_pages)
		pages_leave(thread);
	else
		pages_begin_again(thread);
	if (!thread->log)
		return;
	hand_over(thread, LOG_KEYFRAME);
	bool alone = thread->log && thread->log->wanted == LOG_WANTED_ALONE;
	bool leans = !alone && thread->leans_on < info()->bound && !image_full(thread);
	thread->leans_on = leans ? thread->leans_on + 1 : 0;
	if (by_pages())
		pages_close();
	if (!shadow_forget_all(thread, leans || by_pages()))
		thread->log = NULL; /* the supervisor is gone, or cannot help any more */
	if (leans)
		image_restore(thread);
	keyframe(thread);
}

/* ---- events ---- */

/* The thread is about to make a system call: if it never returns, this is how far it came. */
void log_reached(struct thread *thread, uint64_t here)
{
	if (thread->log)
		__atomic_store_n(&thread->log->position, here, __ATOMIC_RELEASE);
}

#define PATCH_MOST 128

bool log_fits_page(const struct thread *thread)
{
	return !thread->log ||
	       thread->log->used + 64 * PATCH_MOST + ENCODE_MAXIMUM <= log_room(thread->number);
}

void log_make_room(struct thread *thread)
{
	room(thread);
}

void log_order(struct thread *thread, uint64_t here, const struct event_order *order)
{
	uint8_t *at = room(thread);

	if (at)
		commit(thread, encode_order(coder_of(thread->log), at, here, order), here);
}

/*
 * What a keyframe costs is that all that is in use is logged again behind it. So the more that is, the later
 * comes the next one.
 */
static void put_off(struct thread *thread, uint64_t here)
{
	struct log *log = thread->log;
	uint64_t interval = info()->interval;

	if (info()->puts_off && here - log->keyframe < interval / REFILL_SHARE &&
	        log->due - log->keyframe < REFILL_MOST * interval)
		__atomic_store_n(&log->due, log->due + REFILL_WORTH, __ATOMIC_RELAXED);
}

void log_patch(struct thread *thread, uint64_t here, uint64_t line, uint8_t mask, const uint64_t *words)
{
	uint8_t *at = room(thread);

	if (!at)
		return;
	commit(thread, encode_patch(coder_of(thread->log), at, here, line, mask, words), here);
	put_off(thread, here);
	if (info()->bound)
		image_patch(thread, line, mask, words);
}

/* The event stands for the instruction there. */
static void commit_instead(struct thread *thread, uint8_t *end, uint64_t position)
{
	commit(thread, end, position);
	thread->done = position + 1;
}

/* `before`: the registers at the call; those of the thread are as the call left them. */
void log_syscall(struct thread *thread, uint64_t here, const struct registers *before, bool forgets)
{
	uint8_t *at = room(thread);
	struct event_syscall event = {.result = (int64_t)thread->regs.gpr[RAX], .forgets = forgets};

	memcpy(&event.registers, before, sizeof event.registers);
	event.registers.flags &= EVENT_CALL_FLAGS;

	if (at)
		commit_instead(thread, encode_syscall(coder_of(thread->log), at, here, &event), here);
}

void log_signal(struct thread *thread, const struct kernel_siginfo *siginfo, bool fault, uint64_t iterations)
{
	uint64_t here = position(thread);
	order_signal(thread, here);
	uint8_t *at = room(thread);
	struct event_signal event = {
	        .number = (uint32_t)siginfo->number,
	        .code = siginfo->code,
	        .fault = fault,
	        .iterations = iterations,
	        .registers = registers_of(thread),
	};

	memcpy(event.details, siginfo->rest, sizeof event.details);
	if (at)
		commit(thread, encode_signal(coder_of(thread->log), at, here, &event), here);
	/* Behind it: the iterations are those of the instruction as it was, which may have overwritten
	 * itself. */
	note_code(thread, here);
}

void log_state(struct thread *thread, uint64_t here, enum state_kind kind, const void *vectors)
{
	uint8_t *at = room(thread), image[VECTORS_BYTES];
	struct event_sigreturn event = {.call = kind == STATE_OF_CALL, .registers = registers_of(thread)};

	if (kind == STATE_WITH_BASES) {
		event.has_bases = true;
		event.fs_base = read_fs_base();
		event.gs_base = thread->slots[SLOT_PROGRAM_GS];
	}
	if (vectors)
		event.xsave = (struct event_xsave){image, vectors_from_standard(image, vectors)};
	if (at)
		commit_instead(thread, encode_sigreturn(coder_of(thread->log), at, here, &event), here);
}

/* What an instruction changed, compared with the registers before it. */
void log_result(struct thread *thread, uint64_t here, const struct registers *before)
{
	uint8_t *at = room(thread);
	struct event_result event = {0};

	for (unsigned i = 0; i < 16; i++) {
		if (thread->regs.gpr[i] != before->gpr[i]) {
			event.changes.mask |= (uint16_t)(1u << i);
			event.changes.gpr[i] = thread->regs.gpr[i];
		}
	}
	event.changes.has_flags = thread->regs.flags != before->flags;
	event.changes.flags = thread->regs.flags;
	if (at)
		commit_instead(thread, encode_result(coder_of(thread->log), at, here, &event), here);
}

/* The thread, or the process with it, does not come back. */
void log_end(struct thread *thread, int kind, int status, const struct kernel_siginfo *siginfo)
{
	uint8_t *at = room(thread);
	uint64_t here = position(thread);
	struct event_end event = {
	        .kind = (enum event_end_kind)kind, .status = status, .registers = registers_of(thread)};

	if (!at)
		return;
	if (siginfo) {
		event.code = siginfo->code;
		memcpy(event.details, siginfo->rest, sizeof event.details);
	}
	commit(thread, encode_end(coder_of(thread->log), at, here, &event), here);
	hand_over(thread, LOG_ENDED);
	thread->log = NULL;
}
