/*
 * Replay: the program runs as it did, with the recording in place of the world.
 */
#include "target/stub.h"

void replay_start(struct thread *thread)
{
	stub_panic("not replayed yet", thread->number);
}

void replay_exit(struct thread *thread, int indirect)
{
	stub_panic("not replayed yet", thread->number + indirect);
}

void replay_syscall(struct thread *thread)
{
	stub_panic("not replayed yet", thread->number);
}

void replay_emulate(struct thread *thread)
{
	stub_panic("not replayed yet", thread->number);
}

void replay_stop(struct thread *thread)
{
	stub_panic("not replayed yet", thread->number);
}

uint64_t replay_signal(int number, struct kernel_siginfo *siginfo, struct kernel_ucontext *context,
        struct thread *thread, uint64_t gs_base)
{
	(void)siginfo;
	(void)context;
	(void)thread;
	stub_panic("not replayed yet", gs_base + number);
}
