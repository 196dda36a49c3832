/*
 * The boundary between translated code and the stub's C. Everything that must
 * not be interrupted half-way is here, so that the signal handler can tell from
 * the program counter alone what state the thread is in:
 *
 *   resume_window   the program's state is complete in thread.regs and nothing
 *                   has been done yet that could not be forgotten: a signal is
 *                   delivered from thread.regs.
 *   syscall_window  the same, with the program about to make a system call:
 *                   a signal that arrives before (or is found pending by the
 *                   test) is delivered first and the call made again after the
 *                   handler, so that no wake-up is lost.
 *   recoveries      the only code that touches the program's memory; a fault
 *                   makes it return -EFAULT.
 *   elsewhere       the stub is busy: the signal is kept until it resumes.
 */
#include "target/layout.h"

	.text
	.set	threads, stub_image + LAYOUT_THREADS
	.set	table_base, stub_image + LAYOUT_INFO
	.set	first_distance, stub_image + LAYOUT_INFO + 8*BRANCH_TABLES + 8
	.set	detaining, stub_image + LAYOUT_CHANNEL + CHANNEL_DETAINING

#define OWN(offset)      %gs:threads+(offset)(%rip)
#define SLOT(n)          OWN(8*(n))
#define REGISTER(n)      OWN(THREAD_REGS+8*(n))

	.macro	save_registers
	mov	%rax, REGISTER(0)
	mov	%rcx, OWN(THREAD_PC)
	mov	SLOT(SLOT_RCX), %rax
	mov	%rax, REGISTER(1)
	mov	%rdx, REGISTER(2)
	mov	%rbx, REGISTER(3)
	mov	%rsp, REGISTER(4)
	mov	%rbp, REGISTER(5)
	mov	%rsi, REGISTER(6)
	mov	%rdi, REGISTER(7)
	mov	%r8, REGISTER(8)
	mov	%r9, REGISTER(9)
	mov	%r10, REGISTER(10)
	mov	%r11, REGISTER(11)
	mov	%r12, REGISTER(12)
	mov	%r13, REGISTER(13)
	mov	%r14, REGISTER(14)
	mov	%r15, REGISTER(15)
	mov	OWN(THREAD_STACK), %rsp
	pushfq
	popq	OWN(THREAD_FLAGS)
	pushq	$2		/* C wants DF clear; AC and TF must not reach it either */
	popfq
	mov	SLOT(SLOT_THREAD), %rdi
	xor	%ebp, %ebp
	.endm

	.macro	load_registers_but_rax_rcx_rsp
	mov	REGISTER(2), %rdx
	mov	REGISTER(3), %rbx
	mov	REGISTER(5), %rbp
	mov	REGISTER(6), %rsi
	mov	REGISTER(7), %rdi
	mov	REGISTER(8), %r8
	mov	REGISTER(9), %r9
	mov	REGISTER(10), %r10
	mov	REGISTER(11), %r11
	mov	REGISTER(12), %r12
	mov	REGISTER(13), %r13
	mov	REGISTER(14), %r14
	mov	REGISTER(15), %r15
	.endm

	/* The thread whose place is in rax begins to be one of ours. */
	.macro	enter_thread
	wrgsbase %rax
	lea	stub_image+LAYOUT_THREADS+THREAD_STACK_TOP(%rip), %rsp
	add	%rax, %rsp
	xor	%ebp, %ebp
	pushq	$2
	popfq
	.endm

	.globl	stub_image
stub_image:
	.quad	STUB_MAGIC
	.quad	stub_end - stub_image
	.quad	start_entry - stub_image
	.quad	resume - stub_image
	.quad	fetched - stub_image
	.quad	adopted - stub_image
	.quad	release_entry - stub_image
	.quad	left - stub_image
	.quad	syscall_window_end - stub_image
	.quad	back_out - stub_image
	.quad	routine_exit - stub_image
	.quad	routine_miss - stub_image
	.quad	routine_syscall - stub_image
	.quad	routine_emulate - stub_image
	.quad	routine_access - stub_image
	.quad	routine_stop - stub_image
	.quad	routine_filtered - stub_image

/*
 * The first code of ours in the target, at the program's first instruction. The
 * program's stack must not be touched, and there is no other yet.
 */
start_entry:
	lea	stub_image+LAYOUT_PROCESS(%rip), %rdi
	mov	$LAYOUT_THREADS-LAYOUT_PROCESS+FIRST_THREADS*THREAD_STRIDE, %esi	/* up to the first thread */
	mov	$3, %edx				/* PROT_READ | PROT_WRITE */
	mov	$10, %eax				/* mprotect */
	syscall
	test	%rax, %rax
	jnz	1f
	mov	first_distance(%rip), %rax
	enter_thread
	call	start
	jmp	resume
1:	mov	$125, %edi
	mov	$231, %eax				/* exit_group */
	syscall

routine_miss:
	mov	SLOT(SLOT_R11), %r11
	save_registers
	mov	$1, %esi
	call	handle_exit
	jmp	resume

routine_exit:
	save_registers
	xor	%esi, %esi
	call	handle_exit
	jmp	resume

routine_syscall:
	save_registers
	call	handle_syscall
	jmp	resume

routine_access:
	save_registers
	call	handle_access
	jmp	resume

/*
 * An access of a replayed thread, as in routine_access. If none of its words is wanted it is only noted as known:
 * leaving translated code takes ten times as long, and whoever watches a variable has others on the same line. There
 * are no signals in a replay, so nobody looks at the thread meanwhile.
 */
routine_filtered:
	mov	%rcx, OWN(THREAD_PC)
	mov	%rax, REGISTER(0)
	mov	%rdx, REGISTER(2)
	mov	%r11, REGISTER(11)
	lahf
	seto	%al
	mov	SLOT(SLOT_ADDRESS), %rdx
	mov	SLOT(SLOT_DETAIL), %ecx
	shr	$4, %ecx
	and	$0xfff, %ecx			/* ACCESS_SIZE */
	cmp	$8*(TRACE_WORDS_MORE-1), %ecx
	ja	1f
	mov	%edx, %r11d
	and	$7, %r11d
	lea	7(%rcx,%r11), %r11d
	shr	$3, %r11d			/* so many words, 1 to 8: */
	shr	$3, %rdx
	movzwl	%dx, %edx
	add	OWN(THREAD_WANTED), %rdx
	mov	(%rdx), %rdx
	mov	$8, %ecx
	sub	%r11d, %ecx
	shl	$3, %ecx
	shl	%cl, %rdx			/* what is behind them falls out */
	test	%rdx, %rdx
	jnz	1f
	mov	SLOT(SLOT_DETAIL), %ecx
	shr	$4, %ecx
	and	$0xfff, %ecx
	mov	SLOT(SLOT_ADDRESS), %rdx
	shr	$KNOWN_WINDOW_BITS, %rdx
	movabs	$KNOWN_TABLE, %r11
	mov	(%r11,%rdx,8), %r11		/* known_appears() puts in another one if there is no region */
	mov	SLOT(SLOT_ADDRESS), %edx
2:	sub	$8, %ecx
	jb	3f
	movq	$-1, (%r11,%rdx)
	add	$8, %rdx
	jmp	2b
3:	test	$4, %cl				/* what is left, less 8 */
	jz	4f
	movl	$-1, (%r11,%rdx)
	add	$4, %rdx
4:	test	$2, %cl
	jz	5f
	movw	$-1, (%r11,%rdx)
	add	$2, %rdx
5:	test	$1, %cl
	jz	6f
	movb	$-1, (%r11,%rdx)
6:	add	$0x7f, %al			/* overflows if there was one */
	sahf
	mov	REGISTER(11), %r11
	mov	REGISTER(2), %rdx
	mov	REGISTER(0), %rax
	mov	SLOT(SLOT_RCX), %rcx
	jmp	*OWN(THREAD_PC)
1:	add	$0x7f, %al
	sahf
	mov	REGISTER(11), %r11
	mov	REGISTER(2), %rdx
	mov	REGISTER(0), %rax
	mov	OWN(THREAD_PC), %rcx
	jmp	routine_access

routine_stop:
	save_registers
	call	handle_stop
	jmp	resume

routine_emulate:
	save_registers
	call	handle_emulate
	/* fall through */

/*
 * Back to translated code: to SLOT_TARGET when the code's address is known,
 * else through the branch table.
 */
	.globl	resume, resume_window_start, resume_window_end
resume:
resume_window_start:
	movl	$0, OWN(THREAD_PARKED)
	cmpl	$0, detaining(%rip)
	jne	resume_detained
resume_admitted:
	cmpl	$0, OWN(THREAD_PENDING)
	jne	resume_pending
	mov	OWN(THREAD_STACK), %rsp
	mov	SLOT(SLOT_TARGET), %rax
	test	%rax, %rax
	jz	resume_by_table
	load_registers_but_rax_rcx_rsp
	pushq	OWN(THREAD_FLAGS)
	popfq
	mov	REGISTER(0), %rax
	mov	REGISTER(1), %rcx
	mov	REGISTER(4), %rsp
	jmp	*SLOT(SLOT_TARGET)
resume_by_table:
	mov	REGISTER(11), %rax
	mov	%rax, SLOT(SLOT_R11)
	mov	REGISTER(1), %rax
	mov	%rax, SLOT(SLOT_RCX)
	mov	$BRANCH_NONE, %eax
	mov	%rax, SLOT(SLOT_BRANCH)
	load_registers_but_rax_rcx_rsp
	pushq	OWN(THREAD_FLAGS)
	popfq
	mov	REGISTER(0), %rax
	mov	REGISTER(4), %rsp
	mov	OWN(THREAD_PC), %rcx
	mov	table_base(%rip), %r11
	mov	%cx, %r11w
	jmp	*(,%r11,8)
resume_window_end:

/* Where the supervisor puts a thread that it has taken out of translated code, see record/keyframes.c. */
	.globl	fetched
fetched:
	mov	SLOT(SLOT_THREAD), %rdi
	xor	%ebp, %ebp
	call	log_keyframe
	jmp	resume

/* A thread of a program that was running already. Its place is in rax; all signals are blocked. */
adopted:
	enter_thread
	mov	SLOT(SLOT_THREAD), %rdi
	call	thread_adopted
	jmp	resume

/* The same as below for a thread that was stopped in syscall_window: it makes the call natively. */
left:
	subq	$2, OWN(THREAD_PC)
	decq	SLOT(SLOT_POSITION)

/* The thread leaves for good, see release(). */
	.globl	release_entry
release_entry:
	mov	OWN(THREAD_STACK), %rsp
	mov	SLOT(SLOT_THREAD), %rdi
	call	release
	hlt

resume_detained:
	mov	OWN(THREAD_STACK), %rsp
	mov	SLOT(SLOT_THREAD), %rdi
	xor	%ebp, %ebp
	call	detained
	jmp	resume_admitted

resume_pending:
	mov	OWN(THREAD_STACK), %rsp
	mov	SLOT(SLOT_THREAD), %rdi
	call	deliver_pending
	hlt

/* uint64_t syscall_window(void): makes the system call in thread.regs. */
	.globl	back_out, syscall_window, syscall_window_start, syscall_window_end
syscall_window:
	mov	REGISTER(0), %rax
	mov	REGISTER(7), %rdi
	mov	REGISTER(6), %rsi
	mov	REGISTER(2), %rdx
	mov	REGISTER(10), %r10
	mov	REGISTER(8), %r8
	mov	REGISTER(9), %r9
syscall_window_start:
	cmpl	$0, OWN(THREAD_PENDING)
	jne	back_out
	movl	$PARKED_CALLING, OWN(THREAD_PARKED)
	syscall
syscall_window_end:
	movl	$0, OWN(THREAD_PARKED)
	ret
back_out:
	subq	$2, OWN(THREAD_PC)
	decq	SLOT(SLOT_POSITION)
	jmp	resume

/* uint64_t int80_window(void): the same for int $0x80, which is two bytes long as well. */
	.globl	int80_window, int80_window_start, int80_window_end
int80_window:
	push	%rbx
	push	%rbp
	mov	REGISTER(0), %rax
	mov	REGISTER(3), %rbx
	mov	REGISTER(1), %rcx
	mov	REGISTER(2), %rdx
	mov	REGISTER(6), %rsi
	mov	REGISTER(7), %rdi
	mov	REGISTER(5), %rbp
int80_window_start:
	cmpl	$0, OWN(THREAD_PENDING)
	jne	back_out
	movl	$PARKED_CALLING, OWN(THREAD_PARKED)
	int	$0x80
int80_window_end:
	movl	$0, OWN(THREAD_PARKED)
	pop	%rbp
	pop	%rbx
	ret

/*
 * long clone_thread(long number, const uint64_t arguments[5], uint64_t child_gs_base)
 * The child starts on its own stub stack, which the arguments name.
 */
	.globl	clone_thread
clone_thread:
	push	%r12
	mov	%rdi, %rax
	mov	%rdx, %r12
	mov	%rsi, %r11
	mov	0(%r11), %rdi
	mov	8(%r11), %rsi
	mov	16(%r11), %rdx
	mov	24(%r11), %r10
	mov	32(%r11), %r8
	syscall
	test	%rax, %rax
	jz	1f
	pop	%r12
	ret
1:	wrgsbase %r12
	xor	%ebp, %ebp
	mov	SLOT(SLOT_THREAD), %rdi
	call	thread_begin
	jmp	resume

/*
 * long clone_native(long number, const uint64_t arguments[5]): the child is not ours. It has the program's registers, and below
 * the red zone of its stack, which the arguments name, its GS base and then what leave_with_mask takes.
 */
	.globl	clone_native
clone_native:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	mov	%rdi, %rax
	mov	%rsi, %rcx
	load_registers_but_rax_rcx_rsp
	mov	0(%rcx), %rdi
	mov	8(%rcx), %rsi
	mov	16(%rcx), %rdx
	mov	24(%rcx), %r10
	mov	32(%rcx), %r8
	syscall
	test	%rax, %rax
	jz	1f
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret
1:	pop	%rax
	wrgsbase %rax
	jmp	leave_on_stack

/*
 * void leave_thread(uint64_t *word, uint64_t mask): clears the thread's bit, which
 * makes its memory anybody's, and ends it without touching memory any more.
 * All signals are blocked.
 */
	.globl	leave_thread
leave_thread:
	mov	REGISTER(7), %rax		/* the program's exit status */
	lock	andq %rsi, (%rdi)
	mov	%rax, %rdi
	mov	$60, %eax			/* exit */
	syscall
	hlt

/*
 * The one handler the kernel knows. Runs on the thread's alternate stack with
 * all signals blocked but those that faults raise; see signal_thread for whose it is.
 */
	.globl	signal_entry
signal_entry:
	rdgsbase %r8
	push	%rdi
	push	%rsi
	push	%rdx
	push	%r8
	pushfq				/* AC must not reach C; ID must stay: rt_sigreturn leaves it as it is */
	andl	$~0x40000, (%rsp)
	popfq
	mov	%rsp, %rbx
	mov	%r8, %rdi
	mov	%rsp, %rsi
	and	$-16, %rsp
	call	signal_thread			/* gives the GS base of the thread it is for, or 0: not ours */
	mov	%rbx, %rsp
	pop	%r8
	pop	%rdx
	pop	%rsi
	pop	%rdi
	test	%rax, %rax
	jz	signal_native
	wrgsbase %rax
	mov	%rsp, %rbx
	and	$-16, %rsp
	mov	SLOT(SLOT_THREAD), %rcx
	call	handle_signal			/* gives the GS base to go on with */
	wrgsbase %rax
	lea	8(%rbx), %rsp
	mov	$15, %eax			/* rt_sigreturn */
	syscall
	hlt
signal_native:
	push	%rdi
	push	%rsi
	push	%rdx
	call	native_handler			/* the program's handler, with its mask in force */
	pop	%rdx
	pop	%rsi
	pop	%rdi
	jmp	*%rax

/*
 * void return_from_frame(struct signal_frame *frame): as if the kernel had called
 * a handler on it. The frame replaces vector state and mask, so a signal that was
 * captured before must go back to the kernel's queue: it belongs after this.
 */
	.globl	return_from_frame, return_window_start, return_window_end
return_from_frame:
	lea	8(%rdi), %rsp
return_window_start:
	cmpl	$0, OWN(THREAD_PENDING)
	jne	1f
	mov	$15, %eax
	syscall
return_window_end:
	hlt
1:	mov	%rsp, %rbx
	and	$-16, %rsp
	mov	SLOT(SLOT_THREAD), %rdi
	call	requeue_pending
	mov	%rbx, %rsp
	jmp	return_window_start

/* void return_natively(struct signal_frame *frame, uint64_t gs_base): the same, with the program's GS base. */
	.globl	return_natively
return_natively:
	lea	8(%rdi), %rsp
	wrgsbase %rsi
	mov	$15, %eax
	syscall
	hlt

/*
 * void leave_with_mask(void): as run_natively, for one who has blocked all signals. The program's mask comes into force where
 * the thread is no longer ours to the handler: what comes then, comes to the program's own. Below its rax on the
 * stack are the mask and what the call takes: rdi, rsi, rdx, r10, r11, rcx.
 */
	.globl	leave_with_mask
leave_with_mask:
	load_registers_but_rax_rcx_rsp
	mov	REGISTER(4), %rsp
	mov	SLOT(SLOT_PROGRAM_GS), %rax
	lea	-(128 + 8 * LEAVE_WORDS)(%rsp), %rsp
	wrgsbase %rax
leave_on_stack:
	mov	$14, %eax			/* rt_sigprocmask */
	mov	$2, %edi			/* SIG_SETMASK */
	mov	%rsp, %rsi
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
	lea	8(%rsp), %rsp
	pop	%rdi
	pop	%rsi
	pop	%rdx
	pop	%r10
	pop	%r11
	pop	%rcx
	pop	%rax
	popfq
	ret	$128

/*
 * void run_natively(void): leaves for good. The program's rax, flags and pc have
 * been written below its red zone, where the kernel writes signal frames too.
 */
	.globl	run_natively
run_natively:
	load_registers_but_rax_rcx_rsp
	mov	REGISTER(1), %rcx
	mov	REGISTER(4), %rsp
	mov	SLOT(SLOT_PROGRAM_GS), %rax
	lea	-152(%rsp), %rsp
	wrgsbase %rax
	pop	%rax
	popfq
	ret	$128

/*
 * void probe_natively(void): one instruction at the program's pc with all that is
 * the program's, the GS base included. It faults, or TF takes it back.
 */
	.globl	probe_natively, probe_start, probe_jump
probe_natively:
probe_start:
	mov	OWN(THREAD_STACK), %rsp
	pushq	$2
	popfq					/* NT would forbid iretq */
	mov	%ss, %eax
	push	%rax
	pushq	REGISTER(4)
	pushq	OWN(THREAD_FLAGS)
	orl	$0x100, (%rsp)
	andl	$~0x10000, (%rsp)
	mov	%cs, %eax
	push	%rax
	pushq	OWN(THREAD_PC)
	pushq	REGISTER(0)
	load_registers_but_rax_rcx_rsp
	mov	REGISTER(1), %rcx
	mov	SLOT(SLOT_PROGRAM_GS), %rax
	wrgsbase %rax
	pop	%rax
probe_jump:
	iretq

/* void raise_trap(void): a trap like that of TF, with nothing but the vector state in place. */
	.globl	raise_trap
raise_trap:
	pushq	$0x102
	popfq
	nop
	hlt

/* long call_vsyscall(void): the function at the program's pc with the program's arguments; -1: it faulted. */
	.globl	call_vsyscall, vsyscall_fault
call_vsyscall:
	mov	REGISTER(7), %rdi
	mov	REGISTER(6), %rsi
	mov	REGISTER(2), %rdx
	call	*OWN(THREAD_PC)
	ret
vsyscall_fault:
	add	$8, %rsp			/* it never returned */
	mov	$-1, %rax
	ret

/* long usercopy_direct(void *to, const void *from, size_t size): 0 or -EFAULT. */
	.globl	usercopy_direct
usercopy_direct:
	mov	%rdx, %rcx
usercopy_start:
	rep	movsb
	xor	%eax, %eax
	ret

/* long load_line(void *to, const void *from): 64 bytes, each eight of them at once. */
	.globl	load_line
load_line:
	.set	at, 0
	.rept	8
	mov	at(%rsi), %rax
	mov	%rax, at(%rdi)
	.set	at, at + 8
	.endr
	xor	%eax, %eax
	ret

/*
 * long match_lines(const void *memory, const void *shadow, size_t count): how many lines of
 * 64 bytes are the same in both before the first that is not.
 */
	.globl	match_lines
match_lines:
	xor	%eax, %eax
1:	cmp	%rdx, %rax
	jae	2f
	mov	(%rdi), %rcx
	xor	(%rsi), %rcx
	.set	at, 8
	.rept	7
	mov	at(%rdi), %r8
	xor	at(%rsi), %r8
	or	%r8, %rcx
	.set	at, at + 8
	.endr
	test	%rcx, %rcx
	jnz	2f
	add	$64, %rdi
	add	$64, %rsi
	inc	%rax
	jmp	1b
2:	ret

/* long probe_write(void *at, size_t size): can the first and the last byte be written? Changes nothing. */
	.globl	probe_write
probe_write:
	lock	orb $0, (%rdi)
	lock	orb $0, -1(%rdi,%rsi)
	xor	%eax, %eax
	ret
usercopy_end:
usercopy_fault:
	mov	$-14, %rax
	ret

/* void touch(void *at, bool writes): a byte, as the program would: a fault is the program's, see handle_touch. */
	.globl	touch, touch_start, touch_end
touch:
touch_start:
	test	%esi, %esi
	jnz	1f
	mov	(%rdi), %al
	ret
1:	lock	orb $0, (%rdi)
touch_end:
	ret

/*
 * long exchange_direct(uint64_t at, const uint64_t expected[2], const uint64_t wanted[2], size_t size)
 * 0, 1: not what was expected, or -EFAULT.
 */
	.globl	exchange_direct
exchange_direct:
	mov	(%rsi), %rax
	mov	(%rdx), %r8
	mov	%rbx, %r9
	cmp	$8, %ecx
exchange_start:
	ja	16f
	je	8f
	cmp	$2, %ecx
	ja	4f
	je	2f
	lock	cmpxchg %r8b, (%rdi)
	jmp	1f
2:	lock	cmpxchg %r8w, (%rdi)
	jmp	1f
4:	lock	cmpxchg %r8d, (%rdi)
	jmp	1f
8:	lock	cmpxchg %r8, (%rdi)
	jmp	1f
16:	mov	%r8, %rbx
	mov	8(%rdx), %rcx
	mov	8(%rsi), %rdx
	lock	cmpxchg16b (%rdi)
	mov	%r9, %rbx
exchange_end:
1:	setne	%al
	movzbl	%al, %eax
	ret
exchange_fault:
	mov	%r9, %rbx
	mov	$-14, %rax
	ret

/* long restore_direct(const void *from, unsigned what, uint32_t low, uint32_t high): RESTORE_*; 0 or -EFAULT. */
	.globl	restore_direct
restore_direct:
	mov	%edx, %eax
	mov	%ecx, %edx
restore_start:
	test	$RESTORE_EXTENDED, %esi
	jz	2f
	test	$RESTORE_WIDE, %esi
	jz	1f
	xrstor64 (%rdi)
	jmp	4f
1:	xrstor	(%rdi)
	jmp	4f
2:	test	$RESTORE_WIDE, %esi
	jz	3f
	fxrstor64 (%rdi)
	jmp	4f
3:	fxrstor	(%rdi)
restore_end:
4:	xor	%eax, %eax
	ret

	.globl	recoveries, recoveries_end
	.balign	4
recoveries:
	.long	usercopy_start - stub_image, usercopy_end - stub_image, usercopy_fault - stub_image
	.long	exchange_start - stub_image, exchange_end - stub_image, exchange_fault - stub_image
	.long	restore_start - stub_image, restore_end - stub_image, usercopy_fault - stub_image
recoveries_end:

	.section .note.GNU-stack, "", @progbits
