# Code that is made at run time: what is executed where the thread stands is what gdb shows, in both directions.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

ROUNDS = 40
code = pc()
expect(memory(code + 3, 1)[0], ROUNDS, "what was written last")
run("watch -l total")
expect(move("reverse-continue"), "breakpoint", "who has stored last")
for i in range(ROUNDS, ROUNDS - 6, -1):
	expect(pc(), code, f"round {i}: where")
	expect(memory(code, 4), bytes([0x48, 0x83, 0x07, i]), f"round {i}: the code")
	expect_in(f"${i:#x},", run("x/i $pc"), f"round {i}: as gdb shows it")
	expect(number("total"), sum(range(1, i)), f"round {i}: before")
	here, before = position(), registers()
	run("stepi")
	expect(number("total"), sum(range(1, i + 1)), f"round {i}: behind")
	run("reverse-stepi")
	expect((position(), registers()), (here, before), f"round {i}: there and back")
	expect(move("reverse-continue"), "breakpoint", f"the one before {i}")
run("delete")
run("seek start")
run(f"break *{code}")
for i in range(1, 5):
	expect(move("continue"), "breakpoint", f"round {i}, forwards")
	expect(memory(code + 3, 1)[0], i, f"round {i}, forwards: the code")
passed()
