# What a thread has loaded is there where it stands, although by stamps it was stored later; and whoever stored it has stored it before.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

run("seek start")
run("break tell")
expect(move("continue"), "breakpoint", "where the thread has looked")
reader = gdb.selected_thread().num
expect(number("found"), 3, "what it has loaded")
run(f"seek {position()}") # the other thread is where stamps have it
expect(number("value"), 3, "what is there")
expect_in("2 -> 3 publish", run("last value"), "who stored it")
expect(gdb.selected_thread().num != reader, True, "another thread")
expect_in("1 -> 2 publish", run("last value"), "who stored what was there before")
history = [line.lstrip("=>").split()[3:5] for line in run("history value").splitlines()]
expect(history, [["2", "publish"], ["3", "publish"]], "history")
passed()
