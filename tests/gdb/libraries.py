"""Libraries that are loaded one after the other, in the same place: each is there where it was, in both directions."""
import os

import gdb

FOUND = [(0, "libfirst.so"), (1, "libsecond.so"), (2, "libfirst.so"), (3, "libsecond.so")]
LINES = {name: number for number, text in enumerate(open(os.environ["SOURCE"], encoding="utf-8"), 1)
	for name, mark in (("libfirst.so", "/* the first"), ("libsecond.so", "/* the second")) if mark in text}


def run(command):
	return gdb.execute(command, to_string=True)


def loaded():
	return {os.path.basename(line.split()[-1]) for line in run("info sharedlibrary").splitlines()[1:]}


def visits(command):
	found = []
	while True:
		run(command)
		if gdb.newest_frame().name() != "visit":
			return found
		frame = gdb.newest_frame()
		library = os.path.basename(gdb.solib_name(frame.pc()))
		assert frame.find_sal().line == LINES[library], (library, frame.find_sal().line)
		code = bytes(gdb.selected_inferior().read_memory(frame.pc(), 4))
		found.append((int(gdb.parse_and_eval("number")), library, code, int(run("when").split()[3])))


def check():
	own = {"libfirst.so", "libsecond.so"}
	assert loaded() and not loaded() & own, loaded()
	run("break visit") # of which there is none here
	run("seek start")
	assert len(loaded()) == 1, loaded() # the dynamic linker
	forwards = visits("continue")
	assert [visit[:2] for visit in forwards] == FOUND, forwards
	assert forwards[0][2] == forwards[2][2] != forwards[1][2] == forwards[3][2], forwards
	backwards = visits("reverse-continue")
	assert backwards == forwards[::-1], backwards
	# Going from one to the other, and to where there is none of them.
	run("delete")
	for which in (3, 0, 1, 2, 1):
		run(f"seek {forwards[which][3]}")
		assert loaded() & own == {FOUND[which][1]}, (which, loaded())
		assert gdb.newest_frame().name() == "visit"
		assert int(gdb.parse_and_eval("number")) == which
	calls = ["(number=0) = 0", "(number=1) = -6", "(number=2) = 6", "(number=3) = -4"]
	for place in ("start", forwards[1][3]):
		run(f"seek {place}")
		found = run("calls visit").splitlines()
		assert [line.partition("visit")[2] for line in found] == calls, (place, found)
	assert run("calls first_only").startswith("this thread has not called it"), "a function that was never called"
	try:
		run("calls nothing_like_it")
	except gdb.error as error:
		assert "nothing_like_it" in str(error), error
	else:
		raise AssertionError("a function that is nowhere has calls")
	run("break between")
	run("continue")
	assert gdb.newest_frame().name() == "between" and not loaded() & own, loaded()


def own_vdso():
	with open("/proc/self/maps", encoding="ascii") as maps, open("/proc/self/mem", "rb") as memory:
		for line in maps:
			if "[vdso]" in line:
				start, end = (int(word, 16) for word in line.split()[0].split("-"))
				memory.seek(start)
				return memory.read(end - start)
	return b""


def check_vdso():
	"""Of the library that is no file's there is the code that was run."""
	run("delete")
	run("seek start")
	run("break clock_gettime")
	run("continue")
	inside = []
	for _ in range(15):
		run("stepi")
		pc = int(gdb.parse_and_eval("$pc"))
		if not gdb.solib_name(pc) and not gdb.block_for_pc(pc):
			inside.append(pc)
	for pc in inside:
		assert run(f"x/i {pc}").strip(), "an instruction"
	if inside and own_vdso():
		assert bytes(gdb.selected_inferior().read_memory(inside[0], 8)) in own_vdso(), hex(inside[0])


check()
check_vdso()
print("passed")
