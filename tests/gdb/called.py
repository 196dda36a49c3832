# What was called, with arguments and results: of all kinds, and many.
import __main__
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *


def calls(argument):
	"""Without positions, which must grow."""
	lines = [line for line in run("calls " + argument).splitlines() if line[0] == " "]
	places = [int(line.split()[0]) for line in lines]
	expect(places, sorted(places), "positions of calls " + argument)
	return [line.split(None, 1)[1] for line in lines]


def points():
	"""All breakpoints, gdb's own too."""
	return run("maint info breakpoints")


run("print often(1)") # gdb has some of its own from its first call on
here, before = position(), points()
expect(calls("half"), [f"half(number={i}) = {i / 2:g}" for i in range(4)], "floating point")
expect(calls("widen"), [f"widen(number={i}) = {{first = {i}, second = {i + 1}, third = {i + 2}}}" for i in range(4)], "structures")
expect([call.split(") = ")[1].split()[-1] for call in calls("name")], ['"even"', '"odd"'] * 2, "texts")
expect(calls("leave"), ["leave(number=0)", "leave(number=1)  does not return", "leave(number=2)", "leave(number=3)  does not return"], "jumps")
expect(calls("add"), [f"add(number={i})" for i in range(4)], "what is inlined")
expect(calls("chosen"), [f"chosen_one(number={i}) = {100 + i}" for i in range(4)], "what was chosen")
expect([call.split(") ")[-1] for call in calls("main")], [" does not return"], "what is not over at the end")

# Of many the first ones, and as many as are wanted.
__main__.Calls.FIRST = 5
expect(calls("often"), [f"often(number={i}) = {2 * i}" for i in range(5)], "the first ones")
expect_in("and more: `calls -n COUNT often`", run("calls -n 1 often"), "that there are more")
expect(calls("-n 7 often"), [f"often(number={i}) = {2 * i}" for i in range(7)], "some")
expect(calls("-a half"), calls("-n 4 half"), "all")
expect(run("calls -n 4 half").count("more"), 0, "there are no more")
expect(run("calls never"), "this thread has not called it in the recording\n", "none")
for wrong in ("", "-n", "-n often", "-x often", "-a"):
	expect_error("calls " + wrong, "give a function")
expect((position(), points()), (here, before), "what is left behind")

# An interrupt leaves nothing behind either.
tell, count = __main__.Call.tell, []


def interrupt(call, tid):
	tell(call, tid)
	count.append(call)
	if len(count) == 3:
		raise KeyboardInterrupt


__main__.Call.tell = interrupt
point = gdb.Breakpoint("often")
before = points()
expect_error("python\ntry:\n\tgdb.execute('calls -a often', to_string=True)\nexcept KeyboardInterrupt:\n\tprint('over')", "over")
expect((position(), points()), (here, before), "what an interrupt leaves behind")
expect_in("Yes\tYes", run("info signals SIGUSR1"), "signals, behind an interrupt")
__main__.Call.tell = tell
expect(move("reverse-continue"), "breakpoint", "going on")
expect(number("number"), 1499, "the last one")
passed()
