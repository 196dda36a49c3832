"""A bounded load for memcached: several connections at once, each with keys of its own and some that all share."""
import socket
import sys
import threading

port, clients, rounds = (int(argument) for argument in sys.argv[1:])
wrong = []


class Client:
	def __init__(self):
		self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
		self.file = self.socket.makefile("rwb")

	def ask(self, line, data=None):
		self.file.write(line.encode() + b"\r\n")
		if data is not None:
			self.file.write(data + b"\r\n")
		self.file.flush()
		return self.file.readline().strip().decode()

	def get(self, key):
		first = self.ask(f"get {key}")
		if first == "END":
			return None
		data = self.file.read(int(first.split()[3]) + 2)[:-2]
		return data if self.file.readline().strip() == b"END" else b"?"


def work(number):
	client = Client()
	for i in range(rounds):
		key, data = f"key:{number}:{i % 50}", str(i * number).encode() * (i % 40 + 1)
		if client.ask(f"set {key} 0 0 {len(data)}", data) != "STORED" or client.get(key) != data:
			wrong.append(key)
		client.ask("incr shared 1")
		if i % 10 == 0:
			client.ask(f"delete {key}")
			if client.get(key) is not None:
				wrong.append(f"{key} deleted")


first = Client()
first.ask("set shared 0 0 1", b"0")
threads = [threading.Thread(target=work, args=(number,)) for number in range(1, clients + 1)]
for thread in threads:
	thread.start()
for thread in threads:
	thread.join()
print(len(wrong), "wrong, shared", first.get("shared").decode())
