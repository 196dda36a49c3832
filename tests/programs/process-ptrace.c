/*
 * The program is itself a debugger: it traces a child with ptrace, steps it, reads and writes its registers
 * and memory. Nothing else traces anything, so it is allowed to. The child does nothing between SIGSTOP and
 * exit but system calls; only what a debugger sees of system calls and exits is compared.
 */
#include "check.h"
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

static volatile long secret = 1234;

int main(void)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(99);
		raise(SIGSTOP);
		raise(SIGUSR1);
		_exit(secret == 4321 ? 5 : 6);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 99)
		skip("ptrace is forbidden here");
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	errno = 0;
	CHECK_EQ(ptrace(PTRACE_PEEKDATA, child, (void *)&secret, NULL), 1234);
	CHECK(!ptrace(PTRACE_POKEDATA, child, (void *)&secret, (void *)4321L));
	struct user_regs_struct registers;
	CHECK(!ptrace(PTRACE_GETREGS, child, NULL, &registers));
	CHECK(registers.rip != 0);
	CHECK(!ptrace(PTRACE_CONT, child, NULL, NULL));
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGUSR1);
	CHECK(!ptrace(PTRACE_CONT, child, NULL, NULL)); /* the signal is swallowed */
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 5);
	CHECK_EQ(secret, 1234);
	return done();
}
