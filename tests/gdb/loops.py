# Going over lines that take long, back and on: to the same places as instruction by instruction.
import os
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *


def go_to(text):
	"""To where a line of main, or of some(), is about to be executed."""
	run("seek start")
	with open(os.environ["SOURCE"], encoding="utf-8") as file:
		number = [i + 1 for i, each in enumerate(file) if text in each][-1]
	run(f"tbreak loops.c:{number}")
	run("continue")
	expect(line(), number, text)
	return position()


def way_back(command, begin):
	"""Where the command comes to, time and again."""
	places = []
	while position() > begin:
		move(command)
		places.append((position(), pc(), line()))
	return places


# A long loop: where the line begins.
begin = go_to("SPIN(300000)")
end = go_to("sum += 3")
run("reverse-next")
expect(position(), begin, "the beginning of the line")

# Out of a function, over the line that calls it.
begin_call = go_to("a call at the end")
run("tbreak leave")
run("continue")
while position() > begin_call:
	move("reverse-next")
expect(position(), begin_call, "where the line of the call begins")
run(f"seek {begin}")

# Forwards: to the next line, and out of the loop from the middle of it.
move("next")
expect(position(), end, "next over the loop")
run(f"seek {begin + 1000}")
move("step")
expect(position(), end, "step out of the loop")

# A breakpoint in it stops, where it was hit last.
run(f"seek {end - 1}")
inside = pc()
run(f"seek {end}")
run(f"break *{inside}")
expect(move("reverse-next"), "breakpoint", "a breakpoint in the loop")
expect(position(), end - 1, "the last turn")
expect(move("reverse-next"), "breakpoint", "a breakpoint in the loop, again")
expect(position(), end - 4, "the turn before")
expect(move("next"), "breakpoint", "forwards as well")
expect(position(), end - 1, "the last turn, forwards")
run("delete")

# All sorts of lines, with what the server knows of them and without.
begin = go_to("sum = 1;")
end = go_to("sum += 2")
places = {}
for known in (True, False):
	if not known:
		for command in ("step", "next"):
			run(f"define hook-reverse-{command}\npython tell_thread()\nend")
	for command in ("reverse-next", "reverse-step"):
		run(f"seek {end}")
		places[command, known] = way_back(command, begin)
for command in ("reverse-next", "reverse-step"):
	expect(places[command, True], places[command, False], command)

# Forwards with ranges, and without.
for known in (True, False):
	if not known:
		run("set range-stepping off")
	for command in ("next", "step"):
		run(f"seek {begin}")
		places[command, known] = []
		while position() < end:
			move(command)
			places[command, known].append((position(), pc(), line()))
for command in ("next", "step"):
	expect(places[command, True], places[command, False], command)
passed()
