/*
 * Diversions, see feed.h: a copy of the replayed process runs on with registers and memory that a debugger
 * has chosen, without the log. Nothing of it is kept. What it loads must be known, as it must for a debugger
 * that looks at it: lines that this process does not know are asked for. System calls are the replayer's to
 * answer.
 */
#include "target/feed.h"
#include "target/stub.h"

bool diverting(void)
{
	return feed()->diverting;
}

/* The thread is at `pc`, about to execute the instruction there; it goes on when, and where, the replayer
 * says. */
static void stop_at(struct thread *thread, uint64_t pc, enum feed_diverted why, uint64_t detail)
{
	thread->regs.pc = pc;
	feed()->diverted = why;
	feed()->diverted_detail = detail;
	replay_show(thread);
	ask_replayer(thread, FEED_ASK_DIVERTED, 0);
	park((unsigned)thread->mailbox->reply[0] - 1);
	replay_go_on(thread);
}

/* A breakpoint; true: it stopped, and goes on elsewhere. */
bool divert_execution(struct thread *thread, uint64_t pc)
{
	if (feed()->diverted_from == pc) {
		feed()->diverted_from = 0; /* it stands there */
		return false;
	}
	ask_replayer(thread, FEED_ASK_BREAK, pc);
	if (!thread->mailbox->reply[0])
		return false;
	stop_at(thread, pc, DIVERTED_BREAK, pc);
	return true;
}

/*
 * What is not known of a line is asked for. Where anything of the line is known, blank bytes are taken to be
 * zero: what a function loads beside a string that it was given.
 */
static void fetch_line(struct thread *thread, uint64_t line)
{
	struct feed *f = feed();
	bool blank = false;

	ask_replayer(thread, FEED_ASK_LINE, line);
	for (unsigned i = 0; i < EVENT_LINE_BYTES; i++)
		blank |= f->line_known >> i & 1 || known_is(line + i, 1);
	for (unsigned i = 0; i < EVENT_LINE_BYTES; i++) {
		bool given = f->line_known >> i & 1;
		if (known_is(line + i, 1) || !(given || (blank && f->line_blank >> i & 1)))
			continue;
		((volatile uint8_t *)line)[i] = given ? f->line[i] : 0;
		known_note(line + i, 1);
	}
}

/* An access is about to be made; true: it stopped. */
bool divert_access(struct thread *thread, uint64_t pc, uint64_t address, uint64_t size, bool reads)
{
	bool known = address + size <= USER_ADDRESS_END && address + size >= address;
	uint64_t unknown = address;

	for (uint64_t line = address & -(uint64_t)EVENT_LINE_BYTES; known && reads && line < address + size;
	        line += EVENT_LINE_BYTES) {
		uint64_t from = line > address ? line : address;
		uint64_t to =
		        line + EVENT_LINE_BYTES < address + size ? line + EVENT_LINE_BYTES : address + size;
		if (!known_is(from, to - from))
			fetch_line(thread, line);
		known = known_is(from, to - from);
		unknown = from;
	}
	if (!known)
		stop_at(thread, pc, DIVERTED_UNKNOWN, unknown);
	return !known;
}

void divert_syscall(struct thread *thread)
{
	struct registers *regs = &thread->regs;

	ask_replayer(thread, FEED_ASK_SYSCALL, 0);
	if (!thread->mailbox->reply[0]) {
		stop_at(thread, regs->pc - SYSCALL_LENGTH, DIVERTED_CALL, regs->gpr[RAX]);
		return;
	}
	regs->gpr[RAX] = thread->mailbox->reply[1];
	regs->gpr[RCX] = regs->pc;
	regs->gpr[R11] = regs->flags;
	thread->slots[SLOT_TARGET] = 0;
}

#define IMAGE_BYTES   512u
#define HEADER_BYTES  64u
#define AVX_BYTES     256u
#define AVX_COMPONENT 4u

/* In a diversion there is no log that tells what the program sees of it. */
void divert_image(struct thread *thread, unsigned kind)
{
	const uint64_t *image = (const uint64_t *)thread + SLOT_SCRATCH_AREA;
	uint64_t address = thread->slots[SLOT_ADDRESS], size = IMAGE_BYTES;

	if ((kind & X87_IMAGE_KIND) == X87_IMAGE_ENV32)
		replay_diverged(thread, DIVERGED_UNLOGGED, 0);
	if (kind & X87_IMAGE_XSAVE)
		size += HEADER_BYTES + (image[IMAGE_BYTES / 8] & AVX_COMPONENT ? AVX_BYTES : 0);
	memcpy((void *)address, image, size);
	known_note(address, size);
}
