/*
 * The terminal of a program that is debugged here: the program has it while it runs, and gdb while it stands
 * still, each with the modes that it had set. What is typed to stop the program goes to its process group,
 * which is ours as well: gdb has one of its own.
 */
#ifndef BUGNET_CLI_TERMINAL_H
#define BUGNET_CLI_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct terminal {
	int fd; /* -1: there is none, or it is not ours */
	pid_t own, gdb;
	bool gives; /* gdb has a group of its own */
	struct termios initial, program;
};

void terminal_open(struct terminal *terminal);
/* Puts gdb into a group of its own and gives the terminal to it: to be called on both sides of the fork. */
void terminal_give(struct terminal *terminal, pid_t gdb);
void terminal_turn(struct terminal *terminal, bool program);
/* As it was. */
void terminal_close(struct terminal *terminal);

#endif
