/*
 * Gathers that end in a fault. What the handler sees of them, elements and mask, must not depend on page
 * faults that the kernel resolves on the way, nor on interrupts: AMD's processors load the elements in their
 * order, so everything before the one that faults is done, and nothing behind it. Others may be further, but
 * a gather never skips.
 */
#include "instruction.h"
#include <sys/time.h>

/* index ymm2, mask ymm3, result ymm4; base rdi */
#define GATHER(name, instruction)                                                                            \
	SNIPPET(name, "vmovdqu (%rsi), %ymm2; vmovdqu (%rdx), %ymm3; vmovdqu (%rcx), %ymm4\n" instruction    \
	              "\n vmovdqu %ymm3, (%rdx); vmovdqu %ymm4, (%rcx); vzeroupper; ret")
GATHER(dwords_8, "vpgatherdd %ymm3, (%rdi,%ymm2), %ymm4");
GATHER(dwords_4, "vpgatherdd %xmm3, (%rdi,%xmm2), %xmm4");
GATHER(quadwords_4, "vpgatherqq %ymm3, (%rdi,%ymm2), %ymm4");
GATHER(doubles_4, "vgatherdpd %ymm3, (%rdi,%xmm2), %ymm4");
GATHER(singles_4, "vgatherqps %xmm3, (%rdi,%ymm2), %xmm4");

static const struct kind {
	const char *name, *code;
	unsigned count, index_size, element_size;
} kinds[] = {{"vpgatherdd ymm", dwords_8, 8, 4, 4}, {"vpgatherdd xmm", dwords_4, 4, 4, 4},
        {"vpgatherqq ymm", quadwords_4, 4, 8, 8}, {"vgatherdpd ymm", doubles_4, 4, 4, 8},
        {"vgatherqps xmm", singles_4, 4, 8, 4}};

enum { PAGES = 8, UPPER_HALVES = 576, NOT_LOADED = 0xee };

static unsigned char *memory; /* a page for each element, then nothing */
static struct vectors {
	uint8_t mask[32], result[32];
} seen;
static uint64_t address;
static sigjmp_buf back;
static volatile sig_atomic_t ticks;

static void on_missing_element(int number, siginfo_t *info, void *context)
{
	const uint8_t *image = (const uint8_t *)((ucontext_t *)context)->uc_mcontext.fpregs;
	(void)number;
	for (unsigned half = 0; half < 2; half++) {
		unsigned at = half ? UPPER_HALVES : 160;
		memcpy(seen.mask + 16 * half, image + at + 16 * 3, 16);
		memcpy(seen.result + 16 * half, image + at + 16 * 4, 16);
	}
	address = ADDRESS(info->si_addr);
	siglongjmp(back, 1);
}

static void on_tick(int number)
{
	(void)number;
	ticks = ticks + 1;
}

/* The place of element `i`; that of the one that faults is behind all pages. */
static unsigned offset(unsigned i, unsigned fault)
{
	return (unsigned)((i == fault ? PAGES : i) * PAGE + 64 * i + 8);
}

/* Pages of the set are not present: the kernel brings them back from the file when they are touched. */
static void gather(const struct kind *kind, unsigned fault, unsigned absent)
{
	uint8_t index[32] = {0};
	struct vectors registers;
	for (unsigned i = 0; i < kind->count; i++) {
		uint64_t at = offset(i, fault);
		memcpy(index + i * kind->index_size, &at, kind->index_size);
	}
	memset(registers.mask, 0xff, sizeof registers.mask);
	memset(registers.result, NOT_LOADED, sizeof registers.result);
	for (unsigned page = 0; page < PAGES; page++)
		if (absent >> page & 1)
			CHECK(madvise(memory + page * PAGE, PAGE, MADV_DONTNEED) == 0);
		else
			*(volatile unsigned char *)(memory + page * PAGE);
	if (sigsetjmp(back, 1) == 0) {
		call(kind->code, ADDRESS(memory), ADDRESS(index), ADDRESS(registers.mask),
		        ADDRESS(registers.result));
		CHECK(!"no fault");
	}
	CHECK_EQ(address, ADDRESS(memory) + offset(fault, fault));
}

static bool is_done(const struct kind *kind, unsigned i)
{
	return !(seen.mask[(i + 1) * kind->element_size - 1] & 0x80);
}

/* What may have been done is loaded, the rest is as before. Was nothing done behind the element that faults?
 */
static bool in_order(const struct kind *kind, unsigned fault)
{
	bool ordered = true;
	for (unsigned i = 0; i < kind->count; i++) {
		uint8_t expected[8];
		memset(expected, NOT_LOADED, sizeof expected);
		if (is_done(kind, i))
			memcpy(expected, memory + offset(i, fault), kind->element_size);
		CHECK(i < fault ? is_done(kind, i) : i > fault || !is_done(kind, i));
		CHECK(memcmp(expected, seen.result + i * kind->element_size, kind->element_size) == 0);
		ordered &= i <= fault || !is_done(kind, i);
	}
	return ordered;
}

int main(void)
{
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2"))
		skip("no AVX2");
	int file = memfd_create("elements", 0);
	memory = mmap(NULL, (PAGES + 1) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(file >= 0 && ftruncate(file, PAGES * PAGE) == 0 && memory != MAP_FAILED);
	CHECK(mmap(memory, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == memory);
	for (unsigned n = 0; n < PAGES * PAGE; n++)
		memory[n] = (unsigned char)(n % 199 + n / PAGE);
	struct sigaction fault_action = {.sa_sigaction = on_missing_element, .sa_flags = SA_SIGINFO},
	                 tick_action = {.sa_handler = on_tick};
	CHECK(sigaction(SIGSEGV, &fault_action, NULL) == 0 && sigaction(SIGALRM, &tick_action, NULL) == 0);

	for (const struct kind *kind = kinds; kind < kinds + sizeof kinds / sizeof *kinds; kind++) {
		bool ordered = true;
		for (unsigned fault = 0; fault < kind->count; fault++)
			for (unsigned absent = 0; absent < 1u << kind->count; absent++) {
				gather(kind, fault, absent);
				ordered &= in_order(kind, fault);
			}
		struct itimerval period = {{0, 300}, {0, 300}}, none = {{0, 0}, {0, 0}};
		setitimer(ITIMER_REAL, &period, NULL);
		ticks = 0;
		for (unsigned round = 0; round < 200 || ticks < 20; round++) {
			gather(kind, round % kind->count, round);
			ordered &= in_order(kind, round % kind->count);
		}
		setitimer(ITIMER_REAL, &none, NULL);
		printf("%s: %s\n", kind->name, ordered ? "in order" : "not in order");
	}
	return 0;
}
