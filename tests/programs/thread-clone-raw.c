/*
 * clone and clone3 as system calls, without libc's help: a thread with its own stack and TLS that shares
 * memory, sets and clears the tid words, and ends with the exit system call. The child starts at the
 * instruction after the call with its registers.
 */
#include "check.h"
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <asm/prctl.h>

#define FLAGS                                                                                                \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |   \
	        CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

struct shared {
	uint64_t seen_fs, seen_registers, sum, input;
	uint32_t parent_tid, child_tid, real_tid;
};

/* Everything the child does; no libc: its FS base is not libc's. r12 to r15 and xmm7 must come over from the
 * parent. */
long start_clone(long number, long a, long b, long c, long d, long e, struct shared *shared);
asm(".globl start_clone\n"
    "start_clone:\n"
    "	pushq %rbx\n	pushq %r12\n	pushq %r13\n	pushq %r14\n	pushq %r15\n"
    "	movq %rdi, %rax\n"
    "	movq %rsi, %rdi\n"
    "	movq %rdx, %rsi\n"
    "	movq %rcx, %rdx\n"
    "	movq %r8, %r10\n"
    "	movq %r9, %r8\n"
    "	movq 48(%rsp), %rbx\n"
    "	movabsq $0x1111111122222222, %r12\n"
    "	movabsq $0x3333333344444444, %r13\n"
    "	movq %r12, %xmm7\n"
    "	leaq 7f(%rip), %r15\n"
    "	syscall\n"
    "7:\n"
    "	testq %rax, %rax\n"
    "	jz 1f\n"
    "	popq %r15\n	popq %r14\n	popq %r13\n	popq %r12\n	popq %rbx\n"
    "	ret\n"
    "1:	xorl %ebp, %ebp\n"
    "	movq %fs:0, %rax\n"
    "	movq %rax, (%rbx)\n"
    "	movq %xmm7, %r14\n"
    "	cmpq %rcx, %r15\n" /* rcx is the return pc of the system call */
    "	jne 2f\n"
    "	cmpq %r12, %r14\n"
    "	jne 2f\n"
    "	movq %r13, 8(%rbx)\n"
    "2:	movq 24(%rbx), %rcx\n"
    "	xorl %edx, %edx\n"
    "3:	imulq $31, %rdx, %rdx\n"
    "	addq %rcx, %rdx\n"
    "	decq %rcx\n"
    "	jnz 3b\n"
    "	movq %rdx, 16(%rbx)\n"
    "	movl $186, %eax\n" /* gettid */
    "	syscall\n"
    "	movl %eax, 40(%rbx)\n"
    "	xorl %edi, %edi\n"
    "	movl $60, %eax\n"
    "	syscall\n"
    "	ud2\n");

static void wait_gone(uint32_t *word)
{
	uint32_t value;
	while ((value = __atomic_load_n(word, __ATOMIC_SEQ_CST)))
		syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

int main(void)
{
	static uint64_t tls[64];
	uint64_t expected = 0;
	char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stack != MAP_FAILED);

	tls[0] = 0xfeedface;
	for (uint64_t i = 5000; i; i--)
		expected = expected * 31 + i;
	for (int round = 0; round < 300; round++) {
		struct shared shared = {.input = 5000, .child_tid = 1};
		long tid;
		if (round & 1) {
			struct clone_args args = {.flags = FLAGS,
			        .child_tid = (uint64_t)&shared.child_tid,
			        .parent_tid = (uint64_t)&shared.parent_tid,
			        .stack = (uint64_t)stack,
			        .stack_size = 65536,
			        .tls = (uint64_t)tls};
			tid = start_clone(SYS_clone3, (long)&args, sizeof args, 0, 0, 0, &shared);
			if (tid == -ENOSYS)
				continue;
		} else {
			tid = start_clone(SYS_clone, FLAGS, (long)(stack + 65536), (long)&shared.parent_tid,
			        (long)&shared.child_tid, (long)tls, &shared);
		}
		CHECK(tid > 0);
		wait_gone(&shared.child_tid);
		CHECK_EQ(shared.parent_tid, tid);
		CHECK_EQ(shared.real_tid, tid);
		CHECK_EQ(shared.seen_fs, 0xfeedface);
		CHECK_EQ(shared.seen_registers, 0x3333333344444444);
		CHECK_EQ(shared.sum, expected);
	}
	CHECK_EQ(start_clone(SYS_clone, CLONE_THREAD, 0, 0, 0, 0, NULL), -EINVAL);
	CHECK_EQ(start_clone(SYS_clone3, 8, 64, 0, 0, 0, NULL), -EFAULT);
	CHECK_EQ(start_clone(SYS_clone3, (long)stack, 8, 0, 0, 0, NULL), -EINVAL);
	return done();
}
