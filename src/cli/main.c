#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/error.h"

int main(int argc, char **argv)
{
	int status = bugnet_command.function(argc, argv);

	/* A full disk behind `bugnet doctor >report` must not look like success. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		error_print(NULL, "cannot write to standard output: %s", strerror(errno));
		return STATUS_FAILED;
	}
	return status;
}
