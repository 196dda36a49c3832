/* bugnet record: run a program and keep what is needed to run it again exactly. */
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
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/interval.h"
#include "cli/program.h"
#include "cli/recordings.h"
#include "cli/version.h"
#include "record/attach.h"
#include "record/budget.h"
#include "record/cpu_level.h"
#include "record/launch.h"
#include "record/process_facts.h"
#include "record/recorder.h"
#include "record/start_watch.h"
#include "record/supervisor.h"
#include "recording/amount.h"
#include "recording/names.h"
#include "recording/progress.h"

struct record_values {
	const char *output;
	const char *interval;
	const char *bound;
	bool compare;
	const char *dictionary;
	const char *cpu;
	const char *pid;
	const char *wait_for;
	bool children;
	uint64_t ring; /* UINT64_MAX: not given */
	bool all;
	uint64_t memory;
	const char *max_slowdown;
	const char *save_on;
	const char *save_on_syscall;
	const char *save_on_output;
	const char *name;
	bool progress;
	bool stats;
	uint64_t cache;
};

static const struct option_spec record_options[] = {
        {
                .name = "output",
                .letter = 'o',
                .type = OPTION_TEXT,
                .offset = offsetof(struct record_values, output),
                .value = "FILE",
                .help = "the recording (PROGRAM-PID.bug in the current directory)",
        },
        {
                .name = "compare",
                .type = OPTION_FLAG,
                .offset = offsetof(struct record_values, compare),
                .help = "compare all loads from the start: slower, for smaller recordings",
        },
        {
                .name = "pid",
                .type = OPTION_TEXT,
                .offset = offsetof(struct record_values, pid),
                .value = "PID",
                .help = "record a process that is running already, until it ends or is let go",
        },
        {
                .name = "wait-for",
                .type = OPTION_TEXT,
                .offset = offsetof(struct record_values, wait_for),
                .value = "PROGRAM",
                .help = "wait until somebody starts PROGRAM, a path or a name, and record that process",
        },
        {
                .name = "ring",
                .type = OPTION_SIZE_OR_NONE,
                .offset = offsetof(struct record_values, ring),
                .value = "SIZE",
                .help = "keep what was last in so much memory (64M); 0: everything, in the file",
        },
        {
                .name = "all",
                .type = OPTION_FLAG,
                .offset = offsetof(struct record_values, all),
                .help = "the same as --ring 0",
        },
        {
                .name = "memory",
                .type = OPTION_SIZE,
                .offset = offsetof(struct record_values, memory),
                .value = "SIZE",
                .help = "what recording may take as a whole: sizes the ring, the code cache and intervals",
        },
        {
                .name = "max-slowdown",
                .type = OPTION_TEXT,
                .offset = offsetof(struct record_values, max_slowdown),
                .value = "N",
                .help = "keyframes further apart while it is more than N times slower; else let it go",
        },
        {
                .name = "save-on",
                .type = OPTION_LIST,
                .offset = offsetof(struct record_values, save_on),
                .value = "END",
                .help = "ends that are saved: signal, error, always (the default), never, SIGNAME, exit=N",
        },
        {
                .name = "save-on-syscall",
                .type = OPTION_LIST,
                .offset = offsetof(struct record_values, save_on_syscall),
                .value = "CALL",
                .help = "save before such calls, and go on: names, with a first argument as in write:2",
        },
        {
                .name = "save-on-output",
                .type = OPTION_TEXT,
                .offset = offsetof(struct record_values, save_on_output),
                .value = "REGEX",
                .help = "save when a line that matches is written to descriptor 1 or 2, and go on",
        },
        {
                .name = "name",
                .type = OPTION_TEXT,
                .offset = offsetof(struct record_values, name),
                .value = "NAME",
                .help = "put it into the recordings directory, see 'bugnet ls', under this name",
        },
        {
                .name = "interval",
                .type = OPTION_TEXT,
                .offset = offsetof(struct record_values, interval),
                .value = "LENGTH",
                .help = "from one keyframe to the next: instructions (500M, 2G) or time (500ms, 2s)",
        },
        {
                .name = "bound",
                .type = OPTION_TEXT,
                .offset = offsetof(struct record_values, bound),
                .value = "M",
                .help = "lighter keyframes, from which replay reads up to M intervals before (0)",
        },
        {
                .name = "dictionary",
                .type = OPTION_TEXT,
                .offset = offsetof(struct record_values, dictionary),
                .value = "N",
                .help = "places for frequent values: 0, or a power of two up to 1024 (64)",
        },
        {
                .name = "cpu",
                .type = OPTION_TEXT,
                .offset = offsetof(struct record_values, cpu),
                .value = "LEVEL",
                .help = "what PROGRAM is offered: x86-64-v2, x86-64-v3 (the default) or native",
        },
        {
                .name = "children",
                .type = OPTION_FLAG,
                .offset = offsetof(struct record_values, children),
                .help = "record the processes that PROGRAM makes, too, each in a file of its own",
        },
        {
                .name = "progress",
                .type = OPTION_FLAG,
                .offset = offsetof(struct record_values, progress),
                .help = "tell on the terminal how fast it goes and what the ring holds",
        },
        {
                .name = "stats",
                .type = OPTION_FLAG,
                .offset = offsetof(struct record_values, stats),
                .help = "print what the engine did to stderr at the end",
        },
        {
                .name = "cache",
                .type = OPTION_SIZE,
                .offset = offsetof(struct record_values, cache),
                .value = "SIZE",
                .help = "how much translated code to keep, 256K to 128M (128M)",
        },
        {0},
};

/* ---- values ---- */

static bool set_interval(const char *text, struct recorder_options *options)
{
	options->interval = RECORDER_DEFAULT_INTERVAL;
	options->puts_off = !text;
	if (!text)
		return true;
	options->interval = 0;
	if (interval_parse(text, &options->interval, &options->interval_time))
		return true;
	error_print("record",
	        "option '--interval': '%s' is no length; give instructions, such as 500M, or time, such as "
	        "2s",
	        text);
	return false;
}

static bool set_bound(const char *text, struct recorder_options *options)
{
	char *end;

	options->bound = 0;
	if (!text)
		return true;
	unsigned long number = strtoul(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && number <= RECORDER_MOST_BOUND) {
		options->bound = (uint32_t)number;
		return true;
	}
	error_print("record", "option '--bound': '%s' is no number of intervals; give 0 to %u", text,
	        RECORDER_MOST_BOUND);
	return false;
}

static bool set_dictionary(const char *text, struct recorder_options *options)
{
	char *end;

	options->dictionary = RECORDER_DEFAULT_DICTIONARY;
	if (!text)
		return true;
	unsigned long places = strtoul(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && places <= 1024 && places != 1 &&
	        !(places & (places - 1))) {
		options->dictionary = (unsigned)places;
		return true;
	}
	error_print("record",
	        "option '--dictionary': '%s' is not possible; give 0, or a power of two up to 1024", text);
	return false;
}

static bool set_ring(const struct record_values *values, struct recorder_options *options)
{
	if (values->memory && values->memory < BUDGET_LEAST_MEMORY) {
		error_print("record", "option '--memory': too little; give %s or more", "32M");
		return false;
	}
	options->ring = values->all                  ? 0
	                : values->ring != UINT64_MAX ? values->ring
	                : values->memory             ? budget_share(values->memory).ring
	                                             : RECORDER_DEFAULT_RING;
	uint64_t there_is = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	char most[AMOUNT_TEXT_SIZE];
	if (values->all && values->ring != UINT64_MAX && values->ring) {
		error_print("record", "options '--ring' and '--all' exclude each other; give one of them");
		return false;
	}
	if (options->ring > there_is) {
		error_print("record", "option '--ring': this machine has %s of memory; give less, or '--all'",
		        size_text(there_is, most));
		return false;
	}
	if (!options->ring || options->ring >= RECORDER_LEAST_RING)
		return true;
	error_print("record", "option '--ring': too small; give %s or more, or 0 to keep everything", "1M");
	return false;
}

/* After the ring and the bound. */
static bool set_memory(struct record_values *values, struct recorder_options *options)
{
	const char *wrong = NULL;

	options->memory = values->memory;
	if (!values->memory)
		return true;
	if (!options->ring)
		wrong = "for a ring only; '--all' keeps everything in a file";
	else if (options->ring > values->memory / 2)
		wrong = "the ring alone takes more than half of it; give a smaller '--ring', or none";
	else if (options->bound)
		wrong = "give it without '--bound', which keeps memory that this option would free";
	else if (values->children)
		wrong = "for one process only; with '--children' give '--ring' and '--cache'";
	if (!values->cache)
		values->cache = budget_share(values->memory).cache;
	if (wrong)
		error_print("record", "option '--memory': %s", wrong);
	return !wrong;
}

static bool set_slowdown(const char *text, struct recorder_options *options)
{
	char *end;

	options->slowdown = text ? strtod(text, &end) : 0;
	if (!text ||
	        (*text >= '0' && *text <= '9' && !*end && options->slowdown > 1 && options->slowdown < 1e6))
		return true;
	error_print("record",
	        "option '--max-slowdown': '%s' is not possible: recording makes every program slower; give "
	        "how "
	        "many times slower it may become, more than 1, such as 5",
	        text);
	return false;
}

static bool set_save_on(const struct record_values *values, struct recorder_options *options)
{
	char why[256];

	if (values->save_on && !options->ring) {
		error_print("record", "option '--save-on' is for a ring; without one everything is saved");
		return false;
	}
	if (save_policy_parse(
	            &options->save_on, values->save_on ? values->save_on : "always", why, sizeof why))
		return true;
	error_print("record", "option '--save-on': %s", why);
	return false;
}

static struct save_call save_calls[MAX_SAVE_CALLS];
static regex_t output_pattern;

/* "write:2" */
static bool parse_call(const char *text, size_t size, struct save_call *call)
{
	const char *colon = memchr(text, ':', size);
	size_t length = colon ? (size_t)(colon - text) : size;
	char name[NAME_TEXT_SIZE], *end;

	*call = (struct save_call){0};
	if (colon) {
		call->has_argument = true;
		call->argument = strtoul(colon + 1, &end, 0);
		if (colon[1] < '0' || colon[1] > '9' || end != text + size)
			return false;
	}
	for (call->number = 0; call->number < 1024; call->number++) {
		syscall_name(call->number, name);
		if (strlen(name) == length && !strncmp(name, text, length))
			return true;
	}
	return false;
}

static bool add_calls(const char *text, struct recorder_options *options)
{
	for (const char *rest = text;; rest++) {
		size_t size = strcspn(rest, ",");
		if (options->save_call_count == MAX_SAVE_CALLS) {
			error_print(
			        "record", "option '--save-on-syscall': more than %d calls", MAX_SAVE_CALLS);
			return false;
		}
		if (!parse_call(rest, size, &save_calls[options->save_call_count++])) {
			error_print("record",
			        "option '--save-on-syscall': '%.*s' is no system call; give a name, such as "
			        "openat, or a name and the first argument, such as write:2",
			        (int)size, rest);
			return false;
		}
		rest += size;
		if (!*rest)
			return true;
	}
}

static bool set_save_calls(const struct record_values *values, struct recorder_options *options)
{
	char why[128];

	options->save_calls = save_calls;
	if (!values->save_on_syscall && !values->save_on_output)
		return true;
	if (!options->ring) {
		error_print("record",
		        "options '--save-on-syscall' and '--save-on-output' are for a ring; without "
		        "one everything is saved");
		return false;
	}
	if (values->save_on_output) {
		int wrong = regcomp(&output_pattern, values->save_on_output, REG_EXTENDED | REG_NOSUB);
		if (wrong) {
			regerror(wrong, &output_pattern, why, sizeof why);
			error_print("record",
			        "option '--save-on-output': '%s' is no regular expression: %s; give an "
			        "extended one, as for 'grep -E'",
			        values->save_on_output, why);
			return false;
		}
		options->output = &output_pattern;
	}
	return (!values->save_on_output || add_calls("write:1,write:2,writev:1,writev:2", options)) &&
	       (!values->save_on_syscall || add_calls(values->save_on_syscall, options));
}

static bool set_cpu(const char *text, struct recorder_options *options)
{
	unsigned level;

	options->cpu = RECORDER_DEFAULT_CPU;
	if (!text)
		return true;
	if (cpu_level_parse(text, &level)) {
		options->cpu = cpu_level_name(level);
		return true;
	}
	error_print("record", "option '--cpu': no level '%s'; give x86-64-v2, x86-64-v3 or native", text);
	return false;
}

/* ---- where to ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool exists(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0;
}

/* PROGRAM-PID.bug, or with a number behind it: the pid will be the program's, and others had it before. */
static bool choose_path(const char *directory, const char *program, pid_t pid, char path[PATH_MAX])
{
	const char *name = base_name(program);
	int length = (int)strnlen(name, NAME_MAX - 40);

	for (unsigned i = 1; i < 10000; i++) {
		int size = i == 1 ? snprintf(path, PATH_MAX, "%s/%.*s-%d.bug", directory, length, name, pid)
		                  : snprintf(path, PATH_MAX, "%s/%.*s-%d-%u.bug", directory, length, name,
		                            pid, i);
		if (size >= PATH_MAX) {
			error_print(
			        "record", "%s: the path is too long; give another one with -o", directory);
			return false;
		}
		if (!exists(path))
			break;
	}
	return true;
}

static bool make_absolute(const char *directory, const char *name, char path[PATH_MAX])
{
	bool absolute = *name == '/';
	int size = snprintf(path, PATH_MAX, "%s%s%s", absolute ? "" : directory, absolute ? "" : "/", name);

	if (size < PATH_MAX)
		return true;
	error_print("record", "%s: the path is too long; give another one with -o", name);
	return false;
}

static bool check_name(const char *name, const char *path)
{
	struct stat status;

	if (!*name || name[strlen(name) - 1] == '/') {
		error_print("record", "option '--output': '%s' names no file; give a name for the recording",
		        name);
	} else if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
		error_print("record", "%s: a directory; give the name of a file in it", name);
	} else if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
		error_print(
		        "record", "%s: not a regular file; a recording needs one, give another name", name);
	} else if (exists(path)) {
		error_print(
		        "record", "%s: there is such a file already; remove it or give another name", name);
	} else if (errno == ENAMETOOLONG) {
		error_print("record", "%s: the name is too long; give a shorter one", name);
	} else {
		return true;
	}
	return false;
}

/* The directory must be there and take a new file: nobody wants to learn that when the program has ended. */
static bool check_directory(const char *path)
{
	char parent[PATH_MAX];
	int size = (int)(base_name(path) - path);

	struct stat status;

	snprintf(parent, sizeof parent, "%.*s", size > 1 ? size - 1 : 1, path);
	if (stat(parent, &status) == 0) {
		errno = ENOTDIR;
		if (S_ISDIR(status.st_mode) && faccessat(AT_FDCWD, parent, W_OK | X_OK, AT_EACCESS) == 0)
			return true;
	}
	error_print("record", "cannot write in %s: %s; give a path for the recording with -o", parent,
	        strerror(errno));
	return false;
}

/* NAME.bug in the recordings directory; files that are there get no other content, new ones a number. */
static bool named_path(const struct record_values *values, char path[PATH_MAX])
{
	char directory[PATH_MAX], first[PATH_MAX];

	if (values->output) {
		error_print("record", "options '--output' and '--name' exclude each other; give one of them");
		return false;
	}
	if (!*values->name || *values->name == '.' || strchr(values->name, '/') ||
	        strlen(values->name) > NAME_MAX - 20) {
		error_print("record",
		        "option '--name': '%s' is no name; give one without '/', that begins with no dot",
		        values->name);
		return false;
	}
	if (!recordings_make_directory(directory)) {
		error_print("record", "cannot make the recordings directory: %s; give a path with -o instead",
		        strerror(errno));
		return false;
	}
	if (snprintf(first, sizeof first, "%s/%s%s", directory, values->name, RECORDINGS_SUFFIX) >=
	        PATH_MAX) {
		error_print("record", "%s: the path is too long; give another one with -o", directory);
		return false;
	}
	unsigned number = 1;
	do
		save_numbered(first, number++, path);
	while (exists(path));
	return true;
}

static bool find_path(
        const char *name, const char *directory, const char *program, pid_t pid, char path[PATH_MAX])
{
	if (!*directory && (!name || *name != '/')) {
		error_print("record", "the current directory is gone; give an absolute path with -o");
		return false;
	}
	if (!name)
		return choose_path(directory, program, pid, path) && check_directory(path);
	return make_absolute(directory, name, path) && check_name(name, path) && check_directory(path);
}

/* ---- a process that is running already ---- */

static bool parse_pid(const char *text, pid_t *pid)
{
	char *end;
	long number = strtol(text, &end, 10);

	*pid = (pid_t)number;
	if (*text >= '1' && *text <= '9' && !*end && number <= INT_MAX)
		return true;
	error_print("record", "option '--pid': '%s' is no number of a process; 'ps' lists them", text);
	return false;
}

/* What can be told before there is a process. */
static bool running_options_fit(const struct record_values *values)
{
	if (values->pid && values->wait_for)
		error_print(
		        "record", "options '--pid' and '--wait-for' exclude each other; give one of them");
	else if (values->cpu)
		error_print(
		        "record", "option '--cpu' is for programs that are started: this one knows the CPU");
	else
		return true;
	return false;
}

/* What the user calls it: the name that it was executed by, if that is a file's and not a descriptor's. */
static const char *called(pid_t pid, const char *program, char path[PATH_MAX])
{
	if (process_called(pid, path) && strncmp(path, "/dev/", 5) != 0 && strncmp(path, "/proc/", 6) != 0)
		return path;
	return program;
}

/* SUPERVISED_NOBODY: it ended, or executed another program, before anything could be done. */
static int record_process(const struct record_values *values, struct recorder_options *options, pid_t pid)
{
	static char file[PATH_MAX], program[PATH_MAX], started_in[PATH_MAX];
	char *arguments, **argv, name[PATH_MAX], why[256];

	if (!attachment_program(pid, program, why, sizeof why)) {
		if (values->wait_for && process_is_over(pid))
			return SUPERVISED_NOBODY;
		error_print("record", "process %d: %s", pid, why);
		return STATUS_FAILED;
	}
	if (values->name ? !named_path(values, file) || !check_directory(file)
	                 : !find_path(
	                           values->output, options->directory, called(pid, program, name), pid, file))
		return STATUS_FAILED;
	options->path = file;
	options->started_in = process_link(pid, "cwd", started_in) ? started_in : NULL;
	options->program = program;
	options->argv = argv = process_arguments(pid, &arguments);
	int status = supervise_running(pid, &(struct supervisor_options){.stats = values->stats,
	                                            .children = values->children,
	                                            .cache = values->cache,
	                                            .record = options});
	free(argv);
	free(arguments);
	return status && status != SUPERVISED_NOBODY ? STATUS_FAILED : status;
}

/* The next one that lives long enough. */
static int record_next(const struct record_values *values, struct recorder_options *options)
{
	struct start_watch watch;
	char why[PATH_MAX + 256], file[PATH_MAX];
	int status;

	/* Nobody wants to learn that when it has started. */
	if (!values->name && !find_path(values->output, options->directory, "program", 0, file))
		return STATUS_FAILED;
	if (!start_watch_begin(&watch, values->wait_for, why, sizeof why)) {
		error_print("record", "option '--wait-for': %s", why);
		return STATUS_FAILED;
	}
	fprintf(stderr, "bugnet: waiting for the next start of %s\n", *watch.path ? watch.path : watch.name);
	do
		status = record_process(values, options, start_watch_next(&watch));
	while (status == SUPERVISED_NOBODY);
	start_watch_end(&watch);
	return status;
}

static int record_running(const struct record_values *values, struct recorder_options *options)
{
	static char directory[PATH_MAX];
	pid_t pid;

	if (!running_options_fit(values))
		return STATUS_FAILED;
	if (!getcwd(directory, sizeof directory) || *directory != '/')
		*directory = 0;
	options->directory = directory;
	options->cpu = "native";
	if (values->wait_for)
		return record_next(values, options);
	if (!parse_pid(values->pid, &pid))
		return STATUS_FAILED;
	if (pid == getpid()) {
		error_print("record", "process %d: that is this very command", pid);
		return STATUS_FAILED;
	}
	int status;
	do /* A shell that has just forked executes a program soon. */
		status = record_process(values, options, pid);
	while (status == SUPERVISED_NOBODY && !process_is_over(pid));
	if (status != SUPERVISED_NOBODY)
		return status;
	error_print("record", "process %d: it has ended; 'ps' lists others", pid);
	return STATUS_FAILED;
}

/* ---- the command ---- */

static int record_main(int argc, char **argv)
{
	struct record_values values = {.ring = UINT64_MAX};
	struct recorder_options options = {.version = BUGNET_VERSION};
	char path[PATH_MAX], file[PATH_MAX], directory[PATH_MAX] = "", program[PATH_MAX];
	int status;
	int first = options_parse(&record_command, argc, argv, &values, &status);

	if (first < 0)
		return status;
	bool runs = values.pid || values.wait_for;
	if (first == argc && !runs) {
		error_print("record", "no program given; usage: bugnet %s", record_command.synopsis);
		return STATUS_FAILED;
	}
	if (!set_interval(values.interval, &options) || !set_bound(values.bound, &options) ||
	        !set_dictionary(values.dictionary, &options) || !set_cpu(values.cpu, &options) ||
	        !set_ring(&values, &options) || !set_memory(&values, &options) ||
	        !set_slowdown(values.max_slowdown, &options) || !set_save_on(&values, &options) ||
	        !set_save_calls(&values, &options) || !program_cache_check("record", values.cache))
		return STATUS_FAILED;
	if (runs && first < argc) {
		error_print("record", "'%s': option '--%s' is for a process that %s, and takes no program",
		        argv[first], values.pid ? "pid" : "wait-for",
		        values.pid ? "is running already" : "somebody else starts; leave this word out");
		return STATUS_FAILED;
	}
	options.pages = !values.compare;
	options.progress = values.progress && progress_can_show();
	if (runs)
		return record_running(&values, &options);
	if (!program_check("record", argv + first, "; it is not recorded", path, &status))
		return status;
	if (!getcwd(directory, sizeof directory) || *directory != '/')
		*directory = 0;
	if (values.name ? !named_path(&values, file) || !check_directory(file)
	                : !find_path(values.output, directory, path, getpid(), file))
		return STATUS_FAILED;
	options.path = file;
	options.directory = directory;
	options.program = realpath(path, program) ? program : path;
	options.argv = argv + first;
	return launch_run(&(struct launch_options){
	        .command = "record",
	        .path = path,
	        .argv = argv + first,
	        .stats = values.stats,
	        .children = values.children,
	        .cache = values.cache,
	        .record = &options,
	});
}

const struct command record_command = {
        .name = "record",
        .summary = "run a program and record it, to be replayed exactly",
        .synopsis = "record [-o FILE] [--ring SIZE | --all] [--memory SIZE] [--max-slowdown N] [--save-on "
                    "END] [--save-on-syscall CALL] "
                    "[--save-on-output REGEX] [--name NAME] [--interval LENGTH] [--bound M] "
                    "[--dictionary N] [--cpu LEVEL] [--compare] [--children] [--progress] [--stats] [--cache "
                    "SIZE] "
                    "{--pid PID | --wait-for PROGRAM | [--] PROGRAM [ARGUMENT...]}",
        .description =
                "Run PROGRAM, found as the shell finds it, and keep what it takes to run it again,\n"
                "instruction for instruction, with none of its inputs. Output, exit status, signals and\n"
                "terminal are the program's own; one line on stderr says at the end what was saved.\n"
                "\n"
                "A recording holds what the program had in memory; only you can read it.\n"
                "\n"
                "Exit status: the program's; or 125 when bugnet itself fails, 126 when the program cannot\n"
                "be run, 127 when it is not found.\n",
        .options = record_options,
        .function = record_main,
};
