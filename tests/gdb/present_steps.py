# Steps of the program itself, and the same places in its recording.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

run("break visit")
move("continue")
run("delete")
places = [(pc(), registers(), memory(number("$sp"), 64))]
for i in range(int(os.environ.get("STEPS", "120"))):
	run("stepi")
	places.append((pc(), registers(), memory(number("$sp"), 64)))
first = position() - len(places) + 1
for i in range(len(places) - 2, -1, -1):
	run("reverse-stepi")
	expect((pc(), registers()), places[i][:2], f"step {i} backwards")
	expect(memory(number("$sp"), 64), places[i][2], f"the stack at step {i}")
expect(position(), first, "where it began")
for place in places[1:10]:
	run("stepi")
	expect((pc(), registers()), place[:2], "forwards again")
run("seek end")
run("break visits")
expect(move("reverse-continue"), "breakpoint", "the start of it")
run("delete")
run("tbreak visit")
move("continue")
first = line()
run("next")
expect((function(), line()), ("visit", first + 1), "the next line")
run("next")
run("next")
run("finish")
expect(function(), "visits", "the caller")
run("kill")
passed()
