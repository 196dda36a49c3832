# At random positions: a few instructions forwards, the same backwards: registers and memory must be the same. Needs no symbols.
import os
import random
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

run("set language c")  # for the casts, whatever the program is written in
random.seed(int(os.environ.get("SEED", "1")))
run("seek end")
end = position()
for i in range(int(os.environ.get("COUNT", "12"))):
	run(f"seek {random.randrange(end)}")
	seen = []
	for k in range(4):
		stack = number("(unsigned long)$rsp") & ~63
		seen.append((position(), registers(), memory(stack, 64)))
		run("stepi")
	for place, all_registers, stack in reversed(seen):
		run("reverse-stepi")
		expect(position(), place, "a step back")
		expect(registers(), all_registers, f"registers at {place}")
		expect(memory(number("(unsigned long)$rsp") & ~63, 64), stack, f"the stack at {place}")
passed()
