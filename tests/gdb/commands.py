# The commands that bugnet adds to gdb.
import os
import sys
import tempfile
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

end = position()
run("up")
output = run("last item->next")
expect_in("0x1003 scribble at list.c:56", output, "last")
expect(function(), "scribble", "last")
cause = position()
expect_in(f"position {cause}", output, "where last goes")
expect_in("insert at list.c", run("last item->next"), "last again, by the same memory")
expect(function(), "insert", "last again")

run("seek end")
run("up")
before, after = run("last *item").split(" scribble at ")[0].split(" -> ")
expect(after.replace("0x1003", "OTHER"), before.split(": ", 1)[1].replace(value("((struct item *)keys)->next"), "OTHER"), "both values of what is larger than a word")

run("seek end")
values = [line.split()[4 if line.startswith("=>") else 3] for line in run("history visited").splitlines()]
expect(values, [str(i + 1) for i in range(99)], "history")
run("first visited")
first = position()
expect(value("visited"), "0", "first stands before it")
run("next-write visited")
expect((position(), value("visited")), (first + 1, "1"), "next-write stands behind it")
expect_in("0 -> 1", run("last visited"), "last of what has just been written")
expect(position(), first, "last")
expect_error("last visited", "nothing in the recording changes it before")
expect_error("last 5 + 5", "not in memory")
expect_error("last", "give an expression")

# What gdb looks for has zeros in it, for the most part.
expect_in("<visited>", run("find &visited, +sizeof(visited), visited"), "find a number")
expect_in("<visited>", run("find &visited, +sizeof(visited), (char)visited"), "find a byte")
expect_in("not found", run("find &visited, +sizeof(visited), (char)1"), "find nothing")

# What the kernel wrote: the status of a file, in printf.
run("seek end")
expect_in("write(0x1", run("events"), "events")
expect_in("killed by SIGSEGV", run("events"), "events")
expect_in("SIGUSR1", run("events 3"), "events")
expect_in(f"0 to {end:>12}", run("intervals"), "intervals")

for count in ("-1", "0", "foo", "2x"):
	expect_error("events " + count, f"'{count}' is not how many")
for command in ("when", "intervals", "marks", "run", "start", "starti"):
	expect_error(command + " foo", f"{command} takes no argument")
expect_error("checkpoint", "'mark NAME'")
for command in ("run", "r", "start", "starti"):
	run("seek end")
	run(command)
	expect(position(), 0, command)
run("seek end")

# Times: those of the start and the end, and the same way round.
run("seek 0s")
expect(position(), 0, "the time of the start")
run("seek -0s")
expect(position(), end, "the time of the end")
run("seek -1us")
last = position()
run("seek -2us")
if not 0 < position() <= last < end:
	raise gdb.GdbError("times before the end")
place, time = position(), run("when").split("about ")[1].split()[0]
run(f"seek {time}s")
if abs(position() - place) > (last - place) + 1:
	raise gdb.GdbError(f"at {time} s: {position()} instead of {place}")
run("seek 1000s")
expect(position(), end, "a time behind the end")
expect_error("seek 5x", "no position")

run(f"seek {cause}")
run("mark cause of it all")
run("seek start")
run("seek cause")
expect(position(), cause, "seek to a mark")
expect_in("of it all", run("marks"), "marks")
expect_error("mark 5", "name")
if not os.path.exists(run("monitor path").strip() + ".marks"):
	raise gdb.GdbError("marks are not kept")

# A mark that cannot be written is there all the same, and is written with the next one that can be.
path = run("monitor path").strip() + ".marks"
os.mkdir(path + ".new")
expect_in("kept until gdb ends", run("mark unwritten"), "a mark that cannot be written")
run("seek start")
run("seek unwritten")
expect(position(), cause, "a mark that was not written")
os.rmdir(path + ".new")
run("mark next")
with open(path, encoding="utf-8") as file:
	expect([line.split()[0] for line in file], ["cause", "unwritten", "next"], "marks, written")

calls = [line.split(None, 1)[1] for line in run("calls make").splitlines() if "make(" in line]
expect(len(calls), 12, "calls")
expect_in("make(key=5) = (struct item *) 0x", calls[1].replace("= 0x", "= (struct item *) 0x"), "a call")
expect(position(), cause, "calls goes back to where it was")

# Of a recursive function each call has its own result; those in which the program died have none.
calls = [line.split(None, 1)[1] for line in run("calls visit").splitlines() if "visit(" in line]
outer = [call.split(" = ")[1] for call in calls if "depth=0" in call and " = " in call]
keys = [i * 5 % 12 for i in range(12)]
expect(outer, [str(sum(keys[:i + 1]) + i + 1) for i in range(12)], "results of outer calls")
expect([call.split("depth=")[1] for call in calls if "=" not in call.split(")")[1]], [f"{i})  does not return" for i in range(9)], "calls that do not return")
expect(len(calls), 99, "calls of a recursive function")
expect(position(), cause, "calls goes back to where it was")
expect_in("Yes\tYes", run("info signals SIGUSR1"), "signals, behind calls")
expect_error("calls nothing", "not defined")

# The old value of a watchpoint is the one of where it was gone to.
def told(command):
	"""What gdb says of a stop, which is not the command's output."""
	gdb.flush()
	output = os.dup(1)
	with tempfile.TemporaryFile() as file:
		os.dup2(file.fileno(), 1)
		gdb.execute(command)
		gdb.flush()
		os.dup2(output, 1)
		file.seek(0)
		return file.read().decode()


run("seek end")
run("watch visited")
run(f"seek {first}")
expect_in("Old value = 0\nNew value = 1", told("continue"), "watch behind seek")
run("seek cause")
expect_in("Old value = 90\nNew value = 91", told("continue"), "watch behind a mark")
run("delete")
run("watch visited")
run("first list")
expect_in("Old value = 0\nNew value = 1", told("continue"), "watch behind first")
run("delete")
expect_in("reverse", run("help bugnet"), "help")
passed()
