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
#define LOG_XSAVE   0x6000

#define LOG_ROOM        (LOG_STRIDE - LOG_DATA)
#define STRETCH_MAXIMUM (32ul << 20) /* bytes of a stretch, before it is time for a keyframe */

_Static_assert(sizeof(struct log) <= LOG_CODER, "the log's head");
_Static_assert(LOG_CODER + sizeof(struct coder) <= LOG_ENTRIES, "the encoder's place");
_Static_assert(LOG_ENTRIES + DICTIONARY_MAXIMUM * sizeof(struct dictionary_entry) <= LOG_XSAVE,
        "the dictionary's place");
_Static_assert(LOG_XSAVE + XSAVE_BYTES <= LOG_DATA, "the vector state's place");
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
	if (thread->log && thread->log->used + ENCODE_MAXIMUM > LOG_ROOM)
		hand_over(thread, LOG_FULL);
	return thread->log ? data_of(thread->log) + thread->log->used : NULL;
}

static void commit(struct thread *thread, uint8_t *end, uint64_t position)
{
	struct log *log = thread->log;
	uint64_t used = end - data_of(log);

	thread->stretch += used - log->used;
	log->position = position;
	__atomic_store_n(&log->used, used, __ATOMIC_RELEASE);
}

static struct event_registers registers_of(const struct thread *thread)
{
	struct event_registers registers;

	memcpy(&registers, &thread->regs, sizeof registers);
	return registers;
}

/* The x87, SSE and AVX registers, as XSAVE puts them. */
static struct event_xsave save_vectors(struct thread *thread)
{
	uint8_t *area = (uint8_t *)thread->log + LOG_XSAVE;

	memset(area, 0, XSAVE_BYTES);
	__asm__ volatile("xsave64 %0" : "+m"(*(uint8_t(*)[XSAVE_BYTES])area) : "a"(7), "d"(0));
	return (struct event_xsave){area, XSAVE_BYTES};
}

static uint64_t now(int clock)
{
	struct kernel_timespec time = {0};

	if (!process()->seccomp)
		syscall2(__NR_clock_gettime, clock, &time);
	return (uint64_t)time.seconds * 1000000000 + (uint64_t)time.nanoseconds;
}

/* ---- keyframes ---- */

/* The shadow is what replay will have: nothing, or the image. The state is complete in thread.regs. */
static void keyframe(struct thread *thread)
{
	uint8_t *at = room(thread);

	if (!at)
		return;
	uint64_t here = position(thread);
	struct event_keyframe event = {
	        .registers = registers_of(thread),
	        .fs_base = read_fs_base(),
	        .gs_base = thread->slots[SLOT_PROGRAM_GS],
	        .leans_on = thread->leans_on,
	        .realtime = now(0),
	        .monotonic = now(1),
	        .xsave = save_vectors(thread),
	};
	commit(thread, encode_keyframe(coder_of(thread->log), at, here, &event), here);
	thread->stretch = 0;
	thread->log->keyframe = here;
	thread->code_pieces = 0;
	note_code(thread, here);
	order_keyframe(thread, here);
}

/*
 * Code that others replaced: what the history had when this thread could first know of
 * it. Called wherever a thread may have learnt something from another, right behind that.
 */
void log_code(struct thread *thread, uint64_t here)
{
	uint8_t *at = room(thread);
	struct event_code event = {__atomic_load_n(&channel()->code_pieces, __ATOMIC_ACQUIRE)};

	thread->code_pieces = event.pieces;
	if (at)
		commit(thread, encode_code(coder_of(thread->log), at, here, &event), here);
}

void log_begin(struct thread *thread, uint32_t parent)
{
	struct process *p = process();
	const struct segment_layout *first = &p->segments[0];
	struct log *log = (struct log *)(first->base + first->logs + thread->number * LOG_STRIDE);

	memset(log, 0, LOG_ENTRIES);
	log->id = __atomic_fetch_add(&channel()->thread_ids, 1, __ATOMIC_RELAXED);
	log->parent = parent;
	log->tid = thread->tid;
	coder_init(coder_of(log), (struct dictionary_entry *)((char *)log + LOG_ENTRIES),
	        info()->dictionary_bits);
	thread->log = log;
	thread->leans_on = 0;
	keyframe(thread);
}

bool log_due(const struct thread *thread, uint64_t here)
{
	if (!thread->log || process()->seccomp)
		return false;
	return here - thread->log->keyframe >= info()->interval || thread->stretch >= STRETCH_MAXIMUM ||
	       __atomic_load_n(&thread->log->wanted, __ATOMIC_RELAXED);
}

/* A keyframe, if it is time for one; the state is complete in thread.regs. */
void log_keyframe(struct thread *thread)
{
	if (!log_due(thread, position(thread)))
		return;
	thread->log->wanted = 0;
	hand_over(thread, LOG_KEYFRAME);
	bool leans = thread->leans_on < info()->bound && !image_full(thread);
	thread->leans_on = leans ? thread->leans_on + 1 : 0;
	shadow_forget_all(thread, leans);
	if (leans)
		image_restore(thread);
	keyframe(thread);
}

/* ---- events ---- */

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

void log_patch(struct thread *thread, uint64_t here, uint64_t line, uint8_t mask, const uint64_t *words)
{
	uint8_t *at = room(thread);

	if (!at)
		return;
	commit(thread, encode_patch(coder_of(thread->log), at, here, line, mask, words), here);
	if (info()->bound)
		image_patch(thread, line, mask, words);
}

/* `before`: the registers at the call; those of the thread are as the call left them. */
void log_syscall(struct thread *thread, uint64_t here, const struct registers *before, bool forgets)
{
	uint8_t *at = room(thread);
	struct event_syscall event = {.result = (int64_t)thread->regs.gpr[RAX], .forgets = forgets};

	memcpy(&event.registers, before, sizeof event.registers);
	event.registers.flags &= EVENT_CALL_FLAGS;

	if (at)
		commit(thread, encode_syscall(coder_of(thread->log), at, here, &event), here);
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
	uint8_t *at = room(thread);
	struct event_sigreturn event = {.call = kind == STATE_OF_CALL, .registers = registers_of(thread)};

	if (kind == STATE_WITH_BASES) {
		event.has_bases = true;
		event.fs_base = read_fs_base();
		event.gs_base = thread->slots[SLOT_PROGRAM_GS];
	}
	if (vectors)
		event.xsave = (struct event_xsave){vectors, XSAVE_BYTES};
	if (at)
		commit(thread, encode_sigreturn(coder_of(thread->log), at, here, &event), here);
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
		commit(thread, encode_result(coder_of(thread->log), at, here, &event), here);
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
