# Threads stand still together, wherever one of them stops, and go back together.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *


def sums():
	return [number("total"), *[number(f"of[{i}]") for i in range(3)]]


run("break add if total > 100")
expect(move("continue"), "breakpoint", "in the middle")
stood = sums()
expect(stood[0] > 100, True, "the condition")
expect(stood[0] in (sum(stood[1:]), sum(stood[1:]) - 1), True, "one sum of all")
threads = gdb.selected_inferior().threads()
current = gdb.selected_thread()
for thread in threads:
	thread.switch()
	# What a thread stands at now is what its recording ends with.
	now = registers()
	expect(now, registers(), "it stands still")
	expect(number("total_here()"), stood[0], "what a function finds that is called in it")
	expect(registers(), now, "where it stands, behind a call")
current.switch()
here, thread = registers(), current.ptid
run("reverse-stepi")
run("stepi")
expect((registers(), gdb.selected_thread().ptid), (here, thread), "there and back")
expect(sums(), stood, "memory of the present")
run("delete")
run("break add")
expect(move("reverse-continue"), "breakpoint", "the call before")
expect(number("total_here()"), number("total"), "what a function finds in the past")
run("delete")
run("tbreak threads")
expect(move("reverse-continue"), "breakpoint", "before all of them")
expect(len(gdb.selected_inferior().threads()), 1, "threads then")
run("continue")
run("continue")
expect(number("$_exitcode"), 4, "how it ended")
passed()
