/*
 * The way into a sequence and out of it.
 *
 * fuzz_enter() loads every register from fuzz_initial and jumps to the code; the code ends with a jump to
 * fuzz_exit, which saves every register to fuzz_final before it uses any. Nothing but rip-relative addresses
 * is used in between, so that no register of the sequence is disturbed and its stack is not touched.
 *
 * A sequence runs with its own fs and gs bases; signal handlers in C need the thread's own. fuzz_on_signal
 * puts them in place, and back when the sequence goes on.
 */
#include "fuzz.h"

struct machine fuzz_initial, fuzz_final;
uint64_t fuzz_target, fuzz_runner_rsp, fuzz_runner_fs, fuzz_runner_gs;
uint32_t fuzz_runner_fs_selector, fuzz_runner_gs_selector, fuzz_runner_ds, fuzz_runner_es;
uint64_t fuzz_signal_fs, fuzz_signal_gs, fuzz_signal_flags;
uint32_t fuzz_signal_mxcsr;
uint16_t fuzz_signal_cw, fuzz_signal_ds, fuzz_signal_es, fuzz_signal_fs_selector, fuzz_signal_gs_selector;
const uint32_t fuzz_default_mxcsr = 0x1f80;
uint8_t fuzz_set_bases; /* 0: leave the bases alone */
uint8_t fuzz_wide;      /* 0: no registers of AVX-512 */

void enter_setup(void)
{
	uint16_t ds, es, fs, gs;
	__asm__("mov %%ds, %0; mov %%es, %1; mov %%fs, %2; mov %%gs, %3"
	        : "=r"(ds), "=r"(es), "=r"(fs), "=r"(gs));
	fuzz_runner_ds = ds;
	fuzz_runner_es = es;
	fuzz_runner_fs_selector = fs;
	fuzz_runner_gs_selector = gs;
	fuzz_set_bases = !settings.no_bases;
	fuzz_wide = settings.wide;
	if (fuzz_set_bases)
		__asm__ volatile("rdfsbase %0; rdgsbase %1" : "=r"(fuzz_runner_fs), "=r"(fuzz_runner_gs));
}

__asm__(".macro load_vectors\n"
        "	cmpb $0, fuzz_wide(%rip)\n"
        "	jne 1f\n"
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "	vmovdqu fuzz_initial+704+64*\\n(%rip), %ymm\\n\n"
        ".endr\n"
        "	jmp 2f\n"
        "1:\n"
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
        "	vmovdqu64 fuzz_initial+704+64*\\n(%rip), %zmm\\n\n"
        ".endr\n"
        ".irp n, 0,1,2,3,4,5,6,7\n"
        "	kmovq fuzz_initial+2752+8*\\n(%rip), %k\\n\n"
        ".endr\n"
        "2:\n"
        ".endm\n"

        ".macro store_vectors\n"
        "	cmpb $0, fuzz_wide(%rip)\n"
        "	jne 1f\n"
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "	vmovdqu %ymm\\n, fuzz_final+704+64*\\n(%rip)\n"
        ".endr\n"
        "	jmp 2f\n"
        "1:\n"
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
        "	vmovdqu64 %zmm\\n, fuzz_final+704+64*\\n(%rip)\n"
        ".endr\n"
        ".irp n, 0,1,2,3,4,5,6,7\n"
        "	kmovq %k\\n, fuzz_final+2752+8*\\n(%rip)\n"
        ".endr\n"
        "2:\n"
        ".endm\n"

        ".text\n"
        ".globl fuzz_enter\n"
        "fuzz_enter:\n"
        "	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "	mov %rdi, fuzz_target(%rip)\n"
        "	mov %rsp, fuzz_runner_rsp(%rip)\n"
        "	fninit\n" /* the error pointers are zero where FXRSTOR does not load them */
        "	fxrstor64 fuzz_initial+192(%rip)\n"
        "	load_vectors\n"
        "	cmpb $0, fuzz_set_bases(%rip)\n"
        "	je 1f\n"
        "	mov fuzz_initial+136(%rip), %rax; wrfsbase %rax\n"
        "	mov fuzz_initial+144(%rip), %rax; wrgsbase %rax\n"
        "1:	pushq fuzz_initial+128(%rip); popfq\n"
        "	mov fuzz_initial+0(%rip), %rax\n"
        "	mov fuzz_initial+8(%rip), %rcx\n"
        "	mov fuzz_initial+16(%rip), %rdx\n"
        "	mov fuzz_initial+24(%rip), %rbx\n"
        "	mov fuzz_initial+40(%rip), %rbp\n"
        "	mov fuzz_initial+48(%rip), %rsi\n"
        "	mov fuzz_initial+56(%rip), %rdi\n"
        "	mov fuzz_initial+64(%rip), %r8\n"
        "	mov fuzz_initial+72(%rip), %r9\n"
        "	mov fuzz_initial+80(%rip), %r10\n"
        "	mov fuzz_initial+88(%rip), %r11\n"
        "	mov fuzz_initial+96(%rip), %r12\n"
        "	mov fuzz_initial+104(%rip), %r13\n"
        "	mov fuzz_initial+112(%rip), %r14\n"
        "	mov fuzz_initial+120(%rip), %r15\n"
        "	mov fuzz_initial+32(%rip), %rsp\n"
        "	jmp *fuzz_target(%rip)\n"

        ".globl fuzz_exit\n"
        "fuzz_exit:\n"
        "	mov %rax, fuzz_final+0(%rip)\n"
        "	mov %rcx, fuzz_final+8(%rip)\n"
        "	mov %rdx, fuzz_final+16(%rip)\n"
        "	mov %rbx, fuzz_final+24(%rip)\n"
        "	mov %rsp, fuzz_final+32(%rip)\n"
        "	mov %rbp, fuzz_final+40(%rip)\n"
        "	mov %rsi, fuzz_final+48(%rip)\n"
        "	mov %rdi, fuzz_final+56(%rip)\n"
        "	mov %r8, fuzz_final+64(%rip)\n"
        "	mov %r9, fuzz_final+72(%rip)\n"
        "	mov %r10, fuzz_final+80(%rip)\n"
        "	mov %r11, fuzz_final+88(%rip)\n"
        "	mov %r12, fuzz_final+96(%rip)\n"
        "	mov %r13, fuzz_final+104(%rip)\n"
        "	mov %r14, fuzz_final+112(%rip)\n"
        "	mov %r15, fuzz_final+120(%rip)\n"
        "	mov fuzz_runner_rsp(%rip), %rsp\n"
        "	pushfq; popq fuzz_final+128(%rip)\n"
        "	pushq $0x202; popfq\n"
        "	mov %ds, %eax; mov %ax, fuzz_final+160(%rip)\n"
        "	mov %es, %eax; mov %ax, fuzz_final+162(%rip)\n"
        "	mov %fs, %eax; mov %ax, fuzz_final+164(%rip)\n"
        "	mov %gs, %eax; mov %ax, fuzz_final+166(%rip)\n"
        "	fxsave64 fuzz_final+192(%rip)\n"
        "	store_vectors\n"
        "	cmpb $0, fuzz_set_bases(%rip)\n"
        "	je fuzz_recover\n"
        "	rdfsbase %rax; mov %rax, fuzz_final+136(%rip)\n"
        "	rdgsbase %rax; mov %rax, fuzz_final+144(%rip)\n"
        "	call fuzz_own_bases\n"
        /* The signal handler sends a sequence that cannot go on here; its bases are the thread's already. */
        ".globl fuzz_recover\n"
        "fuzz_recover:\n"
        "	mov %ds, %eax; cmp fuzz_runner_ds(%rip), %eax; je 1f; mov fuzz_runner_ds(%rip), %ds\n"
        "1:	mov %es, %eax; cmp fuzz_runner_es(%rip), %eax; je 1f; mov fuzz_runner_es(%rip), %es\n"
        "1:	fninit\n"
        "	ldmxcsr fuzz_default_mxcsr(%rip)\n"
        "	vzeroupper\n"
        "	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
        "	ret\n"

        /* Writes rax. A selector is loaded only when the sequence changed it. */
        "fuzz_own_bases:\n"
        "	mov %fs, %eax; cmp fuzz_runner_fs_selector(%rip), %eax; je 1f; mov "
        "fuzz_runner_fs_selector(%rip), %fs\n"
        "1:	mov %gs, %eax; cmp fuzz_runner_gs_selector(%rip), %eax; je 1f; mov "
        "fuzz_runner_gs_selector(%rip), %gs\n"
        "1:	mov fuzz_runner_fs(%rip), %rax; wrfsbase %rax\n"
        "	mov fuzz_runner_gs(%rip), %rax; wrgsbase %rax\n"
        "	ret\n"

        /* (signal, info, context), on the alternate stack. */
        ".globl fuzz_on_signal\n"
        "fuzz_on_signal:\n"
        "	pushfq; popq fuzz_signal_flags(%rip)\n"
        /* The kernel leaves AC as it was. ID and NT must stay: sigreturn does not bring them back. */
        "	pushfq; andq $~0x40000, (%rsp); popfq\n"
        "	push %rbx; push %r12; push %r13; push %r14; push %r15\n"
        "	stmxcsr fuzz_signal_mxcsr(%rip)\n"
        "	fnstcw fuzz_signal_cw(%rip)\n"
        "	mov %ds, %eax; mov %ax, fuzz_signal_ds(%rip)\n"
        "	mov %es, %eax; mov %ax, fuzz_signal_es(%rip)\n"
        "	mov %fs, %r13d; mov %r13w, fuzz_signal_fs_selector(%rip)\n"
        "	mov %gs, %r14d; mov %r14w, fuzz_signal_gs_selector(%rip)\n"
        "	cmpb $0, fuzz_set_bases(%rip)\n"
        "	je 2f\n"
        "	rdfsbase %rbx; mov %rbx, fuzz_signal_fs(%rip)\n"
        "	rdgsbase %r12; mov %r12, fuzz_signal_gs(%rip)\n"
        "	call fuzz_own_bases\n"
        "2:	call fuzz_signal\n"
        "	test %eax, %eax\n"
        "	je 3f\n"
        "	cmpb $0, fuzz_set_bases(%rip)\n"
        "	je 3f\n"
        "	mov %fs, %eax; cmp %r13d, %eax; je 1f; mov %r13d, %fs\n"
        "1:	mov %gs, %eax; cmp %r14d, %eax; je 1f; mov %r14d, %gs\n"
        "1:	wrfsbase %rbx\n"
        "	wrgsbase %r12\n"
        "3:	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx\n"
        "	ret\n");
