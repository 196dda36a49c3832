# What nobody can tell is said to be unavailable, and never made up; what nobody can have touched is what it was at first.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

while function() != "main":
	run("up")

# Single values: none of them is there, although others of the same line are.
for unknown in ("filled->total", "filled->kind", "input.buffer[99]", "input.buffer[101]", "input.table[0]", "input.table[1001]"):
	expect_error(f"print {unknown}", "Cannot access memory")
expect((number("input.buffer[100]"), number("input.table[1020]"), number("filled->count")), (1, -3, 5), "what is there")

# In structures and arrays it is told of each.
expect(run("print *filled").split(" = ", 1)[1].strip().replace(value("filled->next"), "NEXT"),
	"{count = 5, kind = <unavailable>, total = <unavailable>, mean = <unavailable>, text = \"hi\\000\", '\\376' <repeats 17 times>, "
	"next = NEXT, exact = <unavailable>, values = {<unavailable>, <unavailable>, <unavailable>, 9, 0, <unavailable> <repeats 15 times>}}",
	"a structure")
expect_in("{<unavailable> <repeats 1000 times>, -2, <unavailable> <repeats 19 times>, -3, ", run("print input.table"), "an array")
expect_in("{count = <unavailable>, kind = <unavailable>, ", run("print *(struct reading *)(input.buffer + 100)"), "a number of which a part is known")
expect_in("text = <unavailable>, ", run("print *(struct reading *)(input.buffer + 100)"), "a text")

# Nobody has touched it, and no system call was given it.
expect(run("print global").split(" = ", 1)[1].strip(),
	"{count = 0, kind = 0 '\\000', total = 0, mean = 0, text = '\\000' <repeats 19 times>, next = 0x0, exact = 0, values = {0 <repeats 20 times>}}",
	"data")
expect_in("total = 7, mean = 0, ", run("print *fresh"), "new memory")

# A large region is watched, whatever is known of it; what it was before is told as it was then.
run("watch input.table")
for wanted in (-5, -4, -3):
	expect(move("reverse-continue"), "breakpoint", "going back")
	expect_error(f"print input.table[{-20 * wanted + 960}]", "Cannot access memory")
expect_in(", -2, <unavailable> <repeats 1047 times>}", run("print input.table"), "the table then")
run("delete")
passed()
