# gdb's own commands, forwards and backwards, on code with symbols.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

run("seek start")
expect(move("reverse-stepi"), "stop", "before the start")
expect(position(), 0, "the start")
run("break main")
run("continue")
expect(function(), "main", "the breakpoint")
at_main = position()
run("delete")

# Steps by lines, and back: by the same lines.
places = [(position(), line())]
for i in range(12):
	move("next")
	places.append((position(), line()))
back = []
while position() > at_main:
	before = position()
	move("reverse-next")
	if position() >= before:
		raise gdb.GdbError("reverse-next does not go back")
	back.append(line())
expect(position(), at_main, "the way back")
expect(set(back) - {line for _, line in places}, set(), "lines that were not there forwards")

# Into a function, back out of it, and to its end.
run(f"seek {at_main}")
run("break insert")
run("continue")
expect(callers()[:2], ["insert", "main"], "inside")
run("delete")
inside = position()
run("finish")
expect(function(), "main", "finish")
behind = position()
if behind <= inside:
	raise gdb.GdbError("finish does not go forwards")
run(f"seek {inside}")
run("reverse-finish")
expect(function(), "main", "reverse-finish")
if position() >= inside:
	raise gdb.GdbError("reverse-finish does not go backwards")
run("stepi")
expect(function(), "insert", "the call")

# A signal comes where it came, and its handler is entered.
run(f"seek {at_main}")
expect(move("continue"), "SIGUSR1", "the signal")
expect(value("signals"), "0", "before the handler")
here = position()
run("break note")
run("continue")
expect(function(), "note", "the handler")
expect(number("number"), 10, "its argument")
run("delete")
run("finish")
run("reverse-continue")
run("seek end")
expect(value("signals"), "10", "behind the handler")

# Temporary breakpoints, until, and conditions.
run("seek start")
run("tbreak visit if depth == 5")
run("continue")
expect(number("depth"), 5, "a condition")
run("seek end")
run("break visit if depth == 0 && visited > 50")
run("reverse-continue")
expect(number("depth"), 0, "a condition, backwards")
run("delete")

# Watchpoints: written, read, either; several at once.
run(f"seek {at_main}")
run("watch visited")
for i in range(3):
	expect(move("continue"), "breakpoint", "watch")
	expect(number("visited"), i + 1, "visited")
for i in range(3):
	expect(move("reverse-continue"), "breakpoint", "watch, backwards")
	expect(number("visited"), 2 - i, "visited, backwards")
run("delete")
run("rwatch list")
expect(move("continue"), "breakpoint", "rwatch")
run("delete")
run("awatch list")
expect(move("continue"), "breakpoint", "awatch")
run("delete")

# Loads by ret and leave.
run(f"seek {at_main}")
run("break visit")
run("continue")
run("delete")
for offset, instruction in ((8, "ret"), (0, "leave")):
	run(f"rwatch *(long *){number('(long)$rbp') + offset}")
	here = position()
	for way in ("continue", "reverse-continue"):
		if way == "reverse-continue":
			run("stepi")
		expect(move(way), "breakpoint", f"rwatch of {instruction}, {way}")
		if way == "continue":
			run("reverse-stepi")
		expect_in(instruction, run("x/i $pc"), f"what has loaded it, {way}")
	run("delete")
	run(f"seek {here}")

# What cannot be changed, and what cannot be known.
expect_refused("set variable visited = 3")
expect_error("set $rax = 3", "cannot be changed")
expect_error("x/x 0x10", "Cannot access memory")
expect_error("seek nowhere", "no position")
expect_error("seek 99999999999999", "not in the recording")
passed()
