# The end of a program, and what is only known from elsewhere: other intervals, other threads, the kernel.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

# The frame of a signal, which the kernel wrote, and all threads that there were.
expect([name for name in callers() if name in ("handle", "fault", "main")], ["handle", "fault", "main"], "callers through a signal")
expect_in("signal handler called", run("backtrace"), "backtrace")
expect(len(gdb.selected_inferior().threads()), 2, "threads where it ends")
run("up 4")
expect(number("info->si_signo"), 11, "what the handler was given")
run("frame 0")

# A thread that came to no system call is where it was: it had counted as far as main saw it count.
seen = number("spinning")
main = gdb.selected_thread()
[spinner] = [thread for thread in gdb.selected_inferior().threads() if thread.num != main.num]
spinner.switch()
expect(function(), "spin", "where the thread runs")
if number("spinning") < seen or position() < 3 * 10000:
	raise gdb.GdbError(f"at position {position()} it had counted to {value('spinning')}, and main saw {seen}")
main.switch()

# Threads that are gone have stored it since this one looked.
expect(number("counter"), 90, "a counter of other threads")
expect([line.split()[3] for line in run("history counter").splitlines()], [str(i) for i in range(1, 91)], "history")
run("seek end")
expect_in("89 -> 90 count", run("last counter"), "last")
run("first counter")
expect_in("0 -> 1 count", run("next-write counter"), "next-write")
expect_in("1 -> 2 count", run("next-write counter"), "next-write")

# Stores in earlier intervals: each is stopped at, and before it there is what was there.
run("seek end")
expect(number("flag"), 3, "flag at the end")
run("watch flag")
for wanted in (2, 1):
	move("reverse-continue")
	expect((function(), number("flag")), ("set_flag", wanted), "going back")
move("reverse-continue")
expect(function(), "set_flag", "going back to the first store")
expect(number("flag"), 0, "what the file has, as nobody has touched it")
# The very instruction, by a step.
expect(move("stepi"), "breakpoint", "a step over the store")
expect(number("flag"), 1, "behind the step")
expect(move("reverse-stepi"), "breakpoint", "a step back over it")
run("delete")
run("seek end")
expect_in("2 -> 3 set_flag", run("last flag"), "last flag")
expect_in("1 -> 2 set_flag", run("last flag"), "last flag")
expect_in("0 -> 1 set_flag", run("last flag"), "last flag, as print has it before")
passed()
