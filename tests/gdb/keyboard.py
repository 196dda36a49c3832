# A command at a terminal, on which somebody types.
import os
import pty
import select
import sys
import time


class Terminal:
	def __init__(self, command):
		self.pid, self.fd = pty.fork()
		if self.pid == 0:
			os.environ.update(TERM="dumb", HOME="/nonexistent")
			os.execv(command[0], command)
		self.text = ""

	def wait_for(self, wanted):
		end = time.time() + 60
		while wanted not in self.text:
			if time.time() > end:
				sys.exit(f"no {wanted!r} in {self.text!r}")
			if select.select([self.fd], [], [], 0.2)[0]:
				try:
					self.text += os.read(self.fd, 4096).decode(errors="replace")
				except OSError:
					sys.exit(f"it ended without {wanted!r}: {self.text!r}")
		self.text = self.text[self.text.index(wanted) + len(wanted):]

	def type(self, keys, *wanted):
		os.write(self.fd, keys.encode())
		for text in wanted:
			self.wait_for(text)

	def quit(self):
		self.type("quit\n")
		status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
		if status:
			sys.exit(f"status {status}")
