#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include "cli/command.h"
#include "cli/error.h"

/* The limit on stacks is meant for the program, which inherits it; it may be less than what we need
 * ourselves. */
#define STACK_BYTES (8ul << 20)

static struct {
	int argc;
	char **argv;
	int status;
	ucontext_t caller;
} call;

static void run_call(void)
{
	call.status = bugnet_command.function(call.argc, call.argv);
}

static int run_on_own_stack(int argc, char **argv)
{
	struct rlimit limit;
	ucontext_t context;

	call.argc = argc;
	call.argv = argv;
	void *stack = MAP_FAILED;
	if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < STACK_BYTES)
		stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
		        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED || getcontext(&context) < 0) {
		run_call();
		return call.status;
	}
	context.uc_stack.ss_sp = stack;
	context.uc_stack.ss_size = STACK_BYTES;
	context.uc_link = &call.caller;
	makecontext(&context, run_call, 0);
	swapcontext(&call.caller, &context);
	return call.status;
}

int main(int argc, char **argv)
{
	int status = run_on_own_stack(argc, argv);

	/* A full disk behind `bugnet doctor >report` must not look like success. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		error_print(NULL, "cannot write to standard output: %s", strerror(errno));
		return STATUS_FAILED;
	}
	return status;
}
