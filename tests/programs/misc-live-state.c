/*
 * All registers and flags live across every kind of branch into code that has never run: a chain of generated
 * blocks, each changing a few registers, joined by jmp, jcc, call and ret, indirect jumps through registers
 * and memory, loop, jrcxz, push and ret. The result is compared with a model; then the chain is rebuilt
 * elsewhere and run again.
 *
 * Also live: all of x87 or MMX, ymm0 to ymm15, MXCSR with an odd rounding mode.
 */
#include "check.h"
#include <stddef.h>
#include <sys/mman.h>

#define BLOCKS 200
#define AREA   (BLOCKS * 192u)

struct state {
	uint64_t gpr[16];
	uint64_t flags;
	uint8_t ymm[16][32];
	uint8_t x87[512] __attribute__((aligned(16)));
	uint32_t mxcsr;
};
struct state in, out;
uint64_t saved_rsp, entry_point;
uint64_t targets[BLOCKS + 1];

void run_chain(void);
extern char chain_end[];
asm(".macro load reg, at\n	movq in+\\at(%rip), %\\reg\n.endm\n"
    ".macro save reg, at\n	movq %\\reg, out+\\at(%rip)\n.endm\n"
    ".macro all op\n"
    "	\\op rax, 0\n	\\op rcx, 8\n	\\op rdx, 16\n	\\op rbx, 24\n	\\op rbp, 40\n	\\op rsi, 48\n"
    "	\\op rdi, 56\n	\\op r8, 64\n	\\op r9, 72\n	\\op r10, 80\n	\\op r11, 88\n	\\op r12, 96\n"
    "	\\op r13, 104\n	\\op r14, 112\n	\\op r15, 120\n"
    ".endm\n"
    ".globl run_chain, chain_end\n"
    "run_chain:\n"
    "	pushq %rbx\n	pushq %rbp\n	pushq %r12\n	pushq %r13\n	pushq %r14\n	pushq %r15\n"
    "	subq $8, %rsp\n"
    "	stmxcsr (%rsp)\n"
    "	movq %rsp, saved_rsp(%rip)\n"
    "	fxrstor64 in+656(%rip)\n"
    "	ldmxcsr in+1168(%rip)\n"
    "	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "	vmovdqu in+136+32*\\n(%rip), %ymm\\n\n"
    "	.endr\n"
    "	pushq in+128(%rip)\n"
    "	popfq\n"
    "	all load\n"
    "	jmp *entry_point(%rip)\n"
    "chain_end:\n"
    "	all save\n"
    "	movq %rsp, out+32(%rip)\n"
    "	movq saved_rsp(%rip), %rsp\n"
    "	pushfq\n"
    "	popq out+128(%rip)\n"
    "	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "	vmovdqu %ymm\\n, out+136+32*\\n(%rip)\n"
    "	.endr\n"
    "	fxsave64 out+656(%rip)\n"
    "	stmxcsr out+1168(%rip)\n"
    "	fninit\n"
    "	ldmxcsr (%rsp)\n"
    "	vzeroupper\n"
    "	cld\n"
    "	addq $8, %rsp\n"
    "	popq %r15\n	popq %r14\n	popq %r13\n	popq %r12\n	popq %rbp\n	popq %rbx\n"
    "	ret\n");

_Static_assert(offsetof(struct state, x87) == 656, "the assembly knows this offset");
_Static_assert(offsetof(struct state, mxcsr) == 1168, "the assembly knows this offset");

static uint64_t random_state = 31;
static uint8_t *area, *at;
static struct state model;

static void byte(int value)
{
	*at++ = (uint8_t)value;
}

static void dword(int64_t value)
{
	int32_t small = (int32_t)value;
	CHECK_EQ(small, value);
	memcpy(at, &small, 4);
	at += 4;
}

static void relative(const void *target)
{
	dword((const uint8_t *)target - (at + 4));
}

/* Registers a block may change: not rsp, and not rcx where loop and jrcxz need it. */
static int pick(void)
{
	int reg;
	do
		reg = (int)(next_random(&random_state) % 16);
	while (reg == 4 || reg == 1);
	return reg;
}

/* lea disp(reg), reg: leaves the flags; and sometimes adc, which uses and sets CF */
static void body(void)
{
	for (int i = 0; i < 3; i++) {
		int reg = pick();
		int32_t amount = (int32_t)(next_random(&random_state) & 0x7fffffff);
		if (next_random(&random_state) % 3) {
			byte(0x48 | (reg >> 3) | (reg >> 3) << 2), byte(0x8d);
			byte(0x80 | (reg & 7) << 3 | (reg & 7));
			if ((reg & 7) == 4)
				byte(0x24);
			dword(amount);
			model.gpr[reg] += (uint64_t)amount;
		} else {
			byte(0x48 | reg >> 3), byte(0x81), byte(0xd0 | (reg & 7)), dword(amount); /* adc */
			uint64_t a = model.gpr[reg], carry = model.flags & 1;
			unsigned __int128 wide = (unsigned __int128)a + (uint64_t)amount + carry;
			uint64_t sum = (uint64_t)wide;
			uint64_t flags = (uint64_t)(wide >> 64) & 1;
			flags |= (uint64_t)(!__builtin_parity(sum & 255)) << 2;
			flags |= (a ^ (uint64_t)amount ^ sum) & 16;
			flags |= (uint64_t)(sum == 0) << 6 | sum >> 63 << 7;
			flags |= ((a ^ sum) & ((uint64_t)amount ^ sum)) >> 63 << 11;
			model.flags = (model.flags & ~0x8d5ull) | flags;
			model.gpr[reg] = sum;
		}
	}
}

/* Leaves for the block at `target` in one of many ways, none of which changes a register, or restores it. */
static void leave(unsigned n, const uint8_t *target)
{
	switch (next_random(&random_state) % 9) {
	case 0:
		byte(0xe9), relative(target);
		break;
	case 1: { /* jcc both ways, by the model's flags */
		int carry = (int)(model.flags & 1);
		byte(0x0f), byte(carry ? 0x82 : 0x83), relative(target);
		byte(0x0f), byte(0x0b);
		break;
	}
	case 2: { /* a jump not taken, then one */
		int zero = (int)(model.flags >> 6 & 1);
		byte(0x0f), byte(zero ? 0x85 : 0x84), relative(area);
		byte(0xe9), relative(target);
		break;
	}
	case 3: /* jmp *targets[n](%rip) */
		byte(0xff), byte(0x25), relative(&targets[n]);
		break;
	case 4: /* lea -128(%rsp), %rsp; push rax; mov table, %rax; xchg (%rsp); ret $... : push and ret */
		byte(0x48), byte(0x8d), byte(0x64), byte(0x24), byte(0x80);
		byte(0xff), byte(0x35), relative(&targets[n]);
		byte(0xc2), byte(128), byte(0);
		break;
	case 5: /* call over a trap, whose callee drops the return address: lea 8(%rsp), %rsp */
		byte(0xe8), dword(2);
		byte(0x0f), byte(0x0b);
		byte(0x48), byte(0x8d), byte(0x64), byte(0x24), byte(8);
		byte(0xe9), relative(target);
		break;
	case 6: /* call and ret, then on */
		byte(0xe8), dword(5);
		byte(0xe9), relative(target);
		byte(0xc3);
		break;
	case 7: /* loop with rcx = something large: jumps over a trap, and takes one from rcx */
		byte(0xe2), byte(2), byte(0x0f), byte(0x0b);
		model.gpr[1]--;
		byte(0xe9), relative(target);
		break;
	case 8: /* jrcxz not taken */
		byte(0xe3), byte(5);
		byte(0xe9), relative(target);
		byte(0x0f), byte(0x0b);
		break;
	}
}

static void fill(void)
{
	for (int i = 0; i < 16; i++)
		in.gpr[i] = next_random(&random_state);
	in.gpr[1] |= 1ull << 40;
	in.flags = (next_random(&random_state) & 0xcd5) | 0x202;
	in.flags &= ~0x400ull;
	for (unsigned i = 0; i < sizeof in.ymm; i++)
		((uint8_t *)in.ymm)[i] = (uint8_t)next_random(&random_state);
	asm volatile("fxsave64 %0" : "=m"(in.x87));
	for (int i = 0; i < 8; i++) {
		/* ordinary numbers: explicit one bit, exponent near 1 */
		uint64_t mantissa = next_random(&random_state) | 1ull << 63;
		uint16_t exponent = (uint16_t)(0x3fff + i);
		memcpy(in.x87 + 32 + 16 * i, &mantissa, 8);
		memcpy(in.x87 + 40 + 16 * i, &exponent, 2);
	}
	in.x87[4] = 0xff; /* all in use */
	uint16_t control = 0x37f | 0x400, status = 3 << 11;
	memcpy(in.x87, &control, 2);
	memcpy(in.x87 + 2, &status, 2);
	in.mxcsr = 0x1f80 | 0x6000 | 0x8040; /* round to zero, flush, denormals are zero */
}

int main(void)
{
	if (!__builtin_cpu_supports("avx"))
		skip("no AVX");
	/* near the program, so that rip-relative operands reach its tables */
	area = (uint8_t *)(((uint64_t)&in & ~0xffffull) + (64u << 20));
	area = mmap(area, AREA, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(area != MAP_FAILED);
	if ((uint64_t)area - (uint64_t)&in > 1u << 30)
		skip("no room near the program");

	for (int round = 0; round < 40; round++) {
		uint8_t *place[BLOCKS];
		memset(area, 0xcc, AREA);
		for (unsigned i = 0; i < BLOCKS; i++)
			place[i] = area + i * 192;
		for (unsigned i = BLOCKS - 1; i > 0; i--) {
			unsigned k = (unsigned)(next_random(&random_state) % (i + 1));
			uint8_t *swap = place[i];
			place[i] = place[k];
			place[k] = swap;
		}
		fill();
		model = in;
		for (unsigned i = 0; i < BLOCKS; i++) {
			const uint8_t *target = i + 1 < BLOCKS ? place[i + 1] : (uint8_t *)chain_end;
			targets[i] = (uint64_t)target;
			at = place[i] + next_random(&random_state) % 30;
			if (i)
				targets[i - 1] = (uint64_t)at;
			else
				entry_point = (uint64_t)at;
			place[i] = at;
		}
		for (unsigned i = 0; i < BLOCKS; i++) {
			at = place[i];
			body();
			leave(i, i + 1 < BLOCKS ? place[i + 1] : (uint8_t *)chain_end);
			CHECK(at - place[i] < 160);
		}
		for (int again = 0; again < 2; again++) {
			run_chain();
			for (int i = 0; i < 16; i++)
				if (i != 4 && out.gpr[i] != model.gpr[i])
					fail("round %d.%d: register %d is %#llx, expected %#llx", round,
					        again, i, (long long)out.gpr[i], (long long)model.gpr[i]);
			CHECK_EQ(out.gpr[4], saved_rsp);
			CHECK_EQ(out.flags & 0xcd5, model.flags & 0xcd5);
			CHECK(!memcmp(out.ymm, in.ymm, sizeof in.ymm));
			CHECK_EQ(out.mxcsr, in.mxcsr);
			CHECK(!memcmp(out.x87, in.x87, 6)); /* control, status, tags */
			for (int i = 0; i < 8; i++)
				CHECK(!memcmp(out.x87 + 32 + 16 * i, in.x87 + 32 + 16 * i, 10));
		}
	}
	return done();
}
