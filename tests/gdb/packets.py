"""packets.py BUGNET RECORDING: the server survives what no gdb sends, and serves one client after the other."""
import os
import random
import re
import socket
import subprocess
import sys
import time

server = subprocess.Popen([sys.argv[1], "replay", "--server", "0", sys.argv[2]], stdout=subprocess.PIPE, text=True)
port = int(re.search(r"localhost:(\d+)", server.stdout.readline()).group(1))


def packet(text):
	if isinstance(text, str):
		text = text.encode("latin-1")
	return b"$" + text + b"#" + b"%02x" % (sum(text) & 255)


class Client:
	def __init__(self):
		self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
		self.data = b""

	def send(self, data):
		self.socket.sendall(data)

	def reply(self):
		while True:
			match = re.search(rb"\$([^#]*)#([0-9a-f]{2})", self.data, re.DOTALL)
			if match:
				self.data = self.data[match.end():]
				assert sum(match.group(1)) & 255 == int(match.group(2), 16), "a wrong checksum"
				return match.group(1)
			more = self.socket.recv(65536)
			assert more, "the server has closed the connection"
			self.data += more

	def ask(self, text):
		"""The reply, without the output of monitor commands."""
		self.send(packet(text))
		while True:
			reply = self.reply()
			if not reply.startswith(b"O") or reply == b"OK":
				return reply

	def close(self):
		self.socket.close()


client = Client()
assert b"ReverseContinue+" in client.ask("qSupported:multiprocess+;swbreak+")
stop = client.ask("?")
assert stop.startswith(b"T0b"), stop
thread = re.search(rb"thread:(p[0-9a-f]+\.[0-9a-f]+);", stop).group(1).decode()
registers = client.ask("g")
assert len(registers) == 2 * (17 * 8 + 7 * 4 + 80 + 32 + 256 + 4 + 8 + 16 + 256), len(registers)

# A checksum that is wrong is asked for again; noise between packets is none of our business.
client.send(b"$g#00")
time.sleep(0.1)
client.send(b"garbage\x00\xff+++" + packet("?"))
assert client.reply() == stop

# What makes no sense gets an error or an empty reply, and changes nothing.
odd = ["", "m", "mx,1", "m1", "m1,", "m,1", "mffffffffffffffffffff,4", "mffffffffffffffff,8", "m0,ffffffffffffffff", "p", "pzz",
	"pffff", "P0=00", "G00", "M0,1:00", "X0,1:a", "Z", "Z9,1,1", "Z0", "Z0,x,1", "Z2,1000,0", "Z2,ffffffffffffffff,ffff",
	"z4,1", "H", "Hg", "Hgp", "Hgp1.", "Hx1", "Hg77777777", "Hc-", "T", "Tzz", "T1", "vCont", "vCont;", "vCont;q", "vCont;s:zz", "vCont;S",
	"vCont;c:p1.77777", "vMustReplyEmpty", "vFile:open:00,0,0", "vRun;00", "qXfer", "qXfer:", "qXfer:features:read:target.xml:",
	"qXfer:features:read:target.xml:0", "qXfer:features:read:target.xml:zz,10", "qXfer:features:read:nothing:0,10",
	"qXfer:auxv:read::ffffffffffffffff,ffffffffffffffff", "qXfer:threads:write::0:00", "qRcmd,", "qRcmd,zz", "qRcmd,6", "QPassSignals:",
	"vFile:", "vFile:open:", "vFile:open:zz,0,0", "vFile:open:2f,1,0", "vFile:open:2f6574632f706173737764,0,0", "vFile:pread:1,10,0", "vFile:pread:zz",
	"vFile:close:0", "vFile:close:ffffffffffffffff", "vFile:fstat:1", "vFile:readlink:2f", "vFile:unlink:2f", "vFile:setfs:1", "QCatchSyscalls:", "QCatchSyscalls:2",
	"QCatchSyscalls:1;zz", "QCatchSyscalls:1;", "QCatchSyscalls:0", "D;zz", "QPassSignals:zz", "QPassSignals:ffffffff;0;;", "bx", "b", "R00", "!", "t", "i", "\x01\x02", "}\x03", "qC" * 300]
for text in odd:
	client.ask(text)
	assert client.ask("?") == stop, f"after {text!r}"
assert client.ask("qRcmd," + ("lines " + "7fffffff0000 7fffffff0001 " * 40).encode().hex()) == b"OK", "a long command"
client.send(packet("m0," + "f" * 40000))
client.reply()
random.seed(int(os.environ.get("SEED", "1")))
for i in range(300):
	length = random.randrange(1, 40)
	text = bytes(random.choice(b"gmpqvHTZQXbrs0123456789abcdef,;:.-+") for k in range(length))
	if text[:1] in (b"s", b"c") or text[:2] in (b"bs", b"bc") or text[:5] == b"vCont":
		continue
	client.ask(text)
assert client.ask("?") == stop, "after random packets"
client.ask("Hg" + thread)
assert client.ask("g") == registers

# Interrupted while it searches: it stops, and can go on.
client.ask("Z2,10,8")
client.send(packet("bc") + b"\x03")
assert client.reply().startswith(b"T0"), "interrupted"
client.ask("z2,10,8")

# And where it stands already, as gdb goes on by itself from stop to stop: the next move, if it comes at once, is none.
client.ask("bs")
time.sleep(1.1)
assert not client.ask("vCont;s:" + thread).startswith(b"T02"), "an interrupt of long ago"
here = client.ask("p10")
for move in ("vCont;c", "bs", "bc", "vCont;s:" + thread):
	client.send(b"\x03")
	assert client.ask(move).startswith(b"T02"), f"interrupted before {move}"
	assert client.ask("p10") == here, "where it stands"
client.ask("bs")
previous = int.from_bytes(bytes.fromhex(client.ask("p10").decode()), "little")
while b"replaylog:end" not in client.ask("vCont;c"):
	pass

# Memory that is searched, for bytes as they are: zeros and what is escaped among them, over the end of a page; nothing is where nothing is known.
def search(start, size, pattern):
	escaped = re.sub(rb"[#$}*]", lambda special: b"}" + bytes([special.group(0)[0] ^ 0x20]), pattern)
	return client.ask(f"qSearch:memory:{start:x};{size:x};".encode() + escaped)


libraries = client.ask("qXfer:libraries-svr4:read::0,3000").decode()
boundary = int(re.search(r'libc\.so[^>]* l_addr="0x([0-9a-f]+)"', libraries).group(1), 16) + 0x40000
code = bytes.fromhex(client.ask(f"m{boundary - 512:x},400").decode())
for at, size in ((504, 16), (0, 700), (512, 8), (1020, 4)):
	found = boundary - 512 + code.find(code[at:at + size])
	assert search(boundary - 512, 1024, code[at:at + size]) == b"1,%x" % found, (at, size)
assert search(boundary - 512, 1023, code[1000:]) == b"0", "what does not lie in there as a whole"
for byte in b"\0#$}*":
	found = code.find(byte)
	assert search(boundary - 512, 1024, bytes([byte])) == (b"0" if found < 0 else b"1,%x" % (boundary - 512 + found)), byte
assert search(0, 0x2000, b"\0") == b"0", "where nothing is known"
assert search(0, 2 ** 64 - 1, b"\0") == b"E01", "nor further on, for long"
for text in ("qSearch:memory:", "qSearch:memory:0", "qSearch:memory:0;10", "qSearch:memory:0;10;", "qSearch:memory:zz;10;a"):
	assert client.ask(text) == b"E01", text
assert client.ask("vFile:pwrite:1,0,a\0b").startswith(b"F-1"), "bytes for a file"

# Files: the recorded program, as it is; none of this machine's others, and no more at once than there is room for.
program = client.ask("qXfer:exec-file:read::0,fff")[1:]
number = client.ask("vFile:open:" + program.hex() + ",0,0")
assert re.fullmatch(rb"F[1-9a-f]", number), number
number = number[1:].decode()
contents = b""
while True:
	client.send(packet(f"vFile:pread:{number},1000,{len(contents):x}"))
	reply = client.reply()
	size, _, data = reply[1:].partition(b";")
	data = re.sub(rb"(?s)\}(.)", lambda escape: bytes([escape.group(1)[0] ^ 0x20]), data)
	assert len(data) == int(size, 16), "the size of what was read"
	contents += data
	if not data:
		break
assert contents == open(program, "rb").read(), "the program"
assert client.ask(f"vFile:close:{number}") == b"F0"
assert client.ask(f"vFile:close:{number}") == b"F-1,9"
assert client.ask("vFile:open:" + b"/etc/passwd".hex() + ",0,0") == b"F-1,2"
opened = [client.ask("vFile:open:" + program.hex() + ",0,0") for i in range(40)]
assert opened[-1] == b"F-1,18", opened[-1]
for number in opened[:16]:
	assert client.ask("vFile:close:" + number[1:].decode()) == b"F0"

# Calls: what is written without one is refused, also when gdb has looked at the signal; a copy that runs into nothing is given up, and gone.
registers = client.ask("g")
stack = int.from_bytes(bytes.fromhex(client.ask("p7").decode()), "little")
for armed in (False, True):
	if armed:
		client.send(packet("qXfer:siginfo:read::0,80"))
		client.reply()
	assert client.ask(f"M{stack + 8:x},1:00").startswith(b"E.")
	assert client.ask("M0,0:") == b"OK"
	for odd_write in ("M", "M1", f"M{stack - 8:x},8:00", f"M{stack - 8:x},1:zz", "Mffffffffffffffff,2:0000", "P", "P10", "P10=", "P10=zz", "Pff=00", "G", "G00"):
		assert client.ask(odd_write).startswith(b"E"), odd_write
	assert client.ask("g") == registers
	assert client.ask("G" + registers.decode()) == b"OK", "what they are already"
assert client.ask(f"M{stack - 256:x},8:0102030405060708") == b"OK"
assert client.ask(f"m{stack - 256:x},8") == b"0102030405060708", "in the copy"
assert client.ask("P10=1000000000000000") == b"OK"
assert client.ask("vCont;c").startswith(b"T"), "a call that leads nowhere"
client.ask("qXfer:siginfo:write::0:" + 128 * "\x01")
assert client.ask("g") == registers
assert client.ask(f"m{stack - 256:x},8") == b"0102030405060708", "what it has left below the stack: gdb reads objects there that were returned"
assert client.ask("bs").startswith(b"T")
assert client.ask("vCont;s").startswith(b"T")
assert client.ask("g") == registers
assert client.ask(f"m{stack - 256:x},8") != b"0102030405060708", "it is gone"

# Conditions of breakpoints: false, true, one of two, without a value; and what is none.
for condition, stops in (("X3,220027", False), ("X3,220127", True), ("X3,220027X3,220127", True), ("X2,2227", True), ("X4,26000127", True)):
	assert client.ask(f"Z0,{previous:x},1;{condition}") == b"OK", condition
	assert (b"swbreak" in client.ask("bc")) == stops, condition
	while b"replaylog:end" not in client.ask("vCont;c"):
		pass
	client.ask(f"z0,{previous:x},1")
for condition in ("X", "X,", "X0,", "X1", "X1,", "X1,2", "X2,22", "X1,zz", "Xffffffff,00", "X1,22Y", "Y", "X1,22X"):
	assert client.ask(f"Z0,{previous:x},1;{condition}").startswith(b"E."), condition

# Gone in the middle of a packet; the next client finds it as it was left.
client.send(b"$m12")
client.close()
client = Client()
assert client.ask("?").startswith(b"T0b")
assert client.ask("g") == registers
assert client.ask("D") == b"OK"
client.close()
client = Client()
client.ask("qSupported:multiprocess+")
assert client.ask("QStartNoAckMode") == b"OK"
assert client.ask("?").startswith(b"T0b")
# Two at once: the second one waits until the first has left.
second = Client()
second.send(packet("qSupported:multiprocess+"))
assert client.ask("bs").startswith(b"T05"), "the first one is served"
client.close()
assert b"ReverseContinue+" in second.reply(), "and then the second one"
assert second.ask("?").startswith(b"T05"), "where the first one has left it"
client = second
client.send(packet("k"))
server.wait(timeout=60)
print("passed")
