# The commands that 'bugnet replay' adds to gdb. They ask the server with `monitor` (src/debug/gdb_monitor.c); where a command
# moves, the server is told where to, and a stepi goes there, so that gdb knows that everything is another one.
import contextlib
import os
import re
import signal

import gdb


def ask(question):
	"""What the server says to a `monitor` command; an error of the user's if it cannot. gdb does not tell it which thread was selected
before it has looked at it."""
	thread = gdb.selected_thread()
	if not gdb.selected_inferior().pid:
		raise gdb.GdbError("The program is not being run.")
	answer = gdb.execute(f"monitor {f'@{thread.ptid[1]} ' if thread else ''}{question}", to_string=True)
	if answer.startswith("error: "):
		raise gdb.GdbError(answer[len("error: "):].rstrip("\n"))
	return answer


@contextlib.contextmanager
def disabled(points):
	"""Breakpoints and watchpoints that are not there meanwhile. One that is enabled takes the value that is there then for its old one."""
	for point in points:
		point.enabled = False
	try:
		yield
	finally:
		for point in points:
			if point.is_valid():
				point.enabled = True


def go(where, tid=None):
	"""Moves a thread, the selected one if no other is given, to a position; gdb tells of where that is, as of any stop."""
	ask(f"seek {where} {tid or gdb.selected_thread().ptid[1]}")
	# A thread at a breakpoint would have to be stepped over it first, and gdb aborts if another one stops then.
	with disabled([point for point in gdb.breakpoints() if point.enabled]):
		gdb.execute("stepi", to_string=True)


@contextlib.contextmanager
def untold():
	"""Moves of which gdb does not tell the user. A gdb before 12 does."""
	try:
		gdb.execute("set suppress-cli-notifications on")
	except gdb.error:
		yield
		return
	try:
		yield
	finally:
		gdb.execute("set suppress-cli-notifications off")


@contextlib.contextmanager
def uninterrupted():
	"""^C waits meanwhile: a gdb that it takes out of a move takes the program for one that runs."""
	before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
	try:
		yield
	finally:
		signal.pthread_sigmask(signal.SIG_SETMASK, before)


def position():
	return int(ask("when").split("position ")[1].split()[0])


def tell_thread():
	"""Before a command that goes back: gdb does not tell the server which thread is to."""
	if gdb.selected_thread():
		ask(f"thread {gdb.selected_thread().ptid[1]}")


def containing(pc):
	"""The block of the innermost function that code is in; None: gdb knows of none."""
	block = gdb.block_for_pc(pc)
	while block is not None and block.function is None:
		block = block.superblock
	return block


LINES_TOLD = 40
CALLERS_TOLD = 2


def lines_around(pc):
	"""The lines of its function as ranges of pcs, the nearest first."""
	ranges, near = [], pc
	block = containing(pc)
	pc = block.start if block is not None else 0
	while block is not None and pc < block.end:
		sal = gdb.find_pc_line(pc)
		if sal.last is None or sal.last < pc:
			break
		if sal.line:
			ranges.append((sal.pc, sal.last + 1))
		pc = sal.last + 1
	return sorted(ranges, key=lambda each: abs(each[0] - near))[:LINES_TOLD]


def tell_lines():
	"""Before a command that goes back by lines: gdb makes single steps of it, and the server may make fewer if it knows the lines. Out of
	a function it goes back over the line that calls it."""
	if gdb.selected_thread() is None or gdb.selected_frame().level() > 0:
		return
	frame, ranges = gdb.selected_frame(), []
	try:
		for _ in range(CALLERS_TOLD + 1):
			if frame is not None:
				ranges += lines_around(frame.pc())
				frame = frame.older()
	except gdb.error:
		pass # the stack is not known any further
	ask("lines " + " ".join(f"{start:x} {end:x}" for start, end in dict.fromkeys(ranges)))


for command in ("step", "stepi", "next", "nexti", "continue", "finish"):
	lines = "; tell_lines()" if command in ("step", "next") else ""
	gdb.execute(f"define hook-reverse-{command}\npython tell_thread(){lines}\nend")


class Bugnet(gdb.Command):
	"""Commands for recordings of bugnet: when, seek, last, first, next-write, history, calls, mark, marks, events,
threads-at, intervals, and gdb's own reverse-* commands."""

	def __init__(self):
		super().__init__("bugnet", gdb.COMMAND_RUNNING)

	def invoke(self, argument, from_tty):
		print(self.__doc__)


def is_live():
	"""Is it a program that runs, and no recording?"""
	return ask("live") == "yes\n"


def take_no_argument(command, argument):
	if argument:
		raise gdb.GdbError(f"{command} takes no argument, but there is '{argument}'")


class Connect(gdb.Command):
	"""bugnet-connect SOCKET: what 'bugnet replay' starts gdb with."""

	def __init__(self):
		super().__init__("bugnet-connect", gdb.COMMAND_OBSCURE)

	def invoke(self, argument, from_tty):
		print(gdb.execute("target remote " + argument, to_string=True), end="")
		global filler, image_count
		words = ask("script").split()
		filler, image_count = int(words[1], 16), int(words[3])
		expect_libraries()
		print(ask("opened").rstrip("\n"))


# ---- libraries ----

image_count = 0 # the program and all libraries of the recording: the server tells, see Connect


def all_are_there():
	return sum(objfile.owner is None for objfile in gdb.objfiles()) >= image_count


def expect_libraries(event=None):
	"""A function that is not there may be one of a library that is not loaded here, which gdb need not ask about then."""
	if image_count:
		gdb.execute(f"set breakpoint pending {'auto' if all_are_there() else 'on'}")


gdb.events.stop.connect(expect_libraries)


class Refuse(gdb.Command):
	"""bugnet-refuse WHAT: of `catch`. gdb would only warn, each time that it goes on, or fail then, and leave the others out."""

	REASONS = {
		"vfork": "a recording has no events of vfork; 'catch syscall vfork clone clone3' stops at the calls that make processes",
		"exec": "a program's recording ends where it executes another one; 'seek end' goes there",
		"fork": "a program that runs does not stop for it; 'catch syscall fork vfork clone clone3' stops at the calls that make processes",
	}

	def __init__(self):
		super().__init__("bugnet-refuse", gdb.COMMAND_OBSCURE)
		for what in self.REASONS:
			for command in ("catch", "tcatch"):
				gdb.execute(f"define {command} hook-{what}\nbugnet-refuse {what}\nend")

	def invoke(self, argument, from_tty):
		if argument == "fork" and not is_live():
			return
		raise gdb.GdbError(f"catch {argument}: {self.REASONS[argument]}")


class When(gdb.Command):
	"""Where the selected thread stands: its position, which is the number of instructions it has executed, and about when."""

	def __init__(self):
		super().__init__("when", gdb.COMMAND_STATUS)

	def invoke(self, argument, from_tty):
		take_no_argument("when", argument)
		print(ask("when").rstrip("\n"))


# ---- what is not known ----

KNOWN_LINE = 64
known_lines = {}


def forget_known(event=None):
	known_lines.clear()


for moved in (gdb.events.cont, gdb.events.stop, gdb.events.inferior_call):
	moved.connect(forget_known)


def is_known(address, size):
	"""Does the selected thread know all of it? The server is asked for a line at a time."""
	thread = gdb.selected_thread()
	for line in range(address & -KNOWN_LINE, address + size, KNOWN_LINE):
		key = (thread.ptid if thread else None, line)
		if key not in known_lines:
			known_lines[key] = ask(f"known {line:x} {KNOWN_LINE}").strip()
		if "0" in known_lines[key][max(address - line, 0):min(address + size - line, KNOWN_LINE)]:
			return False
	return True


class Unavailable:
	"""gdb has a word for what is not known, but its protocol has none: a part of a structure."""

	def to_string(self):
		return "<unavailable>"


SCALARS = {getattr(gdb, "TYPE_CODE_" + name) for name in ("INT", "PTR", "ENUM", "FLT", "CHAR", "BOOL", "FLAGS")}
filler = 0 # what the server has for bytes that are not known: it tells, see Connect
LARGEST = 8


def memory_now(address, size):
	try:
		return bytes(gdb.selected_inferior().read_memory(address, size))
	except gdb.error:
		return bytes([filler] * size)


def is_unavailable(value, address, size):
	"""The value may be an old one, of another place: what is known here tells nothing of it if it is not what is here."""
	try:
		contents = int(value.format_string(raw=True, format="z"), 16).to_bytes(size, "little")
	except (gdb.error, ValueError, OverflowError):
		return not is_known(address, size)
	if filler not in contents:
		return False
	if contents == memory_now(address, size):
		return not is_known(address, size)
	return contents == bytes([filler] * size)


def address_of(value, kind):
	"""None: it is not in memory. gdb would call malloc for the address of an array that is not."""
	while kind.code == gdb.TYPE_CODE_ARRAY:
		value, kind = value[kind.range()[0]], kind.target().strip_typedefs()
	return None if value.address is None else int(value.address)


def find_unavailable(value):
	kind = value.type.strip_typedefs()
	is_text = kind.code == gdb.TYPE_CODE_ARRAY and kind.target().strip_typedefs().sizeof == 1
	if not gdb.selected_thread() or not kind.sizeof:
		return None
	address, size = address_of(value, kind), kind.sizeof
	if address is None:
		return None
	if is_text and not any(is_known(address + i, 1) for i in range(size)):
		return Unavailable()
	if kind.code in SCALARS and size <= LARGEST and is_unavailable(value, address, size):
		return Unavailable()
	if kind.code == gdb.TYPE_CODE_FLT and size > LARGEST and not is_known(address, 10): # and padding
		return Unavailable()
	return None


gdb.pretty_printers.insert(0, find_unavailable)
gdb.execute("set stack-cache off") # it would ask for lines, and take what is filled in for what is there


# ---- calls ----

locking = []


def note_call(event):
	"""Functions are called in a copy, where memory may be written; nowhere else. One thread runs in it: gdb would have others go first
that stand at a breakpoint."""
	if isinstance(event, gdb.InferiorCallPreEvent):
		ask("call")
		locking.append(gdb.parameter("scheduler-locking"))
		gdb.execute("set scheduler-locking on")
	elif locking:
		gdb.execute(f"set scheduler-locking {locking.pop()}")


gdb.events.inferior_call.connect(note_call)


# ---- conditions ----

# gdb has no bytecode for these (ax-gdb.c), and evaluates a condition itself then, with a stop for each hit. In C they are the same as:
REGISTERS = {"pc": "$rip", "sp": "$rsp", "fp": "$rbp"}
for name, wide in [(each, "r" + each) for each in ("ax", "bx", "cx", "dx", "si", "di", "bp")]:
	REGISTERS["e" + name] = f"(int)${wide}"
	REGISTERS[name] = f"(short)${wide}"
for name in "abcd":
	REGISTERS[name + "l"] = f"(signed char)$r{name}x"
for number in range(8, 16):
	REGISTERS[f"r{number}d"] = f"(int)$r{number}"

C_LANGUAGES = ("c", "c++", "objective-c", "asm", "minimal")
TOKEN = re.compile(r"""(?P<text>"(?:[^"\\]|\\.)*")|(?P<character>(?<![\w'])'(?:[^'\\]|\\[^']+|\\')')|\$(?P<register>[a-z]+[0-9]*[a-z]*)\b""")


def with_bytecode(condition):
	def replace(match):
		if match["character"]:
			return f"(char){int(gdb.parse_and_eval(match['character']))}"
		return REGISTERS.get(match["register"], match[0])
	return TOKEN.sub(replace, condition)


def note_condition(breakpoint):
	kinds = (gdb.BP_BREAKPOINT, getattr(gdb, "BP_HARDWARE_BREAKPOINT", gdb.BP_BREAKPOINT))
	if not breakpoint.condition or breakpoint.type not in kinds or breakpoint.pending:
		return
	try:
		condition = with_bytecode(breakpoint.condition) if language() in C_LANGUAGES else breakpoint.condition
		if condition != breakpoint.condition:
			breakpoint.condition = condition
	except gdb.error:
		pass # it stays as it is, and works


def language():
	"""What gdb takes expressions for."""
	shown = gdb.execute("show language", to_string=True).splitlines()[0]
	return shown.rstrip(".").rsplit(" ", 1)[-1].strip('"')


for changed in (gdb.events.breakpoint_created, gdb.events.breakpoint_modified):
	changed.connect(note_condition)


# ---- marks ----

class Marks:
	"""Places with names, in a file next to the recording: NAME TID POSITION TEXT, a line each. Those that cannot be written there are
kept here."""

	def __init__(self):
		self.unwritten = {}

	def path(self):
		return ask("path").rstrip("\n") + ".marks"

	def read(self):
		try:
			with open(self.path(), encoding="utf-8") as file:
				lines = [line.rstrip("\n").split(" ", 3) for line in file]
		except FileNotFoundError:
			lines = []
		written = {line[0]: (int(line[1]), int(line[2]), line[3] if len(line) > 3 else "") for line in lines if len(line) > 2}
		return {**written, **self.unwritten}

	def write(self, marks):
		temporary = self.path() + ".new"
		with open(temporary, "w", encoding="utf-8") as file:
			for name, (tid, place, text) in marks.items():
				file.write(f"{name} {tid} {place} {text}".rstrip() + "\n")
		os.replace(temporary, self.path())


marks = Marks()


class Mark(gdb.Command):
	"""mark NAME [TEXT]: give this place a name, for `seek NAME`. It is kept in a file next to the recording."""

	def __init__(self):
		super().__init__("mark", gdb.COMMAND_STATUS)

	def invoke(self, argument, from_tty):
		name, _, text = argument.partition(" ")
		if not name or name in ("start", "end") or name[0] == "-" or name[0].isdigit():
			raise gdb.GdbError("give it a name that does not begin with a digit or a minus, and is not start or end")
		known = marks.read()
		known[name] = (gdb.selected_thread().ptid[1], position(), text.replace("\n", " "))
		try:
			marks.write(known)
			marks.unwritten = {}
		except OSError as error:
			marks.unwritten[name] = known[name]
			print(f"the mark is kept until gdb ends, and no longer: {error.filename}: {error.strerror}")


class ListMarks(gdb.Command):
	"""marks: the places that have names."""

	def __init__(self):
		super().__init__("marks", gdb.COMMAND_STATUS)

	def invoke(self, argument, from_tty):
		take_no_argument("marks", argument)
		for name, (tid, place, text) in sorted(marks.read().items(), key=lambda mark: mark[1][1]):
			print(f"{name:<16} thread {tid} position {place}  {text}".rstrip())


def find_place(argument):
	"""What the server takes for a place, and the thread that a mark is of, or None."""
	if argument not in ("start", "end") and argument[0] != "-" and not argument[0].isdigit():
		known = marks.read()
		if argument in known:
			return known[argument][1], known[argument][0]
	return argument, None


def complete_place(word):
	return [name for name in ["start", "end", *marks.read()] if name.startswith(word)]


class Seek(gdb.Command):
	"""seek POSITION|N%|TIME|start|end|MARK: go there. Positions are what `when` tells, or as 20K or 1.5M, marks what `mark` made.
Times are as 1.5s or 20ms since the program began, or as -1s before the end; between keyframes they are about right."""

	def __init__(self):
		super().__init__("seek", gdb.COMMAND_RUNNING)

	def invoke(self, argument, from_tty):
		if not argument:
			raise gdb.GdbError("seek where? Give a position, a percentage as 50%, a time as 1.5s, start, end or a mark.")
		go(*find_place(argument))

	def complete(self, text, word):
		return complete_place(word)


class Restart(gdb.Command):
	"""Go to the start of the recording, as `seek start` does. What is recorded is not run again."""

	def __init__(self, name):
		self.name = name
		super().__init__(name, gdb.COMMAND_RUNNING)

	def invoke(self, argument, from_tty):
		take_no_argument(self.name, argument)
		if is_live():
			raise gdb.GdbError(f"{self.name}: the program is there already: 'continue' lets it run, and 'seek start' goes back to its start")
		go("start")
		print("This is the start of the recording; 'continue' goes on from here.")


class Checkpoint(gdb.Command):
	"""There are no checkpoints: every place can be gone back to. `mark NAME` gives this one a name, for `seek NAME`."""

	def __init__(self):
		super().__init__("checkpoint", gdb.COMMAND_RUNNING)

	def invoke(self, argument, from_tty):
		raise gdb.GdbError("every place can be gone back to: 'mark NAME' gives this one a name, and 'seek NAME' goes there")


class ThreadsAt(gdb.Command):
	"""threads-at [POSITION|N%|TIME|start|end|MARK]: where every thread is when this one is there, or here: its position, function and
line, and whether it runs or is in a system call, has not started yet or has ended. Nothing moves."""

	def __init__(self):
		super().__init__("threads-at", gdb.COMMAND_STATUS)

	def invoke(self, argument, from_tty):
		where, tid = find_place(argument) if argument else ("", None)
		tid = tid or gdb.selected_thread().ptid[1]
		for line in ask(f"threads-at {where} {tid}" if argument else "threads-at").splitlines():
			words, _, state = line.partition(" state ")
			fields = dict(zip(words.split()[0::2], words.split()[1::2]))
			pc = int(fields["pc"], 16)
			place = f"position {fields['position']:>12}  " if pc else ""
			print(f"{'=>' if int(fields['tid']) == tid else '  '} thread {fields['thread']} ({fields['tid']})  {place}{state}{', ' + line_of(pc) if pc else ''}")

	def complete(self, text, word):
		return complete_place(word)


# ---- who wrote it ----

def line_of(pc):
	"""The function and line that code belongs to."""
	block = containing(pc)
	sal = gdb.find_pc_line(pc)
	symbol = gdb.execute(f"info symbol {pc}", to_string=True)
	name = block.function.name if block is not None else f"{pc:#x}" if symbol.startswith("No symbol") else "<" + symbol.split(" in ")[0].strip() + ">"
	return f"{name} at {os.path.basename(sal.symtab.filename)}:{sal.line}" if sal.symtab else name


class Write:
	"""A line of the server's about a change of memory."""

	def __init__(self, line):
		words = line.split()
		fields = dict(zip(words[0:14:2], words[1:14:2]))
		self.thread, self.tid, self.position = int(fields["thread"]), int(fields["tid"]), int(fields["position"])
		self.pc, self.address = int(fields["pc"], 16), int(fields["address"], 16)
		self.before = None if fields["before"] == "?" else int(fields["before"], 16)
		self.after = int(fields["after"], 16)
		self.found = words[14] == "found"
		self.call = (words[16], int(words[17])) if len(words) > 17 else None

	def value(self, word, place):
		"""The value at the place, if it lies in the one word that is known."""
		start = place.address - self.address
		if word is None or start < 0 or start + place.size > 8:
			return "?"
		return place.text_of(word.to_bytes(8, "little")[start:start + place.size])

	def where(self):
		if self.found:
			return f"by the kernel, in {self.call[0]} at {self.call[1]}" if self.call else "by the kernel or another process"
		return line_of(self.pc)


def find_field(kind, name):
	"""Where a field begins, and of how many bits it is if it is a bit-field, else 0; None: there is none of that name."""
	for field in kind.strip_typedefs().fields():
		if not hasattr(field, "bitpos"): # static
			continue
		if field.name == name and not field.is_base_class:
			return field.bitpos, field.bitsize
		if field.is_base_class or not field.name:
			inner = find_field(field.type, name)
			if inner is not None:
				return field.bitpos + inner[0], inner[1]
	return None


MEMBER = re.compile(r"\s*(?:(?P<object>.*)(?:\.|->))?\s*(?P<name>[A-Za-z_]\w*)\s*", re.DOTALL)


def find_bit_field(expression):
	"""Its first bit, counted from address 0, and their number: gdb has an address for it, but does not tell which bits. None: it is none."""
	match = MEMBER.fullmatch(expression)
	if match is None:
		return None
	try:
		if match["object"] is None and not gdb.lookup_symbol(match["name"])[1]:
			return None
		parent = gdb.parse_and_eval(match["object"] or "*this")
		if parent.type.strip_typedefs().code in (gdb.TYPE_CODE_REF, getattr(gdb, "TYPE_CODE_RVALUE_REF", gdb.TYPE_CODE_REF)):
			parent = parent.referenced_value()
		if parent.type.strip_typedefs().code not in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
			parent = gdb.parse_and_eval(f"*({match['object']})")
		field = find_field(parent.type, match["name"])
	except (gdb.error, TypeError):
		return None
	if field is None or not field[1] or parent.address is None:
		return None
	return 8 * int(parent.address) + field[0], field[1]


class Place:
	"""The memory that an expression stands for."""

	def __init__(self, argument):
		try:
			value = gdb.parse_and_eval(argument)
			address = value.address
		except gdb.error as error:
			raise gdb.GdbError(str(error))
		if address is None:
			raise gdb.GdbError(f"'{argument}' is not in memory")
		self.address, self.size, self.type = int(address), value.type.sizeof, value.type
		self.low, self.bits = 0, 0
		while argument.startswith("(") and argument.endswith(")"):
			argument = argument[1:-1].strip()
		first, bits = find_bit_field(argument) or (0, 0)
		if bits and self.address <= first // 8 and (first + bits + 7) // 8 <= self.address + self.size:
			self.address, self.low, self.bits = first // 8, first % 8, bits
			self.size = (self.low + bits + 7) // 8

	def text(self):
		"""As the server takes it."""
		return f"{self.address:x} {self.size}" + (f" {self.low} {8 * self.size - self.low - self.bits}" if self.bits else "")

	def text_of(self, data):
		"""The value that these bytes are."""
		if not self.bits:
			return gdb.Value(data, self.type).format_string(max_depth=1)
		number = int.from_bytes(data, "little") >> self.low & (1 << self.bits) - 1
		if number >> self.bits - 1 and int(gdb.Value(-1).cast(self.type)) < 0:
			number -= 1 << self.bits
		return gdb.Value(number).cast(self.type).format_string(max_depth=1)

	def value(self):
		"""What is there now; "?" if that is not known."""
		try:
			if self.bits:
				return self.text_of(memory_now(self.address, self.size)) if is_known(self.address, self.size) else "?"
			text = gdb.Value(self.address).cast(self.type.pointer()).dereference().format_string(max_depth=1)
		except gdb.error:
			return "?"
		return "?" if text == Unavailable().to_string() else text


class WriteCommand(gdb.Command):
	"""What `last`, `first` and `next-write` share. Enter goes on with the same memory, whatever the expression is there."""

	def __init__(self, name):
		super().__init__(name, gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)
		self.argument, self.place, self.reached = None, None, None

	def find(self):
		raise NotImplementedError

	def arrive(self, write):
		"""Where to stand for it."""
		return write.call[1] if write.found and write.call else write.position

	def invoke(self, argument, from_tty):
		if not argument:
			raise gdb.GdbError("give an expression that is in memory")
		if argument != self.argument or position() != self.reached:
			self.place = Place(argument)
		self.argument = argument
		write = self.find()
		before, after = self.values(write)
		print(f"{argument}: {before} -> {after} {write.where()}, position {write.position}")
		go(self.arrive(write), write.tid)
		self.reached = position()

	def values(self, write):
		"""What it was before and behind it. The trace has one word as its thread knows it: the rest is what gdb shows in these places."""
		before, after = write.value(write.before, self.place), write.value(write.after, self.place)
		with untold():
			if after == "?":
				go(write.position + (not write.found), write.tid)
				after = self.place.value()
			if before == "?":
				go(write.call[1] if write.found and write.call else max(write.position - write.found, 0), write.tid)
				before = self.place.value()
		return before, after


class Last(WriteCommand):
	"""last EXPRESSION: go to the instruction that last changed it before here. Enter goes on to the one before that."""

	def __init__(self):
		super().__init__("last")

	def find(self):
		return Write(ask("last " + self.place.text()))


class First(WriteCommand):
	"""first EXPRESSION: go to the instruction that first changed it in the recording."""

	def __init__(self):
		super().__init__("first")

	def find(self):
		lines = ask("history " + self.place.text()).splitlines()
		if not lines or lines[0] == "cut":
			raise gdb.GdbError("nothing in the recording changes it")
		return Write(lines[0])


class NextWrite(WriteCommand):
	"""next-write EXPRESSION: go to where it has just been changed next."""

	def __init__(self):
		super().__init__("next-write")

	def find(self):
		return Write(ask("next " + self.place.text()))

	def arrive(self, write):
		return write.position + (not write.found)


class History(gdb.Command):
	"""history EXPRESSION: all values it had in the recording, with positions, threads and lines. Values that are larger than a word are
looked at in each of these places, of which there are 200 at most; of the others there is a question mark."""

	LOOKED_AT = 200

	def __init__(self):
		super().__init__("history", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

	def invoke(self, argument, from_tty):
		if not argument:
			raise gdb.GdbError("give an expression that is in memory")
		place, here, tid = Place(argument), position(), gdb.selected_thread().ptid[1]
		lines = ask("history " + place.text()).splitlines()
		cut = lines[-1:] == ["cut"]
		writes = self.instructions(lines[:-1] if cut else lines)
		values = [write.value(write.after, place) for write in writes]
		unknown = [i for i, value in enumerate(values) if value == "?"]
		self.look_at(place, writes, values, unknown[:self.LOOKED_AT])
		wheres = {}
		for write, value in zip(writes, values):
			key = (write.pc, write.call)
			if key not in wheres:
				wheres[key] = write.where()
			print(f"{'=>' if (write.position, write.tid) == (here, tid) else '  '} {write.position:>12}  thread {write.thread}  {value:<20} {wheres[key]}")
		if not writes:
			print("nothing in the recording changes it" if not cut else "it is changed very often, by threads of which it is not known who came first")
		if len(unknown) > self.LOOKED_AT:
			print(f"The values behind the first {self.LOOKED_AT} are not looked at: 'seek' to one of these positions shows it.")
		if cut:
			print(f"There are more: 'seek' to the last one of these and 'next-write {argument}' go on from there.")

	@staticmethod
	def instructions(lines):
		"""One for each instruction: it may have changed several words, or one word several times."""
		writes = {}
		for line in lines:
			write = Write(line)
			writes[write.tid, write.position, write.found] = write
		return list(writes.values())

	@staticmethod
	def look_at(place, writes, values, numbers):
		"""Goes where these values are, and comes back."""
		if not numbers:
			return
		here, tid, level = position(), gdb.selected_thread().ptid[1], gdb.selected_frame().level()
		with untold():
			try:
				for i in numbers:
					go(writes[i].position + (not writes[i].found), writes[i].tid)
					values[i] = place.value()
			finally:
				go(str(here), tid)
				gdb.execute(f"frame {level}", to_string=True)


# ---- what was called, and what happened ----

class Function:
	"""Where calls of a function are seen: where it is entered, and behind its prologue, where its arguments are in place."""

	def __init__(self, argument):
		try:
			entries = [sal.pc for sal in gdb.decode_line(argument)[1]]
		except gdb.error as error:
			raise gdb.GdbError(str(error))
		chosen = [pc for pc in entries if self.is_indirect(argument, pc)]
		if chosen:
			self.bodies = {pc: pc for pc in entries if pc not in chosen}
			self.bodies.update((pc, pc) for pc in map(self.choose, chosen))
		else:
			self.bodies = {body: self.entry(body, entries) for body in self.locations(argument)}

	@staticmethod
	def is_indirect(argument, pc):
		"""Is it one that chooses the function (STT_GNU_IFUNC)? gdb has no breakpoint for that, but leaves one behind."""
		function = containing(pc)
		if function is not None and function.function.name.split("(")[0].endswith(argument.split("(")[0]):
			return False
		name = gdb.solib_name(pc) or gdb.current_progspace().filename
		symbols = gdb.execute(f"maint print msymbols -objfile {name}", to_string=True)
		return re.search(rf"^\[ *\d+\] i 0x0*{pc:x} ", symbols, re.MULTILINE) is not None

	@staticmethod
	def choose(pc):
		try:
			return int(gdb.parse_and_eval(f"((unsigned long (*)(void)){pc:#x})()"))
		except gdb.error:
			raise gdb.GdbError("which function this is was chosen when the program began, and that is not known here; name the one that it is")

	@staticmethod
	def locations(argument):
		"""Of a breakpoint. gdb tells Python where they are since version 13 only."""
		point = gdb.Breakpoint(argument, internal=True)
		try:
			table = gdb.execute("maint info breakpoints", to_string=True)
		finally:
			number = point.number
			point.delete()
		lines = [line for line in table.splitlines() if re.match(rf"{number}\.\d+ ", line)]
		return sorted({int(address, 16) for line in lines for address in re.findall(r"\b0x[0-9a-f]+", line)[:1]})

	@staticmethod
	def entry(body, entries):
		"""None: it is inlined there. Something else may be, where the function itself begins."""
		block = containing(body)
		if block is None:
			found = re.match(r"[^ ]+ \+ (\d+) in section", gdb.execute(f"info symbol {body}", to_string=True))
			return body - int(found[1]) if found else body
		function, outer = block, block.superblock
		while outer is not None:
			function, outer = function if outer.function is None else outer, outer.superblock
		entry = int(function.function.value().address)
		return entry if function == block or entry in entries else None


class Call:
	"""One call of a function: where it was entered, or, of one that is inlined, where its code begins."""

	def __init__(self, position, stack, back, inlined=False):
		self.entered, self.stack, self.back, self.inlined = position, stack, back, inlined
		self.position = position if inlined else None # where its arguments are in place
		self.end = None      # where it was behind it, with what was in rax
		self.over = back is None

	def leave(self):
		self.over = True

	def returns(self, position, rax):
		self.over, self.end = True, (position, rax)

	def tell(self, tid):
		"""Moves there."""
		place = self.entered if self.position is None else self.position
		go(place, tid)
		frame = gdb.newest_frame()
		while not self.inlined and frame.type() == gdb.INLINE_FRAME:
			frame = frame.older()
		symbols = self.arguments(frame) if self.position is not None else []
		arguments = ", ".join(f"{symbol.print_name}={self.text(frame, symbol)}" for symbol in symbols)
		what = f"{frame.name()}({arguments})"
		print(f"{place:>12}  {what}{self.result(frame, tid)}")

	def result(self, frame, tid):
		function = frame.function()
		if self.back is None:
			return "" # inlined, or it is not known where it returns to
		if self.end is None or ask(f"returned {self.end[0]}") != "yes\n":
			return "  does not return"
		kind = function.type.target() if function is not None and function.type.code == gdb.TYPE_CODE_FUNC else None
		plain = kind.strip_typedefs() if kind is not None else None
		if plain is None or plain.code == gdb.TYPE_CODE_VOID:
			return ""
		if plain.code in IN_RAX and plain.sizeof <= 8:
			if plain.code == gdb.TYPE_CODE_PTR: # it may be a text, which is shown
				go(self.end[0], tid)
			value = gdb.Value(self.end[1].to_bytes(8, "little")[:plain.sizeof], kind)
		else:
			value = Return.value_of(frame, self.end[0], tid)
		return f" = {value.format_string(max_depth=1)}" if value is not None else ""

	@staticmethod
	def arguments(frame):
		try:
			return [symbol for symbol in frame.block() if symbol.is_argument]
		except RuntimeError:
			return []

	@staticmethod
	def text(frame, symbol):
		try:
			return frame.read_var(symbol).format_string(max_depth=1)
		except gdb.error:
			return "?"


IN_RAX = SCALARS - {gdb.TYPE_CODE_FLT}


class Return(gdb.FinishBreakpoint):
	"""What a call returns that is not in rax: only this of gdb's tells."""

	def stop(self):
		return True

	@classmethod
	def value_of(cls, frame, position, tid):
		try:
			point = cls(frame, internal=True)
		except (gdb.error, ValueError, RuntimeError):
			return None
		try:
			point.enabled = False
			go(position - 1, tid)
			point.enabled = True
			gdb.execute("continue", to_string=True)
			return point.return_value
		finally:
			if point.is_valid():
				point.delete()


class Trail:
	"""The calls of a function by a thread, in the order in which they were entered, found piece by piece."""

	def __init__(self, functions):
		"""With each, up to which position it is that one: another library may have lain in the same place."""
		self.functions = [(until, bodies, set(bodies.values()) - {None}) for until, bodies in functions]
		self.pcs = {pc for _, bodies, entries in self.functions for pc in set(bodies) | entries}
		self.returns = set()
		self.reached, self.ended = 0, False
		self.calls, self.running, self.entering = [], {}, []

	def go_on(self):
		"""The next piece of the recording. It is looked through again where calls return to places that were not known yet."""
		while True:
			pcs = sorted(self.pcs | self.returns)
			*lines, end = ask(f"executions {self.reached} {' '.join(f'{pc:x}' for pc in pcs)}").splitlines()
			found = [(int(words[0]), *(int(word, 16) for word in words[1:])) for words in map(str.split, lines)]
			new = {top for position, pc, _, top, _ in found if pc in self.function_at(position)[1] and top} - self.returns
			if not new:
				break
			self.returns |= new
		for execution in found:
			self.note(*execution)
		self.ended, self.reached = end.startswith("end"), int(end.split()[1])

	def function_at(self, position):
		return next((function[1:] for function in self.functions if position < function[0]), self.functions[-1][1:])

	def note(self, position, pc, stack, top, rax):
		bodies, entries = self.function_at(position)
		call = self.running.get(stack - 8)
		if call is not None and call.back == pc:
			call.returns(position, rax)
			del self.running[stack - 8]
		if pc in entries:
			self.enter(Call(position, stack, top or None))
		if pc in bodies and bodies[pc] is None:
			self.calls.append(Call(position, stack, None, inlined=True))
		elif pc in bodies and self.entering:
			self.entering.pop().position = position

	def enter(self, call):
		"""One that has the stack of another which has not returned comes behind a jump out of that one."""
		if call.stack in self.running:
			self.running[call.stack].leave()
		self.calls.append(call)
		self.running[call.stack] = call
		self.entering = [other for other in self.entering if other.stack > call.stack] + [call]


@contextlib.contextmanager
def quiet_signals():
	"""Nothing stops for a signal meanwhile."""
	stopping = {}
	for line in gdb.execute("info signals", to_string=True).splitlines():
		words = line.split()
		if len(words) > 3 and words[1] == "Yes" and words[0] not in ("SIGTRAP", "SIGINT"):
			stopping.setdefault("print" if words[2] == "Yes" else "noprint", []).append(words[0])
	for names in stopping.values():
		gdb.execute(f"handle {' '.join(names)} nostop noprint", to_string=True)
	try:
		yield
	finally:
		for printed, names in stopping.items():
			gdb.execute(f"handle {' '.join(names)} stop {printed}", to_string=True)


class Calls(gdb.Command):
	"""calls [-n COUNT|-a] FUNCTION: the first calls of it in the recording of this thread, with arguments, results and positions:
100 of them, or COUNT, or all."""

	FIRST = 100

	def __init__(self):
		super().__init__("calls", gdb.COMMAND_STACK, gdb.COMPLETE_SYMBOL)

	def invoke(self, argument, from_tty):
		found = re.fullmatch(r"\s*(?:(-a)\s+|-n\s+(\d+)\s+)?([^-\s].*)", argument)
		if not found:
			raise gdb.GdbError("give a function; before it, `-n COUNT` is for that many calls, and `-a` for all")
		if is_live():
			raise gdb.GdbError("this is for recordings, and not where the program runs")
		most = None if found[1] else int(found[2] or self.FIRST)
		thread = gdb.selected_thread()
		if thread is None:
			raise gdb.GdbError("no thread is selected")
		here, tid = position(), thread.ptid[1] # at the end of the recording the thread may be none any more
		with disabled([point for point in gdb.breakpoints() if point.enabled]), quiet_signals(), untold():
			try:
				trail = Trail(self.find(found[3], tid))
				told = self.tell_all(trail, most, tid)
			finally:
				with uninterrupted():
					go(str(here), tid)
		if not trail.calls:
			print("this thread has not called it in the recording")
		elif told < len(trail.calls):
			print(f"and more: `calls -n COUNT {found[3]}` shows so many, `calls -a {found[3]}` all")

	@staticmethod
	def find(name, tid):
		"""Which code it is, and up to which position: libraries come and go, and each is looked at where it is there."""
		stretches = [line.split() for line in ask("libraries").splitlines()]
		if len(stretches) == 1 and all_are_there():
			return [(0, Function(name).bodies)]
		known, missing = {}, None
		for last, _, libraries in stretches:
			if libraries in known:
				continue
			go(last, tid)
			try:
				known[libraries] = Function(name).bodies
			except gdb.GdbError as error:
				known[libraries], missing = {}, error
		if not any(known.values()):
			raise missing
		return [(int(until), known[libraries]) for _, until, libraries in stretches]

	@staticmethod
	def tell_all(trail, most, tid):
		"""As they are found. Of one it must be known how it ends; returns how many were told."""
		told = 0
		while True:
			while told < len(trail.calls) and told != most and (trail.calls[told].over or trail.ended):
				with uninterrupted():
					trail.calls[told].tell(tid)
				told += 1
			if trail.ended or (told == most and told < len(trail.calls)):
				return told
			trail.go_on()


class Events(gdb.Command):
	"""events [COUNT]: the system calls and signals before and behind this place, COUNT on each side."""

	def __init__(self):
		super().__init__("events", gdb.COMMAND_STATUS)

	def invoke(self, argument, from_tty):
		print(ask("events " + argument).rstrip("\n"))


class Intervals(gdb.Command):
	"""intervals: the stretches from one keyframe to the next that there are of this thread."""

	def __init__(self):
		super().__init__("intervals", gdb.COMMAND_STATUS)

	def invoke(self, argument, from_tty):
		take_no_argument("intervals", argument)
		print(ask("intervals").rstrip("\n"))


for command in (Bugnet, Connect, Refuse, When, Seek, Mark, ListMarks, Last, First, NextWrite, History, Calls, Events, ThreadsAt, Intervals, Checkpoint):
	command()
for name in ("run", "start", "starti"):
	Restart(name)
