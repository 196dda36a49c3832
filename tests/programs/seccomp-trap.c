/*
 * SECCOMP_RET_TRAP: forbidden calls become SIGSYS with the number, the address of the instruction and the
 * arguments in the context; the handler emulates the call by setting the result. Also a filter that a child
 * inherits, and death by RET_KILL seen by the parent.
 */
#include "seccomp.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>

#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1
#endif

extern char after_call[];
static volatile int trapped;

static void on_sys(int sig, siginfo_t *info, void *context)
{
	mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
	CHECK_EQ(sig, SIGSYS);
	CHECK_EQ(info->si_code, SYS_SECCOMP);
	CHECK_EQ(info->si_arch, AUDIT_ARCH_X86_64);
	CHECK_EQ(info->si_call_addr, m->gregs[REG_RIP]);
	if (info->si_syscall == SYS_getpriority) {
		CHECK_EQ(m->gregs[REG_RIP], after_call);
		CHECK_EQ(m->gregs[REG_RAX], SYS_getpriority);
		CHECK_EQ(m->gregs[REG_RDI], 11);
		CHECK_EQ(m->gregs[REG_RSI], 22);
		CHECK_EQ(m->gregs[REG_RCX], after_call);
	}
	trapped++;
	m->gregs[REG_RAX] = 1000 + info->si_syscall;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO};
	int status;

	/* Death by filter, as the parent sees it. */
	struct rlimit no_core = {0, 0};
	CHECK(!setrlimit(RLIMIT_CORE, &no_core));
	for (int kind = 0; kind < 2; kind++) {
		pid_t child = fork();
		if (child == 0) {
			const int allowed[] = {SYS_exit_group, SYS_write};
			if (install_filter(
			            allowed, 2, kind ? SECCOMP_RET_KILL_THREAD : SECCOMP_RET_KILL_PROCESS))
				_exit(SKIP_STATUS);
			compute(1, 1000);
			syscall(SYS_getuid);
			_exit(1);
		}
		CHECK_EQ(waitpid(child, &status, 0), child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == SKIP_STATUS)
			skip("no seccomp here");
		CHECK(WIFSIGNALED(status));
		CHECK_EQ(WTERMSIG(status), SIGSYS);
	}

	CHECK(!sigaction(SIGSYS, &action, NULL));
	/* Everything is allowed except a few that nobody needs. */
	struct sock_filter filter[] = {
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpriority, 2, 0),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_rr_get_interval, 1, 0),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
	for (int i = 0; i < 100; i++) {
		long result = SYS_getpriority;
		asm volatile("syscall; .globl after_call; after_call:"
		             : "+a"(result)
		             : "D"(11L), "S"(22L)
		             : "rcx", "r11", "memory");
		CHECK_EQ(result, 1000 + SYS_getpriority);
		CHECK_EQ(trapped, i + 1);
	}
	pid_t child = fork();
	if (child == 0) {
		trapped = 0;
		CHECK_EQ(syscall(SYS_sched_rr_get_interval, 0, 0), 1000 + SYS_sched_rr_get_interval);
		_exit(trapped == 1 ? 3 : 4);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 3 << 8);
	return done();
}
