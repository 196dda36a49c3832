# ^C in a loop, and a signal of the program's own.
import os
import signal
import sys
import threading
import time
sys.path.insert(0, os.environ["SESSIONS"])
from session import *


def has_begun():
	try:
		with open(os.environ["OUTPUT"], encoding="utf-8") as file:
			return "looping" in file.read()
	except FileNotFoundError:
		return False


def when_looping(number, pid):
	while not has_begun():
		time.sleep(0.05)
	time.sleep(0.2)
	os.kill(pid, number)


program = gdb.selected_inferior().pid
threading.Thread(target=when_looping, args=(signal.SIGINT, os.getpid())).start()
expect(move("continue"), "SIGINT", "the interrupt")
turns, state, place = number("turns"), registers(), position()
run("reverse-stepi")
run("stepi")
expect((registers(), number("turns"), position()), (state, turns, place), "the same, from replay")
run("watch turns")
expect(move("reverse-continue"), "breakpoint", "the turn before")
expect(move("reverse-continue"), "breakpoint", "and the one before that")
expect(number("turns") in (turns - 1, turns - 2), True, "a turn before")
run("delete")
os.kill(program, signal.SIGUSR1)
expect(move("continue"), "SIGUSR1", "the signal")
expect(function(), "loop", "where it comes")
run("break end_loop")
expect(move("continue"), "breakpoint", "its handler")
run("delete")
run("reverse-finish")
expect(number("over"), 0, "before it was handled")
run("continue")
run("continue")
expect(number("$_exitcode"), 0, "how it ended")
passed()
