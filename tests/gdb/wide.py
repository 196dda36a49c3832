# All of the registers of AVX-512, forwards and backwards, and in a copy of which one was changed.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *


def seen():
	vectors = [[int(gdb.parse_and_eval(f"$zmm{i}.v8_int64[{q}]")) for q in range(8)] for i in range(32)]
	masks = [int(gdb.parse_and_eval(f"$k{i}")) & (1 << 64) - 1 for i in range(8)]
	return vectors, masks


def wanted(round):
	return ([[i * 8 + q + round for q in range(8)] for i in range(32)], [(~i - round) & (1 << 64) - 1 for i in range(8)])


run("break *looked")
run("seek start")
for round in range(3):
	move("continue")
	expect(seen(), wanted(round), f"round {round}, forwards")
expect(number("$ymm17.v4_int64[3]"), 17 * 8 + 3 + 2, "ymm17")
expect(number("$xmm31.v2_int64[1]"), 31 * 8 + 1 + 2, "xmm31")
expect(number("(int)twice(21)"), 42, "a call")
expect(seen(), wanted(2), "after a call")
for round in (1, 0):
	move("reverse-continue")
	expect(seen(), wanted(round), f"round {round}, backwards")
run("stepi")
expect(number("$zmm0.v8_int64[7]"), 0, "the upper part of zmm0, cleared")
expect(number("$zmm16.v8_int64[7]"), 16 * 8 + 7, "zmm16, left alone")
run("reverse-stepi")
expect(seen(), wanted(0), "stepped forth and back")
passed()
