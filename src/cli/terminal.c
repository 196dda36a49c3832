#include "cli/terminal.h"

#include <signal.h>
#include <unistd.h>

void terminal_open(struct terminal *terminal)
{
	*terminal = (struct terminal){.fd = -1, .own = getpgrp()};
	/* In the background it is somebody else's. */
	if (isatty(0) && tcgetpgrp(0) == terminal->own && tcgetattr(0, &terminal->initial) == 0)
		terminal->fd = 0;
	terminal->program = terminal->initial;
}

void terminal_give(struct terminal *terminal, pid_t gdb)
{
	if (terminal->fd < 0)
		return;
	signal(SIGTTOU, SIG_IGN); /* whoever is in the background may still give it away */
	setpgid(gdb, gdb);
	tcsetpgrp(terminal->fd, gdb);
	terminal->gdb = gdb;
	terminal->gives = true;
}

void terminal_turn(struct terminal *terminal, bool program)
{
	if (!terminal->gives)
		return;
	if (!program)
		tcgetattr(terminal->fd, &terminal->program);
	tcsetattr(terminal->fd, TCSADRAIN, program ? &terminal->program : &terminal->initial);
	tcsetpgrp(terminal->fd, program ? terminal->own : terminal->gdb);
}

void terminal_close(struct terminal *terminal)
{
	if (!terminal->gives)
		return;
	tcsetpgrp(terminal->fd, terminal->own);
	tcsetattr(terminal->fd, TCSADRAIN, &terminal->initial);
}
