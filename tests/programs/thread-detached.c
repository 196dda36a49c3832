/* Detached threads, some on stacks of the program's own; one that unmaps its own stack and exits by system
 * call. */
#include "check.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

static unsigned finished;

static void *work(void *arg)
{
	(void)arg;
	compute(1, 100);
	__atomic_fetch_add(&finished, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

#define STACK 65536

/* Runs on the stack it removes: no stack access after the first system call. */
int unmap_and_exit(void *stack);
asm(".globl unmap_and_exit\n"
    "unmap_and_exit:\n"
    "	movl $65536, %esi\n"
    "	movl $11, %eax\n" /* munmap */
    "	syscall\n"
    "	movq %rax, %rdi\n"
    "	movl $60, %eax\n"
    "	syscall\n"
    "	ud2\n");

int main(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	CHECK(!pthread_attr_init(&attr));
	CHECK(!pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
	for (int i = 0; i < 1000; i++) {
		CHECK(!pthread_create(&thread, &attr, work, NULL));
		while (__atomic_load_n(&finished, __ATOMIC_SEQ_CST) + 20 < (unsigned)i)
			sched_yield();
	}
	while (__atomic_load_n(&finished, __ATOMIC_SEQ_CST) < 1000)
		usleep(1000);

	for (int i = 0; i < 100; i++) {
		static uint32_t tid;
		char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(stack != MAP_FAILED);
		tid = 1;
		int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
		            CLONE_CHILD_CLEARTID;
		CHECK(clone(unmap_and_exit, stack + STACK, flags, stack, NULL, NULL, &tid) > 0);
		while (__atomic_load_n(&tid, __ATOMIC_SEQ_CST))
			syscall(SYS_futex, &tid, FUTEX_WAIT, 1, NULL, NULL, 0);
		unsigned char vector;
		CHECK_ERRNO(mincore(stack, 4096, &vector), ENOMEM);
	}
	return done();
}
