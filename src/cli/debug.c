/* bugnet debug: run a program in gdb while it is recorded, so that gdb can go back. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/gdb.h"
#include "cli/program.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "debug/live.h"
#include "record/attach.h"
#include "record/launch.h"
#include "record/process_facts.h"
#include "record/recorder.h"
#include "record/supervisor.h"

struct debug_values {
	const char *commands;
	const char *pid;
	const char *server;
	bool batch;
	uint64_t ring;
};

static const struct option_spec debug_options[] = {
        {
                .name = "commands",
                .letter = 'x',
                .type = OPTION_PATH,
                .offset = offsetof(struct debug_values, commands),
                .value = "FILE",
                .help = "gdb commands to begin with, or a Python script for gdb",
        },
        {
                .name = "batch",
                .type = OPTION_FLAG,
                .offset = offsetof(struct debug_values, batch),
                .help = "end when the commands have been executed",
        },
        {
                .name = "server",
                .type = OPTION_PORT,
                .offset = offsetof(struct debug_values, server),
                .value = "[PORT]",
                .help = "start no gdb, wait for any on this port of this machine, or on a free one",
        },
        {
                .name = "ring",
                .type = OPTION_SIZE,
                .offset = offsetof(struct debug_values, ring),
                .value = "SIZE",
                .help = "how much memory to keep what was last in, to go back to (64M)",
        },
        {
                .name = "pid",
                .type = OPTION_TEXT,
                .offset = offsetof(struct debug_values, pid),
                .value = "PID",
                .help = "debug a process that is running already",
        },
        {0},
};

/* What is to be debugged. */
struct debuggee {
	struct live live;
	struct terminal terminal;
	struct recorder_options recorder;
	char path[PATH_MAX], program[PATH_MAX], directory[PATH_MAX];
	char **argv;
	pid_t pid; /* of one that runs already, or 0 */
	uint64_t ring;
};

static volatile sig_atomic_t asked_to_stop;

static void ask_to_stop(int signal)
{
	(void)signal;
	asked_to_stop = 1;
}

/* In a process of its own: becomes the program, or its supervisor. */
static _Noreturn void become_debuggee(struct debuggee *d, int link)
{
	if (d->pid) {
		int status = supervise_running(
		        d->pid, &(struct supervisor_options){
		                        .record = &d->recorder, .debugged = true, .debugger = link});
		if (status == SUPERVISED_NOBODY)
			error_print("debug", "process %d has ended, or executed another program; try again",
			        d->pid);
		_exit(status ? STATUS_FAILED : 0);
	}
	_exit(launch_run(&(struct launch_options){.command = "debug",
	        .path = d->path,
	        .argv = d->argv,
	        .record = &d->recorder,
	        .debugged = true,
	        .debugger = link}));
}

static bool start(void *context, const char *directory)
{
	struct debuggee *d = context;
	int links[2], size = sizeof(struct hold_request) * 2;

	snprintf(d->live.end, sizeof d->live.end, "%s/end.bug", directory);
	d->recorder.path = d->live.end;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, links) < 0) {
		error_print("debug", "cannot make a socket: %s", strerror(errno));
		return false;
	}
	setsockopt(links[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	setsockopt(links[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		close(links[0]);
		become_debuggee(d, links[1]);
	}
	close(links[1]);
	d->live.link = links[0];
	d->live.pid = pid;
	if (pid < 0)
		error_print("debug", "cannot start the program: %s", strerror(errno));
	return pid > 0;
}

/* Called on both sides of the fork. */
static void has_gdb(void *context, int pid)
{
	struct debuggee *d = context;

	if (pid == getpid() || d->pid) {
		terminal_give(&d->terminal, pid);
		if (d->pid && pid != getpid()) {
			signal(SIGINT, SIG_IGN);
			signal(SIGQUIT, SIG_IGN);
		}
		return;
	}
	struct sigaction action = {.sa_handler = ask_to_stop};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGQUIT, &action, NULL);
	terminal_give(&d->terminal, pid);
}

static void turn(void *context, bool program)
{
	struct debuggee *d = context;

	terminal_turn(&d->terminal, program);
}

static bool find_running(struct debuggee *d, const char *text)
{
	static char started_in[PATH_MAX];
	char *arguments, *end, why[256];
	long number = strtol(text, &end, 10);

	if (*text < '1' || *text > '9' || *end || number > INT_MAX) {
		error_print("debug", "option '--pid': '%s' is no number of a process; 'ps' lists them", text);
		return false;
	}
	d->pid = (pid_t)number;
	d->live.attached = true;
	if (!attachment_program(d->pid, d->program, why, sizeof why)) {
		error_print("debug", "process %d: %s", d->pid, why);
		return false;
	}
	d->recorder.cpu = "native";
	d->recorder.started_in = process_link(d->pid, "cwd", started_in) ? started_in : NULL;
	d->recorder.argv = process_arguments(d->pid, &arguments);
	return true;
}

static bool find_program(struct debuggee *d, char **argv, int *status)
{
	if (!program_check("debug", argv, "; it is not debugged", d->path, status))
		return false;
	if (!realpath(d->path, d->program))
		snprintf(d->program, sizeof d->program, "%s", d->path);
	d->argv = argv;
	d->recorder.cpu = RECORDER_DEFAULT_CPU;
	d->recorder.argv = argv;
	return true;
}

static int debug_main(int argc, char **argv)
{
	struct debug_values values = {.ring = RECORDER_DEFAULT_RING};
	static struct debuggee d;
	char why[256];
	int status = STATUS_FAILED;
	int first = options_parse(&debug_command, argc, argv, &values, &status);

	if (first < 0)
		return status;
	if ((first == argc) == !values.pid) {
		error_print("debug", "%s; usage: bugnet %s",
		        values.pid ? "option '--pid' takes no program" : "no program given",
		        debug_command.synopsis);
		return STATUS_FAILED;
	}
	if (values.ring < RECORDER_LEAST_RING) {
		error_print("debug", "option '--ring': too small; give 1M or more");
		return STATUS_FAILED;
	}
	if (values.server && (values.batch || values.commands)) {
		error_print("debug", "'--batch' and '--commands' are for the gdb that is started; with "
		                     "'--server' there is none");
		return STATUS_FAILED;
	}
	d.recorder = (struct recorder_options){.version = BUGNET_VERSION,
	        .directory = d.directory,
	        .program = d.program,
	        .dictionary = RECORDER_DEFAULT_DICTIONARY,
	        .interval = RECORDER_DEFAULT_INTERVAL,
	        .ring = values.ring,
	        .silent = true};
	save_policy_parse(&d.recorder.save_on, "always", why, sizeof why);
	if (!getcwd(d.directory, sizeof d.directory) || *d.directory != '/')
		*d.directory = 0;
	status = STATUS_FAILED;
	if (values.pid ? !find_running(&d, values.pid) : !find_program(&d, argv + first, &status))
		return status;
	terminal_open(&d.terminal);
	d.live.asked = &asked_to_stop;
	d.live.turn = turn;
	d.live.context = &d;
	char *arguments[] = {values.commands ? "-x" : NULL, (char *)values.commands, NULL};
	const struct gdb_program program = {
	        .path = d.program, .live = &d.live, .start = start, .has_gdb = has_gdb, .context = &d};
	status = gdb_debug(&(struct gdb_options){.command = "debug",
	        .path = d.program,
	        .program = &program,
	        .server = values.server,
	        .batch = values.batch,
	        .arguments = arguments});
	terminal_close(&d.terminal);
	return status;
}

const struct command debug_command = {
        .name = "debug",
        .summary = "run a program in gdb, forwards and backwards",
        .synopsis = "debug [-x FILE] [--batch | --server [PORT]] [--ring SIZE] {--pid PID | [--] PROGRAM "
                    "[ARGUMENT...]}",
        .description =
                "Run PROGRAM, found as the shell finds it, in gdb, and record it. It stands at its first\n"
                "instruction; 'continue' lets it run. Wherever it stops, at a breakpoint, at a signal, by "
                "^C,\n"
                "where it crashes or exits, gdb's commands go back from there (reverse-step, reverse-next,\n"
                "reverse-continue, reverse-finish; 'help bugnet' in gdb lists more) and come forward again;\n"
                "going on from the present lets the program go on.\n"
                "\n"
                "The terminal, standard input and output are the program's while it runs. What it has in\n"
                "memory and registers can be looked at, not changed. 'detach' lets it go on without bugnet,\n"
                "'kill' and the end of gdb end it, unless it was running already.\n"
                "\n"
                "Exit status: gdb's; or 125 when bugnet itself fails, 126 when the program cannot be run,\n"
                "127 when it is not found.\n",
        .options = debug_options,
        .function = debug_main,
};
