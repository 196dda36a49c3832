/* The shadow of the program's memory: what this thread last saw there. */
#include "target/stub.h"

void handle_access(struct thread *thread)
{
	stub_panic("not recorded yet", thread->number);
}

bool shadow_check(struct thread *thread, uint64_t address, uint64_t size)
{
	(void)size;
	stub_panic("not recorded yet", thread->number + address);
}

void *shadow_of(struct thread *thread, uint64_t address)
{
	stub_panic("not recorded yet", thread->number + address);
}

long store_program(struct thread *thread, uint64_t to, const void *from, size_t size)
{
	(void)from;
	stub_panic("not recorded yet", thread->number + to + size);
}
