"""A program that runs, whose libraries come and go: where it is gone back they are those of that time."""
import os

import gdb

FOUND = [(0, "libfirst.so"), (1, "libsecond.so"), (2, "libfirst.so"), (3, "libsecond.so")]


def run(command):
	return gdb.execute(command, to_string=True)


def loaded():
	return sorted(os.path.basename(line.split()[-1]) for line in run("info sharedlibrary").splitlines()[1:])


def visits(command, count):
	found = []
	for _ in range(count):
		said = run(command)
		assert "Corrupted" not in said and "nterface failed" not in said, said
		frame = gdb.newest_frame()
		assert frame.name() == "visit", said
		found.append((int(gdb.parse_and_eval("number")), os.path.basename(gdb.solib_name(frame.pc()))))
		assert found[-1][1] in loaded() and len(loaded()) == 3, loaded()
	return found


def check():
	run("set breakpoint pending on")
	run("set sysroot target:") # files come through the server, also those that are not mapped any more
	assert len(loaded()) == 1, loaded() # the dynamic linker
	run("break visit")
	assert visits("continue", 4) == FOUND
	assert visits("reverse-continue", 3) == FOUND[2::-1]
	run("reverse-continue")
	assert gdb.newest_frame().name() == "_start" and len(loaded()) == 1, loaded()
	assert visits("continue", 4) == FOUND
	run("delete")
	run("break between")
	run("continue")
	assert gdb.newest_frame().name() == "between" and len(loaded()) == 2, loaded()
	assert run("info symbol puts").startswith("puts in section"), "the C library has lost its symbols"
	run("reverse-stepi")
	assert len(loaded()) == 2, loaded()
	run("kill")


check()
print("passed")
