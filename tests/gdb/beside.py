# What is watched lies beside busy memory: all stores that change it are found, by whatever size, and no others; and the program goes
# its way beside them.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

# As nobody watched.
words, three, result = number("word_changes"), number("bytes_changes"), number("busy.result")


def values(expression):
	return [line.split()[-4] for line in run(f"history {expression}").splitlines()]


expect(len(values("*(long *)(busy.area + 96)")), words, "changes of a word")
expect(len(run("history *(char (*)[3])(busy.area + 141)").splitlines()), three, "changes of three bytes")
changes = run("history busy.result").splitlines()
expect(str(result) in changes[-1].split(), True, f"what {result} comes to while it is watched: {changes[-1]}")

run("tbreak main")
run("reverse-continue")
run("watch *(long *)(busy.area + 96)")
found = 0
while move("continue") == "breakpoint":
	found += 1
expect(found, words, "stops at changes of a word")
found = 0
while move("reverse-continue") == "breakpoint":
	found += 1
expect(found, words, "the same backwards")
passed()
