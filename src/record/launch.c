/*
 * Starting a program. The process the user's shell made becomes the program, by
 * a plain execve, so that its pid, its parent, its terminal and the way its
 * status is reported are what they would be without us. The supervisor is a
 * grandchild that nobody waits for; it takes the program over at the execve.
 */
#include "record/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/supervisor.h"

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

extern char **environ;

static void raise_limit(int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(resource, &limit);
	}
}

/* The supervisor keeps stderr for its messages and lets go of everything else that is the program's. */
static void detach_supervisor(int ready_fd, int debugger)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	if (null >= 0) {
		dup2(null, 0);
		dup2(null, 1);
	}
	for (int fd = 3; fd < 1024; fd++) {
		if (fd != ready_fd && fd != debugger)
			close(fd);
	}
	if (chdir("/") < 0) {
		/* then it stays where it is; only an unmount would notice */
	}
	prctl(PR_SET_NAME, "bugnet");
	for (int signal = 1; signal < 32; signal++)
		sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	raise_limit(RLIMIT_FSIZE); /* the code cache counts as a file */
	raise_limit(RLIMIT_NOFILE);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Runs in the helper's child. go_fd tells it that the program allows it to trace. */
static _Noreturn void run_supervisor(
        pid_t program, const struct launch_options *options, const int go[2], const int ready[2])
{
	int go_fd = go[0], ready_fd = ready[1];
	struct supervisor_options supervisor = {.stats = options->stats,
	        .children = options->children,
	        .count = options->count,
	        .cache = options->cache,
	        .record = options->record,
	        .debugged = options->debugged,
	        .debugger = options->debugger};
	char byte;

	/* The program's ends: when it is killed before it comes to tell us, the read must see that. */
	close(go[1]);
	close(ready[0]);
	if (read(go_fd, &byte, 1) != 1)
		_exit(1);
	detach_supervisor(ready_fd, options->debugged ? options->debugger : -1);
	_exit(supervise(program, &supervisor, ready_fd));
}

static int fail(const struct launch_options *options, const char *what)
{
	const char *hint = "";

	if (errno == EAGAIN)
		hint = "; the limit on processes is reached, see 'ulimit -u'";
	else if (errno == EMFILE)
		hint = "; the limit on open files is too low, see 'ulimit -n'";
	fprintf(stderr, "bugnet %s: %s: %s%s\n", options->command, what, strerror(errno), hint);
	return 125;
}

/* Makes the grandchild; returns its pid, or -1. */
static pid_t fork_supervisor(const struct launch_options *options, const int go[2], const int ready[2])
{
	int pid_pipe[2], status;
	pid_t program = getpid(), supervisor = -1;
	sigset_t child, old;

	if (pipe2(pid_pipe, O_CLOEXEC) < 0)
		return -1;
	/* The helper's end is no business of the program's: reap it here, whatever SIGCHLD was set to. */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &old);
	struct sigaction old_action;
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &old_action);
	pid_t helper = fork();
	int error = errno;
	if (helper == 0) {
		pid_t own = fork();
		if (own == 0) {
			sigaction(SIGCHLD, &old_action, NULL);
			run_supervisor(program, options, go, ready);
		}
		if (own < 0)
			own = -errno;
		_exit(write(pid_pipe[1], &own, sizeof own) == sizeof own && own > 0 ? 0 : 1);
	}
	close(pid_pipe[1]);
	if (helper > 0) {
		while (waitpid(helper, &status, 0) < 0 && errno == EINTR)
			;
		if (read(pid_pipe[0], &supervisor, sizeof supervisor) != sizeof supervisor)
			supervisor = -EIO;
		error = -supervisor;
	}
	close(pid_pipe[0]);
	/* The helper's SIGCHLD must not reach the program: ignoring a pending signal drops it. */
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	sigaction(SIGCHLD, &old_action, NULL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	errno = error;
	return supervisor;
}

/* What /proc says of a number must be true of the process that we mean by it. */
static bool proc_is_ours(void)
{
	char name[32] = "", own[32];

	snprintf(own, sizeof own, "%d", getpid());
	return readlink("/proc/self", name, sizeof name - 1) > 0 && strcmp(name, own) == 0;
}

int launch_run(const struct launch_options *options)
{
	int go[2], ready[2];
	char byte;

	if (!proc_is_ours()) {
		fprintf(stderr,
		        "bugnet %s: /proc is not mounted, or not that of this pid namespace; mount it with "
		        "'mount -t proc proc /proc' ('unshare --mount-proc' does)\n",
		        options->command);
		return 125;
	}
	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(ready, O_CLOEXEC) < 0)
		return fail(options, "cannot make a pipe");
	pid_t supervisor = fork_supervisor(options, go, ready);
	if (supervisor < 0)
		return fail(options, "cannot start the supervisor");
	close(go[0]);
	close(ready[1]);
	prctl(PR_SET_PTRACER, supervisor); /* where Yama asks for it */
	if (write(go[1], "", 1) != 1)
		return fail(options, "cannot reach the supervisor");
	close(go[1]);
	if (read(ready[0], &byte, 1) != 1)
		return 125; /* it said why */
	close(ready[0]);
	execve(options->path, options->argv, environ);
	fprintf(stderr, "bugnet %s: %s: %s\n", options->command, options->path, strerror(errno));
	return errno == ENOENT ? 127 : 126;
}
