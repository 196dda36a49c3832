/*
 * Words that the kernel writes when a thread is gone: the one of CLONE_CHILD_CLEARTID, that of
 * CLONE_PARENT_SETTID, and those of a robust list, whose owner died with them. They are polled, not waited for.
 */
#include "check.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>

#define STACK_SIZE 65536

static uint32_t cleared, parent_word, ran;

static int body(void *arg)
{
	(void)arg;
	__atomic_fetch_add(&ran, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_exit, 0);
	return 0;
}

static void by_clone(char *stack)
{
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
	        CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
	cleared = 12345;
	int tid = clone(body, stack + STACK_SIZE, flags, NULL, &parent_word, NULL, &cleared);
	CHECK(tid > 0);
	CHECK_EQ(parent_word, tid);
	while (__atomic_load_n(&cleared, __ATOMIC_ACQUIRE))
		sched_yield();
}

/* One lock of a robust list: the kernel finds the word behind the entry. */
struct lock {
	struct robust_list entry;
	uint32_t word;
};
static struct lock locks[3];
static struct robust_list_head head;

static void *holder(void *arg)
{
	(void)arg;
	head.futex_offset = offsetof(struct lock, word);
	head.list.next = &locks[0].entry;
	for (unsigned i = 0; i < 3; i++) {
		locks[i].entry.next = i < 2 ? &locks[i + 1].entry : &head.list;
		locks[i].word = (uint32_t)gettid();
	}
	locks[1].word = 77; /* somebody else's: left alone */
	CHECK(!syscall(SYS_set_robust_list, &head, sizeof head));
	return NULL;
}

int main(void)
{
	char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;
	CHECK(stack != MAP_FAILED);
	for (unsigned i = 0; i < 50; i++)
		by_clone(stack);
	printf("%u threads cleared their word\n", ran);

	CHECK(!pthread_create(&thread, NULL, holder, NULL));
	while (!(__atomic_load_n(&locks[2].word, __ATOMIC_ACQUIRE) & FUTEX_OWNER_DIED))
		sched_yield();
	CHECK(!pthread_join(thread, NULL));
	for (unsigned i = 0; i < 3; i++)
		printf("lock %u: owner died %d, %s\n", i, !!(locks[i].word & FUTEX_OWNER_DIED),
		        locks[i].word & FUTEX_TID_MASK ? "with a tid" : "free");
	return done();
}
