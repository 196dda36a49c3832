/*
 * step PROGRAM: runs it natively, one instruction after the other, and prints how many there were, and how many of them
 * read memory. An instruction counts when it is done: not when it faults, and a repeated string instruction counts once.
 */
#include <Zydis/Zydis.h>
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

static bool reads_memory(pid_t pid, uint64_t pc)
{
	static ZydisDecoder decoder;
	ZydisDecodedInstruction instruction;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	long bytes[2] = {ptrace(PTRACE_PEEKTEXT, pid, pc, 0), ptrace(PTRACE_PEEKTEXT, pid, pc + 8, 0)};

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, sizeof bytes, &instruction, operands)))
		return false;
	if (instruction.meta.category == ZYDIS_CATEGORY_NOP || instruction.meta.category == ZYDIS_CATEGORY_WIDENOP)
		return false;
	for (unsigned i = 0; i < instruction.operand_count; i++) {
		if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY && operands[i].mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
		        operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_READ)
			return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	pid_t pid = fork();
	unsigned long count = 0, loads = 0;
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
		bool repeated = is_repeated(pid, before), delivers = signal != 0, load = reads_memory(pid, before);
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, signal) < 0)
			return 2;
		signal = 0;
		waitpid(pid, &status, 0);
		if (!WIFSTOPPED(status))
			break;
		if (WSTOPSIG(status) != SIGTRAP)
			signal = WSTOPSIG(status);
		else if (!delivers && !(repeated && pc_of(pid) == before)) {
			count++;
			loads += load;
		}
	}
	printf("%lu %lu\n", count + 1, loads); /* the system call that ended it */
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
