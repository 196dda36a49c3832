# What the sessions of tests/gdb.sh have in common. A session is a file that gdb executes; it prints "passed" at its end.
import os
import gdb

gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("set width 0")
gdb.execute("set print frame-arguments all")


def run(command):
	return gdb.execute(command, to_string=True)


stops = []


def note_stop(event):
	if isinstance(event, gdb.BreakpointEvent):
		stops.append("breakpoint")
	elif isinstance(event, gdb.SignalEvent):
		stops.append(event.stop_signal)
	else:
		stops.append("stop")


gdb.events.stop.connect(note_stop)


def move(command):
	"""Executes a command that moves; returns why it stopped: breakpoint (or watchpoint), a signal, or stop."""
	del stops[:]
	gdb.execute(command, to_string=True)
	return stops[-1] if stops else "none"


def value(expression):
	return str(gdb.parse_and_eval(expression))


def number(expression):
	return int(gdb.parse_and_eval(expression))


def pc():
	return number("(unsigned long)$pc")


def position():
	return int(run("when").split("position ")[1].split()[0])


def function():
	return gdb.selected_frame().name()


def line():
	return gdb.selected_frame().find_sal().line


def callers():
	names, frame = [], gdb.newest_frame()
	while frame is not None:
		names.append(frame.name())
		frame = frame.older()
	return names


def expect(found, wanted, what):
	if found != wanted:
		raise gdb.GdbError(f"{what}: found {found!r}, expected {wanted!r}")


def expect_in(text, output, what):
	if text not in output:
		raise gdb.GdbError(f"{what}: no {text!r} in {output!r}")


def expect_error(command, text):
	try:
		output = run(command)
	except gdb.error as error:
		output = str(error)
	expect_in(text, output, command)


def expect_refused(command):
	"""A write to memory, of which gdb itself does not tell why it fails: the server does, on its own standard error, which is ours."""
	before = os.fstat(2).st_size
	expect_error(command, "Cannot access memory")
	with open("/proc/self/fd/2", encoding="utf-8") as file:
		file.seek(before)
		expect_in("the recording cannot be changed", file.read(), command)


def registers():
	"""All of them, as one text."""
	return run("info registers general") + run("info registers float") + run("info registers vector")


def memory(address, size):
	return bytes(gdb.selected_inferior().read_memory(address, size))


def passed():
	print("passed")
