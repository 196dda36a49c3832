# A crash, its cause before it, and the death of the program, which comes when the user says so.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

expect(move("continue"), "SIGSEGV", "the crash")
expect(function(), "crash", "where")
expect(number("i"), 2, "the slot")
expect(number("$_siginfo._sifields._sigfault.si_addr"), 0, "the address")
state = registers()
run("watch slots[2]")
expect(move("reverse-continue"), "breakpoint", "who changed it")
expect(function(), "forget_slot", "who changed it")
run("delete")
expect(move("continue"), "SIGSEGV", "the crash again")
expect(registers(), state, "the same state")
run("continue")
expect(number("$_exitsignal"), 11, "its death")
passed()
