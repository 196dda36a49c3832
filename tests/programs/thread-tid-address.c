/*
 * set_tid_address and CLONE_CHILD_CLEARTID: the word the kernel clears when a thread is gone;
 * get_robust_list; thread names; the tid of each thread is its own.
 */
#include "check.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static uint32_t word = 1;
static uint32_t names_ok;

static void *sets_address(void *arg)
{
	pid_t *tid = arg;
	*tid = (pid_t)syscall(SYS_set_tid_address, &word);
	CHECK_EQ(*tid, gettid());
	/* libc joins by the old word, which the kernel will not clear: leave without libc */
	syscall(SYS_exit, 0);
	return NULL;
}

static void *names(void *arg)
{
	char name[16], wanted[16], path[64], line[32];
	snprintf(wanted, sizeof wanted, "worker-%ld", (long)arg);
	CHECK(!pthread_setname_np(pthread_self(), wanted));
	CHECK(!prctl(PR_GET_NAME, name));
	CHECK(!strcmp(name, wanted));
	snprintf(path, sizeof path, "/proc/self/task/%d/comm", gettid());
	FILE *file = fopen(path, "re");
	CHECK(file && fgets(line, sizeof line, file));
	fclose(file);
	line[strcspn(line, "\n")] = 0;
	CHECK(!strcmp(line, wanted));
	__atomic_fetch_add(&names_ok, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static int child_body(void *arg)
{
	(void)arg;
	return 0;
}

int main(void)
{
	pthread_t thread;
	pid_t tid = 0;
	CHECK_EQ(syscall(SYS_set_tid_address, &tid), getpid());

	CHECK(!pthread_create(&thread, NULL, sets_address, &tid));
	while (__atomic_load_n(&word, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &word, FUTEX_WAIT, 1, NULL, NULL, 0);
	CHECK(tid != getpid());

	for (long i = 0; i < 5; i++) {
		CHECK(!pthread_create(&thread, NULL, names, (void *)i));
		CHECK(!pthread_join(thread, NULL));
	}
	CHECK_EQ(names_ok, 5);

	/* CLONE_CHILD_SETTID without CLONE_VM writes in the child's memory only. */
	static char stack[65536] __attribute__((aligned(16)));
	static pid_t child_tid, parent_tid;
	int status;
	pid_t child = clone(child_body, stack + sizeof stack,
	        CLONE_CHILD_SETTID | CLONE_PARENT_SETTID | SIGCHLD, NULL, &parent_tid, NULL, &child_tid);
	CHECK(child > 0);
	CHECK_EQ(parent_tid, child);
	CHECK_EQ(child_tid, 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);

	void *head;
	size_t length;
	CHECK(!syscall(SYS_get_robust_list, 0, &head, &length));
	CHECK_EQ(length, 24);
	CHECK(head != NULL);
	return done();
}
