/*
 * Runs a command on a kernel that lacks or forbids some system calls, by a seccomp filter:
 *
 *	without ERRNO NUMBER[,NUMBER...] COMMAND [ARG...]
 */
#include "../check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

int main(int argc, char **argv)
{
	struct sock_filter filter[64];
	unsigned at = 0;

	if (argc < 4)
		fail("usage: without ERRNO NUMBER[,NUMBER...] COMMAND [ARG...]");
	filter[at++] =
	        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (char *number = strtok(argv[2], ","); number && at < 60; number = strtok(NULL, ",")) {
		filter[at++] =
		        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(number), 0, 1);
		filter[at++] = (struct sock_filter)BPF_STMT(
		        BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)atoi(argv[1]));
	}
	filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {(unsigned short)at, filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		skip("no seccomp here");
	execvp(argv[3], argv + 3);
	fail("%s: %s", argv[3], strerror(errno));
}
