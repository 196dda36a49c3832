# Functions that gdb calls: in a copy, of which nothing stays.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *


def all_of_it():
	"""Everything that a call could change and that can be seen."""
	item, items = gdb.parse_and_eval("list"), []
	while int(item) > 0x10000 and len(items) < 12:
		items.append((int(item), str(item.dereference())))
		item = item["next"]
	return position(), registers(), items, value("visited"), memory(number("(long)$rsp") & ~63, 192)


# What a place answers does not depend on the way to it, and is not changed by the question.
run("handle SIGUSR1 nostop noprint pass")
run("seek start")
run("break scribble")
run("continue")
run("delete")
here = all_of_it()
expect(number("sum_of(list, (double *)((long)$rsp - 4096))"), sum(range(12)), "a function that the program never called")
expect(number("visit(list, 0)"), sum(range(12)) + 12, "one that it did")
expect(number("visit(list, 0)"), sum(range(12)) + 12, "the same again")
expect(number("deepest"), 12, "a thread-local variable of the program's")
expect(number("level"), 0x100, "zeros that were stored, where the file has something else")
expect(number("levels(3)"), 0x300, "the same, for a function")
expect(str(gdb.parse_and_eval("half(5)")), "2.5", "floating point")
expect(number("(int)strlen(list->next->name)"), 2, "one of the library's")
expect(number("(int)strlen(\"seven..\")"), 7, "with a text of gdb's")
expect(number("make(77)->key"), number("*(long *)make(77)"), "memory of the copy is gone")
expect(number("spin(3000000)"), 3000000, "a long one")
expect(number("leap()"), 7, "one that jumps: gdb steps over its breakpoint in longjmp")
expect(all_of_it(), here, "the place, behind calls")
run("call tell(42)")

# What cannot be done in a copy is given up, and said.
expect_error("print visit((struct item *)0x10, 0)", "signaled while in a function called from GDB")
expect_error("print (int)raise(10)", "signaled while in a function called from GDB")
expect_error("print ((int (*)(void))0x10)()", "signaled while in a function called from GDB")
expect(all_of_it(), here, "the place, behind calls that were given up")

# Outside of calls nothing can be written.
expect_refused("set variable visited = 3")
expect_refused("print list->key = 7")
expect_error("set $rax = 0x123456", "cannot be changed")
value("$_siginfo")
expect_error("set $rax = 0x123456", "cannot be changed")
expect(all_of_it(), here, "the place, behind writes")

# The recording goes on as if nothing had been.
run("stepi")
run("reverse-stepi")
expect(all_of_it(), here, "behind steps")
run("continue")
at_end = all_of_it()
run(f"seek {here[0]}")
number("visit(list, 0)")
run("continue")
expect(all_of_it(), at_end, "the end, behind a call")

# A breakpoint inside is stopped at, in the copy; moving elsewhere leaves it.
run(f"seek {here[0]}")
run("break sum_of")
expect_error("print sum_of(list, 0)", "stopped while in a function called from GDB")
expect(function(), "sum_of", "a breakpoint in a call")
run("delete")
run("stepi")
expect(function(), "sum_of", "a step in a call")
run("next")
expect(function(), "sum_of", "next in a call")
expect(number("leap()"), 7, "a call in a call")
expect(function(), "sum_of", "behind a call in a call")
run(f"seek {here[0]}")
expect(all_of_it(), here, "the place, behind a call that was left")
run("break visit")
expect_error("print visit(list, 0)", "stopped while in a function called from GDB")
expect_error("print leap()", "= 7")
run("next")
expect((function(), number("depth")), ("visit", 0), "steps in a call")
run("continue")
expect((function(), number("depth")), ("visit", 1), "the next breakpoint in a call")
run("delete")
run("finish")
expect((function(), number("depth"), number("$")), ("visit", 0, sum(range(12)) + 12), "finish in a call")
run("reverse-stepi")
expect(position(), here[0] - 1, "back from a call that was left")
expect(number("leap()"), 7, "a call behind one that was left")
passed()
