/*
 * What the stub's instructions for recording are tested against: the CPU. One
 * instruction is executed natively and by the stub's C, on the same registers and
 * the same memory, and must leave the same, also when it faults.
 *
 * The stub's surroundings are made here: a shadow, a log of what was found to
 * differ, and other threads, who change memory at the worst moments. What is then
 * asked is what replay relies on: the CPU, given memory as it was in the shadow with
 * the log put over it, must do what the stub did, and leave what the shadow is.
 */
#ifndef BUGNET_TESTS_UNIT_TARGET_HARNESS_H
#define BUGNET_TESTS_UNIT_TARGET_HARNESS_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "../fuzz/random.h"

/* The decoder names registers as the stub does. */
#define RAX DECODER_RAX
#define RCX DECODER_RCX
#define RDX DECODER_RDX
#define RBX DECODER_RBX
#define RSP DECODER_RSP
#define RBP DECODER_RBP
#define RSI DECODER_RSI
#define RDI DECODER_RDI
#define R11 DECODER_R11
#include "translate/decode.h"
#undef RAX
#undef RCX
#undef RDX
#undef RBX
#undef RSP
#undef RBP
#undef RSI
#undef RDI
#undef R11

#include "target/stub.h"

/* -- the CPU ---------------------------------------------------------------- */

struct outcome {
	struct registers regs;
	bool faulted;
	int signal;
	uint64_t address, error; /* of a fault */
};

struct registers native_regs; /* all but rsp are loaded on the way in and stored on the way out */
uint64_t native_gs, native_host_rsp;
uint8_t *native_code;
void native_enter(void);
void native_signal(int number, siginfo_t *siginfo, void *context);
extern const char native_leave[], native_leave_faulted[], native_handler_entry[];
struct outcome native_outcome;

/* The handler must not have AC: it is compiled, and C does not care about alignment. */
__asm__(".text\n"
        "native_enter:\n"
        "	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "	mov %rsp, native_host_rsp(%rip)\n"
        "	mov native_gs(%rip), %rax; wrgsbase %rax\n"
        "	mov native_regs+0(%rip), %rax; mov native_regs+8(%rip), %rcx; mov native_regs+16(%rip), "
        "%rdx\n"
        "	mov native_regs+24(%rip), %rbx; mov native_regs+40(%rip), %rbp; mov native_regs+48(%rip), "
        "%rsi\n"
        "	mov native_regs+56(%rip), %rdi; mov native_regs+64(%rip), %r8; mov native_regs+72(%rip), "
        "%r9\n"
        "	mov native_regs+80(%rip), %r10; mov native_regs+88(%rip), %r11; mov native_regs+96(%rip), "
        "%r12\n"
        "	mov native_regs+104(%rip), %r13; mov native_regs+112(%rip), %r14; mov native_regs+120(%rip), "
        "%r15\n"
        "	push native_regs+136(%rip); popfq\n"
        "	jmp *native_code(%rip)\n"
        "native_leave:\n"
        "	mov %rax, native_regs+0(%rip); mov %rcx, native_regs+8(%rip); mov %rdx, "
        "native_regs+16(%rip)\n"
        "	mov %rbx, native_regs+24(%rip); mov %rbp, native_regs+40(%rip); mov %rsi, "
        "native_regs+48(%rip)\n"
        "	mov %rdi, native_regs+56(%rip); mov %r8, native_regs+64(%rip); mov %r9, "
        "native_regs+72(%rip)\n"
        "	mov %r10, native_regs+80(%rip); mov %r11, native_regs+88(%rip); mov %r12, "
        "native_regs+96(%rip)\n"
        "	mov %r13, native_regs+104(%rip); mov %r14, native_regs+112(%rip); mov %r15, "
        "native_regs+120(%rip)\n"
        "	pushfq; pop native_regs+136(%rip)\n"
        "	pushq $2; popfq\n"
        "native_leave_faulted:\n"
        "	xor %eax, %eax; wrgsbase %rax\n"
        "	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
        "	ret\n"
        "native_handler_entry:\n"
        "	pushfq; andl $~0x40000, (%rsp); popfq\n"
        "	jmp native_signal\n");

void native_signal(int number, siginfo_t *siginfo, void *context)
{
	static const uint8_t order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI,
	        REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
	greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;

	if (gregs[REG_RIP] != (greg_t)native_code) {
		fprintf(stderr, "signal %d at %#llx, address %p\n", number, gregs[REG_RIP], siginfo->si_addr);
		abort();
	}
	for (int i = 0; i < 16; i++) {
		if (i != RSP)
			native_regs.gpr[i] = gregs[order[i]];
	}
	native_regs.flags = gregs[REG_EFL] & ~FLAG_RF;
	native_outcome.faulted = true;
	native_outcome.signal = number;
	native_outcome.address = (uint64_t)siginfo->si_addr;
	native_outcome.error = gregs[REG_ERR];
	gregs[REG_RIP] = (greg_t)native_leave_faulted;
	gregs[REG_RSP] = native_host_rsp;
	gregs[REG_EFL] = 2;
}

/* From within a test: cmocka has its own handlers there. */
static inline void native_handlers(void)
{
	struct sigaction action = {
	        .sa_sigaction = (void *)native_handler_entry, .sa_flags = SA_SIGINFO | SA_NODEFER};
	int handled[] = {SIGSEGV, SIGBUS, SIGILL};

	for (int i = 0; i < 3; i++)
		sigaction(handled[i], &action, NULL);
}

static inline void native_init(void)
{
	if (!(getauxval(AT_HWCAP2) & 2)) {
		fprintf(stderr, "no FSGSBASE\n");
		exit(77);
	}
	native_code =
	        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Has the CPU execute `size` bytes of code. */
static inline struct outcome native_run(const struct registers *regs, const uint8_t *code, unsigned size)
{
	const char *leave = native_leave;
	uint8_t jump[] = {0xff, 0x25, 64 - size - 6, 0, 0, 0};

	memcpy(native_code, code, size);
	memcpy(native_code + size, jump, sizeof jump);
	memcpy(native_code + 64, &leave, 8); /* aligned: AC may be set */
	native_regs = *regs;
	native_outcome.faulted = false;
	native_enter();
	native_outcome.regs = native_regs;
	return native_outcome;
}

/* -- memory ----------------------------------------------------------------- */

/* No access; two pages; one that cannot be written; two more; no access. Below 4 GB, for 32-bit addresses. */
#define ARENA_PAGES  7
#define ARENA_BYTES  (ARENA_PAGES * 4096u)
#define ARENA_USABLE (ARENA_BYTES - 8192u)

uint8_t *arena, *arena_shadow;

static inline bool page_readable(uint64_t address)
{
	return address - (uint64_t)arena - 4096 < ARENA_USABLE;
}

static inline bool page_writable(uint64_t address)
{
	return page_readable(address) && (address - (uint64_t)arena) / 4096 != 3;
}

static inline void arena_protect(bool open)
{
	mprotect(arena + 4096, ARENA_USABLE, PROT_READ | PROT_WRITE);
	if (!open)
		mprotect(arena + 3 * 4096, 4096, PROT_READ);
}

static inline void arena_init(void)
{
	arena = mmap(NULL, ARENA_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	arena_shadow = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(arena != MAP_FAILED && arena_shadow != MAP_FAILED);
	arena_protect(false);
}

/* What is in the arena, its read-only page included. */
struct image {
	uint8_t bytes[ARENA_USABLE];
};

static inline void image_take(struct image *image)
{
	memcpy(image->bytes, arena + 4096, ARENA_USABLE);
}

static inline void image_put(const struct image *image)
{
	memcpy(arena + 4096, image->bytes, 2 * 4096);
	memcpy(arena + 4 * 4096, image->bytes + 3 * 4096, 2 * 4096);
	if (memcmp(arena + 3 * 4096, image->bytes + 2 * 4096, 4096)) {
		arena_protect(true);
		memcpy(arena + 3 * 4096, image->bytes + 2 * 4096, 4096);
		arena_protect(false);
	}
}

/* -- the stub's surroundings -------------------------------------------------- */

#define PATCHES 400000

struct patch {
	uint32_t offset;
	uint8_t value;
};

struct thread stub_thread;
uint64_t stub_position; /* of the instruction, which is counted already */
struct rng world;       /* other threads, and signals */
unsigned world_changes; /* in percent: changes memory at every turn */
unsigned world_signals; /* the same for a signal that comes */
struct patch patches[PATCHES];
uint32_t patch_count;
jmp_buf stub_fault;

static inline void world_turns(uint64_t address, uint64_t size)
{
	if (rng_chance(&world, world_signals))
		stub_thread.pending = 14;
	while (rng_chance(&world, world_changes)) {
		uint64_t at = address + rng_below(&world, size + 32) - 16;

		if (page_writable(at))
			*(uint8_t *)at ^= 1u << rng_below(&world, 2);
	}
}

void *shadow_of(const struct thread *thread, uint64_t address)
{
	assert_ptr_equal(thread, &stub_thread);
	assert_true(page_readable(address));
	return arena_shadow + (address - (uint64_t)arena);
}

bool shadow_check_bytes(struct thread *thread, uint64_t address, uint64_t size)
{
	world_turns(address, size);
	assert_true(size > 0 && size <= 4096 + 64);
	for (uint64_t at = address; at < address + size; at++) {
		if (!page_readable(at))
			return false;
	}
	/* Words are logged as a whole: with what the shadow has of them where they are not asked for. */
	for (uint64_t word = address & -8ul; word < address + size; word += 8) {
		bool differs = false;

		for (uint64_t at = word; at < word + 8; at++) {
			uint8_t *shadow = shadow_of(thread, at), value = *(volatile uint8_t *)at;

			if (at >= address && at < address + size && *shadow != value) {
				*shadow = value;
				differs = true;
			}
		}
		for (uint64_t at = word; differs && at < word + 8; at++) {
			assert_true(patch_count < PATCHES);
			patches[patch_count++] =
			        (struct patch){at - (uint64_t)arena, *(uint8_t *)shadow_of(thread, at)};
		}
	}
	return true;
}

/* The whole lines. */
bool shadow_check(struct thread *thread, uint64_t address, uint64_t size)
{
	uint64_t low = address & -64ul, high = (address + size + 63) & -64ul;

	return shadow_check_bytes(thread, low, high - low);
}

long probe_write(void *at, size_t size)
{
	uint64_t first = (uint64_t)at, last = first + size - 1;

	return page_writable(first) && page_writable(last) ? 0 : -K_EFAULT;
}

long store_program(struct thread *thread, uint64_t to, const void *from, size_t size)
{
	world_turns(to, size);
	for (uint64_t at = to; at < to + size; at++) {
		if (!page_writable(at))
			return -K_EFAULT;
	}
	memmove((void *)to, from, size);
	for (size_t i = 0; i < size; i++) /* upwards, as the stub's memcpy does it */
		*(uint8_t *)shadow_of(thread, to + i) = ((const volatile uint8_t *)from)[i];
	world_turns(to, size);
	return 0;
}

long exchange_program(uint64_t at, const uint64_t expected[2], const uint64_t wanted[2], size_t size)
{
	world_turns(at, size);
	for (uint64_t i = at; i < at + size; i++) {
		if (!page_writable(i))
			return -K_EFAULT;
	}
	if (memcmp((void *)at, expected, size))
		return 1;
	memcpy((void *)at, wanted, size);
	world_turns(at, size);
	return 0;
}

uint64_t position(const struct thread *thread)
{
	assert_ptr_equal(thread, &stub_thread);
	return stub_position;
}

_Noreturn void fault_natively(struct thread *thread)
{
	(void)thread;
	longjmp(stub_fault, 1);
}

uint64_t touched_address; /* where a fault was raised without the instruction itself */

void touch(void *at, bool writes)
{
	if (!(writes ? page_writable((uint64_t)at) : page_readable((uint64_t)at))) {
		touched_address = (uint64_t)at;
		longjmp(stub_fault, 1);
	}
}

void publish_position(struct thread *thread)
{
	(void)thread;
}

void log_end(struct thread *thread, int kind, int status, const struct kernel_siginfo *siginfo)
{
	(void)thread, (void)kind, (void)status, (void)siginfo;
	fail_msg("the log ends");
}

_Noreturn void release(struct thread *thread)
{
	(void)thread;
	fail_msg("released");
	abort();
}

_Noreturn void stub_panic(const char *what, uint64_t value)
{
	fail_msg("%s %#lx", what, value);
	abort();
}

/* -- one case ----------------------------------------------------------------- */

struct image image_before, image_native, shadow_before;

/* Memory of many equal bytes, and a shadow that differs from it here and there. */
static inline void arena_fill(struct rng *rng)
{
	unsigned variety = rng_chance(rng, 50) ? 2 : 256, differing = rng_below(rng, 40);
	uint8_t base = rng_next(rng);

	for (unsigned i = 0; i < ARENA_USABLE; i += 8) {
		uint64_t value = variety == 256 ? rng_next(rng) : base * 0x0101010101010101u;

		memcpy(image_before.bytes + i, &value, 8);
	}
	if (variety == 2) {
		for (unsigned n = rng_below(rng, 8); n; n--)
			image_before.bytes[rng_below(rng, ARENA_USABLE)] ^= 1;
	}
	image_put(&image_before);
	shadow_before = image_before;
	for (unsigned n = differing; n; n--)
		shadow_before.bytes[rng_below(rng, ARENA_USABLE)] ^= 1u << rng_below(rng, 8);
	if (rng_chance(rng, 10))
		memset(shadow_before.bytes, 0, ARENA_USABLE);
	memcpy(arena_shadow + 4096, shadow_before.bytes, ARENA_USABLE);
	patch_count = 0;
}

/* Somewhere interesting in the arena, rarely outside. */
static inline uint64_t arena_address(struct rng *rng)
{
	uint64_t start = (uint64_t)arena;

	switch (rng_below(rng, 4)) {
	case 0:
		return start + 4096 + rng_below(rng, ARENA_USABLE);
	case 1:
		return start + rng_between(rng, 1, ARENA_PAGES - 1) * 4096 + rng_between(rng, -20, 20);
	case 2:
		return start + rng_between(rng, 1, 5) * 4096 + rng_between(rng, 0, 64) * 64 +
		       rng_between(rng, -9, 9);
	default:
		return start + rng_between(rng, 1, 2) * 4096 + rng_below(rng, 4096);
	}
}

static inline void random_registers(struct rng *rng, struct registers *regs)
{
	*regs = (struct registers){.flags = (rng_next(rng) & 0x8d5) | 0x202};
	for (int i = 0; i < 16; i++)
		regs->gpr[i] = rng_chance(rng, 20) ? rng_below(rng, 3) : rng_next(rng);
	regs->gpr[RSP] = 0;
}

#define MISMATCH(what, ...)                                                                                  \
	do {                                                                                                 \
		fprintf(stderr, "case %lu: " what "\n", case_number, ##__VA_ARGS__);                         \
		case_print();                                                                                \
		fail();                                                                                      \
	} while (0)

uint64_t case_number, case_seed;
uint8_t case_code[16];
unsigned case_size;
struct registers case_regs;

static inline void case_print(void)
{
	fprintf(stderr, "  seed %lu, arena %p, code", case_seed, (void *)arena);
	for (unsigned i = 0; i < case_size; i++)
		fprintf(stderr, " %02x", case_code[i]);
	fprintf(stderr, "\n  rax %lx rcx %lx rdx %lx rbx %lx rsi %lx rdi %lx flags %lx gs %lx\n",
	        case_regs.gpr[RAX], case_regs.gpr[RCX], case_regs.gpr[RDX], case_regs.gpr[RBX],
	        case_regs.gpr[RSI], case_regs.gpr[RDI], case_regs.flags, native_gs);
}

static inline void compare_registers(
        const char *what, const struct registers *want, const struct registers *have, uint64_t flags_mask)
{
	for (int i = 0; i < 16; i++) {
		if (want->gpr[i] != have->gpr[i])
			MISMATCH("%s: register %d is %#lx, not %#lx", what, i, have->gpr[i], want->gpr[i]);
	}
	if ((want->flags ^ have->flags) & flags_mask)
		MISMATCH("%s: flags are %#lx, not %#lx", what, have->flags, want->flags);
}

static inline void compare_bytes(const char *what, const uint8_t *want, const uint8_t *have)
{
	for (unsigned i = 0; i < ARENA_USABLE; i++) {
		if (want[i] != have[i])
			MISMATCH("%s: byte at arena + %#x is %02x, not %02x", what, i + 4096, have[i],
			        want[i]);
	}
}

/*
 * Replay: from the shadow as it was, with what the log has over it, the CPU must
 * get to the same registers, and memory must become what the shadow is.
 */
static inline struct outcome replay_run(const struct registers *regs)
{
	static struct image image;

	image = shadow_before;
	for (uint32_t i = 0; i < patch_count; i++)
		image.bytes[patches[i].offset - 4096] = patches[i].value;
	image_put(&image);
	return native_run(regs, case_code, case_size);
}

static inline uint64_t seed_from(const char *name, uint64_t fallback)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 0) : fallback;
}

#endif
