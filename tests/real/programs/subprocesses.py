import os
import signal
import subprocess
import sys

print(subprocess.check_output(["echo", "hello"], text=True), end="")
for command in ("exit 3", "kill -9 $$", "kill -SEGV $$", "exec false"):
	print(command, subprocess.run(["sh", "-c", command]).returncode)
print(subprocess.run(["tr", "a-z", "A-Z"], input=b"through a pipe\n", capture_output=True).stdout)
try:
	subprocess.run(["sleep", "20"], timeout=0.2)
except subprocess.TimeoutExpired:
	print("timed out")
try:
	subprocess.run(["/nonexistent/program"])
except FileNotFoundError as error:
	print(error)
first = subprocess.Popen(["seq", "1", "5000"], stdout=subprocess.PIPE)
second = subprocess.Popen(["sort", "-rn"], stdin=first.stdout, stdout=subprocess.PIPE)
first.stdout.close()
print(sum(map(int, second.communicate()[0].split())), first.wait(), second.returncode)
print(subprocess.check_output("echo $A; pwd | wc -l", shell=True, env={"A": "environment", "PATH": os.environ["PATH"]}))
print(subprocess.run([sys.executable, "-c", "import os, sys; sys.exit(os.getsid(0) == os.getpid())"],
	start_new_session=True).returncode)
print(os.waitstatus_to_exitcode(os.system("exit 12")), os.popen("echo popen").read(), end="")
print(os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "exit 8"], os.environ), 0)[1]))
for i in range(20):
	pid = os.fork()
	if pid == 0:
		os._exit(i)
	assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == i
print("forks")
sleeper = subprocess.Popen(["sleep", "30"])
sleeper.send_signal(signal.SIGSTOP)
print(os.WIFSTOPPED(os.waitpid(sleeper.pid, os.WUNTRACED)[1]))
sleeper.send_signal(signal.SIGCONT)
print(os.WIFCONTINUED(os.waitpid(sleeper.pid, os.WCONTINUED)[1]))
sleeper.terminate()
print(sleeper.wait())
pid = os.fork()
if pid == 0:
	os.execvp("sh", ["sh", "-c", "echo exec in the child; exit 6"])
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
sys.stdout.flush()
os.execvp("echo", ["echo", "the last exec"])
