/* bugnet detach: let a recorded program go on natively. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/running.h"
#include "record/control.h"
#include "record/memory.h"
#include "record/orphan.h"

static const struct option_spec detach_options[] = {{0}};

/* "ok\n", or "error\nTEXT\n" */
static int tell(long pid, char *answer)
{
	char *verdict = strsep(&answer, "\n"), *text = strsep(&answer, "\n");

	if (strcmp(verdict, "ok") != 0) {
		error_print("detach", "process %ld: %s", pid, text && *text ? text : "no answer");
		return STATUS_FAILED;
	}
	return 0;
}

/* Nobody records it; but one who did may have been killed, and left things in it. */
static int take_out_remains(pid_t pid)
{
	struct memory memory;
	char why[256] = "";
	int status = STATUS_FAILED;

	if (memory_open(&memory, pid) != 0 || orphan_look(&memory) != ORPHAN_LEFT)
		running_explain("detach", pid);
	else if (!orphan_take_out(pid, &memory, why, sizeof why))
		error_print("detach", "process %d: %s", pid, why);
	else
		status = 0;
	memory_close(&memory);
	return status;
}

static int detach_main(int argc, char **argv)
{
	char socket[PATH_MAX], request[64], answer[CONTROL_PACKET], *end;
	int status;
	int first = options_parse(&detach_command, argc, argv, NULL, &status);

	if (first < 0)
		return status;
	if (first == argc || first + 1 < argc) {
		error_print("detach", "%s; usage: bugnet %s",
		        first == argc ? "no process given" : "one process at a time",
		        detach_command.synopsis);
		return STATUS_FAILED;
	}
	long pid = strtol(argv[first], &end, 10);
	if (*end || pid <= 0 || pid > INT32_MAX) {
		error_print(
		        "detach", "'%s' is no process id; 'bugnet ps' lists what is recorded", argv[first]);
		return STATUS_FAILED;
	}
	pid_t silent;
	bool found = running_find((pid_t)pid, socket, &silent);
	if (!found && !silent)
		return take_out_remains((pid_t)pid);
	snprintf(request, sizeof request, "detach\n%ld\n", pid);
	bool answered = found && control_ask(socket, request, answer, NULL, &silent);
	if (!answered && silent) {
		error_print("detach", "process %ld: " CONTROL_SILENT, pid, silent, silent, silent);
		return STATUS_FAILED;
	}
	if (!answered) {
		error_print("detach",
		        "process %ld: its recorder ended before it could answer; 'bugnet ps' lists "
		        "what is recorded",
		        pid);
		return STATUS_FAILED;
	}
	return tell(pid, answer);
}

const struct command detach_command = {
        .name = "detach",
        .summary = "let a recorded program go on natively",
        .synopsis = "detach PID",
        .description = "Process PID, which 'bugnet record' started or attached to, goes on natively, as if "
                       "nothing had\n"
                       "been: nothing of bugnet's is left in it. What was recorded is saved as at its end. "
                       "Processes\n"
                       "that it made go on natively, too. What a recorder that was killed has left in PID is "
                       "taken out.\n"
                       "\n"
                       "Exit status: 0 when it is done; or 125 when there is no such process, it is not "
                       "yours, or it\n"
                       "could not be let go.\n",
        .options = detach_options,
        .function = detach_main,
};
