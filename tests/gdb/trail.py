# What a developer does who follows something wrong back to where it comes from: in which code of the program this is, which instruction
# made a value and of which memory, who stored there, who has called. All of it begins where the recording ends, and knows of the program
# only what gdb shows.
import re
from session import *

STEPS_BACK = 400  # instructions: from where a value is used to where it is made

MEMORY = re.compile(r"(-?0x[0-9a-f]+)?\((%\w+)?(?:,(%\w+)(?:,(\d))?)?\)")


# ---- where ----

def program_frame():
	"""Selects the innermost frame of the program's own code, which may have called libraries."""
	frame = gdb.newest_frame()
	while frame is not None and (not frame.find_sal().symtab or gdb.current_progspace().solib_name(frame.pc()) or frame.type() == gdb.INLINE_FRAME):
		frame = frame.older()
	if frame is None:
		raise gdb.GdbError("nothing of the program is on the stack")
	frame.select()
	return frame


def called_by(names):
	"""Is this in a call of one of the functions? Libraries without debug information know them by other names."""
	return any(name and any(wanted in name for wanted in names) for name in callers())


# ---- instructions ----

class Instruction:
	"""In AT&T's notation: sources come first, the destination last."""

	def __init__(self, frame, described):
		self.frame, self.pc, self.length = frame, described["addr"], described["length"]
		text = described["asm"].split("#")[0].split("<")[0].strip()
		self.name, _, operands = text.partition(" ")
		self.operands = re.findall(r"(?:[^,(]|\([^)]*\))+", operands.strip())

	def moves(self):
		return self.name.startswith("mov") or self.name == "pop"

	def destination(self):
		return self.operands[-1].strip() if self.operands else ""

	def memory(self):
		"""The operand in memory, if there is one."""
		return next((match for match in map(MEMORY.search, self.operands) if match), None)

	def address(self):
		offset, base, index, scale = self.memory().groups()
		address = int(offset or "0", 16) + (self.pc + self.length if base == "%rip" else self.register(base))
		return (address + self.register(index) * int(scale or 1)) & 2**64 - 1

	def register(self, name):
		return int(self.frame.read_register(name[1:]).cast(gdb.lookup_type("unsigned long"))) if name else 0


def instruction():
	"""That is executed next."""
	frame = gdb.newest_frame()
	return Instruction(frame, frame.architecture().disassemble(frame.pc())[0])


def instructions_of_function(frame):
	block = frame.block()
	while block.function is None:
		block = block.superblock
	return [Instruction(frame, each) for each in frame.architecture().disassemble(block.start, block.end - 1)]


def whole_register(name):
	"""The register of 64 bits that a name stands for a part of."""
	name = name.lstrip("%$")
	numbered = re.match(r"r(\d+)", name)
	if numbered:
		return "r" + numbered.group(1)
	stem = name.lstrip("re")[:2] if len(name) > 2 else name
	return "r" + (stem[0] + "x" if stem[0] in "abcd" and stem[1] in "lhx" else stem[:2])


def made(register):
	"""Goes back to the instruction that made the register's value; what it was only moved through is followed."""
	register = whole_register(register)
	for i in range(STEPS_BACK):
		run("reverse-stepi")
		found = instruction()
		if found.name == "cltq" or not re.match(r"%\w+$", found.destination()) or found.name in ("push", "cmp", "test"):
			continue
		if whole_register(found.destination()) != register:
			continue
		if not (found.moves() and found.operands[0].startswith("%")):
			return found
		register = whole_register(found.operands[0])
	raise gdb.GdbError(f"{register} was made long before")


def loaded_from(register):
	"""The address of the memory that the register was loaded from; goes there."""
	found = made(register)
	if found.name == "pop":
		return number("(long)$rsp")
	if not found.moves() or not found.memory():
		raise gdb.GdbError(f"{register} does not come from memory: {found.name} {found.operands}")
	return found.address()


def is_of_program(address):
	return not run(f"info symbol {address}").startswith("No symbol")


def crashed_by():
	"""The address of the memory with what the program died of; goes to where it was loaded."""
	try:
		found = instruction()
	except gdb.MemoryError:
		run("reverse-stepi")  # it went to where there is nothing
		found = instruction()
		if found.name == "call":
			return found.address() if found.memory() else loaded_from(found.destination().lstrip("*"))
	if found.name == "ret":
		return number("(long)$rsp")
	_, base, index, _ = found.memory().groups()
	return loaded_from(index if index and is_of_program(found.register(base)) else base)


def stores_in_function(frame, address):
	"""The lines of the frame's function that would store there."""
	return [gdb.find_pc_line(each.pc).line for each in instructions_of_function(frame)
		if each.moves() and each.destination().endswith(")") and each.address() == address]


# ---- going there ----

def last(expression):
	"""Goes to who changed it last."""
	print(run(f"last {expression}"), end="")


def untouched(expression):
	"""Nothing has changed it up to here."""
	expect_error(f"last {expression}", "nothing in the recording changes it before")


def back(command):
	"""Goes back to the last stop for a breakpoint or watchpoint."""
	run(command)
	expect(move("reverse-continue"), "breakpoint", command)


def again():
	expect(move("reverse-continue"), "breakpoint", "the one before")


def back_to_call():
	"""Goes back from what the program has called, anything of libraries, to the call."""
	frame = program_frame()
	call = [each.pc for each in instructions_of_function(frame) if each.pc + each.length == frame.pc()]
	back(f"tbreak *{call[0]}")
	return program_frame()
