# `bugnet debug` at a terminal: terminal.py BUGNET PROGRAM FILE. What is typed is gdb's while the program stands, and the program's
# while it runs; ^C stops it wherever it is, also in a system call, which it makes again.
import os
import sys
import time
from keyboard import Terminal


def child_of(parent, program):
	"""The process that the terminal's one has started and that runs the program."""
	with open(f"/proc/{parent}/task/{parent}/children", encoding="utf-8") as file:
		children = file.read().split()
	return next(child for child in children if os.path.samefile(f"/proc/{child}/exe", program))


def waits_in_read(pid):
	"""The program is in the system call that reads what is typed."""
	with open(f"/proc/{pid}/syscall", encoding="utf-8") as file:
		return file.read().startswith("0 0x0 ")


bugnet, program, output = sys.argv[1:]
terminal = Terminal([bugnet, "debug", "--", program, "lines", output])
terminal.wait_for("(gdb)")
pid = child_of(terminal.pid, program)
terminal.type("continue\n", "Continuing.")
terminal.type("one\n", "got one")
while not waits_in_read(pid):
	time.sleep(0.02)
terminal.type("\x03", "SIGINT", "(gdb)")
terminal.type("print 40 + 2\n", "= 42", "(gdb)")
terminal.type("reverse-stepi\n", "(gdb)")
terminal.type("continue\n", "Continuing.")
terminal.type("two\n", "got two")
terminal.type("end\n", "exits here with status 3", "(gdb)")
terminal.type("continue\n", "exited with code 03", "(gdb)")
terminal.quit()
print("passed")
