# As an ordinary user, through setuid programs (which run native), and in unprivileged namespaces.
work='import os, threading, subprocess
t = [threading.Thread(target=print, args=(os.getuid(), os.getgid(), os.getgroups())) for _ in range(3)]
[x.start() or x.join() for x in t]
print(subprocess.run(["id", "-u"], capture_output=True).stdout)'
if [[ $EUID == 0 ]]; then
	nobody=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
	"${nobody[@]}" translated python3 -c "$work"
	"${nobody[@]}" translated --children bash -c 'id -un; sort /usr/share/common-licenses/BSD | md5sum; ulimit -c 0; (kill -SEGV $BASHPID); echo $?' 2>/dev/null
	"${nobody[@]}" translated passwd -S nobody 2>/dev/null | cut -d' ' -f1,2
	"${nobody[@]}" translated --children sh -c 'passwd -S nobody' 2>/dev/null | cut -d' ' -f1,2
	"${nobody[@]}" unshare -Ur true 2>/dev/null && "${nobody[@]}" unshare -Ur "$(command -v translated)" python3 -c "$work"
fi
translated python3 -c "$work"
if unshare -Ur true 2>/dev/null; then
	unshare -Ur "$(command -v translated)" --children bash -c 'id -u; cat /proc/self/uid_map | tr -s " "'
	unshare -Urn -ipf --mount-proc "$(command -v translated)" python3 -c "$work"
	translated unshare -Ur id -u
	translated --children unshare -Urpf --mount-proc sh -c 'echo $$'
fi
