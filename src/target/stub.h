/*
 * Inside the stub. It is freestanding: no libc, no writable globals, no vector
 * registers (they hold the program's values all the time). Per-process state is
 * in struct process, per-thread state in struct thread; both lie at fixed
 * offsets from the stub's own code.
 */
#ifndef BUGNET_TARGET_STUB_H
#define BUGNET_TARGET_STUB_H

#include <stddef.h>

#include "target/layout.h"
#include "target/kernel.h"

/* Bytes of memory: none if low == high. */
struct extent {
	uint64_t low, high;
};

/*
 * Lives at offset 0 of the thread's stride; its shared first part is what
 * translated code and entry.S see through GS.
 */
struct thread {
	uint64_t slots[SLOT_COUNT];
	struct registers regs; /* the program's, while the stub runs */
	uint32_t pending;      /* a signal captured while the stub was busy; all others are blocked then */
	uint32_t stepping;     /* enum step */
	uint64_t stack;        /* top of the stub's stack */
	struct mailbox *mailbox;
	struct signal_action
	        *actions; /* the process's table, or a private one after CLONE_VM without CLONE_SIGHAND */
	uint64_t number;
	int32_t tid;
	uint32_t probing;             /* enum probe */
	uint64_t mask;                /* signals the program has blocked */
	uint64_t held;                /* those that cannot be blocked there: delivered when unblocked */
	struct kernel_stack altstack; /* the program's */
	struct thread *vfork_parent;
	uint32_t clear_actions;
	uint32_t shielded;   /* signals are blocked in the kernel until the program has made a step */
	uint32_t step_armed; /* the next boundary is the end of an instruction the program steps over */
	uint32_t counted;    /* the instruction that is executed natively is in SLOT_POSITION already */
	uint32_t parked;  /* waits, and will not use any code-cache address it had before: see evacuate.c */
	uint64_t faulted; /* where something that looked like a fault came last, see handle_signal */
	const uint8_t *wanted; /* in replay: feed.trace_words */
	struct log *log;       /* NULL: not recorded */
	uint64_t distance;     /* of its own memory, and of its shadow while recording */
	uint64_t
	        inside; /* SLOT_TARGET, when that is not where the program's state is complete; see surface */
	uint64_t stretch;     /* bytes logged since the last keyframe */
	uint32_t leans_on;    /* stretches before that keyframe that replay has to read */
	uint32_t code_pieces; /* of the code history, as last logged */
	uint64_t clock, told; /* see order.c: the thread's own, and what its log says of it */
	uint64_t entered;     /* stamp of the system call that is being made */
	bool unlogged;        /* what was stamped since a stamp was logged is not in the log, or some of it */
	uint64_t missed; /* position of the last load that was not what the shadow had, + 1; see debugged.c */
	uint64_t single_from; /* where it began to execute a single instruction, if it is to: */
	uint32_t single;
	uint32_t delivered;  /* since it last stood still a signal was, and */
	uint32_t signalled;  /* this one, for which it is to stand still; or 0 */
	uint32_t forked;     /* the child of a fork, whose recording is about to begin */
	uint32_t unfiltered; /* its seccomp filters sleep, while it is being attached to */
	uint64_t tid_at;     /* where the kernel has written the number of a thread that may not ask for it */
	struct kernel_siginfo info; /* of `pending`, or of the signal we are stepping for */
	struct fault_details details;
	struct kernel_siginfo held_info[5];
	uint64_t sent; /* fault signals that came while blocked, and are back in the kernel's queue, blocked
	                  there */
	uint64_t iterations;      /* of a string instruction that was left in the middle, */
	uint64_t string_position; /* at this position, */
	uint64_t string_pc;       /* and pc: see strings.c */
	struct extent string_source, string_destination;
	uint64_t done; /* instructions before this position are, for the log */
	/* While whole pages are logged, see pages.c: */
	uint32_t leaves_pages; /* enum leaving_pages: loads are to be compared from its next keyframe on, */
	uint32_t forgets;      /* which is due: nobody knows what was written to memory */
	uint32_t written_count;
	struct extent written[8]; /* by the stub in the kernel's place: to be logged */
};

enum step { STEP_NONE, STEP_TO_BOUNDARY };

enum probe {
	PROBE_NONE,
	PROBE_NATIVE,   /* one instruction runs natively, see probe_natively */
	PROBE_TRAP,     /* a trap is raised for what was executed before pc, see trap_here */
	PROBE_VSYSCALL, /* a function of the vsyscall page is called, see call_vsyscall */
};

#define ORDER_WORDS 512

/* Of the pages that the supervisor watches: what it leaves behind when it is killed. */
enum watch_state {
	WATCH_ALIVE, /* as far as anybody knows */
	WATCH_ENDS,  /* a thread gives them their permission back, and */
	WATCH_ENDED, /* has done so */
};

struct process {
	struct process_memory memory;
	uint32_t action_lock;
	uint32_t protect_lock; /* so that what the supervisor knows of watched pages is what the kernel knows
	                        */
	uint32_t space;
	/*
	 * Pages are watched, or were: SIGSEGV is never blocked in the kernel, and any fault of a write may be
	 * ours. How many are watched now says nothing of a fault that came a moment ago.
	 */
	uint32_t watches;
	uint32_t watch_state; /* enum watch_state */
	/* The last fault that write_orphaned_page was for another try of. */
	uint64_t orphaned_address, orphaned_pc;
	uint32_t segv_blockers; /* threads of a program without watched pages that block it */
	uint32_t has_natives; /* threads run natively: no page may be watched, as nobody would let them write
	                       */
	uint32_t is_init;     /* it is process 1, whom no default action kills */
	uint32_t seccomp;     /* the program restricts its system calls: make none of ours, */
	uint32_t quiet;       /* not even futex, to sleep and to ring */
	uint32_t thread_lock;
	uint32_t adds_window;         /* see wait_for_windows; and */
	uint32_t lifted_natively;     /* a thread that runs natively has thread_lock */
	uint32_t thread_ids;          /* of the recording, given so far */
	uint32_t fork_changes_memory; /* a child's mappings or their contents differ from its parent's */
	uint32_t segment_count;
	struct segment_layout segments[MAX_SEGMENTS];
	uint64_t thread_bits[8192 / 64]; /* numbers that are taken */
	/* See order.c. Each on a cache line of its own. */
	struct order_word {
		_Alignas(64) uint64_t word;
	} order_calls, order_words[ORDER_WORDS];
};

_Static_assert(sizeof(struct process) <= LAYOUT_PROCESS_BYTES, "the process's record has its place");

/* ---- entry.S ---- */
extern char stub_image[]; /* starts with struct stub_header */
extern const char resume[], resume_window_start[], resume_window_end[];
extern const char syscall_window_start[], syscall_window_end[], int80_window_start[], int80_window_end[];
extern const char vsyscall_fault[];
/* A fault in [start, end) goes on at `handler`: offsets from the stub's base. */
struct recovery {
	uint32_t start, end, handler;
};
extern const struct recovery recoveries[], recoveries_end[];
extern const char fetched[], release_entry[], probe_start[], probe_jump[], signal_entry[],
        return_window_start[], return_window_end[], touch_start[], touch_end[];
uint64_t syscall_window(void);
uint64_t int80_window(void);
/* Gives a system call up before it was made: a signal is pending; it is made again after the handler. */
_Noreturn void back_out(void);
long clone_thread(long number, const uint64_t arguments[5], uint64_t child_gs_base);
long clone_native(long number, const uint64_t arguments[5]);
_Noreturn void leave_thread(uint64_t *word, uint64_t mask);
_Noreturn void return_from_frame(struct signal_frame *frame);
_Noreturn void return_natively(struct signal_frame *frame, uint64_t gs_base);
_Noreturn void run_natively(void);
_Noreturn void leave_with_mask(void);
_Noreturn void probe_natively(void);
long call_vsyscall(void);
_Noreturn void raise_trap(void);
long usercopy_direct(void *to, const void *from, size_t size);
long load_line(void *to, const void *from);
long restore_direct(const void *from, unsigned what, uint32_t low, uint32_t high);
long match_lines(const void *memory, const void *shadow, size_t count);
long probe_write(void *at, size_t size);
void touch(void *at, bool writes);
long exchange_direct(uint64_t at, const uint64_t expected[2], const uint64_t wanted[2], size_t size);

/* ---- where things are ---- */
static inline char *stub_base(void)
{
	return stub_image;
}
static inline const volatile struct info *info(void)
{
	return (const volatile struct info *)(stub_base() + LAYOUT_INFO);
}
static inline struct process *process(void)
{
	return (struct process *)(stub_base() + LAYOUT_PROCESS);
}
static inline struct channel *channel(void)
{
	return (struct channel *)(stub_base() + LAYOUT_CHANNEL);
}
static inline struct thread *thread_at(uint64_t number)
{
	return (struct thread *)(stub_base() + LAYOUT_THREADS + thread_distance(info(), number));
}

static inline struct thread *current_thread(void)
{
	struct thread *thread;
	__asm__("mov %%gs:stub_image+%c1(%%rip), %0" : "=r"(thread) : "i"(LAYOUT_THREADS + SLOT_THREAD * 8));
	return thread;
}
/* For who has thread_lock: none where a thread that runs natively has it. */
static inline struct thread *thread_here(void)
{
	return process()->lifted_natively ? NULL : current_thread();
}

/* Is it another process's, in this one's memory (vfork)? */
static inline bool shares_memory(const struct thread *thread)
{
	return thread->actions != process()->memory.actions;
}

static inline uint64_t read_fs_base(void)
{
	uint64_t base;
	__asm__ volatile("rdfsbase %0" : "=r"(base));
	return base;
}

/* ---- usercopy.c ---- */
/* Reads or writes the program's memory: 0 or -EFAULT. The only way the stub's C touches it. */
long read_program(void *to, uint64_t from, size_t size);
long write_program(uint64_t to, const void *from, size_t size);
/* The same for what replay will do as well. */
long store_as_program(uint64_t to, const void *from, size_t size);
/* Can the first and the last byte of a store be written? What crosses a page is stored as a whole or not at
 * all. */
bool can_store(uint64_t at, size_t size);
/* Makes `size` (1, 2, 4, 8, 16) bytes what is wanted if they are what is expected, atomically: 0, 1: they are
 * not, -EFAULT. */
long exchange_program(uint64_t at, const uint64_t expected[2], const uint64_t wanted[2], size_t size);
/* Where to go on after a fault at rip, which the stub was prepared for; 0: it was not. */
uint64_t recovery_of(uint64_t rip);

/* ---- request.c ---- */
struct mailbox *mailbox_claim(void);
void mailbox_release(struct mailbox *mailbox);
bool supervisor_died(void);
/* Asks the supervisor; STATUS_RELEASE also when it is dead. */
uint64_t ask(struct thread *thread, enum operation operation, uint64_t a, uint64_t b, uint64_t c);
/* While *word is `value`, but not for long. */
void sleep_on(const struct thread *thread, const uint32_t *word, uint32_t value);
/* A thread goes on that was not watched, see log.unwatched. */
void tell_returned(void);
/* Threads whose number is unfit leave translated code, and do not come back. */
void expel_threads(void);
/*
 * A system call of ours. Where the program's filter may forbid it the supervisor puts the filter to sleep for
 * it, if it can; -EPERM: it is gone. NULL: a thread that runs natively. What is, or is part of, a call that
 * the program makes, is to meet the filter.
 */
long own_call6(struct thread *thread, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
        uint64_t f);
#define own_call0(thread, n)       own_call6(thread, n, 0, 0, 0, 0, 0, 0)
#define own_call1(thread, n, a)    own_call6(thread, n, (uint64_t)(a), 0, 0, 0, 0, 0)
#define own_call2(thread, n, a, b) own_call6(thread, n, (uint64_t)(a), (uint64_t)(b), 0, 0, 0, 0)
#define own_call3(thread, n, a, b, c)                                                                        \
	own_call6(thread, n, (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), 0, 0, 0)
#define own_call4(thread, n, a, b, c, d)                                                                     \
	own_call6(thread, n, (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), (uint64_t)(d), 0, 0)
/* Several of them, between which the program makes none. */
bool begin_own_calls(struct thread *thread);
void end_own_calls(struct thread *thread, bool begun);
/* Is it done for us? */
bool is_assisted(const struct thread *thread);
/* May ours be forbidden, and nobody helps? */
bool is_on_its_own(void);

/* ---- exits.c ---- */
void handle_exit(struct thread *thread, int missed);
void handle_stop(struct thread *thread);
void arm_counters(struct thread *thread, uint64_t share);
/* A legacy or REX prefix of an instruction. */
bool is_prefix(uint8_t byte);
void set_program_gs(struct thread *thread, uint64_t base);
/* Tells translated code where the FS base is now. */
void note_program_fs(struct thread *thread);
/* The position slots of all segments. */
uint64_t position(const struct thread *thread);
void set_position(struct thread *thread, uint64_t value);
/* Tells the supervisor how many instructions the thread has executed. */
void publish_position(struct thread *thread);
_Noreturn void release(struct thread *thread);
/* A thread is about to run natively that was not ours before, or will not be. */
void leave_others_unwatched(struct thread *thread);
_Noreturn void leave_now(struct thread *thread);
void leave_space(struct thread *thread);
/* In the child of a fork, behind the call: from here on it has a recording of its own. */
void record_child(struct thread *thread);
_Noreturn void fault_natively(struct thread *thread);
_Noreturn void step_natively(struct thread *thread);
_Noreturn void trap_here(struct thread *thread);

/* With AC set the CPU raises #AC for an address that is no multiple of `size`: let it. */
static inline void check_alignment(struct thread *thread, uint64_t address, unsigned size)
{
	if ((thread->regs.flags & FLAG_AC) && address % size)
		fault_natively(thread);
}

/* ---- debugged.c ---- */
/* On the way back to translated code while channel.detaining is not 0: returns when it may go on there. */
void detained(struct thread *thread);
/* Before an instruction that the supervisor wants it to stop at. */
void debugged_stop(struct thread *thread);
/* A signal has been delivered. */
void debugged_signal(struct thread *thread, int number);
/* Is it a key at the terminal, which is meant for the debugger? */
bool debugged_takes(int number, const struct kernel_siginfo *siginfo);

/* ---- cpuid.c ---- */
struct cpuid {
	uint32_t a, b, c, d;
};
struct cpuid offered_cpuid(uint32_t leaf, uint32_t subleaf);
/* index: 0 or 1 */
uint64_t offered_xgetbv(uint32_t index);

/* ---- emulate.c ---- */
void handle_emulate(struct thread *thread);
/* Translates a code-cache address back to the program's; false when it is none. */
bool program_pc_of(uint64_t address, uint64_t *pc);

/* The opcode field at `at` of an x87 image, for the instruction at pc, executed at `cached`. */
void fix_x87_opcode(uint64_t at, uint64_t cached, uint64_t pc);
void fix_x87_data(uint64_t at);

/* ---- shadow.c ---- */
static inline bool recording(void)
{
	return info()->mode == MODE_RECORD;
}
void handle_access(struct thread *thread);
uint64_t shadow_address(const struct thread *thread, uint64_t address);
void *shadow_of(const struct thread *thread, uint64_t address);
/* Makes the shadow what memory is, and logs what differed; false: memory cannot be read there. */
bool shadow_check(struct thread *thread, uint64_t address, uint64_t size);
/* The same for what a load at another position would see. */
bool shadow_check_at(struct thread *thread, uint64_t here, uint64_t address, uint64_t size);
/* The same for these bytes alone, not for others of their lines: what the instruction has used must stay. */
bool shadow_check_bytes(struct thread *thread, uint64_t address, uint64_t size);
void shadow_revert(struct thread *thread, uint64_t address);
bool shadow_forget(struct thread *thread, uint64_t number, const uint64_t arguments[6], uint64_t result);
/* At a keyframe, or for a new thread. False: something is left. */
bool shadow_forget_all(struct thread *thread, bool keep_image);
/* Gives memory to a thread that has not been there before. */
bool shadow_map(uint64_t number);
void shadow_start(void);
/* Is the shadow of the thread with this number made where it faults? */
bool shadow_is_sparse(uint64_t number);
/* Is there a shadow for this memory, for the thread with this number? */
bool shadow_covers(uint64_t number, uint64_t start, uint64_t end);
/* The same for every thread that has windows. If not, is it made? */
bool shadow_has_window(uint64_t start, uint64_t end);
bool shadow_extend(uint64_t start, uint64_t end);
/* The same for memory that the program has, or is about to have: there is room then, and who has none leaves.
 */
void shadow_admit(uint64_t start, uint64_t end);
/* The program has such memory for the first time: is it low? */
void shadow_expect(struct thread *thread, uint64_t start, uint64_t end);
/* The same for who has thread_lock. */
bool shadow_add_window(uint64_t start, uint64_t end, bool insists);
void shadow_make_window(uint64_t address);
/* The first part of a sparse shadow in the range that begins before *first does. */
bool shadow_overlaps_sparse(struct range range, struct range *first);
/* An access to the shadow of `address` faulted: true: it will not again. Else see shadow_fold. */
bool shadow_fault(uint64_t number, uint64_t address);
/* Is there memory that this could be the shadow of? */
bool shadow_is_needed(uint64_t address);
#define LOW_END (64ul << 30) /* how far low memory goes, as a rule */
/* There is low memory, whose shadow is folded, or a stack in it. The state is complete in thread.regs. */
bool shadow_fold(struct thread *thread, uint64_t address, uint64_t here);
/* What an instruction loads or stores that the stub performs: recorded while recording. 0 or -EFAULT. */
long load_program(struct thread *thread, void *to, uint64_t from, size_t size);
long store_program(struct thread *thread, uint64_t to, const void *from, size_t size);
void surface(struct thread *thread);

/* ---- memory.c, for pages.c ---- */
/* The program has this memory: loads from it are about to be compared. */
void memory_admit(struct thread *thread, uint64_t start, uint64_t end, uint32_t protection);

/* ---- pages.c ---- */
static inline bool by_pages(void)
{
	return process()->memory.pages;
}
/* The first keyframe is to come. */
void pages_start(struct thread *thread);
/* Behind a keyframe nothing is known: all pages are closed. */
void pages_close(void);
/* Those that are never closed are logged. */
void pages_log_whole(struct thread *thread, uint64_t here);
/* They are logged again, if they may and were before; a keyframe has to follow. The state is complete in
 * thread.regs. */
void pages_begin_again(struct thread *thread);
/* From here on loads are compared; a keyframe has to follow. The state is complete in thread.regs. */
void pages_leave(struct thread *thread);
/* Is more logged, for so many instructions since the keyframe, than comparing loads would be worth? */
bool pages_are_costly(uint64_t instructions);
/* Nobody logs pages any more: all are as the program has them. */
void pages_end(void);
/* Has the access at this address faulted because its page is closed? */
bool pages_is_closed(struct thread *thread, uint64_t address);
bool pages_is_vdso(uint64_t address);
/* Memory is about to be touched at `here`: what is closed of it is opened, and logged. */
void pages_open(struct thread *thread, uint64_t here, uint64_t address, uint64_t size);
/* The same where the stub touches it for an instruction or a call that it performs. */
void pages_open_here(struct thread *thread, uint64_t address, uint64_t size);
/* Has the log room for a page? */
bool log_fits_page(const struct thread *thread);
/* The stub has written for the kernel, or an instruction has that replay does not execute, */
void pages_note_written(struct thread *thread, uint64_t address, uint64_t size);
/* which is logged from `here` on. */
void pages_log_written(struct thread *thread, uint64_t here);
void pages_log(struct thread *thread, uint64_t here, uint64_t address, uint64_t size);
/* A call is about to write there, if it is open: what is not changed is not logged. Until pages_forget_kept.
 */
void pages_keep(uint64_t address, uint64_t size);
void pages_forget_kept(void);
/* Mappings change by a call: before mremap, and behind any. */
void pages_before_remap(uint64_t start, uint64_t end);
bool pages_may_map(struct thread *thread, const uint64_t arguments[6]);
bool pages_may_stay(uint64_t flags); /* of mmap */
bool pages_may_protect(const uint64_t arguments[6]);
void pages_mapped(
        struct thread *thread, uint64_t here, uint64_t number, const uint64_t arguments[6], uint64_t result);

/* ---- calls.c ---- */
enum written { WRITTEN_NOT, WRITTEN_ANYHOW, WRITTEN_BY_RESULT, WRITTEN_IN_TURN };

/* What a call may write, as it was found before it; with pages_forget_kept it is forgotten. */
struct call_write {
	uint64_t address, size;
	enum written written;
	uint32_t unit; /* of the result */
};

#define MOST_WRITES 80

struct call_writes {
	uint32_t count;
	struct call_write items[MOST_WRITES];
};
struct call_writes *pages_writes(void);

/* Whole pages may be logged again some day, unless this call is in the way. */
void calls_look_at(const struct registers *call);
/* The kernel may touch what it is about to touch; false: nobody knows what that is. */
bool calls_prepare(struct thread *thread, const struct registers *call, uint64_t here);
/* What it has written is logged. */
void calls_done(struct thread *thread, const struct registers *call, uint64_t here);

/* ---- image.c ---- */
/* Where it lies. Empty memory is an empty image. */
struct range image_range(const struct thread *thread);
void image_patch(const struct thread *thread, uint64_t line, uint8_t mask, const uint64_t *words);
/* It could not take in all patches. */
bool image_full(const struct thread *thread);
/* Makes the shadow, which is empty, the image. */
void image_restore(const struct thread *thread);

/* ---- vectors.c ---- */
/* Of an image: VECTORS_BYTES, or VECTORS_AVX_BYTES where the program has no more. */
uint32_t vectors_bytes(void);
/* The registers to an image that is aligned by 64, and back; the latter completes its header. */
void vectors_save(uint8_t *image);
void vectors_load(uint8_t *image);
/* An image of XSAVE in the form of the log; its size. */
uint32_t vectors_from_standard(uint8_t to[VECTORS_BYTES], const uint8_t *image);
/* How much of an image XRSTOR reads, by what its header says. */
uint32_t vectors_restored_bytes(uint64_t wanted, uint64_t present, uint64_t form);

/* The same without the x87 unit, whose pointers would be lost on some processors. */
void vectors_load_registers(uint8_t *image);

/* ---- gather.c ---- */
void emulate_gather(struct thread *thread);

/* ---- log.c ---- */
#define LOG_NO_PARENT UINT32_MAX
enum {
	LOG_END_EXIT,
	LOG_END_KILLED,
	LOG_END_THREAD,
	LOG_END_EXEC,
	LOG_END_RELEASED
}; /* enum event_end_kind */
void log_begin(struct thread *thread, uint32_t parent);
/* The thread stands still, and its vector registers are to be seen. */
void log_show(struct thread *thread);
bool log_due(const struct thread *thread, uint64_t here);
void log_keyframe(struct thread *thread);
/* The thread has come out because a counter was used up: is it time for a keyframe? It has something left
 * again. */
bool log_pause(struct thread *thread);
void log_patch(struct thread *thread, uint64_t here, uint64_t line, uint8_t mask, const uint64_t *words);
void log_syscall(struct thread *thread, uint64_t here, const struct registers *before, bool forgets);
void log_signal(struct thread *thread, const struct kernel_siginfo *siginfo, bool fault, uint64_t iterations);
/* Whose state it is: rt_sigreturn's, or that of an instruction which the log keeps instead of executing it.
 */
enum state_kind {
	STATE_OF_CALL,
	STATE_OF_INSTRUCTION,
	STATE_WITH_BASES /* of FS and GS, which it changed */
};
/* The registers, and the vector state where it is given, are now these. */
void log_state(struct thread *thread, uint64_t here, enum state_kind kind, const void *vectors);
void log_code(struct thread *thread, uint64_t here);
static inline bool code_was_replaced(const struct thread *thread)
{
	return thread->log && __atomic_load_n(&info()->code_pieces, __ATOMIC_ACQUIRE) != thread->code_pieces;
}
/* To be called where a thread may have learnt from another that it replaced code. */
static inline void note_code(struct thread *thread, uint64_t here)
{
	if (code_was_replaced(thread))
		log_code(thread, here);
}
void log_result(struct thread *thread, uint64_t here, const struct registers *before);
void log_end(struct thread *thread, int kind, int status, const struct kernel_siginfo *siginfo);

struct event_order;
/* The next event will not have to wait for the supervisor. */
void log_reached(struct thread *thread, uint64_t here);
void log_make_room(struct thread *thread);
void log_order(struct thread *thread, uint64_t here, const struct event_order *order);

/* ---- order.c ---- */
/* Between these two a locked instruction is performed: no other thread's on the same lines is meanwhile, as
 * a rule. */
struct order_hold {
	struct order_word *words[2];
	uint64_t held[2]; /* what they are while this thread has them */
	unsigned count;
};
void order_take(struct thread *thread, struct order_hold *hold, uint64_t address, uint64_t size);
/* Nothing was performed. */
void order_drop(const struct order_hold *hold);
void order_give(struct thread *thread, const struct order_hold *hold, uint64_t here);
/* Before a system call is made, or given up; and when it was made, before and behind its event in the log. */
void order_enter(struct thread *thread);
void order_entered(struct thread *thread, uint64_t here);
void order_returned(struct thread *thread, uint64_t here);
void order_signal(struct thread *thread, uint64_t here);
/* A new thread begins where its maker is. */
void order_begin(struct thread *child, const struct thread *maker);
/* A process of its own, with one thread. */
void order_forget(struct thread *thread);
/* Behind a keyframe. */
void order_keyframe(struct thread *thread, uint64_t here);

/* ---- strings.c ---- */
/* False: stopped between two iterations, with the pc still at the instruction. */
bool emulate_string(struct thread *thread, unsigned argument);
/* How many iterations of the instruction at pc were done, when that is a string instruction; forgets it. */
uint64_t take_iterations(struct thread *thread);

/* ---- atomic.c ---- */
void emulate_atomic(struct thread *thread, unsigned argument);

/* ---- replay.c ---- */
/* Replay: in place of the functions of the same name, see replay.c. */
static inline bool replaying(void)
{
	return info()->mode == MODE_REPLAY;
}
/* Maps what replay shares with the replayer; the memfd stays ours. */
void replay_map(int memfd);
void replay_start(struct thread *thread);
void replay_exit(struct thread *thread, uint64_t indirect);
void replay_syscall(struct thread *thread);
/* False: it is to be performed as in any other run. */
bool replay_emulate(struct thread *thread);
void replay_stop(struct thread *thread);
/* What happens was not recorded: enum feed_divergence. */
_Noreturn void replay_diverged(struct thread *thread, unsigned how, uint64_t detail);
uint64_t replay_signal(int number, struct kernel_siginfo *siginfo, struct kernel_ucontext *context,
        struct thread *thread, uint64_t gs_base);

uint64_t replay_position(const struct thread *thread);
/* Has the replayer see the thread's state. */
void replay_show(const struct thread *thread);
/* Goes on with what the feed has next. */
void replay_go_on(struct thread *thread);
#define SYSCALL_LENGTH   2
#define USER_ADDRESS_END 0x7ffffffff000ul
struct feed;
struct feed *feed(void);
void ask_replayer(struct thread *thread, uint64_t what, uint64_t number);

/* ---- trace.c ---- */
void trace_access(struct thread *thread);
struct feed_syscall;
void trace_call(struct thread *thread, const struct feed_syscall *call);
struct feed_patch;
void trace_patch(struct thread *thread, const struct feed_patch *patch);
/* The thread is at a boundary: what it stored is there. */
void trace_finish(void);
/* The replayer takes what there is. */
void trace_flush(struct thread *thread);

/* ---- known.c ---- */
/* Nothing is known any more of a part of memory, or of all: known_forget(0, USER_ADDRESS_END) begins. */
void known_forget(uint64_t start, uint64_t end);
/* A fault where the notes of a window are missing: is there a region now, which the code goes on with? */
bool known_appears(uint64_t fault, const struct thread *thread, struct kernel_sigcontext *context);
/* Is it where notes are, and so not the program's? */
bool known_is_place(uint64_t address);
void known_note(uint64_t address, uint64_t size);
/* Which bytes of a word are: a bit for each. All of them where nobody notes it. */
uint8_t known_bytes(uint64_t word);
/* Are all bytes of it known? It is memory of the program's then, and can be read. */
bool known_is(uint64_t address, uint64_t size);

/* ---- divert.c ---- */
bool diverting(void);
bool divert_execution(struct thread *thread, uint64_t pc);
bool divert_access(struct thread *thread, uint64_t pc, uint64_t address, uint64_t size, bool reads);
void divert_syscall(struct thread *thread);
/* An image of the x87 unit or of vector state has been stored, to memory of ours: X87_IMAGE_*. */
void divert_image(struct thread *thread, unsigned kind);

/* ---- conditions.c ---- */
/* Does the instruction, which is about to be executed, have conditions, and is it certain that none is true?
 */
bool conditions_are_false(const struct thread *thread, uint64_t pc);

/* ---- confine.c ---- */
/* From now on the kernel allows this process what replay needs, and nothing else. */
void confine(bool parking);

/* ---- park.c ---- */
/* Stays until the replayer wants it to go on: it returns in a copy of this process. */
void park(unsigned slot);

/* ---- codemap.c ---- */
struct code_place {
	uint64_t pc;
	uint32_t state;
	bool boundary;    /* exactly at a boundary */
	int32_t executed; /* instructions that are not in SLOT_POSITION yet */
	uint64_t slots;   /* address of the thread-less slots page of its segment */
};
bool code_lookup(uint64_t address, struct code_place *place);
bool in_code(uint64_t address);

/* ---- arguments.c ---- */
/* What the registers `call` of a system call lead to is loaded, at position `here`: what the kernel will
 * read, */
void record_arguments(struct thread *thread, const struct registers *call, uint64_t here);
/* and what it has written. */
void record_results(struct thread *thread, const struct registers *call, uint64_t here);

/* ---- syscalls.c ---- */
/* Calls of ours may be forbidden from now on. Was that new? */
bool restrict_own_calls(void);
/* The same for futex: from now on we poll, and the supervisor does. */
bool be_quiet(void);
void handle_syscall(struct thread *thread);
void syscall_int80(struct thread *thread);

/* ---- limits.c ---- */
void limits_start(void);
/* We are about to have so much more memory, or have so much less; while no other thread does that. */
void limits_reserve(enum limited what, int64_t size);
/* Is the program's memory limited, by space or by data? */
bool limits_are_set(void);
bool limits_leave_room(uint64_t size);
void limits_for_exec(bool back);
/* getrlimit, setrlimit and prlimit64; false: the kernel's answer is the right one. */
bool syscall_limit(struct thread *thread, long number);

/* ---- memory.c ---- */
void syscall_memory(struct thread *thread, long number);
bool overlaps_us(uint64_t start, uint64_t size);
/* Unmaps what is the program's of [start, end), around our segments, which the program cannot know of. */
uint64_t unmap_around_us(uint64_t start, uint64_t end);
void unwatch_all(void);
bool write_orphaned_page(uint64_t address, uint64_t pc);
bool write_watched_page(struct thread *thread, uint64_t address, uint64_t pc);
/* In the child of a fork: tells of what the kernel did not copy. */
void forked_memory(struct thread *thread);
void unwatch_range(struct thread *thread, uint64_t start, uint64_t end);

/* ---- threads.c ---- */
void syscall_clone(struct thread *thread, long number);
void syscall_exit(struct thread *thread);
void syscall_execve(struct thread *thread, long number);
void thread_begin(struct thread *thread);
/* Those of a program that was running already: the first is the one that start() runs in. */
struct adoption *adoption_at(uint32_t index);
void adopt_others(struct thread *thread);
void thread_adopted(struct thread *thread);
void thread_prepare(struct thread *thread, uint64_t number);
/* While recording: is there no room for its shadow? */
bool thread_is_unfit(uint64_t number);
/* Makes it so; false: somebody has it. */
bool thread_retire(uint64_t number);
/* Makes it so although somebody has it, who leaves with the next expel_threads. */
void thread_expel(uint64_t number);
bool thread_is_expelled(uint64_t number);

/* ---- veil.c ---- */
/* Too large to have a shadow as a whole. */
#define SHADOWED_AT_ONCE (64ul << 30)
/* The program has, or has no longer, memory there that is without access for now. */
void veil_add(uint64_t start, uint64_t end, uint32_t protection);
void veil_remove(uint64_t start, uint64_t end);
void veil_release(uint64_t start, uint64_t end, uint32_t protection);
bool veil_overlaps(uint64_t start, uint64_t end);
/* There is a window now: what the program has there can be accessed. For who has thread_lock. */
void veils_lift(struct range window);
/* The program, or the kernel for it, is about to access memory there. False: that has nothing to do with
 * veils. */
bool veil_touched(uint64_t address, uint64_t size, bool writes);
void veil_end(uint64_t start, uint64_t end);
/* What the arguments of a system call lead to. */
void veils_lift_for_call(struct thread *thread, uint64_t number);
/* In a thread that runs natively. */
bool veil_touched_natively(uint64_t address, bool writes);

/* ---- signals.c ---- */
/* `gs_base` was in force when the signal came; returns what it must be from now on. */
uint64_t handle_signal(int number, struct kernel_siginfo *siginfo, struct kernel_ucontext *context,
        struct thread *thread, uint64_t gs_base);
uint64_t signal_thread(uint64_t gs_base, uint64_t stack);
void *native_handler(int number, struct kernel_siginfo *siginfo, struct kernel_ucontext *context);
_Noreturn void deliver_pending(struct thread *thread);
void requeue_pending(struct thread *thread);
/* All signals are blocked, and what was captured or held back goes back to the kernel. */
void give_signals_back(struct thread *thread);
void renew_fpstate(struct thread *thread);
void settle_x87_pc(struct thread *thread);
void syscall_sigaction(struct thread *thread);
void syscall_sigprocmask(struct thread *thread);
void syscall_sigaltstack(struct thread *thread);
_Noreturn void syscall_sigreturn(struct thread *thread);
void install_handlers(struct signal_action *actions);
/* The thread goes on natively with all that is the program's; takes no call but rt_sigreturn. */
_Noreturn void leave_by_frame(struct thread *thread);
/* False: nobody is there who could help, and the thread has to leave. */
bool install_altstack(struct thread *thread);
void set_kernel_mask(uint64_t mask);
void count_segv_blocker(uint64_t old, uint64_t new);
void reinstall_terminating(struct thread *thread);
void ignore_for_exec(struct thread *thread, bool ignore);
uint64_t kernel_mask_for(uint64_t mask);
uint64_t close_faults(struct thread *thread);
/* What was held back although the program blocks it is the kernel's to keep again. */
void requeue_blocked(struct thread *thread);
void open_faults(struct thread *thread, uint64_t faults);
/* The program's state at a place in translated code, before the instruction there, to thread.regs. */
void registers_from_code(
        struct thread *thread, const struct kernel_sigcontext *c, const struct code_place *place);
/* Ends what a return to code with TF set began, see syscall_sigreturn. */
void unshield(struct thread *thread);

/* ---- report.c ---- */
_Noreturn void stub_panic(const char *what, uint64_t value);
_Noreturn void panic_at_fault(const struct kernel_sigcontext *context, uint64_t address);

#define LOCK_FREE      0
#define LOCK_HELD      1
#define LOCK_SLEPT_FOR 2 /* held, and somebody may be asleep until it is free */

void lock_contended(uint32_t *word);
void unlock_contended(uint32_t *word);

static inline void lock(uint32_t *word)
{
	uint32_t expected = LOCK_FREE;

	if (!__atomic_compare_exchange_n(
	            word, &expected, LOCK_HELD, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		lock_contended(word);
}
static inline void unlock(uint32_t *word)
{
	if (__atomic_exchange_n(word, LOCK_FREE, __ATOMIC_RELEASE) == LOCK_SLEPT_FOR)
		unlock_contended(word);
}

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memset(void *to, int value, size_t size);

#endif
