# What was last touched many keyframes ago is known; and however many there are of all threads, what nobody knows is an error.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

expect(len(run("intervals").splitlines()) > 24, True, "keyframes")
if gdb.current_progspace().filename.endswith("list"):
	while function() != "main":
		run("up")
	# What only the dynamic linker has gone through: the environment and the auxiliary vector behind it.
	words, at = gdb.parse_and_eval("(unsigned long *)argv"), number("argc") + 1
	while int(words[at]):
		at += 1
	vector = {}
	while int(words[at + 1]):
		vector[int(words[at + 1])] = int(words[at + 2])
		at += 2
	expect(vector[6], 4096, "the size of pages, in the auxiliary vector")
else:
	expect_error("x/gx 0x1000", "Cannot access memory")
passed()
