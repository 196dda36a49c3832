/*
 * The stub's start in a new program image: at the first instruction, before
 * anything of the program has run. Maps what the supervisor prepared, then
 * forgets how it got here. Or in a program that was running already: then in one of
 * its threads, while the others are stopped.
 */
#include "target/stub.h"

_Static_assert(offsetof(struct thread, regs) == THREAD_REGS, "entry.S");
_Static_assert(offsetof(struct thread, regs.pc) == THREAD_PC, "entry.S");
_Static_assert(offsetof(struct thread, regs.flags) == THREAD_FLAGS, "entry.S");
_Static_assert(offsetof(struct thread, pending) == THREAD_PENDING, "entry.S");
_Static_assert(offsetof(struct thread, stack) == THREAD_STACK, "entry.S");
_Static_assert(offsetof(struct thread, probing) == THREAD_PROBING, "entry.S");
_Static_assert(offsetof(struct thread, stepping) == THREAD_STEPPING, "evacuate.c");
_Static_assert(offsetof(struct thread, mask) == THREAD_MASK, "detach.c");
_Static_assert(offsetof(struct thread, parked) == THREAD_PARKED, "entry.S, evacuate.c");
_Static_assert(offsetof(struct thread, wanted) == THREAD_WANTED, "entry.S");
_Static_assert(offsetof(struct info, first_distance) == 8 * BRANCH_TABLES + 8, "entry.S");
_Static_assert(sizeof(struct thread) <= SLOT_POSITIONS * 8, "a thread's page");
_Static_assert(SLOT_SCRATCH_AREA * 8 == THREAD_FPSTATE, "in replay no vector state is kept there");
_Static_assert(sizeof(struct process) <= LAYOUT_PROCESS_BYTES, "the process's place");
_Static_assert(sizeof(struct signal_action[65]) <= 0x1000, "private actions");

void start(void);

static void map(uint64_t address, uint64_t size, int protection, int flags, int fd, uint64_t offset)
{
	uint64_t result = syscall6(__NR_mmap, address, size, protection, flags | K_MAP_FIXED, fd, offset);
	if (result != address)
		stub_panic("cannot map at start, error", -result);
}

static void map_segment(const struct segment_layout *segment, int memfd, bool first)
{
	uint64_t base = segment->base, file = segment->file;

	if (!first) {
		map(base, LAYOUT_INFO, K_PROT_READ | K_PROT_EXEC, K_MAP_SHARED, memfd, file);
		if (!recording())
			syscall3(__NR_mprotect, base + LAYOUT_THREADS, 2 * THREAD_STRIDE,
			        K_PROT_READ | K_PROT_WRITE);
	}
	map(base + LAYOUT_INFO, LAYOUT_PROCESS - LAYOUT_INFO, K_PROT_READ, K_MAP_SHARED, memfd,
	        file + LAYOUT_INFO);
	map(base + segment->code, segment->code_size, K_PROT_READ | K_PROT_EXEC, K_MAP_SHARED, memfd,
	        file + segment->code);
	map(base + segment->directory, segment->directory_size + segment->records_size, K_PROT_READ,
	        K_MAP_SHARED, memfd, file + segment->directory);
	if (first)
		map(base + LAYOUT_CHANNEL, LAYOUT_CHANNEL_BYTES, K_PROT_READ | K_PROT_WRITE, K_MAP_SHARED,
		        memfd, file + LAYOUT_CHANNEL);
	if (first && segment->logs_size)
		map(base + segment->logs, segment->logs_size, K_PROT_READ | K_PROT_WRITE, K_MAP_SHARED, memfd,
		        file + segment->logs);
	syscall3(__NR_madvise, base, segment->size, K_MADV_DONTDUMP);
}

void start(void)
{
	const volatile struct info *i = info();
	struct process *p = process();
	struct thread *thread = thread_at(1);

	p->segment_count = i->segment_count;
	p->space = i->space;
	p->memory.threads_ready = FIRST_THREADS;
	p->thread_bits[0] = 3; /* number 0 is never used: a GS base of 0 is a native thread's */
	for (uint32_t n = 0; n < p->segment_count; n++)
		p->segments[n] = *(const struct segment_layout *)&i->segments[n];
	for (uint32_t n = 0; n < p->segment_count; n++)
		map_segment(&p->segments[n], i->memfd, n == 0);
	if (replaying())
		replay_map(i->memfd);
	else
		syscall1(__NR_close, i->memfd);

	thread_prepare(thread, 1);
	thread->actions = p->memory.actions;
	thread->regs = *(const struct registers *)&i->registers;
	if (i->adopted)
		syscall2(__NR_sigaltstack, 0, &thread->altstack);
	set_program_gs(thread, i->program_gs);
	thread->mailbox = mailbox_claim();
	thread->tid = syscall0(__NR_gettid);
	thread->mailbox->pid = i->pid;
	thread->mailbox->tid = thread->tid;
	if (i->adopted)
		thread->mask = adoption_at(0)->mask;
	else
		syscall4(__NR_rt_sigprocmask, K_SIG_SETMASK, 0, &thread->mask, 8);
	install_altstack(thread);
	install_handlers(p->memory.actions);
	note_program_fs(thread);
	if (!replaying())
		limits_start();
	if (recording()) {
		shadow_start();
		adopt_others(thread);
		pages_start(thread);
		log_begin(thread, LOG_NO_PARENT);
	}
	if (!i->filtered)
		set_kernel_mask(thread->mask);
	else if (restrict_own_calls() && !i->sleeps) /* up to here the filters sleep */
		be_quiet();
	if (i->adopted)
		ask(thread, OP_ADOPT, kernel_mask_for(thread->mask), 0, 0);
	if (replaying())
		replay_start(thread);
}
