/*
 * What stub and supervisor share: the layout of a segment in the target, the
 * channel through which the stub asks, and the stub's own records. Both sides
 * are built from this header at the same time; it is no stable format.
 *
 * A segment is one contiguous stretch of the target's address space. Every
 * offset below is from its base, and the same in every segment, so that
 * gs:[rip+d] means the same thing everywhere:
 *
 *     0          routines: the stub itself in segment 0, veneers in others (r-x, memfd)
 *     INFO       what the supervisor tells the target                      (r--, memfd)
 *     TABLE      the branch tables                                         (r--, memfd)
 *     PROCESS    struct process; segment 0 only                            (rw-, private)
 *     BLANK      a page nobody touches: shadows are made of it             (rw-, private)
 *     CHANNEL    mailboxes; segment 0 only                                 (rw-, memfd)
 *     THREADS    one THREAD_STRIDE for each thread, numbered from 1;       (rw-, private)
 *                in other segments only the slots page of each is used
 *     code       translated code                                           (r-x, memfd)
 *     directory  struct code_range for each placed translation             (r--, memfd)
 *     records    struct placed_record                                      (r--, memfd)
 *
 * The GS base of thread n is n * THREAD_STRIDE, so that gs:[rip+d], with d
 * leading to THREADS, is the thread's own slots page in the code's own segment.
 *
 * What is private is mapped from /dev/zero: to the kernel that is anonymous memory, but maps show a file, so
 * that programs which look for memory of their own there do not take it for that.
 *
 * While recording it is the distance of the thread's shadow (info.distances), for
 * the program's memory and for these pages alike: a thread's memory then is not at
 * THREADS but at this distance from it.
 */
#ifndef BUGNET_TARGET_LAYOUT_H
#define BUGNET_TARGET_LAYOUT_H

#include "recording/vectors.h"
#include "translate/runtime.h"

#define LAYOUT_INFO          0x40000
#define MAX_WATCHED          24576 /* pages; code on more of them is compared instead */
#define LAYOUT_TABLE         0x80000
#define LAYOUT_PROCESS       0x280000
#define LAYOUT_PROCESS_BYTES 0x20000
#define LAYOUT_BLANK         0x3ff000
#define LAYOUT_CHANNEL       0x400000
#define LAYOUT_CHANNEL_BYTES 0x200000
#define LAYOUT_THREADS       0x600000
#define FIRST_THREADS        2 /* numbers whose memory is there from the start: 0 and 1 */
#define THREAD_STRIDE        0x10000

/* Inside a thread's stride (segment 0). */
#define THREAD_FPSTATE        0x1000 /* vector state of a captured signal */
#define THREAD_RETURNED       0x2800 /* vector state that rt_sigreturn is about to restore */
#define THREAD_FPSTATE_BYTES  (THREAD_RETURNED - THREAD_FPSTATE)
#define THREAD_ACTIONS        0x4000 /* a private table of signal actions, see struct thread */
#define THREAD_SPARSE         0x4840 /* struct sparse_shadow of a number without windows */
#define THREAD_STACK_BOTTOM   0x5000
#define THREAD_STACK_TOP      0xa000 /* the stub's stack grows down from here */
#define THREAD_ALTSTACK       0xa000 /* the kernel's signal frames */
#define THREAD_ALTSTACK_BYTES (THREAD_STRIDE - THREAD_ALTSTACK)

/* What a thread that leaves for good finds below its red zone, see leave_with_mask. */
#define LEAVE_WORDS  10
/* And one that was never ours, see clone_native: its GS base first. */
#define NATIVE_WORDS (LEAVE_WORDS + 1)

/* Offsets that assembly needs; checked against the structs in stub.c. */
#define THREAD_REGS     0x080 /* rax rcx rdx rbx rsp rbp rsi rdi r8-r15 pc flags */
#define THREAD_PC       (THREAD_REGS + 16 * 8)
#define THREAD_FLAGS    (THREAD_REGS + 17 * 8)
#define THREAD_PENDING  0x110
#define THREAD_STEPPING 0x114
#define THREAD_STACK    0x118
#define THREAD_PROBING  0x13c
#define THREAD_MASK     0x140
#define THREAD_PARKED   0x180
#define THREAD_WANTED   0x190
#define PARKED_AT_GATE  2 /* it has left translated code for good, see release() */
#define PARKED_HELD     3 /* it stands between two instructions of the program, see debugged.c */
#define PARKED_CALLING  4 /* in a system call of the program's */

#define CHANNEL_DETAINING 0x50 /* offset in struct channel */
#define DETAIN_LEAVING    1    /* threads leave translated code for good, see release() */
#define DETAIN_HOLDING    2    /* threads stand still, see debugged.c */
#define DETAIN_SIGNAL     4    /* one has had a signal delivered for which it is to stand still */
#define DETAIN_EXPELLING  8    /* numbers have become unfit while threads had them: these leave */

#define INFO_COMPONENTS 3 /* of AVX-512: VECTORS_MASKS, VECTORS_ZMM_HIGH, VECTORS_ZMM_MORE */

#define STUB_MAGIC 0x31627574732e7462ul

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stdint.h>

#define BLANK_BYTES          0x1000
#define MAX_SEGMENTS         2
#define MAX_RANGES           64
#define MAX_WINDOWS          6
#define MAX_RECORDED_THREADS 4096
/*
 * Numbers below this may have windows: shadows of all places where the program may have memory, reserved as a
 * whole. The address space has no room for more of those; all other numbers have sparse shadows.
 */
#define WINDOWED_THREADS     128

enum register_number { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };

struct registers {
	uint64_t gpr[16];
	uint64_t pc;
	uint64_t flags;
};

/* The start of the stub's image: where the supervisor finds its parts. Offsets from the segment base. */
struct stub_header {
	uint64_t magic;
	uint64_t size;
	uint64_t start;
	uint64_t resume;
	uint64_t fetched;
	uint64_t adopted;
	uint64_t released;  /* from translated code, and */
	uint64_t left;      /* from a system call that has not done anything, */
	uint64_t called;    /* which ends here */
	uint64_t withdrawn; /* from such a call, to make it again: thread.regs are before it */
	uint64_t routines[ROUTINE_COUNT];
};

/* What the program is run for; the same for the whole life of a process. */
enum mode { MODE_RUN, MODE_RECORD, MODE_REPLAY };

struct segment_layout {
	uint64_t base;
	uint64_t size; /* the whole reservation */
	uint64_t file; /* offset of this segment's memory in the memfd */
	uint64_t code; /* offset from base */
	uint64_t code_size;
	uint64_t directory; /* offset from base */
	uint64_t directory_size;
	uint64_t records; /* offset from base */
	uint64_t records_size;
	uint64_t logs; /* offset from base: those of all thread numbers while recording, see log_offset; the
	                  feed in replay */
	uint64_t logs_size;
};

/* Where one placed translation lies; sorted by `code`. */
struct code_range {
	uint64_t pc;   /* what its records are relative to */
	uint32_t code; /* offset from the start of the segment's code */
	uint32_t size;
	uint32_t record; /* index of its first record */
	uint32_t record_count;
};

struct placed_record {
	uint16_t offset;
	int16_t executed; /* see struct record */
	uint32_t state;
	int32_t pc;
};

struct range {
	uint64_t start, end;
};

/* A system call that is told before it is made: OP_SAVE. */
struct save_call {
	uint32_t number;
	uint32_t has_argument;
	uint64_t argument; /* the first one */
};
#define MAX_SAVE_CALLS 16

/*
 * At LAYOUT_INFO of every segment. The supervisor writes, the target reads;
 * the file offset of everything that changes is the same for the whole life of
 * a space, so readers need no lock: counts are published after contents.
 */
struct info {
	uint64_t table_base[BRANCH_TABLES]; /* addresses of the branch tables / 8: FIXUP_TABLE_BASE */
	uint64_t directory_count;
	uint64_t first_distance; /* the GS base of the first thread; entry.S */
	/* segment 0 only from here */
	uint32_t segment_count;
	uint32_t thread_count; /* how many THREADS there is room for */
	struct segment_layout segments[MAX_SEGMENTS];
	uint32_t range_count;            /* MAX_RANGES + 1: too many to tell */
	struct range ranges[MAX_RANGES]; /* where translated program code came from, coarsely */
	uint32_t children;               /* follow execve */
	uint32_t debugged;               /* somebody debugs it while it is recorded, see debugged.c */
	uint64_t passed_signals;         /* and does not want to hear of these */
	uint32_t announce_exit;          /* wait for the supervisor before exit_group */
	uint32_t count;                  /* instructions are counted */
	uint32_t mode;                   /* enum mode */
	uint32_t cpu_level; /* CPUID tells of no more than x86-64-v2 (2), v3 (3); 0: all that we offer */
	uint64_t vectors;   /* which registers the program has: VECTORS_* */
	uint32_t standard_at[INFO_COMPONENTS]; /* where XSAVE puts masks, zmm0..15, zmm16..31 */
	uint32_t dictionary_bits;
	uint32_t bound;       /* of stretches that a keyframe may lean on */
	uint32_t adopted;     /* threads of a process that was running already, see struct adoption; or 0 */
	uint32_t filtered;    /* it has seccomp filters that forbid calls of ours, */
	uint32_t sleeps;      /* but not futex, */
	uint32_t assists;     /* and the supervisor can put such filters to sleep: OP_UNFILTER */
	uint64_t interval;    /* instructions from one keyframe to the next */
	uint32_t puts_off;    /* later where a keyframe is costly, see target/log.c */
	uint32_t low_memory;  /* see struct translate_request */
	uint32_t pages;       /* whole pages are logged, see target/pages.c */
	uint32_t code_pieces; /* of the code history, when one last replaced others */
	uint32_t save_call_count;
	struct save_call save_calls[MAX_SAVE_CALLS];
	uint64_t heap;  /* how much of one gets its shadow at once, */
	uint64_t chunk; /* and of memory anywhere */
	uint32_t window_count;
	struct range windows[MAX_WINDOWS]; /* where the program has, or may come to have, memory */
	uint32_t windowed;                 /* numbers below it have windows, others a sparse shadow: */
	uint32_t home_count;
	struct range homes[MAX_SEGMENTS]; /* of which there is this from the start, */
	uint64_t home_step; /* and at all multiples of this from it the homes of others may be */
	/* While recording thread n has its shadow, and its own memory, at this distance; else n *
	 * THREAD_STRIDE. */
	uint64_t distances[MAX_RECORDED_THREADS];
	/* start-up only */
	int32_t memfd;
	int32_t pid;
	uint32_t space;
	uint64_t program_gs;
	struct registers registers;
	uint64_t miss; /* in every segment: what a branch table without code has everywhere */
	/* Addresses of pages that are watched, or were: whoever finds the supervisor dead gives them their
	 * permission back. */
	uint32_t watched_count;
	uint64_t watched[MAX_WATCHED];
};
_Static_assert(sizeof(struct info) <= LAYOUT_TABLE - LAYOUT_INFO, "the place of struct info");

/* What a program wants of a signal, as the kernel takes it. */
struct signal_action {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};

/* Why loads are compared from some position on, see target/pages.c. */
enum leaving_pages {
	LEAVES_NOT,
	LEAVES_FOR_START, /* there is memory, at the start, that others change, or too much to note */
	LEAVES_FOR_FILE,  /* a mapped file is shorter than its mapping */
	LEAVES_FOR_CODE,  /* it writes to pages with code */
	LEAVES_FOR_INSTRUCTION,
	LEAVES_FOR_MAPPINGS, /* there are too many */
	LEAVES_FOR_SIZE,     /* it touches so many pages for a moment that lines are better */
	LEAVES_FOR_SIGNAL,
	LEAVES_FOR_STACK,          /* it is at its limit */
	LEAVES_FOR_CALL = 0x10000, /* and its number */
};

/* A part of the program's memory with one protection, while whole pages are logged; see target/pages.c. */
struct page_range {
	uint64_t start, end;
	uint32_t protection; /* as the program has it */
	uint8_t fresh;       /* all of it is open; else what was opened since the keyframe is */
	uint8_t stale;       /* replay may have anything there */
	uint8_t file;        /* of a file */
	uint8_t shared;      /* which can be read only */
	uint8_t copied;      /* of one that may change: what is opened becomes the process's own */
	uint8_t whole;       /* never closed, logged at each keyframe: the vdso */
};

#define PROCESS_WINDOWS 3072
#define SPARSE_TOGETHER 8
#define MAX_FENCES      24
#define MAX_VEILS       64

/* Memory of the program that is too large for a shadow as a whole: there is none, and no access, but where it
 * was touched, see target/veil.c. */
struct veil {
	uint64_t start, end;
	uint32_t protection; /* that the program has given it */
	uint32_t lifted;     /* all of it can be accessed; who faulted before that tries again */
};

/* As the kernel takes it. */
struct limit_pair {
	uint64_t soft, hard;
};

/* What our memory counts for: all of it for the first, shadows for both. */
enum limited { LIMIT_SPACE, LIMIT_DATA, LIMITS };

struct limit {
	struct limit_pair own, kernels; /* as the program knows it, and what it is */
	uint64_t reserved;              /* bytes of ours that count */
};

/*
 * The start of the process's own record, at LAYOUT_PROCESS of segment 0. The stub writes; the supervisor
 * reads it in the process's memory when all threads have left, to take everything of ours out again.
 */
struct process_memory {
	struct signal_action actions[65];
	uint32_t threads_ready; /* numbers below it have memory; more is made when it is needed */
	/* While recording: where the program may have memory, each with its shadow for every thread. */
	uint32_t window_count;
	struct range windows[PROCESS_WINDOWS];
	/* While recording: numbers, taken for ever, whose shadow has no room where the program has its
	 * memory. */
	uint64_t unfit_bits[MAX_RECORDED_THREADS / 64];
	/* Of these, those which a thread had then: its own memory is still there. */
	uint64_t expelled_bits[MAX_RECORDED_THREADS / 64];
	/* Where sparse shadows are, all of them taken together; what is between is not there for all. */
	uint32_t sparse_count;
	struct range sparse[SPARSE_TOGETHER];
	/* What the program gets no memory at, see fence_off in target/shadow.c. */
	uint32_t fence_count;
	struct range fences[MAX_FENCES];
	uint32_t veil_count;
	struct veil veils[MAX_VEILS];
	struct limit limits[LIMITS]; /* see limits.c */
	/* While whole pages are logged: what the program has mapped. The sequence is odd while that changes.
	 */
	uint32_t pages;
	uint32_t page_sequence;
	uint32_t page_range_count;
	uint64_t arguments; /* where the strings of the program's arguments and environment begin; 0: unknown
	                     */
	uint32_t pages_again; /* times that they may be logged again, */
	uint64_t pages_from;  /* from this position on */
	uint64_t page_ranges; /* where struct page_range are, sorted */
};

/*
 * The shadow of a thread that has no windows: the homes, and then what the thread has touched, in pieces that
 * are made by the fault of the first access. In the thread's own memory, and kept for the next one with its
 * number; only the thread itself adds to it.
 */
#define SPARSE_RANGES 120

struct sparse_shadow {
	uint32_t count;
	struct range ranges[SPARSE_RANGES]; /* of the program's memory, low memory folded */
};
_Static_assert(THREAD_ACTIONS + sizeof(((struct process_memory *)0)->actions) <= THREAD_SPARSE &&
                       THREAD_SPARSE + sizeof(struct sparse_shadow) <= THREAD_STACK_BOTTOM,
        "the place of a sparse shadow");

/* ---- the channel ---- */

enum operation {
	OP_TRANSLATE,   /* pc, INDIRECT() or 0, TRANSLATE_* -> code address, or a status below */
	OP_REMAPPED,    /* start, end, protection kept?: mappings there were made, changed or removed */
	OP_WRITE_FAULT, /* address: a write to a watched page? -> STATUS_OK: make [reply1, reply2) writable
	                   again */
	OP_UNWATCH, /* start, end: give up watching there -> ranges one at a time as above, STATUS_NONE at the
	               end */
	OP_EXEC,    /* about to execve, follow it? */
	OP_EXEC_FAILED,
	OP_FORKED,     /* pid, number of its mailbox: a child process was made */
	OP_KNOW_ME,    /* fill in mailbox.pid */
	OP_ADOPT,      /* mask: the other threads of a process that was running already have their numbers */
	OP_ADOPTED,    /* mask: one of them is ready; its filters are awake from here on */
	OP_UNFILTER,   /* put the seccomp filters of the thread to sleep, */
	OP_FILTER,     /* and wake them */
	OP_EXIT,       /* status: the process is about to exit_group */
	OP_MOVED,      /* the process has done so: others may be served again */
	OP_NEW_SPACE,  /* memfd, for a recording of its own?, forked from: the process moves to a copy of its
	                  code cache -> its number, is it recorded? */
	OP_LOW_MEMORY, /* the program has memory, or a stack, whose shadow is folded: translate anew for that
	                */
	OP_PAGES,      /* whole pages are logged again: translate anew for that */
	OP_COMPARE, /* enum leaving_pages, position: loads are to be compared from now on: translate anew for
	               that */
	OP_LOG,     /* thread number, LOG_*: take what is in its log */
	OP_CLEAR,   /* start, end: make memory there zeros, for a process that may not make system calls */
	OP_TIME,    /* -> CLOCK_REALTIME and CLOCK_MONOTONIC in ns, for the same */
	OP_SAVE, /* SAVE_PROGRAM, address of a text; or number of a system call with its first argument in the
	            high half, second and third argument */
	OP_HELD, /* HELD_*, signal: it stands between two instructions -> HELD_GO, HELD_STEP */
	OP_FEED, /* replay: give more events */
	OP_STEP, /* pc, count -> code that executes just so many instructions of a block; how many */
	OP_DIVERGED, /* replay: what the thread does is not what was recorded */
};

/* The first argument of OP_SAVE, if it is not the number of a system call. */
#define SAVE_PROGRAM UINT64_MAX

/* The first argument of OP_HELD: why it stands. */
#define HELD_WANTED  0 /* all are to */
#define HELD_AT_STOP 1 /* at an instruction before which it is to stop */
#define HELD_STEPPED 2 /* one instruction was executed */
#define HELD_SIGNAL  3 /* a signal has been delivered */

/* And what it is answered. */
#define HELD_GO   0
#define HELD_STEP 1 /* execute one instruction, or have one signal delivered */

/* The second argument of OP_LOG. */
#define LOG_FULL     0
#define LOG_KEYFRAME 1 /* what comes next begins with a keyframe */
#define LOG_ENDED    2 /* the thread, or the whole process, will log no more */

enum status {
	STATUS_OK,
	STATUS_NONE,    /* nothing to do */
	STATUS_FAULT,   /* pc cannot be fetched */
	STATUS_PROTECT, /* take write permission from [reply1, reply2), then ask again */
	STATUS_SPLIT,   /* this process needs a cache of its own first: OP_NEW_SPACE, then ask again */
	STATUS_AGAIN,   /* the answer is no longer true: ask again */
	STATUS_RELEASE, /* the supervisor gives this thread up: run natively */
	STATUS_HOLD,    /* it is to stop before this instruction: OP_HELD, then ask again */
	STATUS_LATER,   /* the supervisor's own: the answer comes later */
};

/* The second argument of OP_TRANSLATE: by a branch that found nothing in that table of that segment, or
 * nobody knows where. */
#define INDIRECT(segment, table)   (1 | (uint64_t)(segment) << 1 | (uint64_t)(table) << 8)
#define INDIRECT_ANYWHERE          INDIRECT(0x7f, 0)
#define INDIRECT_SEGMENT(indirect) ((indirect) >> 1 & 0x7f)
#define INDIRECT_TABLE(indirect)   ((indirect) >> 8 & (BRANCH_TABLES - 1))

/* The third argument of OP_TRANSLATE. */
#define TRANSLATE_PROTECTED 1 /* the page is protected, as STATUS_PROTECT asked */
#define TRANSLATE_UNWATCHED 2 /* a write to a watched page might not come to us */

#define MAILBOX_FREE    0
#define MAILBOX_IDLE    1
#define MAILBOX_REQUEST 2
#define MAILBOX_REPLY   3
#define MAILBOX_NO_LOG  UINT32_MAX

struct mailbox {
	uint32_t state; /* futex */
	uint32_t operation;
	int32_t pid; /* whose memory it is, by the supervisor's count; 0: not known yet. A vfork child's
	                parent. */
	int32_t tid; /* by the process's own count */
	uint32_t space;
	uint32_t quiet; /* the process may not make system calls: poll for its requests */
	uint64_t arguments[3];
	uint64_t status;
	uint64_t reply[2];
	uint64_t refused;  /* instructions refused so far, for --stats */
	int32_t parent;    /* of a process that was forked, as in pid, */
	int32_t forked;    /* and the process by its parent's count: the kernel writes it */
	uint32_t sleeping; /* the thread waits in the kernel for the reply */
	uint32_t absent; /* it waits for its vfork child and cannot be stopped; it looks at `evacuating` after
	                  */
	uint64_t instructions; /* executed by the thread as it last said */
	uint32_t log;          /* id of the thread in the recording, or MAILBOX_NO_LOG */
	uint32_t padding[3];
};

/*
 * A thread of a process that was running already when we came: as it was when it was stopped. The first is
 * the one that start() is called in; number n is at LOG_DATA of log n + 1 until OP_ADOPT.
 */
struct adoption {
	uint64_t distance; /* the stub says where it is to be, or 0: it goes on natively */
	uint64_t mask;
	uint64_t program_gs;
	struct registers registers;
};

/*
 * A thread's log while recording, shared with the supervisor, who takes what is in
 * it when it is full, and when the thread or the process has ended, however that was.
 */
#define LOG_STRIDE        0x80000
#define LOG_STRIDE_SPARSE 0x10000 /* of numbers from WINDOWED_THREADS on */
#define LOG_XSAVE                                                                                            \
	0x6000          /* the vector registers, as of the last keyframe, or where the thread stands still   \
	                 */
#define LOG_DATA 0x8000 /* offset of the events; before them this struct and the encoder's state */

enum log_wanted {
	LOG_NOT_WANTED,
	LOG_WANTED,
	LOG_WANTED_ALONE, /* it is to lean on nothing */
};

struct log {
	uint64_t used;     /* bytes of events; stored after the events are */
	uint32_t id;       /* of the thread in the recording: never used again, as numbers and tids are */
	uint32_t parent;   /* id of the thread that made it */
	int32_t tid;       /* by the process's own count; 0: nobody's */
	uint32_t wanted;   /* the supervisor wants a keyframe: enum log_wanted */
	uint64_t position; /* how far the thread has come at least: of the last event, or system call */
	uint64_t keyframe; /* position of the last one; stored after `due` is */
	uint64_t due;      /* position at which it is time for the next one */
	/* The supervisor does not look how far the thread is: whatever is logged next tells it
	 * (channel.returned). */
	uint32_t unwatched;
};

/* In place of the log of number 0, which no thread has. */
struct logs_head {
	uint32_t highest; /* number that has logged so far: nobody looks at the others, or they became memory
	                   */
};

/* Where the log of a number is among all. */
static inline uint64_t log_offset(uint64_t number)
{
	return number < WINDOWED_THREADS ? number * LOG_STRIDE
	                                 : WINDOWED_THREADS * (uint64_t)LOG_STRIDE +
	                                           (number - WINDOWED_THREADS) * LOG_STRIDE_SPARSE;
}

/* How many logs there are in so many bytes. */
static inline uint32_t log_numbers(uint64_t bytes)
{
	uint64_t windowed = WINDOWED_THREADS * (uint64_t)LOG_STRIDE;

	return (uint32_t)(bytes <= windowed ? bytes / LOG_STRIDE
	                                    : WINDOWED_THREADS + (bytes - windowed) / LOG_STRIDE_SPARSE);
}

/* Numbers below it, of those that there are, may have a log in use. The program can write there. */
static inline uint32_t logs_end(const void *logs, uint32_t numbers)
{
	uint32_t highest = __atomic_load_n(&((const struct logs_head *)logs)->highest, __ATOMIC_ACQUIRE);

	return highest < numbers ? highest + 1 : numbers;
}

/* Bytes of events that it has room for. */
static inline uint64_t log_room(uint64_t number)
{
	return (number < WINDOWED_THREADS ? LOG_STRIDE : LOG_STRIDE_SPARSE) - LOG_DATA;
}

#define CHANNEL_HEAD_BYTES 0x1000
#define MAILBOX_COUNT      ((LAYOUT_CHANNEL_BYTES - CHANNEL_HEAD_BYTES) / sizeof(struct mailbox))
#define PENDING_WORDS      ((LAYOUT_CHANNEL_BYTES / sizeof(struct mailbox) + 63) / 64)

struct channel {
	uint32_t owner[10];       /* the supervisor's robust mutex: owner[0] tells its death */
	uint32_t doorbell;        /* futex: counts requests */
	uint32_t sleeping;        /* the supervisor waits on the doorbell */
	uint32_t quiet_processes; /* somebody cannot ring: poll */
	uint32_t mailbox_high;    /* no mailbox from here on was ever claimed */
	uint32_t refused;         /* instructions not offered that were executed all the same */
	uint32_t released;        /* threads that went on natively */
	uint64_t instructions;    /* executed by threads that have ended */
	uint32_t evacuating;      /* the code cache is about to change: nobody may come back to it */
	uint32_t clears;          /* the supervisor can serve OP_CLEAR */
	uint32_t detaining; /* DETAIN_*; futex: threads that leave wait until all have, see record/detach.h */
	uint32_t threads_unrecorded;     /* went on natively, or began so, for want of room for a shadow */
	uint64_t pending[PENDING_WORDS]; /* one bit for each mailbox with a request */
	uint32_t returned;               /* counts threads that were unwatched and go on, see struct log */
	uint32_t expelling; /* threads are to be taken out of translated code once; 0: they were */
	uint8_t padding[CHANNEL_HEAD_BYTES - 24 * 4 - PENDING_WORDS * 8];
	struct mailbox mailboxes[];
};

_Static_assert(__builtin_offsetof(struct channel, detaining) == CHANNEL_DETAINING, "entry.S");

/* The whole pages in which the shadow of a window lies. */
static inline struct range shadow_range(struct range window, uint64_t distance)
{
	return (struct range){
	        (window.start + distance) & ~0xffful, (window.end + distance + 0xfff) & ~0xffful};
}

/* The GS base of thread `number`, and how far its memory is from that of thread 0. */
static inline uint64_t thread_distance(const volatile struct info *info, uint64_t number)
{
	return info->mode == MODE_RECORD ? info->distances[number] : number * THREAD_STRIDE;
}

/* The number of the thread whose GS base this is, or 0. */
static inline uint64_t thread_of_distance(const volatile struct info *info, uint64_t distance)
{
	if (info->mode != MODE_RECORD)
		return distance % THREAD_STRIDE || distance / THREAD_STRIDE >= info->thread_count
		               ? 0
		               : distance / THREAD_STRIDE;
	for (uint64_t i = 1; i < info->thread_count; i++) {
		if (info->distances[i] == distance)
			return i;
	}
	return 0;
}

#define OWNER_DIED   0x40000000u /* FUTEX_OWNER_DIED */
#define OWNER_NUMBER 0x3fffffffu /* FUTEX_TID_MASK */

#endif
#endif
