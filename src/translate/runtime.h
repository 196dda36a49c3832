/*
 * What translated code expects of the place it runs in. This header is the
 * contract between the translator, which emits code that relies on it, and the
 * stub in the target, which provides it; neither side may change it alone.
 *
 * Registers. Between two program instructions every program register is in the
 * hardware register of the same name, flags and vector state included, and rsp
 * is the program's. Translated code never uses the program's stack for itself:
 * the red zone belongs to the program. What it must put aside goes to a slot.
 *
 * Slots. Eight bytes each, per thread and per code-cache segment, addressed as
 * gs:[rip+d]: the segment's slots page lies at a fixed place next to the code,
 * and the GS base moves the access to the running thread's copy. The program's
 * own GS base is kept in SLOT_PROGRAM_GS.
 *
 * Branch tables. BRANCH_TABLES per segment: each has BRANCH_TABLE_ENTRIES code
 * addresses, indexed by the low 16 bits of a program pc, aligned to its own size.
 * The quadword "table base" next to the routines holds its address divided by 8, so
 * that an indirect branch needs no flags and only two registers:
 *
 *     mov  gs:[SLOT_RCX], rcx
 *     mov  gs:[SLOT_R11], r11
 *     mov  gs:[SLOT_BRANCH], <where this is>
 *     mov  rcx, <target pc>            ; or pop rcx for a return
 *     mov  r11, [table base]
 *     mov  r11w, cx
 *     jmp  [r11*8]
 *
 * (rcx because loop and jrcxz compare it without flags; r11 because no calling
 * convention gives it a meaning across calls, so that nobody waits for it.)
 *
 * SLOT_BRANCH is for a target that is no address at all (not canonical): the CPU
 * then blames the branch, not the target. BRANCH_NONE says that it was none.
 *
 * Jumps and calls look into table 0, a return at pc into BRANCH_TABLE_OF(pc). All
 * table bases may be that of one table, and are as long as it is not crowded.
 *
 * An entry leads to a thunk, which compares rcx with the one pc it stands for,
 * and either restores rcx and r11 and runs the block or goes to the next thunk
 * of the chain. The last link of every chain is ROUTINE_MISS.
 */
#ifndef BUGNET_TRANSLATE_RUNTIME_H
#define BUGNET_TRANSLATE_RUNTIME_H

#ifndef __ASSEMBLER__
#include <stdint.h>
#endif

#define BRANCH_TABLE_ENTRIES 65536
#define BRANCH_TABLE_BYTES   (BRANCH_TABLE_ENTRIES * 8)
#define BRANCH_TABLES        4
/* Of a return at pc. A function's returns are near its start as a rule, and so have the table that is known
 * where it is called. */
#define BRANCH_TABLE_OF(pc)  ((pc) >> 18 & (BRANCH_TABLES - 1))

/* Slots, in units of 8 bytes from the start of the slots page. */
#define SLOT_RCX         0  /* the program's rcx while rcx holds a pc */
#define SLOT_R11         1  /* the program's r11 during an indirect branch */
#define SLOT_SCRATCH_A   2  /* a borrowed register, see RECORD_SCRATCH_A */
#define SLOT_SCRATCH_B   3  /* a second one */
#define SLOT_ADDRESS     4  /* argument of ROUTINE_EMULATE: an operand's address or value */
#define SLOT_DETAIL      5  /* argument of ROUTINE_EMULATE: see EMULATE_DETAIL */
#define SLOT_PROGRAM_GS  6  /* the GS base the program believes it has */
#define SLOT_TARGET      7  /* where the stub resumes translated code */
#define SLOT_THREAD      8  /* the stub's record of this thread */
#define SLOT_POSITION    9  /* instructions executed: a part of them, see SLOT_POSITIONS */
#define SLOT_UNDER_STACK 11 /* what an indirect call overwrote with its return address */
#define SLOT_BRANCH      10 /* which branch it was: FIXUP_PLACE */
#define BRANCH_NONE      0xffffffff
#define SLOT_FLAGS                                                                                           \
	12 /* the program's status flags while ours are in force: lahf in bits 8-15, OF in bit 0             \
	    */
#define SLOT_RAX     13 /* the program's rax while lahf or sahf has it */
#define SLOT_FS_BASE 14 /* the program's FS base; kept only while recording */
#define SLOT_LOADS   15 /* instructions that load; only where translate_request.count_loads asks for it */
#define SLOT_COUNT   16

/*
 * Registers that are kept aside over several instructions while recording, see RECORD_KEPT_A: one slot for
 * each register. When an instruction is executed again from its start, what was kept there must still be
 * where it was, although another register has taken its part meanwhile.
 */
#define SLOT_KEPT 488

/*
 * Instructions executed. Blocks count in one of these or another (translate_request.counter), because
 * one word that all of them add to would be a chain through memory. A thread's position is the sum
 * of these and of SLOT_POSITION, where the stub counts, over all segments.
 *
 * While recording they are negative: code that adds to one and finds that it is not leaves for ROUTINE_STOP,
 * so that a thread comes to the stub now and then, whatever it does. Not all code that adds looks at the
 * result.
 */
#define POSITION_SLOTS        8
#define SLOT_POSITIONS        480
/* In replay each has to be given a share of the way to the next stop: fewer are used up together rather. */
#define REPLAY_POSITION_SLOTS 4

/* Behind the slots, in the same units: room that xsave and its family may write to in replay. */
#define SLOT_SCRATCH_AREA 512

/* mov r11, [rsp-8], before the push of an indirect call: when it faults, the push would have, as a write. */
#define CALL_PEEK_BYTES 0x4c, 0x8b, 0x5c, 0x24, 0xf8

/* While recording: the shadow of an address below this bit is that of the address with the bit set. */
#define FOLD_BIT 46

/* A place in the code cache, and the branch table that is looked into there. */
#define PLACE(segment, table, offset)                                                                        \
	((uint32_t)(table) << 29 | (uint32_t)(segment) << 28 | (uint32_t)(offset))
#define PLACE_TABLE(place)   ((place) >> 29)
#define PLACE_SEGMENT(place) ((place) >> 28 & 1)
#define PLACE_OFFSET(place)  ((place)&0xfffffff)

/*
 * Routines: where translated code leaves to, by a direct jmp. All of them find
 * rcx = a program pc and the program's rcx in SLOT_RCX; all other registers and
 * the flags are the program's.
 */
#define ROUTINE_EXIT    0 /* continue at pc rcx, which was not translated yet */
#define ROUTINE_MISS    1 /* the same after a failed table probe: r11 is in SLOT_R11 */
#define ROUTINE_SYSCALL 2 /* a syscall instruction; rcx = the pc after it */
#define ROUTINE_EMULATE 3 /* an instruction the stub performs; rcx = its pc */
#define ROUTINE_ACCESS  4 /* memory and its shadow, see ACCESS_DETAIL; rcx = code to go on at */
#define ROUTINE_STOP                                                                                         \
	5 /* replay: the block at pc rcx might use up more than its counter has, see STOP_DETAIL;            \
	   * recording: a counter has come to 0, see SLOT_POSITIONS; rcx = code to go on at, with SF set */
#define ROUTINE_FILTERED                                                                                     \
	6 /* replay: ROUTINE_ACCESS, for an access that the filter lets through; unless none of its words is \
	   * wanted, see TRACE_WORDS */
#define ROUTINE_COUNT 7

/*
 * What ROUTINE_ACCESS is asked for, in SLOT_DETAIL, about `size` bytes at
 * SLOT_ADDRESS; `executed` as in struct record. rcx leads to a place in the code cache
 * whose record tells the state: that is where it goes on.
 */
#define ACCESS_READ                         1 /* make the shadow what memory is, and log what differed */
#define ACCESS_WRITE                        2 /* fault now if memory cannot be written */
#define ACCESS_COPY                         4 /* make memory what the shadow is */
#define ACCESS_DETAIL(what, size, executed) ((what) | (size) << 4 | (executed) << 16)
#define ACCESS_WHAT(detail)                 ((detail)&15)
#define ACCESS_SIZE(detail)                 ((detail) >> 4 & 0xfff)
#define ACCESS_EXECUTED(detail)             ((detail) >> 16)

/*
 * The same routine in a replay that traces: what the instruction at rcx is about to do, with
 * ACCESS_DETAIL(TRACE_*, size, executed). With TRACE_STRING the size is a STRING_ARGUMENT.
 *
 * Plain accesses come there only if the filter has a byte that is not 0 for them. It has 65536,
 * indexed by bits TRACE_SHIFT to TRACE_SHIFT + 15 of the address. Code looks there: it takes little of the
 * caches. Behind it is a second one, which tells words of 8 bytes apart: the first TRACE_WORDS_MORE of it are
 * at its end once more, so that all that an access comes to lies side by side.
 */
#define TRACE_EXECUTES     0 /* none of these: it is executed, and SLOT_ADDRESS has its pc */
#define TRACE_READ         1
#define TRACE_WRITE        2
#define TRACE_LOCKED       4 /* a locked instruction, wherever it is */
#define TRACE_STRING       8
#define TRACE_SHIFT        8
#define TRACE_FILTER_BYTES 65536
#define TRACE_WORDS        65536
#define TRACE_WORDS_MORE   8

/*
 * In a replay that is to tell which memory is known: a byte for each byte of memory, which is not 0 if it was
 * accessed or logged. Those of 4 GB of the program's addresses, a window, lie side by side in a region; a
 * table has the address of each window's region. It begins with KNOWN_ABSENT, where there is no memory: the
 * fault of the first note makes the region. When all are taken, windows share KNOWN_SHARED, whose notes tell
 * nothing.
 *
 * All this lies where Linux puts no memory by itself, and beyond the 46 bits from which JITs choose at
 * random.
 */
#define KNOWN_TABLE        0x4a5b00000000ul
#define KNOWN_WINDOW_BITS  32
#define KNOWN_WINDOWS      (1ul << (64 - 16 - KNOWN_WINDOW_BITS)) /* of what a word behind bit 32 can tell */
#define KNOWN_REGION_BYTES ((1ul << KNOWN_WINDOW_BITS) + 0x10000) /* an access may begin at the very end */
#define KNOWN_REGIONS      1024
#define KNOWN_ABSENT       0x4a5c00000000ul
#define KNOWN_SHARED       (KNOWN_ABSENT + KNOWN_REGION_BYTES)
#define KNOWN_END          (KNOWN_SHARED + (1 + KNOWN_REGIONS) * KNOWN_REGION_BYTES)

/*
 * What ROUTINE_STOP finds in SLOT_DETAIL: the number of the block's counter, and how much that
 * must have for the block to be entered.
 */
#define STOP_DETAIL(counter, longest) ((counter) | (longest) << 8)
#define STOP_COUNTER(detail)          ((detail)&0xff)
#define STOP_LONGEST(detail)          ((detail) >> 8)

/*
 * What ROUTINE_EMULATE is asked for. SLOT_DETAIL holds
 * EMULATE_DETAIL(kind, length, argument): the instruction's length gives the
 * next pc; `argument` is a register number (0-15) or an operand width.
 */
#define EMULATE_CPUID    0
#define EMULATE_XGETBV   1
#define EMULATE_POPF     2 /* argument: operand size in bytes (2 or 8) */
#define EMULATE_RDGSBASE 3 /* argument: register | width in bytes << 4 */
#define EMULATE_WRGSBASE 4 /* argument: register | width in bytes << 4 */
#define EMULATE_NATIVE   5 /* executed where it stands, with the program's GS base: what needs the real one */
#define EMULATE_INT80    6 /* the 32-bit system call gate */
#define EMULATE_FAR      7 /* far jmp, far call, far ret, iret: argument: FAR_* */
#define EMULATE_FIX_X87_PC                                                                                   \
	8 /* the instruction was executed; its x87 image at                                                  \
	     SLOT_ADDRESS may hold a code-cache address as                                                   \
	     last-instruction pointer; argument: X87_IMAGE_* */
#define EMULATE_X87_ENV16                                                                                    \
	9                   /* fnstenv (argument 0), fnsave (1) with a 16-bit operand size, to SLOT_ADDRESS  \
	                     */
#define EMULATE_VSYSCALL 10 /* a function of the vsyscall page: pc says which */
#define EMULATE_RESULT                                                                                       \
	11 /* gives something else next time: argument: RESULT_* | register << 4 | width << 8 */
#define EMULATE_STATE    12 /* executed natively; the log has the registers it left. Argument: STATE_* */
#define EMULATE_STRING   13 /* movs, stos, lods, cmps, scas: argument: STRING_* */
#define EMULATE_ATOMIC   14 /* a locked instruction on SLOT_ADDRESS: argument: ATOMIC_* */
#define EMULATE_WRFSBASE 15 /* argument: register | width in bytes << 4 */
#define EMULATE_PUSHF    16 /* argument: operand size in bytes (2 or 8); only while recording */
#define EMULATE_RESTORE                                                                                      \
	17                  /* fxrstor, xrstor from SLOT_ADDRESS; argument: RESTORE_*; only while recording  \
	                     */
#define STATE_VECTORS     1 /* vector state changes, too, */
#define STATE_STORES      2 /* and memory: anywhere, */
#define STATE_STORES_AT   4 /* or at SLOT_ADDRESS, so many bytes; else at most below the stack pointer */
#define STATE_BYTES_SHIFT 3
#define STATE_MOST_BYTES  0xff
#define EMULATE_GATHER                                                                                       \
	18 /* elements from SLOT_ADDRESS on: SLOT_SCRATCH_B has GATHER_*; only while recording */
#define EMULATE_COUNT 19

#define EMULATE_DETAIL(kind, length, argument) ((kind) | (length) << 8 | (argument) << 16)
#define EMULATE_KIND(detail)                   ((detail)&0xff)
#define EMULATE_LENGTH(detail)                 ((detail) >> 8 & 0xff)
#define EMULATE_ARGUMENT(detail)               ((detail) >> 16 & 0xffff)

/* Registers: of the result, of the indexes << 5, of the mask << 10; logarithm of the scale << 14; and: */
#define GATHER_WIDE_ELEMENTS    (1u << 16) /* of 8 bytes, else 4 */
#define GATHER_WIDE_INDEX       (1u << 17)
#define GATHER_BY_MASK_REGISTER (1u << 18)
#define GATHER_COUNT_SHIFT      19 /* so many elements */

#define RESTORE_WIDE     1 /* 64-bit pointers */
#define RESTORE_EXTENDED 2 /* xrstor */

#define RESULT_RDTSC  0
#define RESULT_RDTSCP 1
#define RESULT_RDRAND 2
#define RESULT_RDSEED 3
#define RESULT_RDPID  4
#define RESULT_SELECTOR                                                                                      \
	8 /* and more: of es, cs, ss, ds, fs, gs, in the order of their numbers; the system's, as the base   \
	     is */

/* kind | log2 of the element's size << 3 | repeated << 5 (1: rep, repe; 2: repne) | 67 prefix << 7 | segment
 * << 8 */
#define STRING_MOVS 0
#define STRING_STOS 1
#define STRING_LODS 2
#define STRING_CMPS 3
#define STRING_SCAS 4
#define STRING_ARGUMENT(kind, size, repeat, address32, segment)                                              \
	((kind) | (size) << 3 | (repeat) << 5 | (address32) << 7 | (segment) << 8)
#define STRING_KIND(argument)      ((argument)&7)
#define STRING_SIZE(argument)      (1u << ((argument) >> 3 & 3))
#define STRING_REPEAT(argument)    ((argument) >> 5 & 3)
#define STRING_ADDRESS32(argument) ((argument) >> 7 & 1)
#define STRING_SEGMENT(argument)   ((argument) >> 8 & 3) /* of the source: 0: flat, 1: fs, 2: gs */

/*
 * kind | log2 of the operand's size << 5 | register << 8 | ATOMIC_*. Besides what is
 * locked, unlocked instructions of the same kinds that change registers too or
 * whose operand is elsewhere than it seems.
 */
#define ATOMIC_ADD                       0 /* 0 to 6: as the CPU numbers them */
#define ATOMIC_OR                        1
#define ATOMIC_ADC                       2
#define ATOMIC_SBB                       3
#define ATOMIC_AND                       4
#define ATOMIC_SUB                       5
#define ATOMIC_XOR                       6
#define ATOMIC_INC                       8
#define ATOMIC_DEC                       9
#define ATOMIC_NOT                       10
#define ATOMIC_NEG                       11
#define ATOMIC_XCHG                      12
#define ATOMIC_XADD                      13
#define ATOMIC_CMPXCHG                   14
#define ATOMIC_CMPXCHG2                  15 /* cmpxchg8b, cmpxchg16b: size is that of a half */
#define ATOMIC_BT                        16 /* 16 to 19: as the CPU numbers them, less 4; bt only reads */
#define ATOMIC_BTS                       17
#define ATOMIC_BTR                       18
#define ATOMIC_BTC                       19
#define ATOMIC_IMMEDIATE                 0x1000 /* the other operand is in SLOT_SCRATCH_B, not in a register */
#define ATOMIC_HIGH_BYTE                 0x2000 /* the register is ah, ch, dh or bh, not that of the number */
#define ATOMIC_ADDRESS32                 0x4000 /* SLOT_ADDRESS is moved by a bit's number in a register, within 32 bits */
#define ATOMIC_LOCKED                    0x8000 /* for other threads, too */
#define ATOMIC_ARGUMENT(kind, size, reg) ((kind) | (size) << 5 | (reg) << 8)
#define ATOMIC_KIND(argument)            ((argument)&31)
#define ATOMIC_SIZE(argument)            (1u << ((argument) >> 5 & 7))
#define ATOMIC_REGISTER(argument)        ((argument) >> 8 & 15)

#define FAR_RET  0 /* retf, operand size in bits 4-7, bytes to drop in SLOT_ADDRESS */
#define FAR_IRET 1 /* iret, operand size in bits 4-7 */
#define FAR_JMP  2 /* jmp m16:n, operand size in bits 4-7, operand address in SLOT_ADDRESS */
#define FAR_CALL 3 /* call m16:n, the same */

#define X87_IMAGE_ENV32 0 /* fnstenv/fnsave as 64-bit code has it */
#define X87_IMAGE_FX32  1 /* fxsave/xsave*: 32-bit pointer fields */
#define X87_IMAGE_FX64  2 /* fxsave64/xsave*64: 64-bit pointer fields */
#define X87_IMAGE_KIND  3 /* mask of these */
#define X87_IMAGE_XSAVE 4 /* one of xsave's kind: behind the image there is a header, and maybe more */

/*
 * Records: the table that maps a code-cache address back to the program. They
 * are sorted by offset; the one that covers an address is the last one whose
 * offset is not above it. `state` says where the program's registers are while
 * the instruction at that address has not been executed yet.
 */
#define RECORD_BOUNDARY  0x01    /* exactly at this offset the whole program state is in place, at pc */
#define RECORD_RCX       0x02    /* the program's rcx is in SLOT_RCX */
#define RECORD_R11       0x04    /* the program's r11 is in SLOT_R11 */
#define RECORD_SCRATCH_A 0x08    /* the register in bits 8-11 is in SLOT_SCRATCH_A */
#define RECORD_SCRATCH_B 0x10    /* the register in bits 12-15 is in SLOT_SCRATCH_B */
#define RECORD_REFUSED   0x20    /* an instruction we do not offer: raises SIGILL by itself */
#define RECORD_BIASED    0x40    /* the register in bits 8-11 has the program's GS base added to it */
#define RECORD_FLAGS     0x10000 /* the program's status flags are in SLOT_FLAGS */
#define RECORD_KEPT_A                                                                                        \
	0x20000 /* the register in bits 20-23 is in its slot from SLOT_KEPT on, before all else */
#define RECORD_KEPT_B                   0x40000 /* the same with bits 24-27 */
#define RECORD_POPPED                   0x80000 /* rsp is 8 more than it was: what is there was popped already */
/*
 * The program's status flags are those of an `add rsp` that was executed without them, and so many pops
 * before; none: this is not so. Nothing else is in bits 8-15 then.
 */
#define RECORD_ADDED(state)             ((state) >> 28)
#define RECORD_ADDED_STATE(bytes, pops) ((uint32_t)((pops) + 1) << 28 | (uint32_t)(bytes) / 8 << 8)
#define RECORD_ADDED_BYTES(state)       ((int32_t)((state) >> 8 & 0xff) * 8)
#define RECORD_ADDED_POPS(state)        ((int32_t)((state) >> 28) - 1)
#define RECORD_ADDED_ONE_POP            (1u << 28)
#define RECORD_ADDED_POPS_MAX           14
#define RECORD_ADDED_MASK               0xf000ff00u
#define RECORD_TRANSIT                  0x80 /* on the way to pc: a boundary, but not the instruction itself */
#define RECORD_A_REGISTER(state)        ((state) >> 8 & 15)
#define RECORD_B_REGISTER(state)        ((state) >> 12 & 15)
#define RECORD_BIASED_REGISTER(state)   ((state) >> 8 & 15)
#define RECORD_KEPT_A_REGISTER(state)   ((state) >> 20 & 15)
#define RECORD_KEPT_B_REGISTER(state)   ((state) >> 24 & 15)
/* A boundary at which the state is there, but not in place. */
#define RECORD_PUT_ASIDE                (RECORD_FLAGS | RECORD_KEPT_A | RECORD_KEPT_B | 0xf0000000u)

#ifndef __ASSEMBLER__
struct record {
	uint32_t offset; /* into the code it describes */
	uint32_t state;
	int32_t executed; /* instructions that are not in SLOT_POSITION yet */
	int64_t pc;       /* program pc of the instruction, relative to the translation's own pc */
};
#endif

#endif
