/*
 * bugnet's own error messages and exit statuses.
 *
 * A message names the thing, the reason and the next step. The statuses are those
 * of env, nohup and timeout: the program's own statuses stay free for the program.
 */
#ifndef BUGNET_CLI_ERROR_H
#define BUGNET_CLI_ERROR_H

enum {
	STATUS_FAILED = 125,     /* bugnet failed, or was called wrongly */
	STATUS_CANNOT_RUN = 126, /* the program was found but cannot be run */
	STATUS_NOT_FOUND = 127,  /* there is no such program */
};

/*
 * Print "bugnet COMMAND: MESSAGE" to stderr, or "bugnet: MESSAGE" when command is NULL.
 * Control characters, which may come out of a hostile file, are shown as \xNN.
 */
__attribute__((format(printf, 2, 3))) void error_print(const char *command, const char *format, ...);

#endif
