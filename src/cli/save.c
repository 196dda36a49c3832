/* bugnet save: make a file of what a program did last, while it goes on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/running.h"
#include "cli/ticker.h"
#include "record/control.h"
#include "recording/amount.h"

struct save_values {
	const char *output;
	const char *why;
};

static const struct option_spec save_options[] = {
        {
                .name = "output",
                .letter = 'o',
                .type = OPTION_PATH,
                .offset = offsetof(struct save_values, output),
                .value = "FILE",
                .help = "the recording (the name that it was given when it began, with a number)",
        },
        {
                .name = "why",
                .type = OPTION_TEXT,
                .offset = offsetof(struct save_values, why),
                .value = "TEXT",
                .help = "what 'bugnet info' is to tell as the reason",
        },
        {0},
};

static bool find_output(const char *name, char path[PATH_MAX])
{
	struct stat status;
	char directory[PATH_MAX] = "";

	*path = 0;
	if (!name)
		return true;
	if (*name != '/' && !getcwd(directory, sizeof directory)) {
		error_print("save", "the current directory is gone; give an absolute path with -o");
		return false;
	}
	if (snprintf(path, PATH_MAX, "%s%s%s", directory, *directory ? "/" : "", name) >= PATH_MAX ||
	        strchr(path, '\n')) {
		error_print("save", "%s: no name for a recording; give another one with -o", name);
		return false;
	}
	if (lstat(path, &status) == 0) {
		error_print("save", "%s: there is such a file already; remove it or give another name", name);
		return false;
	}
	return true;
}

/* "ok\nPATH\nINSTRUCTIONS THREADS SIZE\n", or "error\nTEXT\n" */
static int tell(char *answer)
{
	char instructions[AMOUNT_TEXT_SIZE], size[AMOUNT_TEXT_SIZE];
	char *verdict = strsep(&answer, "\n"), *path = strsep(&answer, "\n");
	unsigned long executed = 0, bytes = 0;
	unsigned threads = 0;

	if (strcmp(verdict, "ok") != 0) {
		error_print("save", "%s", path ? path : "no answer");
		return STATUS_FAILED;
	}
	if (answer)
		sscanf(answer, "%lu %u %lu", &executed, &threads, &bytes);
	printf("saved %s: %s instructions, %u thread%s, %s\n", path, amount_text(executed, instructions),
	        threads, threads == 1 ? "" : "s", size_text(bytes, size));
	return 0;
}

static int save_main(int argc, char **argv)
{
	struct save_values values = {0};
	char path[PATH_MAX], socket[PATH_MAX], request[CONTROL_PACKET], answer[CONTROL_PACKET];
	int status;
	int first = options_parse(&save_command, argc, argv, &values, &status);

	if (first < 0)
		return status;
	/* Options may come behind the number, too. */
	char *end, *number = first < argc ? argv[first] : NULL;
	if (number && first + 1 < argc) {
		int more = options_parse(&save_command, argc - first, argv + first, &values, &status);
		if (more < 0)
			return status;
		if (more < argc - first) {
			error_print("save", "'%s' is one word too many; give one process at a time",
			        argv[first + more]);
			return STATUS_FAILED;
		}
	}
	long pid = number ? strtol(number, &end, 10) : 0;
	if (!number || *end || pid <= 0 || pid > INT32_MAX) {
		error_print("save", "%s%s%s; usage: bugnet %s", number ? "'" : "",
		        number ? number : "no process given",
		        number ? "' is no process id; 'bugnet ps' lists what is recorded" : "",
		        save_command.synopsis);
		return STATUS_FAILED;
	}
	if (!find_output(values.output, path))
		return STATUS_FAILED;
	struct ticker ticker = {.command = "save", .doing = "saving", .unit = TICKER_BYTES};
	ticker_begin(&ticker);
	pid_t silent;
	bool found = running_find((pid_t)pid, socket, &silent);
	snprintf(request, sizeof request, "save\n%ld\n%s\n%.500s", pid, path, values.why ? values.why : "");
	bool answered = found && control_ask(socket, request, answer, &ticker.progress, &silent);
	ticker_end(&ticker);
	if (!answered && silent) {
		error_print("save", "process %ld: " CONTROL_SILENT, pid, silent, silent, silent);
		return STATUS_FAILED;
	}
	if (!answered && found)
		error_print("save", "process %ld ended before it could be saved", pid);
	else if (!answered)
		running_explain("save", (pid_t)pid);
	if (!answered)
		return STATUS_FAILED;
	return tell(answer);
}

const struct command save_command = {
        .name = "save",
        .summary = "save what a recorded program did last, while it goes on",
        .synopsis = "save [-o FILE] [--why TEXT] PID",
        .description =
                "Make a recording of what the ring of process PID holds, which 'bugnet record' has started\n"
                "and which goes on. Its threads are stopped for a moment each. Can be done again and again:\n"
                "no file is overwritten.\n"
                "\n"
                "Exit status: 0; or 125 when there is no such process, it is not yours, or there is no "
                "room.\n",
        .options = save_options,
        .function = save_main,
};
