# Exit statuses, deaths by signal and the environment pass through unchanged.
for n in 0 1 2 77 127 128 255; do
	report translated bash -c "exit $n"
done
/usr/bin/python3 - <<'END'
import resource
import signal
import subprocess
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
for name in "HUP INT QUIT ILL ABRT FPE KILL SEGV PIPE ALRM TERM USR1 BUS SYS RTMIN".split():
	died = subprocess.run(["translated", "sh", "-c", f"kill -{int(getattr(signal, 'SIG' + name))} $$"])
	print(name, died.returncode)
END
report translated /bin/true
report translated /bin/false
env -i A=1 'B=two words' "$(command -v translated)" /usr/bin/env | grep -v -E '^(PWD|SHLVL|_|OLDPWD)=' | sort
translated cat /proc/self/comm
translated /bin/sh -c 'readlink /proc/$$/exe; tr "\0" " " </proc/$$/cmdline; echo'
translated python3 -c 'import os, sys; print(os.path.realpath("/proc/self/exe") == os.path.realpath(sys.executable), sys.argv)' a b
translated python3 -c 'import os; print(sorted(map(int, os.listdir("/proc/self/fd"))))' 0</dev/null 7</dev/null
translated python3 -c 'import os; print(os.getuid(), os.getgid(), os.getcwd() == os.environ["HOME"].rsplit("/", 1)[0])'
translated nice -n 5 nice
(ulimit -n 50; translated bash -c 'ulimit -n')
(umask 027; translated bash -c umask)
translated yes | head -2
echo "pipe ${PIPESTATUS[0]}"
echo 'input through the tool' | translated cat
