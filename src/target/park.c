/*
 * Parked processes, see feed.h: a process that stands where the replayer looked at it, to be
 * gone on from any number of times. Nothing is copied for that but what the copy writes to.
 *
 * All of them are the replayer's own children (CLONE_PARENT), so that one can be dropped without those
 * that came from it, and each ends with the replayer.
 */
#include "target/feed.h"
#include "target/stub.h"

#define PR_SET_PDEATHSIG 1

static void wake(void *word)
{
	syscall3(__NR_futex, word, K_FUTEX_WAKE, 1);
}

void park(unsigned slot)
{
	struct feed_parked *parked = &feed()->parked[slot];

	__atomic_store_n(&parked->waiting, 1, __ATOMIC_SEQ_CST);
	wake(&parked->waiting);
	for (;;) {
		while (__atomic_load_n(&parked->command, __ATOMIC_ACQUIRE) == PARK_STAY)
			syscall4(__NR_futex, &parked->command, K_FUTEX_WAIT, PARK_STAY, 0);
		long child = syscall5(__NR_clone, K_CLONE_PARENT | K_SIGCHLD, 0, 0, 0, 0);
		if (child == 0) {
			syscall5(__NR_prctl, PR_SET_PDEATHSIG, K_SIGKILL, 0, 0, 0);
			if (syscall0(__NR_getppid) != feed()->replayer)
				syscall1(__NR_exit_group, 1); /* it has ended meanwhile */
			return;
		}
		__atomic_store_n(&parked->command, PARK_STAY, __ATOMIC_RELAXED);
		__atomic_store_n(&parked->child, (int32_t)child, __ATOMIC_SEQ_CST);
		wake(&parked->child);
	}
}
