/* clone(CLONE_VM) without CLONE_THREAD: two processes on one memory at the same time, with separate signals,
 * files and ids; both compute; either may end first. */
#include "check.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static volatile uint64_t results[4];
static volatile int flag, handled_parent, handled_child;
static pid_t parent_pid;

static void handler(int sig)
{
	(void)sig;
	if (syscall(SYS_getpid) == parent_pid)
		handled_parent++;
	else
		handled_child++;
}

static int child_body(void *arg)
{
	unsigned index = (unsigned)(long)arg;
	results[index] = compute(index, 20000);
	if (index == 3) {
		/* signal dispositions are its own (no CLONE_SIGHAND) */
		signal(SIGUSR1, handler);
		flag = 1;
		while (!handled_child)
			sched_yield();
		flag = 2;
		while (flag != 3)
			sched_yield();
	}
	return (int)index + 10;
}

int main(void)
{
	pid_t child[4];
	int status;

	alarm(50);
	parent_pid = getpid();
	char *stacks = mmap(NULL, 4 * 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stacks != MAP_FAILED);
	for (int round = 0; round < 20; round++) {
		for (long i = 0; i < 3; i++) {
			results[i] = 0;
			child[i] = clone(child_body, stacks + (i + 1) * 65536, CLONE_VM | SIGCHLD, (void *)i);
			CHECK(child[i] > 0);
		}
		CHECK_EQ(compute(9, 20000), compute(9, 20000));
		for (int i = 0; i < 3; i++) {
			CHECK_EQ(waitpid(child[i], &status, 0), child[i]);
			CHECK_EQ(status, (i + 10) << 8);
			CHECK_EQ(results[i], compute((uint64_t)i, 20000));
		}
	}
	child[3] = clone(child_body, stacks + 4 * 65536, CLONE_VM | SIGCHLD, (void *)3L);
	CHECK(child[3] > 0);
	while (flag != 1)
		sched_yield();
	CHECK(!kill(child[3], SIGUSR1));
	while (flag != 2)
		sched_yield();
	CHECK_EQ(handled_child, 1);
	CHECK_EQ(handled_parent, 0);
	struct sigaction now;
	CHECK(!sigaction(SIGUSR1, NULL, &now));
	CHECK(now.sa_handler == SIG_DFL);
	flag = 3;
	CHECK_EQ(waitpid(child[3], &status, 0), child[3]);
	CHECK_EQ(status, 13 << 8);

	/* Without SIGCHLD the child is waited for with __WCLONE. */
	child[0] = clone(child_body, stacks + 65536, CLONE_VM, (void *)0L);
	CHECK(child[0] > 0);
	CHECK_EQ(waitpid(child[0], &status, (int)__WCLONE), child[0]);
	CHECK_EQ(status, 10 << 8);
	return done();
}
