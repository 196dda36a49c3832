"""Types at a shell on a pseudo-terminal and checks what comes back."""
import os
import pty
import re
import select
import sys
import time

pid, terminal = pty.fork()
if pid == 0:
	os.environ["PS1"] = "ready> "
	os.environ["TERM"] = "dumb"
	os.execvp(sys.argv[1], sys.argv[1:])

seen = ""


def wait_for(pattern):
	global seen
	deadline = time.monotonic() + 40
	while not (match := re.search(pattern, seen)):
		left = deadline - time.monotonic()
		if left <= 0 or not select.select([terminal], [], [], left)[0]:
			sys.exit(f"waited for {pattern!r}, saw {seen!r}")
		try:
			seen += os.read(terminal, 4096).decode()
		except OSError:
			sys.exit(f"terminal closed while waiting for {pattern!r}, saw {seen!r}")
	seen = seen[match.end():]


def wait_for_foreground(name):
	"""Until the terminal's foreground process group is led by a process of that name, and it sleeps (not stopped)."""
	deadline = time.monotonic() + 40
	while time.monotonic() < deadline:
		try:
			with open(f"/proc/{os.tcgetpgrp(terminal)}/stat") as file:
				if re.search(rf"\({name}\) S ", file.read()):
					return
		except OSError:
			pass
		time.sleep(0.02)
	sys.exit(f"{name} never came to the foreground, saw {seen!r}")


def type_keys(text):
	os.write(terminal, text.encode())


wait_for("ready> ")
type_keys("echo $((6*7)) $(tty | cut -c1-8)\n")
wait_for(r"\n42 /dev/pts\r\nready> ")
type_keys("sleep 60\n")
wait_for_foreground("sleep")
type_keys("\x1a")
wait_for(r"Stopped +sleep 60\r\nready> ")
print("stopped by ^Z")
type_keys("fg\n")
wait_for(r"\nsleep 60")
wait_for_foreground("sleep")
type_keys("\x03")
wait_for("ready> ")
type_keys("echo status $?\n")
wait_for(r"\nstatus 130\r\nready> ")
print("interrupted by ^C")
type_keys("cat | tr a-z A-Z\n")
wait_for_foreground("cat")
type_keys("through a pipe\n\x04")
wait_for("THROUGH A PIPE")
wait_for("ready> ")
print("pipeline with end of file")
type_keys("stty size; stty -echo; stty -a | grep -o -- -echo'\\b'; stty echo\n")
wait_for(r"-echo\r\nready> ")
print("terminal settings")
type_keys("exit 23\n")
status = os.waitpid(pid, 0)[1]
print("status", os.waitstatus_to_exitcode(status))
