/*
 * What a thread's log is made of.
 *
 * A log is a sequence of stretches. A stretch is a sequence of events that begins with a
 * keyframe; it can be decoded with nothing before it. Every event has a position: how
 * many instructions the thread had executed since the recording began. An event is
 * applied before the instruction at its position; several may share one.
 *
 * encode.h turns events into bytes, decode.h bytes into events; docs/format.md describes
 * the bytes. General registers are in the CPU's numbering: rax, rcx, rdx, rbx, rsp, rbp,
 * rsi, rdi, r8 to r15. Pointers lead into the encoder's input or the decoder's input;
 * nothing is copied.
 *
 * Freestanding.
 */
#ifndef BUGNET_RECORDING_EVENT_H
#define BUGNET_RECORDING_EVENT_H

#include <stdbool.h>
#include <stdint.h>

enum event_kind {
	EVENT_KEYFRAME = 1,
	EVENT_RESULT,
	EVENT_SYSCALL,
	EVENT_SIGNAL,
	EVENT_SIGRETURN,
	EVENT_ORDER,
	EVENT_CODE,
	EVENT_MAP,
	EVENT_END,
	EVENT_OUTPUT,
	EVENT_PATCH = 0x80, /* its head byte has no room for a kind, only for the top bit */
};

#define EVENT_LINE_BYTES     64
#define EVENT_LINE_WORDS     8
#define EVENT_XSAVE_MAXIMUM  4096 /* bytes of an XSAVE image */
#define EVENT_OUTPUT_MAXIMUM 4096 /* bytes of one event; longer output takes several */
#define EVENT_FILE_NONE      UINT32_MAX
#define EVENT_SIGNAL_DETAILS 4 /* words of siginfo behind si_code: si_addr, or si_pid and si_uid, ... */

struct event_registers {
	uint64_t gpr[16];
	uint64_t pc;
	uint64_t flags;
};

/* What a program can see of the flags at a system call: status flags and DF. The others are the system's. */
#define EVENT_CALL_FLAGS 0xcd5u

/* Some registers, where the others are as they were. */
struct event_changes {
	uint16_t mask;    /* bit n: gpr[n] changed */
	bool has_flags;   /* flags changed */
	uint64_t gpr[16]; /* meaningful where the mask says so */
	uint64_t flags;   /* meaningful with has_flags */
};

/* The CPU's extended state as XSAVE wrote it; size 0: none. */
struct event_xsave {
	const uint8_t *bytes;
	uint32_t size;
};

struct event_keyframe {
	struct event_registers registers;
	uint64_t fs_base;
	uint64_t gs_base;   /* the program's, not ours */
	uint64_t realtime;  /* ns */
	uint64_t monotonic; /* ns */
	/* How many stretches back replay must begin for memory to be known; 0: the shadow was emptied here.
	 */
	uint32_t leans_on;
	struct event_xsave xsave;
};

/* Memory the thread is about to load that is not as it last saw it. */
struct event_patch {
	uint64_t address;                 /* of a line: a multiple of EVENT_LINE_BYTES */
	uint8_t mask;                     /* bit n: words[n] changed; never 0 */
	uint64_t words[EVENT_LINE_WORDS]; /* meaningful where the mask says so */
};

/* What an instruction gave that gives something else next time. */
struct event_result {
	struct event_changes changes;
};

/* What the kernel wrote comes as patches. */
struct event_syscall {
	struct event_registers registers; /* at the call: the number in rax, arguments, the pc behind it */
	int64_t result;
	bool forgets;                 /* what the thread knew of the memory that it maps or unmaps */
	struct event_changes changes; /* beyond rax, rcx and r11; mask 0 and no flags: none */
};

static inline uint64_t event_call_number(const struct event_syscall *call)
{
	return call->registers.gpr[0];
}

struct event_signal {
	uint32_t number;
	int32_t code; /* si_code */
	uint64_t details[EVENT_SIGNAL_DETAILS];
	bool fault;          /* the instruction at this position raised it; else it came from outside */
	uint64_t iterations; /* an interrupted rep instruction: how many were done */
	struct event_registers registers; /* on entry to the handler */
	struct event_xsave xsave;
};

/* The state that rt_sigreturn gave, or an instruction that was executed natively. */
struct event_sigreturn {
	bool call; /* it was rt_sigreturn */
	struct event_registers registers;
	bool has_bases; /* those of FS and GS changed, too */
	uint64_t fs_base, gs_base;
	struct event_xsave xsave;
};

/*
 * A thread's clock gets ahead of what a reader would expect: it grows by one with each operation
 * that orders threads, and an event tells where it grew by more. See docs/format.md.
 */
enum event_order_kind {
	ORDER_OPERATION, /* the stamp is that of the next operation */
	ORDER_RETURN,    /* of the return of the system call at the position */
	ORDER_CLOCK,     /* of the operation that came last; told behind keyframes */
};

struct event_order {
	enum event_order_kind kind;
	uint64_t stamp;
	bool loose;     /* it was performed at some time after `since` */
	uint64_t since; /* below the stamp */
};

/*
 * Code was replaced. From here on the thread runs what the first so many pieces of the code
 * history say, and of the others what these say nothing about.
 */
struct event_code {
	uint32_t pieces;
};

enum event_map_kind { MAP_KIND_MAP, MAP_KIND_UNMAP, MAP_KIND_PROTECT };

struct event_map {
	enum event_map_kind kind;
	uint64_t start;
	uint64_t length;
	uint32_t protection; /* PROT_* */
	uint32_t flags;      /* MAP_* */
	uint32_t file;       /* its number in the code log, or EVENT_FILE_NONE */
	uint64_t offset;
};

enum event_end_kind { END_EXIT, END_KILLED, END_THREAD_EXIT, END_EXEC, END_RELEASED };

struct event_end {
	enum event_end_kind kind;
	int32_t status;                         /* exit status, or the signal of END_KILLED */
	int32_t code;                           /* END_KILLED: si_code of the signal, */
	uint64_t details[EVENT_SIGNAL_DETAILS]; /* and what comes with it; else 0 */
	struct event_registers registers;       /* at the position */
};

struct event_output {
	int32_t fd;
	const uint8_t *bytes;
	uint32_t size; /* at most EVENT_OUTPUT_MAXIMUM */
};

struct event {
	enum event_kind kind;
	uint64_t position;
	union {
		struct event_keyframe keyframe;
		struct event_patch patch;
		struct event_result result;
		struct event_syscall syscall;
		struct event_signal signal;
		struct event_sigreturn sigreturn;
		struct event_order order;
		struct event_code code;
		struct event_map map;
		struct event_end end;
		struct event_output output;
	};
};

#endif
