# Who changed what is no whole word, what is more than one, and what was changed very often.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *


def changes(expression):
	"""What it became, in which position."""
	lines = [line.replace("=>", "  ").split(None, 3) for line in run(f"history {expression}").splitlines() if "  thread " in line]
	return [(line[3].rsplit(" at history.c:", 1)[0].rsplit(None, 1)[0], int(line[0])) for line in lines]


def values(expression):
	return [value for value, _ in changes(expression)]


# Bit-fields: of the writes to their bytes those that change them, and their own values.
expect(values("bits.a"), ["5", "2"], "bits.a")
expect(values("bits.b"), ["17", "30"], "bits.b")
expect(values("(pointer->b)"), ["17", "30"], "the same by a pointer")
expect(values("pointer->c"), ["-12345", "7"], "bits.c")
expect(values("bits.kind"), ["ALL"], "bits.kind")
expect(values("bits.rest"), ["4097"], "bits.rest")
end = position()
for command, wanted in (("last", "17 -> 30"), ("last", "0 -> 17")):
	expect_in(f"bits.b: {wanted} change_bits", run(f"{command} bits.b"), command)
expect_error("last bits.b", "nothing in the recording changes it before")
expect_in("bits.b: 0 -> 17", run("first bits.b"), "first")
run("stepi")
expect_in("bits.b: 17 -> 30", run("next-write bits.b"), "next-write")
expect(number("bits.b"), 30, "where next-write goes")

# What is larger than a word is looked at where it was changed, and nothing has moved then.
run("seek end")
run("up")
before, frame = run("when"), gdb.selected_frame().level()
expect(values("wide"), ["1.25"], "a long double")
expect(values("fractions"), ["{1.5, 0, 0, 0, 0, 0, 0, 0}", "{1.5, 0, 0, 0, 0, 0, 0, 2.5}"], "an array")
found = changes("both")
expect([value for value, _ in found], ["{1, 2}", "{1, 3}"], "a vector")
expect(len(set(place for _, place in found)), 2, "one line for each instruction")
expect((run("when"), gdb.selected_frame().level()), (before, frame), "behind history")
History.LOOKED_AT = 1
expect(values("fractions")[1], "?", "more than is looked at")
expect_in("not looked at", run("history fractions"), "more than is looked at")

# More than is listed: a beginning, with nothing left out.
lines = run("history counter").splitlines()
expect_in("There are more", lines.pop(), "the end of the list")
listed = [int(line.split()[3]) for line in lines]
expect(listed, list(range(1, len(listed) + 1)), "the list")
expect(len(listed) >= 10000, True, "its length")

for command in ("last", "first", "next-write", "history"):
	expect_error(f"{command} nosuch", 'No symbol "nosuch" in current context.')
run("seek 20K")
expect(position(), 20000, "in thousands")
run("seek 0.0215M")
expect(position(), 21500, "in millions")
expect_error("seek 5X", "no position")
passed()
