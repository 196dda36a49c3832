/* bugnet record: run a program and keep what is needed to run it again exactly. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#include "cli/version.h"
#include "record/cpu_level.h"
#include "record/launch.h"
#include "record/recorder.h"

struct record_values {
	const char *output;
	const char *interval;
	const char *bound;
	const char *dictionary;
	const char *cpu;
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
static bool choose_path(const char *directory, const char *program, char path[PATH_MAX])
{
	const char *name = base_name(program);
	int length = (int)strnlen(name, NAME_MAX - 40);

	for (unsigned i = 1; i < 10000; i++) {
		int size =
		        i == 1 ? snprintf(path, PATH_MAX, "%s/%.*s-%d.bug", directory, length, name, getpid())
		               : snprintf(path, PATH_MAX, "%s/%.*s-%d-%u.bug", directory, length, name,
		                         getpid(), i);
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

static bool find_path(const char *name, const char *directory, const char *program, char path[PATH_MAX])
{
	if (!*directory && (!name || *name != '/')) {
		error_print("record", "the current directory is gone; give an absolute path with -o");
		return false;
	}
	if (!name)
		return choose_path(directory, program, path) && check_directory(path);
	return make_absolute(directory, name, path) && check_name(name, path) && check_directory(path);
}

/* ---- the command ---- */

static int record_main(int argc, char **argv)
{
	struct record_values values = {0};
	struct recorder_options options = {.version = BUGNET_VERSION};
	char path[PATH_MAX], file[PATH_MAX], directory[PATH_MAX] = "", program[PATH_MAX];
	int status;
	int first = options_parse(&record_command, argc, argv, &values, &status);

	if (first < 0)
		return status;
	if (first == argc) {
		error_print("record", "no program given; usage: bugnet %s", record_command.synopsis);
		return STATUS_FAILED;
	}
	if (!set_interval(values.interval, &options) || !set_bound(values.bound, &options) ||
	        !set_dictionary(values.dictionary, &options) || !set_cpu(values.cpu, &options) ||
	        !program_cache_check("record", values.cache))
		return STATUS_FAILED;
	if (!program_check("record", argv + first, "; it is not recorded", path, &status))
		return status;
	if (!getcwd(directory, sizeof directory) || *directory != '/')
		*directory = 0;
	if (!find_path(values.output, directory, path, file))
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
	        .cache = values.cache,
	        .record = &options,
	});
}

const struct command record_command = {
        .name = "record",
        .summary = "run a program and record it, to be replayed exactly",
        .synopsis =
                "record [-o FILE] [--interval LENGTH] [--bound M] [--dictionary N] [--cpu LEVEL] [--stats] "
                "[--cache SIZE] [--] PROGRAM [ARGUMENT...]",
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
