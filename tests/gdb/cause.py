# From the crash to its cause, without knowing it: what the crash depends on is watched backwards.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

expect(function(), "visit", "where it died")
expect_in("SIGSEGV", run("monitor opened"), "why it died")
expect_in("si_signo = 11", value("$_siginfo"), "siginfo")
expect_in("0x1003", run("print item"), "the pointer that kills")
end = position()

# item came from the caller's item->next.
run("up")
where = value("&item->next")
run("down")
run(f"watch *(struct item **) {where.split()[-1] if ' ' in where else where}")
expect(move("reverse-continue"), "breakpoint", "the watchpoint")
expect(function(), "scribble", "the cause")
expect(number("i"), 3, "the turn of the loop")
before = position()
# Forwards again it happens again, and then the program dies as before.
move("stepi")
expect_in("0x1003", run(f"print *(void **) {where}"), "what it stores")
move("reverse-stepi")
expect(position(), before, "there and back")
run("delete")
expect(move("continue"), "SIGSEGV", "the end")
expect(position(), end, "the end")
expect(move("continue"), "stop", "behind the end")
expect(position(), end, "the end")
passed()
