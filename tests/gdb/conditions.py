# Conditions of breakpoints: evaluated in the replayed process they stop where gdb finds them true, forwards and
# backwards; also where it does not know the memory they depend on.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *

MOST = 6
conditions = ["depth == 5", "depth > 3 && visited % 7 == 0", "item && item->key == 4", "item->next->key == 4", "visited", "signals == 0 && depth == 1",
	"depth == 2 || visited == 31", "$rsp % 128 == 16", "(unsigned char)(item->name[1] - 48) > 3", "list->weight == 0", "visited / (depth - 3) == 2",
	"item && item->name[1] == '4' && item->name[2] != '\\''", "(int)$edx != $eax + '0' && $sp && depth == 6 && $r8d == $r8d", "*(long *)0x10 == 3 || depth", "$_streq(item->name, \"i3\")", "(visited ^ ~depth) & 4 && -visited < -20 && !(visited >> 6)"]


def is_true(condition):
	"""As gdb sees it: where it cannot be evaluated, it stops."""
	try:
		return bool(gdb.parse_and_eval(condition))
	except gdb.error:
		return True


def stops_of(way):
	"""Positions at which it stops for the breakpoint: the first few, or all if there are no more."""
	places = []
	run("seek start" if way == "continue" else "seek end")
	while len(places) < MOST:
		move(way)
		if function() != "visit" or (places and position() == places[-1]) or "SIGSEGV" in stops:
			break
		places.append(position())
	return places


run("handle SIGUSR1 nostop noprint pass")
expect_in("currently target", run("show breakpoint condition-evaluation"), "who evaluates")
run("break visit")
wanted = {condition: [] for condition in conditions}
run("seek start")
while move("continue") == "breakpoint":
	for condition in conditions:
		if is_true(condition):
			wanted[condition].append(position())
run("delete")
for condition in conditions:
	run(f"break visit if {condition}")
	expect(stops_of("continue"), wanted[condition][:MOST], f"{condition}, forwards")
	expect(stops_of("reverse-continue"), wanted[condition][::-1][:MOST], f"{condition}, backwards")
	ours = not any(word in condition for word in ("weight", "$_streq", "$rsp %"))
	expect_in("(target evals)" if ours else "(host evals)", run("info breakpoints"), f"who evaluates {condition}")
	run("delete")
	if not wanted[condition]:
		raise gdb.GdbError(f"nowhere: {condition}")
passed()
