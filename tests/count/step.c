/*
 * step PROGRAM: runs it natively, one instruction after the other, and prints how many there were. An instruction counts
 * when it is done: not when it faults, and a repeated string instruction counts once.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t pc_of(pid_t pid)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, pid, 0, &registers) < 0)
		exit(2);
	return registers.rip;
}

static bool is_repeated(pid_t pid, uint64_t pc)
{
	unsigned long word = (unsigned long)ptrace(PTRACE_PEEKTEXT, pid, pc, 0);
	unsigned char prefix = word & 0xff, opcode = word >> 8 & 0xff;

	return (prefix == 0xf2 || prefix == 0xf3) && opcode >= 0xa4 && opcode <= 0xaf;
}

int main(int argc, char **argv)
{
	pid_t pid = fork();
	unsigned long count = 0;
	int status, signal = 0;

	if (argc < 2 || pid < 0)
		return 2;
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execv(argv[1], argv + 1);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	for (;;) {
		uint64_t before = pc_of(pid);
		bool repeated = is_repeated(pid, before), delivers = signal != 0;
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, signal) < 0)
			return 2;
		signal = 0;
		waitpid(pid, &status, 0);
		if (!WIFSTOPPED(status))
			break;
		if (WSTOPSIG(status) != SIGTRAP)
			signal = WSTOPSIG(status);
		else if (!delivers && !(repeated && pc_of(pid) == before))
			count++;
	}
	printf("%lu\n", count + 1); /* the system call that ended it */
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
