/*
 * A miniature of the stub and the code cache, for tests that execute what the
 * translator makes. It runs in this very process: GS base 0 makes gs:[rip+d]
 * plain memory, so slots are a page next to the code. Everything a code cache
 * does is here in its simplest form: place, apply fixups, link sites, chain
 * thunks, serve the routines.
 *
 * The same piece of code can be run natively and translated, and both can be
 * single-stepped: the native trace is then what the records of the translation
 * are held against, at every instruction of the translated code.
 */
#ifndef BUGNET_TESTS_UNIT_TRANSLATE_HARNESS_H
#define BUGNET_TESTS_UNIT_TRANSLATE_HARNESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "translate/map.h"
#include "translate/translate.h"

/* -- the CPU and how to get in and out of code ---------------------------- */

struct cpu {
	uint64_t regs[16]; /* by encoding number */
	uint64_t flags;
	uint64_t pc;
};

#define TRAP_FLAG 0x100

enum { LEFT_EXIT, LEFT_MISS, LEFT_SYSCALL, LEFT_EMULATE, LEFT_STOP, LEFT_ACCESS, LEFT_POSITION };

#define HARNESS_VECTORS 4096
uint8_t harness_vectors[HARNESS_VECTORS]
        __attribute__((aligned(64))); /* x87 and vector state of the program */
struct cpu harness_cpu;               /* loaded on the way in, stored on the way out */
uint64_t harness_host_rsp;
uint64_t harness_left;    /* LEFT_* */
void harness_enter(void); /* runs harness_cpu.pc */
extern const char harness_leave[], harness_leave_end[];
extern const char harness_leave_exit[], harness_leave_miss[], harness_leave_syscall[],
        harness_leave_emulate[], harness_leave_stop[], harness_leave_access[], harness_leave_position[];

__asm__(".text\n"
        "harness_enter:\n"
        "	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "	mov %rsp, harness_host_rsp(%rip)\n"
        "	mov $0xe7, %eax; xor %edx, %edx; xrstor64 harness_vectors(%rip)\n"
        "	push harness_cpu+128(%rip)\n"
        "	mov harness_cpu+0(%rip), %rax\n"
        "	mov harness_cpu+8(%rip), %rcx\n"
        "	mov harness_cpu+16(%rip), %rdx\n"
        "	mov harness_cpu+24(%rip), %rbx\n"
        "	mov harness_cpu+40(%rip), %rbp\n"
        "	mov harness_cpu+48(%rip), %rsi\n"
        "	mov harness_cpu+56(%rip), %rdi\n"
        "	mov harness_cpu+64(%rip), %r8\n"
        "	mov harness_cpu+72(%rip), %r9\n"
        "	mov harness_cpu+80(%rip), %r10\n"
        "	mov harness_cpu+88(%rip), %r11\n"
        "	mov harness_cpu+96(%rip), %r12\n"
        "	mov harness_cpu+104(%rip), %r13\n"
        "	mov harness_cpu+112(%rip), %r14\n"
        "	mov harness_cpu+120(%rip), %r15\n"
        "	popfq\n"
        "	mov harness_cpu+32(%rip), %rsp\n"
        "	jmp *harness_cpu+136(%rip)\n"
        "harness_leave:\n"
        "harness_leave_exit: movq $0, harness_left(%rip); jmp harness_leave_common\n"
        "harness_leave_miss: movq $1, harness_left(%rip); jmp harness_leave_common\n"
        "harness_leave_syscall: movq $2, harness_left(%rip); jmp harness_leave_common\n"
        "harness_leave_emulate: movq $3, harness_left(%rip); jmp harness_leave_common\n"
        "harness_leave_stop: movq $4, harness_left(%rip); jmp harness_leave_common\n"
        "harness_leave_access: movq $5, harness_left(%rip); jmp harness_leave_common\n"
        "harness_leave_position: movq $6, harness_left(%rip); jmp harness_leave_common\n"
        "harness_leave_common:\n"
        "	mov %rax, harness_cpu+0(%rip)\n"
        "	mov %rcx, harness_cpu+8(%rip)\n"
        "	mov %rdx, harness_cpu+16(%rip)\n"
        "	mov %rbx, harness_cpu+24(%rip)\n"
        "	mov %rsp, harness_cpu+32(%rip)\n"
        "	mov %rbp, harness_cpu+40(%rip)\n"
        "	mov %rsi, harness_cpu+48(%rip)\n"
        "	mov %rdi, harness_cpu+56(%rip)\n"
        "	mov %r8, harness_cpu+64(%rip)\n"
        "	mov %r9, harness_cpu+72(%rip)\n"
        "	mov %r10, harness_cpu+80(%rip)\n"
        "	mov %r11, harness_cpu+88(%rip)\n"
        "	mov %r12, harness_cpu+96(%rip)\n"
        "	mov %r13, harness_cpu+104(%rip)\n"
        "	mov %r14, harness_cpu+112(%rip)\n"
        "	mov %r15, harness_cpu+120(%rip)\n"
        "	mov harness_host_rsp(%rip), %rsp\n"
        "	pushfq\n"
        "	pop harness_cpu+128(%rip)\n"
        "	pushq $2\n"
        "	popfq\n"
        "	mov $0xe7, %eax; xor %edx, %edx; xsave64 harness_vectors(%rip)\n"
        "	fninit; vzeroupper\n"
        "	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
        "	ret\n"
        "harness_leave_end:\n");

/* -- the code cache ------------------------------------------------------- */

#define AREA_SLOTS      0u
#define AREA_TABLE_BASE 0x4000u /* behind the slots and SLOT_SCRATCH_AREA */
#define AREA_ROUTINES   0x4100u
#define AREA_TABLE      0x80000u
#define AREA_CODE       0x100000u
#define AREA_SIZE       0x4000000u
#define PLACED_MAX      65536

struct placed {
	struct translation translation;
	uint8_t *code;
};

/* Which entry of which translation stands for a pc. */
struct place {
	uint32_t placed, entry;
};

struct harness {
	uint8_t *area;
	uint32_t used; /* bytes of it */
	struct placed *placed;
	uint32_t placed_count;
	struct map pcs; /* -> places */
	struct place *places;
	uint32_t place_count;
	struct translate_request request; /* pc is filled in */
	uint64_t program_gs;
	void *data; /* memory outside of program_memory that the code changes, and its size */
	size_t data_size;
	bool step; /* set the trap flag on the way in */
	bool link; /* patch sites to what is translated: off to see every exit */
	uint64_t exits, misses, translations;
};

static inline uint64_t *harness_slots(struct harness *harness)
{
	return (uint64_t *)(harness->area + AREA_SLOTS);
}

static inline uint64_t *harness_table(struct harness *harness)
{
	return (uint64_t *)(harness->area + AREA_TABLE);
}

static inline uint64_t harness_routine(struct harness *harness, unsigned routine)
{
	return (uint64_t)harness->area + AREA_ROUTINES + 16 * routine;
}

static inline uint64_t harness_miss(struct harness *harness)
{
	return harness_routine(harness, ROUTINE_MISS);
}

static inline void harness_patch(uint8_t *field, uint64_t target)
{
	int64_t distance = target - ((uint64_t)field + 4);
	int32_t rel32 = distance;

	assert_true(distance == rel32);
	assert_true((uint64_t)field % 32 <= 28);
	memcpy(field, &rel32, 4);
}

/* This process's own memory, whether mapped or not. */
static inline size_t harness_read(void *context, uint64_t pc, uint8_t *bytes, size_t size)
{
	struct iovec to = {bytes, size}, from = {(void *)pc, size};
	ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

	(void)context;
	return got < 0 ? 0 : got;
}

static inline struct placed *harness_find(struct harness *harness, uint64_t pc, const struct entry **entry)
{
	uint32_t found = map_find(&harness->pcs, pc);

	*entry = NULL;
	if (found == MAP_NONE)
		return NULL;

	struct placed *placed = &harness->placed[harness->places[found].placed];

	*entry = &placed->translation.entries[harness->places[found].entry];
	return placed;
}

/* Makes the entries of a translation known. */
static inline void harness_register(struct harness *harness, const struct placed *placed)
{
	for (uint32_t i = 0; i < placed->translation.entry_count; i++) {
		uint64_t pc = placed->translation.pc + placed->translation.entries[i].pc;

		if (map_find(&harness->pcs, pc) != MAP_NONE)
			continue;
		harness->places =
		        realloc(harness->places, (harness->place_count + 1) * sizeof(*harness->places));
		harness->places[harness->place_count] = (struct place){placed - harness->placed, i};
		assert_true(map_add(&harness->pcs, pc, harness->place_count++));
	}
}

/* Forgets everything that was translated, as after a change of code. */
static inline void harness_flush(struct harness *harness)
{
	map_deinit(&harness->pcs);
	harness->place_count = 0;
	for (unsigned i = 0; i < BRANCH_TABLE_ENTRIES; i++)
		harness_table(harness)[i] = harness_miss(harness);
	for (uint32_t i = 0; i < harness->placed_count; i++) {
		struct placed *placed = &harness->placed[i];

		for (uint32_t k = 0; k < placed->translation.site_count; k++) {
			const struct site *site = &placed->translation.sites[k];

			if (site->exit)
				harness_patch(
				        placed->code + site->offset, (uint64_t)placed->code + site->exit);
		}
	}
}

static inline bool harness_known(void *context, uint64_t pc)
{
	const struct entry *entry;

	return harness_find(context, pc, &entry) != NULL;
}

/* `hint`: near to what; NULL: anywhere, which is far from the executable */
static inline void harness_init(struct harness *harness, const void *hint)
{
	static const char *const leave[ROUTINE_COUNT] = {
	        [ROUTINE_EXIT] = harness_leave_exit,
	        [ROUTINE_MISS] = harness_leave_miss,
	        [ROUTINE_SYSCALL] = harness_leave_syscall,
	        [ROUTINE_EMULATE] = harness_leave_emulate,
	        [ROUTINE_ACCESS] = harness_leave_access,
	        [ROUTINE_STOP] = harness_leave_position,
	        [ROUTINE_FILTERED] = harness_leave_access,
	};
	uint64_t wanted = hint ? ((uint64_t)hint & ~0xfffffffull) - 0x20000000 : 0x200000000000;

	memset(harness, 0, sizeof(*harness));
	for (;; wanted += 0x1000000) {
		harness->area = mmap((void *)wanted, AREA_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
		        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if (harness->area == (void *)wanted)
			break;
		assert_true(errno == EEXIST);
	}
	for (unsigned i = 0; i < ROUTINE_COUNT; i++) {
		uint8_t *routine = (uint8_t *)harness_routine(harness, i);
		uint64_t address = (uint64_t)leave[i];

		memcpy(routine, (uint8_t[]){0xff, 0x25, 0, 0, 0, 0}, 6);
		memcpy(routine + 6, &address, 8);
	}
	*(uint64_t *)(harness->area + AREA_TABLE_BASE) = ((uint64_t)harness->area + AREA_TABLE) / 8;
	for (unsigned i = 0; i < BRANCH_TABLE_ENTRIES; i++)
		harness_table(harness)[i] = harness_routine(harness, ROUTINE_MISS);
	harness->used = AREA_CODE;
	harness->placed = calloc(PLACED_MAX, sizeof(*harness->placed));
	harness->link = true;
	harness->data = harness->area;
	harness->request = (struct translate_request){
	        .read = harness_read,
	        .known = harness_known,
	        .context = harness,
	        .reach_low = (uint64_t)harness->area,
	        .reach_high = (uint64_t)harness->area + AREA_SIZE,
	        .max_instructions = 500,
	        .wide_vectors = true,
	};
}

static inline void harness_deinit(struct harness *harness)
{
	for (uint32_t i = 0; i < harness->placed_count; i++)
		translation_free(&harness->placed[i].translation);
	free(harness->placed);
	free(harness->places);
	map_deinit(&harness->pcs);
	munmap(harness->area, AREA_SIZE);
}

static inline void harness_fix(
        struct harness *harness, const struct placed *placed, const struct fixup *fixup)
{
	uint8_t *field = placed->code + fixup->offset;
	uint64_t program = placed->translation.pc + fixup->value, target = 0;

	switch (fixup->kind) {
	case FIXUP_SLOT:
		target = (uint64_t)harness->area + AREA_SLOTS + 8 * fixup->value;
		break;
	case FIXUP_ROUTINE:
		target = harness_routine(harness, fixup->value);
		break;
	case FIXUP_TABLE_BASE:
		target = (uint64_t)harness->area + AREA_TABLE_BASE;
		break;
	case FIXUP_NEAR:
		target = program;
		break;
	case FIXUP_ABSOLUTE:
		memcpy(field, &program, 8);
		return;
	case FIXUP_PLACE:
		return;
	case FIXUP_NEGATED:
		program = -program;
		memcpy(field, &program, 8);
		return;
	default:
		fail_msg("fixup kind %u", fixup->kind);
	}

	int64_t distance = target - ((uint64_t)field + fixup->end);
	int32_t rel32 = distance;

	assert_true(distance == rel32);
	memcpy(field, &rel32, 4);
}

static inline struct placed *harness_place(struct harness *harness, struct translation *translation)
{
	struct placed *placed = &harness->placed[harness->placed_count++];

	assert_true(harness->placed_count < PLACED_MAX);
	harness->used = (harness->used + 31) & ~31u;
	assert_true(harness->used + translation->code_size <= AREA_SIZE);
	placed->translation = *translation;
	placed->code = harness->area + harness->used;
	memcpy(placed->code, translation->code, translation->code_size);
	harness->used += translation->code_size;
	for (uint32_t i = 0; i < translation->fixup_count; i++)
		harness_fix(harness, placed, &translation->fixups[i]);
	return placed;
}

/* Points every unlinked site with this target at it. */
static inline void harness_link(struct harness *harness, uint64_t pc, uint64_t address)
{
	for (uint32_t i = 0; i < harness->placed_count; i++) {
		struct placed *placed = &harness->placed[i];

		for (uint32_t k = 0; k < placed->translation.site_count; k++) {
			const struct site *site = &placed->translation.sites[k];

			if (site->exit && placed->translation.pc + site->target == pc)
				harness_patch(placed->code + site->offset, address);
		}
	}
}

/* Where the code for pc is; translates it when there is none. */
static inline uint64_t harness_code_for(struct harness *harness, uint64_t pc)
{
	const struct entry *entry;
	struct placed *placed = harness_find(harness, pc, &entry);

	if (!placed) {
		struct translation translation;

		harness->request.pc = pc;
		harness->translations++;
		assert_int_equal(translate(&harness->request, &translation), 0);
		placed = harness_place(harness, &translation);
		harness_register(harness, placed);
		entry = &placed->translation.entries[0];
		assert_int_equal(entry->pc, 0);
	}
	if (harness->link)
		harness_link(harness, pc, (uint64_t)placed->code + entry->offset);
	return (uint64_t)placed->code + entry->offset;
}

/* Puts a thunk for pc in front of its chain. */
static inline void harness_chain(struct harness *harness, uint64_t pc)
{
	uint64_t code = harness_code_for(harness, pc);
	uint64_t *head = &harness_table(harness)[pc & 0xffff];
	const struct entry *entry;
	struct placed *placed = harness_find(harness, pc, &entry);
	uint32_t thunk = entry->thunk, next = entry->thunk_next;

	if (!thunk) {
		struct translation translation;

		assert_int_equal(translate_thunk(pc, harness->request.loop_is_fast, &translation), 0);
		placed = harness_place(harness, &translation);
		next = translation.entries[0].thunk_next;
		harness_patch(placed->code + translation.sites[0].offset, code);
	}
	harness_patch(placed->code + next, *head);
	*head = (uint64_t)placed->code + thunk;
}

/* -- running --------------------------------------------------------------- */

static inline void harness_emulate(struct harness *harness, struct cpu *cpu)
{
	uint32_t detail = harness_slots(harness)[SLOT_DETAIL];
	uint32_t argument = EMULATE_ARGUMENT(detail), a, b, c, d;
	uint64_t mask = argument >> 4 == 8 ? UINT64_MAX : UINT32_MAX;

	assert_int_equal(harness_slots(harness)[SLOT_DETAIL] >> 32, 0);
	cpu->pc += EMULATE_LENGTH(detail);
	switch (EMULATE_KIND(detail)) {
	case EMULATE_CPUID:
		__asm__("cpuid"
		        : "=a"(a), "=b"(b), "=c"(c), "=d"(d)
		        : "a"((uint32_t)cpu->regs[0]), "c"((uint32_t)cpu->regs[1]));
		cpu->regs[0] = a;
		cpu->regs[3] = b;
		cpu->regs[1] = c;
		cpu->regs[2] = d;
		break;
	case EMULATE_XGETBV:
		__asm__("xgetbv" : "=a"(a), "=d"(d) : "c"((uint32_t)cpu->regs[1]));
		cpu->regs[0] = a;
		cpu->regs[2] = d;
		break;
	case EMULATE_POPF:
		assert_int_equal(argument, 8);
		cpu->flags = (*(uint64_t *)cpu->regs[4] & 0xcd5) | 0x202;
		cpu->regs[4] += 8;
		break;
	case EMULATE_RDGSBASE:
		cpu->regs[argument & 15] = harness->program_gs & mask;
		break;
	case EMULATE_WRGSBASE:
		harness->program_gs = cpu->regs[argument & 15] & mask;
		harness_slots(harness)[SLOT_PROGRAM_GS] = harness->program_gs;
		break;
	case EMULATE_FIX_X87_PC:
		/* Two runs are compared without the pointers: they differ natively too on other CPUs. */
		break;
	default:
		fail_msg("emulate kind %u", EMULATE_KIND(detail));
	}
}

static inline void harness_syscall(struct cpu *cpu)
{
	uint64_t result;
	register uint64_t r10 __asm__("r10") = cpu->regs[10];
	register uint64_t r8 __asm__("r8") = cpu->regs[8];
	register uint64_t r9 __asm__("r9") = cpu->regs[9];

	__asm__ volatile("syscall"
	                 : "=a"(result)
	                 : "a"(cpu->regs[0]), "D"(cpu->regs[7]), "S"(cpu->regs[6]), "d"(cpu->regs[2]),
	                 "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	cpu->regs[0] = result;
	cpu->regs[1] = cpu->pc;
	cpu->regs[11] = cpu->flags & ~0x10000ull;
}

/* Was pc translated from bytes that are no longer there? */
static inline bool harness_is_stale(struct harness *harness, uint64_t pc)
{
	const struct entry *entry;
	const struct placed *placed = harness_find(harness, pc, &entry);

	if (!placed)
		return false;
	for (uint32_t i = 0; i < placed->translation.source_count; i++) {
		const struct source *source = &placed->translation.sources[i];

		if (memcmp((void *)(placed->translation.pc + source->pc),
		            placed->translation.source_bytes + source->bytes, source->size))
			return true;
	}
	return false;
}

/* Runs translated code from cpu->pc until it gets to `stop`. */
static inline void harness_run(struct harness *harness, struct cpu *cpu, uint64_t stop)
{
	uint64_t *slots = harness_slots(harness);
	bool miss = false;

	slots[SLOT_PROGRAM_GS] = harness->program_gs;
	while (cpu->pc != stop) {
		if (harness->request.self_check && harness_is_stale(harness, cpu->pc))
			harness_flush(harness);

		uint64_t code = harness_code_for(harness, cpu->pc);

		if (miss && harness->link)
			harness_chain(harness, cpu->pc);
		harness_cpu = *cpu;
		harness_cpu.pc = code;
		if (harness->step)
			harness_cpu.flags |= TRAP_FLAG;
		harness_enter();
		*cpu = harness_cpu;
		cpu->flags &= ~(uint64_t)TRAP_FLAG;
		cpu->pc = cpu->regs[1];
		cpu->regs[1] = slots[SLOT_RCX];
		miss = harness_left == LEFT_MISS;
		if (miss) {
			cpu->regs[11] = slots[SLOT_R11];
			harness->misses++;
		} else {
			harness->exits++;
		}
		if (harness_left == LEFT_SYSCALL)
			harness_syscall(cpu);
		if (harness_left == LEFT_EMULATE)
			harness_emulate(harness, cpu);
	}
}

/* The same natively; code must come to harness_leave_stop by itself. */
static inline void harness_run_native(struct cpu *cpu, uint64_t gs)
{
	harness_cpu = *cpu;
	__asm__ volatile("wrgsbase %0" : : "r"(gs));
	harness_enter();
	__asm__ volatile("wrgsbase %0" : : "r"(0ull));
	assert_int_equal(harness_left, LEFT_STOP);
	*cpu = harness_cpu;
	cpu->pc = (uint64_t)harness_leave_stop;
}

/* -- single-stepping ------------------------------------------------------- */

#define STATUS_FLAGS 0xcd5 /* CF PF AF ZF SF OF DF */
#define TRACE_MAX    200000

struct trace {
	struct cpu *steps;
	uint32_t count;
};

static struct trace *trace_into;       /* native: append here */
static const struct trace *trace_from; /* translated: compare with this */
static struct harness *trace_harness;
static uint32_t trace_at, trace_checked, trace_loose;
static bool trace_flags_dead; /* a thunk of the kind that overwrites flags was passed */
static char trace_error[512];

static inline void cpu_from_context(struct cpu *cpu, const ucontext_t *context)
{
	static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
	        REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

	for (unsigned i = 0; i < 16; i++)
		cpu->regs[i] = context->uc_mcontext.gregs[order[i]];
	cpu->flags = context->uc_mcontext.gregs[REG_EFL];
	cpu->pc = context->uc_mcontext.gregs[REG_RIP];
}

static inline bool cpu_equal(const struct cpu *a, const struct cpu *b)
{
	return !memcmp(a->regs, b->regs, sizeof(a->regs)) && a->pc == b->pc &&
	       (a->flags & STATUS_FLAGS) == (b->flags & STATUS_FLAGS);
}

static inline void cpu_describe(char *text, size_t size, const struct cpu *a, const struct cpu *b)
{
	int n = snprintf(text, size, "pc %lx/%lx flags %lx/%lx", a->pc, b->pc, a->flags & STATUS_FLAGS,
	        b->flags & STATUS_FLAGS);

	for (unsigned i = 0; i < 16; i++)
		if (a->regs[i] != b->regs[i] && n < (int)size)
			n += snprintf(text + n, size - n, " r%u %lx/%lx", i, a->regs[i], b->regs[i]);
}

static inline const struct placed *harness_at(const struct harness *harness, uint64_t address)
{
	uint32_t low = 0, high = harness->placed_count;

	/* They were placed at ascending addresses. */
	while (low + 1 < high) {
		uint32_t middle = (low + high) / 2;

		if ((uint64_t)harness->placed[middle].code <= address)
			low = middle;
		else
			high = middle;
	}
	const struct placed *placed = &harness->placed[low];
	uint64_t start = (uint64_t)placed->code;

	return harness->placed_count && address >= start && address < start + placed->translation.code_size
	               ? placed
	               : NULL;
}

static inline const struct record *record_for(const struct translation *translation, uint32_t offset)
{
	const struct record *best = NULL;
	uint32_t low = 0, high = translation->record_count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (translation->records[middle].offset <= offset) {
			best = &translation->records[middle];
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return best;
}

/* The program's state out of the state in translated code, as the stub would do it. */
static inline bool harness_rebuild(struct harness *harness, struct cpu *cpu)
{
	const struct placed *placed = harness_at(harness, cpu->pc);
	const uint64_t *slots = harness_slots(harness);

	if (!placed)
		return false;

	const struct record *record = record_for(&placed->translation, cpu->pc - (uint64_t)placed->code);

	if (!record)
		return false;
	cpu->pc = placed->translation.pc + record->pc;
	if (record->state & RECORD_BIASED)
		cpu->regs[RECORD_BIASED_REGISTER(record->state)] -= slots[SLOT_PROGRAM_GS];
	if (record->state & RECORD_RCX)
		cpu->regs[1] = slots[SLOT_RCX];
	if (record->state & RECORD_R11)
		cpu->regs[11] = slots[SLOT_R11];
	if (record->state & RECORD_SCRATCH_A)
		cpu->regs[RECORD_A_REGISTER(record->state)] = slots[SLOT_SCRATCH_A];
	if (record->state & RECORD_SCRATCH_B)
		cpu->regs[RECORD_B_REGISTER(record->state)] = slots[SLOT_SCRATCH_B];
	if (record->state & RECORD_KEPT_A)
		cpu->regs[RECORD_KEPT_A_REGISTER(record->state)] =
		        slots[SLOT_KEPT + RECORD_KEPT_A_REGISTER(record->state)];
	if (record->state & RECORD_KEPT_B)
		cpu->regs[RECORD_KEPT_B_REGISTER(record->state)] =
		        slots[SLOT_KEPT + RECORD_KEPT_B_REGISTER(record->state)];
	return true;
}

/* Behind the point where an indirect branch has taken its operand, the state is neither old nor new. */
static inline bool is_indirect_branch(uint64_t pc)
{
	const uint8_t *code = (const uint8_t *)pc;

	while ((*code & 0xf0) == 0x40 || *code == 0x64 || *code == 0x65 || *code == 0x66 || *code == 0x67 ||
	        *code == 0x3e || *code == 0xf2 || *code == 0xf3)
		code++;
	return *code == 0xc3 || *code == 0xc2 ||
	       (*code == 0xff && ((code[1] & 0x38) == 0x10 || (code[1] & 0x38) == 0x20));
}

/* Between cmp and the first restore of a thunk for dead flags? */
static inline bool harness_in_thunk(const struct harness *harness, uint64_t pc)
{
	const uint8_t *code = (const uint8_t *)pc;

	return harness_at(harness, pc) && code[-3] == 0x48 && code[-2] == 0x39 && code[-1] == 0xc1;
}

/* Equal, up to flags that the program will overwrite before it can see them. */
static inline bool trace_matches(const struct cpu *cpu, uint32_t at)
{
	struct cpu without = *cpu;

	if (at >= trace_from->count)
		return false;
	if (cpu_equal(cpu, &trace_from->steps[at])) {
		if (at == trace_at)
			return true;
		trace_flags_dead = false;
		return true;
	}
	without.flags = trace_from->steps[at].flags;
	return trace_flags_dead && cpu_equal(&without, &trace_from->steps[at]);
}

static inline void trace_step(int signal, siginfo_t *info, void *opaque)
{
	ucontext_t *context = opaque;
	struct cpu cpu, raw;

	(void)signal;
	(void)info;
	cpu_from_context(&cpu, context);
	if (cpu.pc >= (uint64_t)harness_enter && cpu.pc < (uint64_t)harness_leave)
		return;
	if (cpu.pc >= (uint64_t)harness_leave && cpu.pc < (uint64_t)harness_leave_end) {
		context->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
		return;
	}
	if (trace_into) {
		if (trace_into->count < TRACE_MAX)
			trace_into->steps[trace_into->count++] = cpu;
		return;
	}
	raw = cpu;
	trace_flags_dead |= harness_in_thunk(trace_harness, raw.pc);
	if (trace_error[0] || !harness_rebuild(trace_harness, &cpu))
		return;
	trace_checked++;
	if (trace_matches(&cpu, trace_at))
		return;
	if (trace_matches(&cpu, trace_at + 1)) {
		trace_at++;
		return;
	}
	if (trace_at < trace_from->count && trace_from->steps[trace_at].pc == cpu.pc &&
	        is_indirect_branch(cpu.pc)) {
		trace_loose++;
		return;
	}
	/* The way out: state at a pc that ends the trace. */
	if (cpu.pc == (uint64_t)harness_leave_stop)
		return;
	const struct placed *placed = harness_at(trace_harness, raw.pc);
	int n = snprintf(trace_error, sizeof(trace_error), "step %u of %u, code +%lx: ", trace_at,
	        trace_from->count, raw.pc - (uint64_t)placed->code);

	cpu_describe(trace_error + n, sizeof(trace_error) - n, &cpu, &trace_from->steps[trace_at]);
}

static inline void trace_install(void)
{
	static uint8_t stack[65536];
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_sigaction = trace_step, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	assert_int_equal(sigaltstack(&alternate, NULL), 0);
	assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
}

/* -- native against translated --------------------------------------------- */

#define PROGRAM_STACK 65536
#define PROGRAM_DATA  65536

struct program_memory {
	uint8_t stack[PROGRAM_STACK] __attribute__((aligned(64)));
	uint8_t data[PROGRAM_DATA] __attribute__((aligned(64)));
};

static struct program_memory program_memory, program_initial, program_after;

/* A state to start with: distinct values everywhere, rdi and rsi into data, return address: the stop. */
static inline void program_start(struct cpu *cpu, const void *code)
{
	memset(cpu, 0, sizeof(*cpu));
	/* Initial x87 and SSE state: control words, no components present. */
	memset(harness_vectors, 0, sizeof(harness_vectors));
	memcpy(harness_vectors, (uint8_t[]){0x7f, 0x03}, 2);
	memcpy(harness_vectors + 24, (uint8_t[]){0x80, 0x1f}, 2);
	for (unsigned i = 0; i < 16; i++)
		cpu->regs[i] = 0x1111111111111111u * i + 0x123;
	cpu->regs[4] = (uint64_t)(program_memory.stack + PROGRAM_STACK - 4096);
	cpu->regs[6] = (uint64_t)program_memory.data;
	cpu->regs[7] = (uint64_t)(program_memory.data + PROGRAM_DATA / 2);
	cpu->flags = 0x202;
	cpu->pc = (uint64_t)code;
	*(uint64_t *)cpu->regs[4] = (uint64_t)harness_leave_stop;
}

static inline void program_fill(void)
{
	for (unsigned i = 0; i < PROGRAM_DATA; i++)
		program_memory.data[i] = i * 7 + (i >> 8);
	memset(program_memory.stack, 0x5a, PROGRAM_STACK);
}

static inline size_t first_difference(const void *a, const void *b, size_t size)
{
	size_t i = 0;

	while (i < size && ((const uint8_t *)a)[i] == ((const uint8_t *)b)[i])
		i++;
	return i;
}

/*
 * Runs the code natively and translated and compares registers, flags and
 * memory at the end; with `step` also the state at every step in between.
 */
static inline void compare_runs(struct harness *harness, const struct cpu *start, bool step)
{
	struct cpu native = *start, translated = *start;
	struct trace trace = {0};
	uint8_t vectors[sizeof(harness_vectors)], vectors_after[sizeof(harness_vectors)];
	uint8_t *data = malloc(harness->data_size * 2 + 1), *data_after = data + harness->data_size;
	char difference[512];

	trace_install();
	trace_error[0] = 0;
	trace_at = trace_checked = trace_loose = 0;
	trace_flags_dead = false;
	trace_harness = harness;
	memcpy(&program_initial, &program_memory, sizeof(program_memory));
	memcpy(data, harness->data, harness->data_size);
	memcpy(vectors, harness_vectors, sizeof(vectors));
	if (step) {
		trace.steps = malloc(TRACE_MAX * sizeof(*trace.steps));
		trace_into = &trace;
		native.flags |= TRAP_FLAG;
		harness_run_native(&native, harness->program_gs);
		trace_into = NULL;
		native.flags &= ~(uint64_t)TRAP_FLAG;
		assert_true(trace.count < TRACE_MAX);
	} else {
		harness_run_native(&native, harness->program_gs);
	}
	memcpy(&program_after, &program_memory, sizeof(program_memory));
	memcpy(&program_memory, &program_initial, sizeof(program_memory));
	memcpy(vectors_after, harness_vectors, sizeof(vectors));
	memcpy(harness_vectors, vectors, sizeof(vectors));
	memcpy(data_after, harness->data, harness->data_size);
	memcpy(harness->data, data, harness->data_size);
	trace_from = &trace;
	harness->step = step;
	harness_run(harness, &translated, (uint64_t)harness_leave_stop);
	harness->step = false;
	trace_from = NULL;
	free(trace.steps);
	if (!cpu_equal(&native, &translated)) {
		cpu_describe(difference, sizeof(difference), &translated, &native);
		fail_msg("translated/native: %s; %s", difference, trace_error);
	}
	if (memcmp(&program_memory, &program_after, sizeof(program_memory)) ||
	        memcmp(harness->data, data_after, harness->data_size))
		fail_msg("memory differs at stack/data +%lx; %s",
		        first_difference(&program_memory, &program_after, sizeof(program_memory)),
		        trace_error);
	if (trace_error[0])
		fail_msg("%s", trace_error);
	/* All but the x87 instruction and data pointers and what the CPU thinks is in use. */
	if (memcmp(harness_vectors, vectors_after, 6) ||
	        memcmp(harness_vectors + 24, vectors_after + 24, 392) ||
	        memcmp(harness_vectors + 576, vectors_after + 576, HARNESS_VECTORS - 576))
		fail_msg("x87 or vector state differs");
	memcpy(harness_vectors, vectors, sizeof(vectors));
	memcpy(&program_memory, &program_initial, sizeof(program_memory));
	memcpy(harness->data, data, harness->data_size);
	free(data);
}

#endif
