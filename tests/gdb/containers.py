# C++: from an exception that nobody caught back to what made it necessary.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

expect_in("SIGABRT", run("monitor opened"), "why it died")
names = [str(name) for name in callers()]
expect_in("main", " ".join(names), "callers")
expect_in("{0, 3, 6, 9, 12, 15}", value("summarize(3)"), "an object that a call returns in memory")
expect_in('"*****"', run("print stars(5)"), "a string that a call returns")
expect_in("{0, 7, 14, 21, 28, 35}", value("summarize(7)"), "another one")

# What it died of is told whichever way it comes there.
for way in ("monitor opened", "seek start", "continue", "seek start", "seek end", "continue", "reverse-stepi", "stepi"):
	run(way)
	expect(number("$_siginfo.si_signo"), 5 if way in ("seek start", "reverse-stepi") else 6, f"siginfo behind {way}")
run("break __cxa_throw")
run("reverse-continue")
names = [str(name) for name in callers()]
expect_in("book", names[1], "who throws")
run("up")
owner = run("print this->owner")
expect_in("bob", owner, "a string")
expect(number("amount"), -1000, "an argument")
run("delete")
# Throws before it, all of which were caught.
run("frame 0")
first = position()
run("break __cxa_throw")
throws = 0
while move("reverse-continue") == "breakpoint":
	throws += 1
if not 1 <= throws <= 6:
	raise gdb.GdbError(f"{throws} earlier throws")
for i in range(throws):
	expect(move("continue"), "breakpoint", "forwards")
expect(move("continue"), "breakpoint", "forwards")
expect(position(), first, "the same throws forwards")
passed()
