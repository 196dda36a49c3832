# A breakpoint that is hit several times while the program runs; back past all of them, and forward again; on from the present.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *


def visit():
	return (number("number"), value("sum"), registers(), position())


expect(position(), 0, "where it begins")
run("break visit")
visits = []
for i in range(4):
	expect(move("continue"), "breakpoint", "a visit")
	visits.append(visit())
	expect(number("number"), i, "which one")
expect(len({place for _, _, _, place in visits}), 4, "places")

# What replay has at these places is what was seen when the program stood there.
for wanted in visits[2::-1]:
	expect(move("reverse-continue"), "breakpoint", "a visit before")
	expect(visit(), wanted, "the same visit")
for wanted in visits[1:]:
	expect(move("continue"), "breakpoint", "a visit again")
	expect(visit(), wanted, "the same visit")
run("seek start")
expect(position(), 0, "the start")
run("seek end")
expect(visit(), visits[3], "the present")

# Nothing of that was executed by the program.
expect_error("calls visit", "where the program runs")
for command in ("catch", "tcatch"):
	expect_error(command + " fork", "a program that runs does not stop for it")
for command in ("run", "start"):
	expect_error(command, "the program is there already")
expect(run("info breakpoints").count("catchpoint"), 0, "catchpoints that were refused")
expect(visit(), visits[3], "the present, behind a command that is refused")
with open(os.environ["OUTPUT"], encoding="utf-8") as file:
	expect(len(file.readlines()), 3, "lines so far")
expect_error("set var out = 0", "")
expect_error("print number = 5", "")
expect(number("number"), 3, "what nobody can change")

# On, also from the past, and back once more from there.
run("reverse-finish")
expect(function(), "visits", "before the call")
expect(move("continue"), "breakpoint", "the visit of the present")
expect(visit(), visits[3], "the present again")
expect(move("continue"), "breakpoint", "a new visit")
expect(number("number"), 4, "which one")
expect(move("reverse-continue"), "breakpoint", "the one before")
expect(visit(), visits[3], "what was the present")
run("delete")
output = run("continue")
expect_in("exits here with status 32", output, "the end")
run("break visit")
expect(move("reverse-continue"), "breakpoint", "from the end")
expect(number("number"), 5, "the last one")
run("delete")
run("continue")
run("continue")
expect(number("$_exitcode"), 32, "how it ended")
for command in ("when", "events"):
	expect_error(command, "The program is not being run")
expect_error("reverse-next", "does not support this command")
passed()
