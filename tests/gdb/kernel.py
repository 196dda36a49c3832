# What the log tells of the kernel: system calls, signals and processes are caught in both directions; mappings are what the
# program itself has read in /proc.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *


SYSCALL = b"\x0f\x05"
MUNMAP, MREMAP, MPROTECT, CLONE = 11, 25, 10, 56


def caught(command):
	"""Where it stands: about to make a call, with its number, or behind one, with its result; else why it stopped."""
	why = move(command)
	if why == "breakpoint" and memory(pc(), 2) == SYSCALL:
		return "call", number("$rax")
	if why == "breakpoint" and memory(pc() - 2, 2) == SYSCALL:
		return "return", number("$rax")
	return why


# In both directions the same, each call entered and left.
run("handle SIGUSR2 nostop noprint pass")
run("seek start")
run("catch syscall mprotect munmap 25")
forwards = []
while isinstance(what := caught("continue"), tuple):
	forwards.append((*what, position()))
backwards = []
while isinstance(what := caught("reverse-continue"), tuple):
	backwards.append((*what, position()))
expect(backwards, forwards[::-1], "calls, backwards")
entries, returns = forwards[::2], forwards[1::2]
expect({kind for kind, value, place in entries}, {"call"}, "entries")
expect({kind for kind, value, place in returns}, {"return"}, "returns")
expect([place + 1 for kind, value, place in entries], [place for kind, value, place in returns], "a call is one instruction")
numbers = [value for kind, value, place in entries]
expect(set(numbers), {MPROTECT, MUNMAP, MREMAP}, "the calls")
expect(numbers[-3:], [MPROTECT, MUNMAP, MREMAP], "those of main")
mapped = returns[-1][1]
run("delete")

# A breakpoint on the way to a call, and a call on the way to a breakpoint.
run("seek start")
run("catch syscall clone")
run("break waitpid")
expect(caught("continue"), ("call", CLONE), "the call")
kind, child = caught("continue")
expect(kind, "return", "its return")
made = position()
expect(caught("continue"), "breakpoint", "behind it")
run("finish")
run("next")
expect(number("child"), child, "the process")
run("delete")

# The process that is made; gdb stays with the one that was recorded.
run("seek start")
run("catch fork")
run("break abort")
for command in ("continue", "reverse-continue"):
	expect(move(command), "breakpoint", "the process")
	expect(memory(pc() - 2, 2), SYSCALL, f"catch fork, {command}")
	expect((position(), number("$rax")), (made, child), f"where, {command}")
	move(command)
	expect(function(), "__GI_abort" if command == "continue" else "_start", f"behind it, {command}")
run("delete")

# What there is nothing to catch of.
expect_error("catch vfork", "'catch syscall vfork clone clone3'")
expect_error("catch exec", "'seek end' goes there")
expect_in("No breakpoints", run("info breakpoints"), "what was refused")

# The signal, and what came with it.
run("handle SIGUSR2 stop print pass")
run("seek start")
run("catch signal SIGUSR2")
expect(caught("continue"), "SIGUSR2", "the signal")
expect(number("$_siginfo._sifields._rt.si_sigval.sival_int"), 4711, "its value")
expect(number("value"), 0, "before the handler")
here = position()
run("seek end")
expect(number("value"), 4711, "behind the handler")
expect(caught("reverse-continue"), "SIGUSR2", "the signal, backwards")
expect(position(), here, "the signal, backwards")
expect(number("$_siginfo.si_signo"), 12, "its number, backwards")
run("delete")

# Mappings: each that has a name, and each that was made by a call, is one that the program saw.
run("handle SIGUSR2 nostop noprint pass")
run("seek start")
run("break abort")
run("continue")
run("up")
expect(function(), "main", "behind it all")
seen = {}
for line in open(os.environ["MAPS"], encoding="utf-8"):
	words = line.split(None, 5)
	if len(words) >= 5 and "-" in words[0]:
		start, end = (int(word, 16) for word in words[0].split("-"))
		seen[start] = (end, words[1], words[5].strip() if len(words) > 5 else "")


def is_inside(start, end, permissions):
	"""The program saw memory like that there; neighbours of one kind are one to the kernel."""
	while start < end:
		found = [there for at, there in seen.items() if at <= start < there[0]]
		if not found or found[0][1] != permissions:
			return False
		start = found[0][0]
	return True


text = run("info proc mappings")
rows = [line.split() for line in text.splitlines() if line.strip().startswith("0x")]
for row in rows:
	start, end, permissions = int(row[0], 16), int(row[1], 16), row[4]
	if not is_inside(start, end, permissions):
		raise gdb.GdbError(f"not what the program saw: {' '.join(row)}")
files = {row[5] for row in rows if len(row) > 5}
for name in ("[heap]", "[stack]"):
	if name not in files:
		raise gdb.GdbError(f"no {name}")
area = number("(long)memory")
by_start = {int(row[0], 16): row for row in rows}
expect(by_start[area + 4 * 4096][4], "r--p", "what was protected")
expect([row for row in rows if int(row[0], 16) <= area + 8 * 4096 < int(row[1], 16)], [], "what was unmapped")
moved = number("(long)moved")
expect(moved, mapped, "where it was moved to")
if not [row for row in rows if int(row[0], 16) <= moved and moved + 6 * 4096 <= int(row[1], 16)]:
	raise gdb.GdbError("what was moved is not there")
expect_in(os.environ["PROGRAM"], run("info proc exe"), "info proc exe")
expect_in(os.environ["PROGRAM"], run("info proc cmdline"), "info proc cmdline")
expect_in("AT_ENTRY", run("info auxv"), "info auxv")
passed()
