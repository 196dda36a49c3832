/* The shadow of the program's memory: what this thread last saw there. */
#include "target/stub.h"

void handle_access(struct thread *thread)
{
	stub_panic("not recorded yet", thread->number);
}
