# A watchpoint while the program runs: what it stops at is the change, which the program has left behind.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

run("break watch")
move("continue")
run("delete")
run("watch watched.value")
places = []
for i in range(1, 4):
	expect(move("continue"), "breakpoint", "a change")
	expect((function(), number("watched.value")), ("change", i * 11), "the change")
	places.append(position())
expect(places, sorted(places), "in order")
expect(move("reverse-continue"), "breakpoint", "the last change")
expect(move("reverse-continue"), "breakpoint", "the change before")
expect(number("watched.value"), 11, "before it")
run("delete")
run("continue")
run("continue")
expect(number("$_exitcode"), 2, "how it ended")
passed()
