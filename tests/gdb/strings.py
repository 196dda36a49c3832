# Loads by string instructions that compare are seen up to where the comparison ends, and not behind.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

CASES = (
	# function, instruction, what it loads, and what it does not
	("compare_bytes", "cmps", ("left[0]", "left[17]", "right[9]", "right[17]"), ("left[18]", "right[18]")),
	("compare_back", "cmps", ("left[39]", "left[17]", "right[17]"), ("left[16]", "right[16]")),
	("find_number", "scas", ("numbers[0]", "numbers[23]"), ("numbers[24]",)),
	("compare_nothing", "cmps", (), ("left[0]", "right[0]")),
)

for name, instruction, loaded, others in CASES:
	run("seek start")
	run(f"tbreak {name}")
	run("continue")
	begin = position()
	run("finish")
	end = position()
	for expression in loaded + others:
		for way, here in (("continue", begin), ("reverse-continue", end)):
			run(f"seek {here}")
			run(f"rwatch {expression}")
			move(way)
			seen = begin <= position() <= end
			expect(seen, expression in loaded, f"{expression} in {name}, {way}")
			if seen and way == "continue":
				run("delete")
				run("reverse-stepi")
			if seen:
				expect_in(instruction, run("x/i $pc"), f"what has loaded it, {way}")
			run("delete")
passed()
