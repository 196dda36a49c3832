"""One run of a program: how long it took, what it said, how much memory it touched."""

import dataclasses
import hashlib
import os
import re
import shutil
import signal
import subprocess
import threading
import time

from programs import ENVIRONMENT

MEMORY_PERIOD = 0.02
MEMORY_METHOD = f"""VmHWM of the program's own process in /proc, read every {1000 * MEMORY_PERIOD:.0f} ms and not at its very end:
 most pages resident at a time, code cache, ring and shadow included (of them shared: RssShmem, code cache and ring);
 the supervisor is a process of its own"""
# How long a supervisor may write the recording after its program has ended.
SAVE_SECONDS = 120


class Failed(Exception):
	"""A tool that did not do its job on a row; the text goes into the notes."""


@dataclasses.dataclass
class Run:
	seconds: float
	cpu_seconds: float
	status: int
	digest: str
	complaint: str  # the last line on stderr
	last: str  # the last line on stdout
	memory: int  # peak in KB, 0 where the run was too short to tell
	shared_memory: int = 0  # of it, in memfds: under bugnet code cache and ring
	supervisor_memory: int = 0


class MemoryWatch(threading.Thread):
	"""Samples the peak of a process, and of the supervisor that has `path` on its command line."""

	def __init__(self, pid, path):
		super().__init__(daemon=True)
		self.pid = pid
		self.path = path
		self.supervisor = None
		self.peak = self.shared = self.supervisor_peak = 0
		self.done = threading.Event()

	@staticmethod
	def memory_of(pid):
		"""(peak, of what is resident now: shared memory without a file), in KB; zeros when it has none any more"""
		try:
			with open(f"/proc/{pid}/status") as file:
				told = dict(re.findall(r"^(VmHWM|RssShmem):\s*(\d+) kB", file.read(), re.M))
				return int(told.get("VmHWM", 0)), int(told.get("RssShmem", 0))
		except OSError:
			return 0, 0

	def find_supervisor(self):
		for name in os.listdir("/proc"):
			try:
				if name.isdigit() and int(name) != self.pid:
					with open(f"/proc/{name}/cmdline", "rb") as file:
						if self.path.encode() in file.read().split(b"\0"):
							return int(name)
			except OSError:
				pass
		return None

	def run(self):
		# The first sample is no earlier than one period: before its execve the process is not yet the program.
		while not self.done.wait(MEMORY_PERIOD):
			peak, shared = self.memory_of(self.pid)
			if peak:
				self.peak, self.shared = peak, shared
			if self.path:
				self.look_at_supervisor()

	def look_at_supervisor(self):
		"""On the way to it a helper is forked, which ends at once: look again when who was found is gone."""
		self.supervisor = self.supervisor or self.find_supervisor()
		peak = self.memory_of(self.supervisor)[0] if self.supervisor else 0
		self.supervisor = self.supervisor if peak else None
		self.supervisor_peak = max(self.supervisor_peak, peak)

	def finish(self):
		self.done.set()
		self.join()


def command_of(row):
	return [shutil.which(row.command[0], path=ENVIRONMENT["PATH"]) or row.command[0]] + row.command[1:]


def run(workshop, command, row, timeout, saves=None, folder=None):
	"""Run a command line to its end, and to the moment when the file `saves` is there, if one is to come."""
	with open(workshop.path("stdout"), "w+b") as out, open(workshop.path("stderr"), "w+b") as err:
		source = open(row.stdin, "rb") if row.stdin else subprocess.DEVNULL
		start = time.monotonic()
		child = subprocess.Popen(command, cwd=folder or workshop.scratch, env=ENVIRONMENT, start_new_session=True,
			stdin=subprocess.PIPE if row.dialogue else source, stdout=subprocess.PIPE if row.dialogue else out, stderr=err)
		late = threading.Timer(timeout, os.killpg, (child.pid, signal.SIGKILL))
		watch = MemoryWatch(child.pid, saves)
		late.start()
		watch.start()
		try:
			if row.dialogue:
				converse(child, row.dialogue, out)
			_, status, usage = os.wait4(child.pid, 0)
			in_time = late.is_alive()
			if saves:
				await_file(saves)
			seconds = time.monotonic() - start
		except BaseException:
			os.killpg(child.pid, signal.SIGKILL)
			raise
		finally:
			late.cancel()
			watch.finish()
			if source is not subprocess.DEVNULL:
				source.close()
		child.returncode = os.waitstatus_to_exitcode(status)
		if not in_time:
			raise Failed(f"over {timeout:.0f} s")
		return Run(seconds, usage.ru_utime + usage.ru_stime, child.returncode, digest(out, row.ignore), last_line(err),
			last_line(out), watch.peak, watch.shared, watch.supervisor_peak)


def await_file(path):
	end = time.monotonic() + SAVE_SECONDS
	while not os.path.exists(path) and time.monotonic() < end:
		time.sleep(0.001)


def converse(child, dialogue, out):
	try:
		for line, awaited in dialogue:
			child.stdin.write(line.encode() + b"\n")
			child.stdin.flush()
			heard = b""
			while awaited.encode() not in heard and (data := os.read(child.stdout.fileno(), 65536)):
				heard += data
			out.write(heard)
		child.stdin.close()
	except BrokenPipeError:
		pass
	out.write(child.stdout.read())
	child.stdout.close()


def digest(out, ignore):
	out.seek(0)
	digest = hashlib.sha256()
	for line in out:
		if not ignore or not re.search(ignore.encode(), line):
			digest.update(line)
	return digest.hexdigest()


def last_line(file):
	file.seek(max(0, file.seek(0, os.SEEK_END) - 2000))
	return file.read().decode(errors="replace").strip().rpartition("\n")[2]
