"""loads.py BUGNET RECORDING COUNT: moves tell where the list of libraries becomes another one, so many times, in both directions; gdb has
breakpoints of its own in the dynamic linker, so that it would not miss most of them."""
import re
import socket
import subprocess
import sys

COUNT = int(sys.argv[3])
server = subprocess.Popen([sys.argv[1], "replay", "--server", "0", sys.argv[2]], stdout=subprocess.PIPE, text=True)
port = int(re.search(r"localhost:(\d+)", server.stdout.readline()).group(1))
connection = socket.create_connection(("127.0.0.1", port), timeout=60)
data = b""


def ask(text):
	"""The reply, without output."""
	global data
	connection.sendall(b"+$%s#%02x" % (text.encode(), sum(text.encode()) & 255))
	while True:
		match = re.search(rb"\$([^#]*)#[0-9a-f]{2}", data, re.DOTALL)
		if match:
			data = data[match.end():]
			connection.sendall(b"+")
			if not re.fullmatch(rb"O[0-9a-f]+", match.group(1)):
				return match.group(1).decode("latin-1")
			continue
		more = connection.recv(65536)
		assert more, "the server has closed the connection"
		data += more


def libraries():
	return re.findall(r'library name="[^"]*/([^"/]*)"', ask("qXfer:libraries-svr4:read::0,4000"))


def seek(where):
	ask("qRcmd," + f"seek {where}".encode().hex())
	reply = ask("s")
	if "library:" in reply:
		reply = ask("s")
	assert "library:" not in reply, reply


def go(move):
	"""The lists on the way."""
	lists = []
	while True:
		reply = ask(move)
		if "library:" in reply:
			lists.append(libraries())
		elif "replaylog" in reply or reply.startswith("T06"): # else a signal that is handled
			return lists


ask("qSupported:multiprocess+")
end = libraries()
seek("start")
start = libraries()
assert len(start) == 1, start
forwards = go("c")
assert len(forwards) == COUNT and forwards[-1] == end == libraries(), forwards
assert all(one != other for one, other in zip([start] + forwards, forwards)), forwards
backwards = go("bc")
assert len(backwards) == COUNT and backwards[-1] == start, backwards
assert backwards[:-1] == forwards[-2::-1], (forwards, backwards)
ask("D")
connection.close()
server.terminate()
server.wait()
print("passed")
