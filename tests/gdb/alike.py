# What is known of memory does not depend on what else lies at addresses that are alike; what cannot be told is never made up.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

FEW, MANY = 4, 1200

# There are more windows than are kept apart.
run("break they_are_there")
run("reverse-continue")
known = 0
for i in range(0, MANY, 50):
	try:
		found = int(gdb.parse_and_eval(f"pages[{i}][{i % 512}]"))
	except gdb.MemoryError:
		continue
	expect(found, 11 + i, f"page {i}")
	known += 1
if known < 1000 / 50:
	raise gdb.GdbError(f"only {known} pages are known")

# As long as there are few, everything is known: here, and on the way back.
run("reverse-continue")
run("up")
for i in range(FEW):
	expect(number(f"pages[{i}][{i}]"), 11 + i, f"page {i} of few")
expect((number("local"), number("argument"), number("global")), (11, 10, 17), "the stack and the data")
expect(callers()[:3], ["they_are_there", "few", "main"], "the stack")
run("delete")
run("reverse-finish")
run("reverse-finish")
expect((function(), number("global")), ("main", 6), "the call")
passed()
