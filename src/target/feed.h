/*
 * The feed: how a recording reaches the thread that is replayed. It lies in segment 0's
 * `logs`, shared by the stub and the replayer, who are built together; it is no stable
 * format. The replayer decodes events and writes them as flat records, a buffer at a
 * time; the stub applies one after the other, each at its position.
 *
 * Positions. The counters count up to 0, and feed.stop is the position that 0 stands for; so
 * the thread is at feed.stop plus the sum of SLOT_POSITIONS and SLOT_POSITION. What is left until
 * the stop is shared out among the counters, and when one has used up its share, what is left then is
 * shared out again. Some records are applied before the instruction at their position, so that is
 * where the code stops. Others are what an instruction gives that the stub performs: they are
 * expected when it is reached, and the code stops behind it if it is not.
 *
 * In replay the slots page of thread 1 is the same memory in all segments, and part of
 * the memfd: the replayer finds the thread's slots and registers there.
 */
#ifndef BUGNET_TARGET_FEED_H
#define BUGNET_TARGET_FEED_H

#include "recording/event.h"
#include "recording/vectors.h"
#include "target/feed_counts.h"
#include "target/layout.h"

#define FEED_XSAVE_BYTES VECTORS_BYTES

enum feed_kind {
	FEED_MORE,    /* the buffer ends: ask for the next one */
	FEED_STATE,   /* the thread goes on from here, at the record's position, whatever it did before */
	FEED_CODE,    /* other code is in force from here on */
	FEED_REPORT,  /* let the replayer look at the thread */
	FEED_PATCH,   /* memory */
	FEED_REPEAT,  /* so many iterations of the rep instruction here, without finishing it */
	FEED_SIGNAL,  /* a handler is entered */
	FEED_INSTEAD, /* in place of the instruction: sigreturn, what was executed natively */
	FEED_SYSCALL, /* from here on: expected when an instruction is reached */
	FEED_RESULT,
};

struct feed_record {
	uint64_t position;
	uint16_t kind;   /* enum feed_kind */
	uint16_t detail; /* patch: mask of words; others: FEED_HAS_* */
	uint32_t size;   /* of all of it, a multiple of 8 */
};

#define FEED_HAS_XSAVE  1  /* the vector state follows; else it stays as it is */
#define FEED_HAS_EMPTY  2  /* state: memory is emptied */
#define FEED_HAS_CALL   4  /* system call: the replayer wants to see it before it has its effect */
#define FEED_HAS_BASES  16 /* state, instead: of FS and GS */
#define FEED_HAS_FORGET 8  /* system call: empties memory, see forget.h */

struct feed_state { /* state, signal, instead */
	struct feed_record head;
	struct registers registers;
	uint64_t fs_base, gs_base;
	uint8_t xsave[]; /* FEED_XSAVE_BYTES */
};

struct feed_patch {
	struct feed_record head;
	uint64_t address;
	uint64_t words[]; /* one for each bit of the mask */
};

struct feed_number { /* code, report, repeat */
	struct feed_record head;
	uint64_t number;
};

struct feed_syscall {
	struct feed_record head;
	struct registers registers; /* at the call */
	uint64_t result;
	struct event_changes changes;
};

struct feed_result {
	struct feed_record head;
	struct event_changes changes;
};

/*
 * A trace of what the thread does to memory, for a replay that wants one: the filter of
 * runtime.h chooses, and the replayer takes the records when there are many, and before the
 * thread is looked at or another one comes. An access is told by the 8-byte words it is to,
 * with a bit for each byte of the word; what it leaves there is filled in when it has been made.
 *
 * Loads of the same word and value by the same instruction, with nothing in between that
 * orders threads, are one record.
 */
enum trace_kind {
	TRACE_ACCESS,
	TRACE_OPERATION, /* a locked instruction, before its TRACE_ACCESS, if it has one */
	TRACE_CALL, /* a system call; address: its number; before: its result; after: the first argument */
	TRACE_ARGUMENTS, /* of the same; address, before, after: the next three arguments */
	/* The instruction at pc is about to be executed, which is probed for that; address: the stack
	 * pointer; before, after: the first two arguments of a function that begins there. */
	TRACE_EXECUTION,
	TRACE_PATCH, /* what the thread is about to load there is not what it last knew */
};

struct trace_record {
	uint64_t position;
	uint64_t last; /* position of the last such load */
	uint64_t pc;
	uint64_t address;       /* of the word */
	uint64_t before, after; /* the word */
	uint64_t top, result;   /* execution: the word on top of the stack, or 0: not known; rax */
	uint8_t kind;           /* enum trace_kind */
	uint8_t reads, writes;  /* bytes of the word */
	uint8_t locked;
	uint32_t number; /* for whoever sorts them */
	uint64_t known;  /* bytes of `before` that the thread knew */
};

#define TRACE_RECORDS 32768

#define FEED_TRACES_ACCESSES 1
#define FEED_TRACES_PATCHES  2 /* and patches that the filter lets through */
#define TRACE_RECENT         4096

/* The first argument of OP_FEED; the second is the number of a code or report record, or a call's result. */
#define FEED_ASK_MORE     0 /* -> offset of the next record */
#define FEED_ASK_CODE     1
#define FEED_ASK_REPORT   2
#define FEED_ASK_CALL     3 /* a system call is about to have its effect */
#define FEED_ASK_TRACE    4 /* take the trace */
/* Of a diversion: */
#define FEED_ASK_DIVERTED 5 /* it has stopped: feed.diverted -> where to park, + 1 */
#define FEED_ASK_BREAK    6 /* it is about to execute the instruction at this pc -> does it stop there? */
#define FEED_ASK_LINE     7 /* of memory, at this address: into feed.line */
#define FEED_ASK_SYSCALL  8 /* -> can it be made? and its result */

/*
 * A diversion (divert.c): the thread goes on without the log. Why it stopped:
 */
enum feed_diverted {
	DIVERTED_BREAK,
	DIVERTED_UNKNOWN, /* it loads memory that is not known; the detail is the address of some in the first
	                     such line */
	DIVERTED_CALL,    /* a system call that cannot be made */
	DIVERTED_LONG,    /* it has executed as many instructions as it may */
};

/* The first argument of OP_DIVERGED. */
enum feed_divergence {
	DIVERGED_PASSED,    /* the position of a record went by without what it is for */
	DIVERGED_UNLOGGED,  /* an instruction that needs a record, and the next one is another's */
	DIVERGED_SYSCALL,   /* another system call */
	DIVERGED_REGISTERS, /* the same system call with other registers */
	DIVERGED_NO_CODE,   /* there is no code at pc */
	DIVERGED_FAULT,     /* a fault that was not recorded; the second argument is the signal */
};

/*
 * Code that executes `length` instructions from pc on: as many as were wanted, or, with
 * `wanted` 0, all of a block, which serves whoever wants more. Found by a hash of pc and wanted.
 */
struct feed_step {
	uint64_t pc, code;
	uint32_t wanted, length;
	uint32_t generation; /* of the code cache, when it was found; never 0 */
	uint32_t padding;
};
#define FEED_STEPS 16384

/*
 * A process can be parked where the replayer looks at it: it stays as it is, with its memory, and
 * goes on when it is told to, or makes a copy of itself that does. All processes of a replay
 * share the slots and the feed: the replayer puts back what was there, see replay/explorer.c.
 */
#define FEED_PARKED 64
enum park_command { PARK_STAY, PARK_FORK };
struct feed_parked {
	uint32_t command; /* futex; enum park_command */
	uint32_t waiting; /* futex: it is parked there, and uses nothing that is shared */
	int32_t child;    /* futex: of the last PARK_FORK, or -errno */
	uint32_t padding;
};

/*
 * Conditions of probed instructions, by pc: an execution is told of if one of them is true, or may be
 * (conditions.c). Several of one pc stand together. Those that do not fit are left out.
 */
#define FEED_CONDITIONS      1024
#define FEED_CONDITION_BYTES (1u << 17)
struct feed_condition {
	uint64_t pc;
	uint32_t start, size; /* in condition_code */
};

#define FEED_BUFFER_BYTES (1u << 19)
#define FEED_TOUCHED      (1u << 20)

#define FEED_SHARED (1ul << 32) /* instructions at most that are shared out at once */
#define FEED_WEIGHT (1ul << 20) /* of one use of the counters at most */

struct feed {
	/* the stub's */
	uint64_t next; /* offset of the next record from the feed's start */
	uint64_t stop;
	int64_t shares[REPLAY_POSITION_SLOTS];   /* what the counters were given */
	uint64_t weights[REPLAY_POSITION_SLOTS]; /* and how much of that they used lately */
	struct feed_counts counts;
	uint64_t repeat_rcx, repeat_pc; /* while a rep instruction is repeated in part */
	uint32_t repeating;
	uint32_t stepping; /* the thread is in the code of a step */
	/* the replayer's */
	uint32_t parking;    /* there may be parked processes */
	int32_t replayer;    /* whose children they are */
	uint32_t generation; /* of the code cache: grows when code is discarded; never 0 */
	/* the trace: filled by the stub, taken by the replayer */
	uint32_t tracing; /* FEED_TRACES_* */
	uint32_t knowing; /* accesses are noted, see KNOWN_TABLE */
	uint32_t crowded; /* the stub's: not all of them could be, in this process or another one */
	uint32_t trace_count;
	uint32_t trace_finished; /* so many have what the access left */
	uint32_t trace_epoch;    /* counts what orders threads */
	uint8_t trace_filter[TRACE_FILTER_BYTES];
	uint8_t trace_words[TRACE_WORDS + TRACE_WORDS_MORE];
	struct {
		uint32_t epoch, record;
	} trace_recent[TRACE_RECENT]; /* loads, by a hash of word and pc */
	struct trace_record trace[TRACE_RECORDS];
	struct feed_parked parked[FEED_PARKED];
	uint32_t diverting;
	uint32_t diverted; /* enum feed_diverted */
	uint64_t diverted_detail;
	uint64_t diverted_from; /* a breakpoint that it begins at, or 0 */
	uint64_t line_known;    /* bytes of `line` */
	uint64_t line_blank;    /* those of which nothing is known, and in which no file had anything */
	uint8_t line[EVENT_LINE_BYTES];
	uint32_t condition_count;
	struct feed_condition conditions[FEED_CONDITIONS]; /* by pc */
	uint8_t condition_code[FEED_CONDITION_BYTES];
	/* pages that were touched since the replayer last looked, for one who wants to know */
	uint32_t surveying;
	uint32_t touched_count;
	uint64_t touched[FEED_TOUCHED];
	/* what the stub shows of the thread besides slots and registers, see FEED_REPORT, OP_DIVERGED */
	uint64_t position;
	uint64_t fs_base;
	uint8_t shown[FEED_XSAVE_BYTES] __attribute__((aligned(64)));
	/* where vector state is aligned before it is loaded */
	uint8_t loaded[FEED_XSAVE_BYTES] __attribute__((aligned(64)));
	struct feed_step steps[FEED_STEPS];
	uint8_t buffers[2][FEED_BUFFER_BYTES] __attribute__((aligned(64)));
};

#define FEED_BYTES ((sizeof(struct feed) + 0xfff) & ~0xffful)

#endif
