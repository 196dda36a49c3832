# A program that was running already: back to where it was attached to, on, and let go.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

expect(function(), "loop", "where it is")
expect(number("turns") > 0, True, "turns so far")
expect_error("reverse-stepi", "nothing was executed yet")
places = []
for i in range(40):
	places.append((pc(), registers()))
	run("stepi")
for place in places[::-1]:
	run("reverse-stepi")
	expect((pc(), registers()), place, "a step back")
run("tbreak loop")
output = run("reverse-continue")
expect(position(), 0, "the start")
run("delete")
run("watch turns")
expect(move("continue"), "breakpoint", "a turn")
run("detach")
passed()
