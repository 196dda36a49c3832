/*
 * launch: runs one test command and says how it ended.
 *
 *	launch [-t SECONDS] [-s STATUSFILE] [-i] -- COMMAND [ARG...]
 *
 * The shell cannot see the core-dump flag of a wait status, and `timeout` loses processes that change their
 *process group. So: the command runs in a session of its own with default signals and no open files above 2;
 *launch is the subreaper of everything the command starts, which makes every orphan a child of launch, and on
 *a timeout exactly these descendants are killed and no other process.
 *
 * STATUSFILE gets one line: `exit N`, `signal N`, `signal N core`, `timeout` or `cannot start: REASON`, and
 *one more line `left behind: COMM` for each process still there a while after the command ended. launch's own
 *status is 0 when the command could be started and STATUSFILE written.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long what the command leaves running (a daemon it started, bugnet's supervisor) may take to end by
 * itself. */
#define GRACE_SECONDS 5

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Calls `visit` for each live child of this process; returns how many there are. */
static int for_each_child(void (*visit)(pid_t pid, const char *comm, void *data), void *data)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int count = 0;

	if (!proc)
		return 0;
	while ((entry = readdir(proc))) {
		char path[300], stat[512];
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		ssize_t size = read(fd, stat, sizeof stat - 1);
		close(fd);
		if (size <= 0)
			continue;
		stat[size] = 0;
		char *comm = strchr(stat, '('), *end = strrchr(stat, ')');
		char state;
		int parent;
		if (!comm || !end || sscanf(end + 1, " %c %d", &state, &parent) != 2)
			continue;
		if (parent != getpid() || state == 'Z')
			continue;
		*end = 0;
		count++;
		if (visit)
			visit(atoi(entry->d_name), comm + 1, data);
	}
	closedir(proc);
	return count;
}

static void kill_child(pid_t pid, const char *comm, void *data)
{
	(void)comm;
	(void)data;
	kill(pid, SIGKILL);
}

static void report_child(pid_t pid, const char *comm, void *data)
{
	(void)pid;
	fprintf(data, "left behind: %s\n", comm);
}

/* Killing a child turns its children into ours: go on until there is none. */
static void kill_all_descendants(void)
{
	while (for_each_child(kill_child, NULL)) {
		usleep(2000);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void run_command(char **command, int keep_stdin, int error_pipe)
{
	sigset_t none;
	struct sigaction dfl = {.sa_handler = SIG_DFL};

	setsid();
	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!keep_stdin) {
		close(0);
		if (open("/dev/null", O_RDONLY) != 0)
			_exit(1);
	}
	dup2(error_pipe, 3);
	fcntl(3, F_SETFD, FD_CLOEXEC);
	close_range(4, ~0U, 0);
	/* execvp would give a file that is neither ELF nor script to a shell */
	if (strchr(command[0], '/'))
		execv(command[0], command);
	else
		execvp(command[0], command);
	int error = errno;
	_exit(write(3, &error, sizeof error) != sizeof error);
}

int main(int argc, char **argv)
{
	double timeout = 60;
	const char *status_path = NULL;
	int keep_stdin = 0, option;

	while ((option = getopt(argc, argv, "+t:s:i")) != -1) {
		switch (option) {
		case 't':
			timeout = atof(optarg);
			break;
		case 's':
			status_path = optarg;
			break;
		case 'i':
			keep_stdin = 1;
			break;
		default:
			return 2;
		}
	}
	if (optind >= argc) {
		fprintf(stderr, "usage: launch [-t SECONDS] [-s STATUSFILE] [-i] -- COMMAND [ARG...]\n");
		return 2;
	}
	FILE *out = status_path ? fopen(status_path, "we") : stderr;
	if (!out) {
		perror(status_path);
		return 2;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);

	sigset_t waited;
	sigemptyset(&waited);
	sigaddset(&waited, SIGCHLD);
	sigaddset(&waited, SIGINT);
	sigaddset(&waited, SIGTERM);
	sigaddset(&waited, SIGHUP);
	sigprocmask(SIG_BLOCK, &waited, NULL);
	signal(SIGCHLD, SIG_DFL);

	int error_pipe[2], error;
	if (pipe2(error_pipe, O_CLOEXEC)) {
		perror("pipe");
		return 2;
	}
	pid_t child = fork();
	if (child < 0) {
		perror("fork");
		return 2;
	}
	if (child == 0)
		run_command(argv + optind, keep_stdin, error_pipe[1]);
	close(error_pipe[1]);
	if (read(error_pipe[0], &error, sizeof error) == sizeof error) {
		fprintf(out, "cannot start: %s\n", strerror(error));
		waitpid(child, NULL, 0);
		return 1;
	}

	double deadline = now() + timeout;
	int ended = 0, status = 0;
	while (!ended) {
		pid_t pid;
		int some;
		while ((pid = waitpid(-1, &some, WNOHANG)) > 0) {
			if (pid == child) {
				status = some;
				ended = 1;
			}
		}
		if (ended)
			break;
		double left = deadline - now();
		if (left <= 0)
			break;
		struct timespec wait = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
		int sig = sigtimedwait(&waited, NULL, &wait);
		if (sig > 0 && sig != SIGCHLD) {
			kill(-child, SIGKILL);
			kill_all_descendants();
			return 128 + sig;
		}
	}
	if (!ended) {
		fprintf(out, "timeout\n");
		kill(-child, SIGKILL);
		kill_all_descendants();
		fclose(out);
		return 0;
	}
	if (WIFEXITED(status))
		fprintf(out, "exit %d\n", WEXITSTATUS(status));
	else
		fprintf(out, "signal %d%s\n", WTERMSIG(status), WCOREDUMP(status) ? " core" : "");

	double grace = now() + GRACE_SECONDS;
	while (for_each_child(NULL, NULL) && now() < grace) {
		usleep(2000);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	for_each_child(report_child, out);
	kill_all_descendants();
	fclose(out);
	return 0;
}
