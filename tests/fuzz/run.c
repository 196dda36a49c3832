/*
 * Runs a sequence and takes down what happened.
 *
 * A fault brings us to fuzz_signal() on the alternate stack. It keeps everything the handler's context shows.
 * Then the sequence is either over, or, when it was made to resume, goes on behind the faulting instruction
 * with some registers changed in the context, so that it also shows whether the context is taken over.
 *
 * SIGALRM comes at any time. It ends a sequence that does not end by itself, and shows where asynchronous
 * signals seem to interrupt: that must be the start of an instruction of the sequence.
 */
#include "fuzz.h"
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>
#include <ucontext.h>
#include <sys/time.h>
#include <sys/mman.h>

extern struct machine fuzz_initial, fuzz_final;
extern uint64_t fuzz_runner_rsp;
extern uint64_t fuzz_signal_fs, fuzz_signal_gs, fuzz_signal_flags;
extern uint32_t fuzz_signal_mxcsr;
extern uint16_t fuzz_signal_cw, fuzz_signal_ds, fuzz_signal_es, fuzz_signal_fs_selector,
        fuzz_signal_gs_selector;
int fuzz_signal(int signal, siginfo_t *info, ucontext_t *context);

unsigned long run_bad_pcs;

static const struct sequence *volatile running; /* NULL outside of a sequence */
static struct outcome *current;
static volatile uint64_t runs; /* counts sequences, for the watchdog */

/* ---- reading the context
 * ---------------------------------------------------------------------------------------- */

static uint64_t *xstate_features(ucontext_t *context)
{
	uint8_t *fp = (uint8_t *)context->uc_mcontext.fpregs;
	uint32_t magic;
	memcpy(&magic, fp + 464, 4);
	return magic == 0x46505853 ? (uint64_t *)(fp + STATE_HEADER) : NULL;
}

static void read_vectors(ucontext_t *context, struct machine *m)
{
	const uint8_t *fp = (const uint8_t *)context->uc_mcontext.fpregs;
	uint64_t *present = xstate_features(context);
	state_from_image(m, fp, present ? *present : STATE_X87 | STATE_SSE);
}

static const int context_register[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI,
        REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

/*
 * While a program is recorded, a fault shows status flags that it does not read any more as they happen to be: to keep
 * them would cost every load a save. Here they become 0, also where the sequence goes on, since behind the
 * instruction, which will not be executed, they are read after all. All others must be right.
 */
static void drop_unread_flags(const struct sequence *s, ucontext_t *context)
{
	greg_t *regs = context->uc_mcontext.gregs;
	uint64_t unread = flags_unread(s, (uint64_t)regs[REG_RIP]);
	regs[REG_EFL] &= (greg_t)~unread;
	fuzz_signal_flags &= ~unread;
}

static void read_fault(int signal, siginfo_t *info, ucontext_t *context, struct fault *f)
{
	greg_t *regs = context->uc_mcontext.gregs;
	memset(f, 0, sizeof *f);
	f->signal = signal;
	f->code = info->si_code;
	f->address = (uint64_t)info->si_addr;
	f->trap = (uint64_t)regs[REG_TRAPNO];
	f->error = (uint64_t)regs[REG_ERR];
	if (f->trap == 14) /* otherwise it is left over from an older fault */
		f->cr2 = (uint64_t)regs[REG_CR2];
	f->segments = (uint64_t)regs[REG_CSGSFS];
	f->handler_flags = fuzz_signal_flags;
	f->handler_mxcsr = fuzz_signal_mxcsr;
	f->handler_cw = fuzz_signal_cw;
	for (unsigned n = 0; n < 16; n++)
		f->at.gpr[n] = (uint64_t)regs[context_register[n]];
	f->at.pc = (uint64_t)regs[REG_RIP];
	f->at.rflags = (uint64_t)regs[REG_EFL];
	f->at.fs_base = fuzz_signal_fs;
	f->at.gs_base = fuzz_signal_gs;
	f->at.ds = fuzz_signal_ds;
	f->at.es = fuzz_signal_es;
	f->at.fs = fuzz_signal_fs_selector;
	f->at.gs = fuzz_signal_gs_selector;
	read_vectors(context, &f->at);
	state_canonical(&f->at);
}

/* ---- signals
 * ---------------------------------------------------------------------------------------------------- */

/* The index of the instruction at this pc, or -1. */
static int find_start(const struct sequence *s, uint64_t pc)
{
	unsigned low = 0, high = s->start_count;
	if (pc < s->address || pc >= s->address + s->code_length)
		return -1;
	uint64_t offset = pc - s->address;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (s->starts[middle] < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->start_count && s->starts[low] == offset ? (int)low : -1;
}

/* Other values for all registers of some components, whether the CPU thinks it in use or not. */
static void change_wide(const struct sequence *s, ucontext_t *context, struct rng *r)
{
	/* Both halves of the upper parts: see restore_image(). */
	static const unsigned components[] = {STATE_MASKS, STATE_AVX | STATE_ZMM_HIGH, STATE_ZMM_MORE, 0};
	struct machine changed = s->initial;
	uint64_t number = rng_next(r);
	for (unsigned n = 0; n < 8; n++)
		changed.k[n] ^= number;
	for (unsigned n = 0; n < 32; n++)
		for (unsigned i = 0; i < 64; i += 8)
			memcpy(changed.zmm[n] + i, &number, 8);
	state_to_image(&changed, (uint8_t *)context->uc_mcontext.fpregs, components[rng_below(r, 4)]);
}

/* Changes that the rest of the sequence shows. No large number, nor 0: a register may count a loop. */
static void change_context(const struct sequence *s, ucontext_t *context)
{
	struct rng r = rng_stream(s->number, current->fault_count);
	greg_t *regs = context->uc_mcontext.gregs;
	unsigned reg = rng_below(&r, 16);
	if (reg != RSP)
		regs[context_register[reg]] = 1 + rng_below(&r, 48);
	regs[REG_EFL] ^= rng_next(&r) & 0x8d5;
	uint64_t *features = xstate_features(context), number = rng_next(&r);
	if (!features || *features & STATE_SSE)
		memcpy((uint8_t *)context->uc_mcontext.fpregs + 160 + 16 * rng_below(&r, 16), &number, 8);
	if (features && settings.wide)
		change_wide(s, context, &r);
}

static bool resume(const struct sequence *s, ucontext_t *context)
{
	greg_t *regs = context->uc_mcontext.gregs;
	if (!s->resume || current->fault_count == MAX_FAULTS)
		return false;
	int index = find_start(s, (uint64_t)regs[REG_RIP]);
	/* int1, int3, int 4: the pc is behind the instruction already. */
	bool trap = regs[REG_TRAPNO] == 1 || regs[REG_TRAPNO] == 3 || regs[REG_TRAPNO] == 4;
	if (index < 0 || (!trap && index + 1 == (int)s->start_count))
		return false;
	if (!trap)
		regs[REG_RIP] = (greg_t)(s->address + s->starts[index + 1]);
	change_context(s, context);
	return true;
}

static void die(const char *what, int signal, ucontext_t *context)
{
	char line[200];
	int size = snprintf(line, sizeof line, "fuzz: %s: signal %d at %#llx, sequence %llu of seed %llu\n",
	        what, signal, (unsigned long long)context->uc_mcontext.gregs[REG_RIP],
	        running ? (unsigned long long)running->number : ~0ull, (unsigned long long)settings.seed);
	if (write(2, line, (size_t)size) < 0)
		_exit(4);
	_exit(3);
}

/* True when the sequence has been running for too long. */
static bool too_long(void)
{
	static uint64_t last_runs, since;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (runs != last_runs) {
		last_runs = runs;
		since = (uint64_t)now.tv_sec;
	}
	return (uint64_t)now.tv_sec > since + settings.watchdog;
}

/* About the running sequence, to standard error, where it counts as a difference. */
static void say(const char *what, uint64_t number)
{
	char line[200];
	int size = snprintf(line, sizeof line, "fuzz: sequence %llu of seed %llu: %s %llu\n",
	        (unsigned long long)running->number, (unsigned long long)settings.seed, what,
	        (unsigned long long)number);
	if (write(2, line, (size_t)size) < 0)
		_exit(4);
}

static void check_interrupted_pc(const struct sequence *s, uint64_t pc)
{
	if (pc < s->address || pc >= s->address + s->code_length || s->hidden_entry || find_start(s, pc) >= 0)
		return;
	say("a signal came inside an instruction, at offset", pc - s->address);
	run_bad_pcs++;
}

/* The context goes on in fuzz_enter()'s caller instead of the sequence. */
static void end_sequence(ucontext_t *context)
{
	greg_t *regs = context->uc_mcontext.gregs;
	running = NULL;
	current->completed = false;
	regs[REG_RIP] = (greg_t)(uintptr_t)fuzz_recover;
	regs[REG_RSP] = (greg_t)fuzz_runner_rsp;
	regs[REG_EFL] = 0x202;
	regs[REG_CSGSFS] = (greg_t)0x002b000000000033;
}

/* Called by fuzz_on_signal. Returns 1 when the interrupted code goes on with its own fs and gs bases. */
int fuzz_signal(int signal, siginfo_t *info, ucontext_t *context)
{
	const struct sequence *s = running;
	if (signal == SIGALRM && s && too_long()) {
		current->hung = true;
		say("takes too long: ended", 0);
		end_sequence(context);
		return 0;
	}
	if (signal == SIGALRM) {
		if (s)
			check_interrupted_pc(s, (uint64_t)context->uc_mcontext.gregs[REG_RIP]);
		return 1;
	}
	if (!s)
		die("a fault outside of a sequence", signal, context);
	if (current->fault_count == MAX_FAULTS)
		die("too many faults", signal, context);
	if (settings.read_flags)
		drop_unread_flags(s, context);
	read_fault(signal, info, context, &current->faults[current->fault_count++]);
	if (resume(s, context))
		return 1;
	end_sequence(context);
	return 0;
}

void run_setup(unsigned storm_microseconds)
{
	const size_t size = 256 << 10;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		fail("no memory for the alternate stack: %s", strerror(errno));
	stack_t stack = {.ss_sp = memory, .ss_size = size};
	sigaltstack(&stack, NULL);
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGALRM};
	struct sigaction action = {
	        .sa_sigaction = fuzz_on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
	sigfillset(&action.sa_mask);
	for (unsigned n = 0; n < sizeof signals / sizeof *signals; n++)
		sigaction(signals[n], &action, NULL);
	struct timeval period = {0, 250000};
	if (storm_microseconds)
		period = (struct timeval){storm_microseconds / 1000000, storm_microseconds % 1000000};
	setitimer(ITIMER_REAL, &(struct itimerval){period, period}, NULL);
}

void run_sequence(const struct sequence *s, struct outcome *o)
{
	arena_reset(s);
	fuzz_initial = s->initial;
	o->fault_count = 0;
	o->completed = true;
	o->hung = false;
	current = o;
	runs++;
	running = s;
	fuzz_enter(s->address);
	running = NULL;
	if (o->completed) {
		o->final = fuzz_final;
		o->final.pc = 0;
		if (settings.no_bases)
			o->final.fs_base = o->final.gs_base = 0;
		state_canonical(&o->final);
	}
	o->memory_hash = arena_hash(s);
	o->digest = outcome_digest(o);
}
