# Functions that gdb calls while the program runs: in a copy of it, in the present and in the past, and the program does not notice.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *


def look(length):
	"""What is asked at a place, which is the same behind it."""
	here = registers(), position(), memory(number("(long)&filled"), 64)
	expect(number("length_here()"), length, "what a function finds that is called here")
	expect(number("take(3)"), 3, "a variable that nobody has touched")
	expect(number("take(4)"), 4, "it is as it was")
	expect(number("untouched.value"), 0, "what is printed of it")
	expect(number('(int)strlen("seven..")'), 7, "with a text of gdb's")
	expect((registers(), position(), memory(number("(long)&filled"), 64)), here, "the place, behind calls")


run("break stand")
expect(move("continue"), "breakpoint", "where it stands first")
look(3)
first = position()
expect(move("continue"), "breakpoint", "where it stands next")
expect(gdb.parse_and_eval("filled").string(), "filled", "the present has what the kernel wrote")
look(6)
run("stepi")
look(6)
run("reverse-stepi")
expect(move("reverse-continue"), "breakpoint", "the past")
expect(position(), first, "which is where it stood")
look(3)

# A breakpoint inside is stopped at, in the copy; going on from the present is the program's.
run("continue")
run("tbreak take")
expect_error("print take(5)", "stopped while in a function called from GDB")
expect((function(), number("number")), ("take", 5), "a breakpoint in a call")
run("finish")
expect(number("$"), 5, "finish in a call")
run("seek end")
expect(function(), "stand", "the present, behind a call that was left")
look(6)
expect_error("print (int)raise(10)", "signaled while in a function called from GDB")
run("delete")
expect_in("exits here with status 5", run("continue"), "the end")
look(6)
run("continue")
expect(number("$_exitcode"), 5, "how it ended")
passed()
