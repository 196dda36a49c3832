# From what is seen of a bug to its root cause, of every program in tests/bugs: what a developer would do who stands where the recording
# ends, in the words of trail.py, with the names of functions and variables that gdb shows there. Only at the end is the place that was
# found compared with the root cause: its line is that of the statement behind ROOT_CAUSE() (tests/bugs/bug.h), and its time right behind
# the system call that this makes.
import os
import re
import sys
sys.path.insert(0, os.environ["SESSIONS"])
from session import *
from trail import *

NEAR = 5000  # instructions: of what is called at the root cause, which may have to be bound first


# ---- the ways: each ends where the root cause is, or returns lines that should have been executed and never were ----

def corrupted():
	"""It died of something in memory: who stored that?"""
	last(f"*(long *){crashed_by()}")


def reused():
	"""It died of something in memory that was freed: who did that?"""
	address = crashed_by()
	last(f"*(long *){address}")
	while not called_by(["free"]):
		last(f"*(long *){address}")


def overrun():
	"""A block was too small: who asked for it, and how was its size made?"""
	back("break -qualified malloc")
	back_to_call()
	product = made("rdi")
	expect(product.name, "imul", "what has made it")
	made(product.operands[0])


def freed_twice():
	"""free() complains: where was the same freed before?"""
	back_to_call()
	back(f"break -qualified free if $rdi == {number('$rdi')}")


def damaged_block():
	"""free() complains: who has stored where it keeps the size?"""
	back_to_call()
	last("*(long *)($rdi - 8)")


def missing_entry():
	"""Nobody has stored what was called: who has filled the rest of the table?"""
	address = crashed_by()
	untouched(f"*(long *){address}")
	last(run(f"info symbol {address}").split()[0])


def never_set():
	"""Nobody has stored the argument: where would that be done?"""
	back_to_call()
	address = loaded_from("rdi")
	untouched(f"*(long *){address}")
	return stores_in_function(program_frame(), address)


def stale():
	"""What was loaded is of a function that has returned: where would this one have stored it?"""
	address, frame = crashed_by(), program_frame()
	name, lines = frame.name(), stores_in_function(frame, address)
	last(f"*(long *){address}")
	expect(program_frame().name() != name, True, "another function has stored it")
	return lines


def circle():
	"""A list without an end: which of its links was made last?"""
	back(f"break {function()}")
	run("delete")
	here, node, links = position(), gdb.parse_and_eval("node"), []
	while int(node["next"].address) not in links:
		links.append(int(node["next"].address))
		node = node["next"]
	made_at = []
	for link in links:
		run(f"seek {here}")
		last(f"*(long *){link}")
		made_at.append(position())
	run(f"seek {max(made_at)}")


def lost_update():
	"""A count is too low: who was the last to store it, be it what was there already?"""
	back("awatch count")
	while not instruction().destination().endswith(")"):
		again()


def cleared():
	"""It died of something in memory that it had looked at before: which other thread has changed it since?"""
	address, thread, here = crashed_by(), gdb.selected_thread().num, position()
	back(f"watch *(long *){address}")
	found = position()
	expect(gdb.selected_thread().num != thread, True, "another thread")
	run("delete")
	run(f"thread {thread}")
	run(f"seek {here}")
	last(f"*(long *){address}")
	expect(position(), found, "the same, by its last change")
	history = run(f"history *(long *){address}")
	expect(history.count("=>"), 1, "this change, in its history")
	expect("another process" in history, False, "what the thread came to see, apart from that")


def published():
	"""It was null when it was loaded, and nobody had stored it: how did the thread come by what it is a part of?"""
	program_frame()
	back("rwatch config->path")
	untouched("config->path")
	last("config")


def deadlock():
	"""Everyone waits: who has what they wait for, and since when?"""
	waiting, found = [thread.num for thread in gdb.selected_inferior().threads()], []
	expect(len(waiting), 2, "threads that wait")
	for thread in waiting:
		run(f"thread {thread}")
		run("seek end")
		program_frame()
		owner = number("second->__data.__owner")
		last("second->__data.__owner")
		expect(gdb.selected_thread().ptid[1], owner, "who has it")
		expect(called_by(["pthread_mutex_lock"]), True, "a lock is taken")
		found.append(program_frame().find_sal().line)
	expect(found[0], found[1], "where both have taken theirs")


def wrong_output():
	"""A line that should not be written: who made the number in it?"""
	program_frame()
	last("balance")


def wrong_sum():
	"""A sum is too low: which was the last number that was added?"""
	program_frame()
	start, count = number("&values"), number("sizeof values / sizeof *values")
	back("rwatch values")
	read = (instruction().address() - start) // number("sizeof *values")
	expect(read < count - 1, True, "not all are added")


WAYS = {
	"arithmetic-overflow": overrun,
	"bounds-variable": corrupted,
	"dangling-reuse": reused,
	"deadlock": deadlock,
	"double-free": freed_twice,
	"global-name": corrupted,
	"heap-off-by-one": damaged_block,
	"null-function": missing_entry,
	"null-option": never_set,
	"recursion": circle,
	"resize": corrupted,
	"stack-read": corrupted,
	"stack-strcpy": corrupted,
	"thread-check": cleared,
	"thread-count": lost_update,
	"thread-free": reused,
	"thread-publish": published,
	"uninitialised": stale,
	"vtable": corrupted,
	"wrong-line": wrong_output,
	"wrong-sum": wrong_sum,
}


# ---- the verdict ----

def lines_of_cause(preprocessed):
	"""Of the statement behind ROOT_CAUSE(), in the program's own file."""
	lines, line, inside, text = [], 0, False, ""
	with open(preprocessed, encoding="utf-8") as file:
		for each in file:
			marker = re.match(r'# (\d+) "', each)
			if marker:
				line = int(marker.group(1))
				continue
			if inside and each.strip():
				lines.append(line)
				text += each
				if ";" in re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", text)):
					break
			inside = inside or "0x6275" in each
			line += 1
	return lines


def times_of_cause():
	return [int(each.split()[0]) for each in run("events 100000").replace("=>", "  ").splitlines() if "getpriority(0x6275" in each]


never_executed = WAYS[os.environ["BUG"]]()
found = never_executed or [program_frame().find_sal().line]
print(f"found: line {found}, position {position()}")
wanted = lines_of_cause(os.environ["PREPROCESSED"])
if not set(found) <= set(wanted):
	raise gdb.GdbError(f"found line {found}, the root cause is in line {wanted}")
if not never_executed and not any(0 <= position() - time < NEAR for time in times_of_cause()):
	raise gdb.GdbError(f"found at {position()}, the root cause is at {times_of_cause()}")
passed()
