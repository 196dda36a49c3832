#!/bin/bash
# The systemd suite: the units in systemd/ under a service manager that runs.
#
# systemd is process 1 of a pid namespace, in a root of its own (tests/small-root), with a control group and a host name of its own, and
# knows no units but those of this test. PATTERN selects tests by name.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PATTERN=${PATTERN:-*}
need_launch || exit 2
new_work_directory

cannot() {
	skipped systemd "$1"
	exit 0
}

# Where control groups of version 2 are.
find_groups() {
	groups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
	[ -n "$groups" ]
}

namespaces='--fork --kill-child --pid --mount --cgroup --uts --ipc --net --mount-proc'
[ "$(id -u)" -eq 0 ] || cannot "not root"
[ -x /lib/systemd/systemd ] && command -v systemctl journalctl systemd-escape nsenter unshare pivot_root >/dev/null || cannot "no systemd"
# shellcheck disable=SC2086
unshare $namespaces true 2>/dev/null || cannot "no namespaces can be made here"
find_groups || cannot "no control groups of version 2"
group=$groups/bugnet-test-$$
mkdir "$group" 2>/dev/null || cannot "no control group can be made here"

end() {
	[ -z "${unshared:-}" ] || kill -KILL "$unshared" 2>/dev/null # and all in its pid namespace
	[ -z "${unshared:-}" ] || wait "$unshared" 2>/dev/null
	wait_until 10 eval '! find "$group" -name cgroup.procs -exec cat {} + | grep -q .'
	find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null
	rm -rf "$work"
}
trap end EXIT
chmod 711 "$work"

# --- units ------------------------------------------------------------------------------------------------------

files=$work/files
units=$files/units
mkdir -p "$files" "$units/web.service.d" "$units/staying.service.d" "$work/root"
"$root/tests/build-program" "$root/tests/programs/support/service.c" "$files/service" || {
	failed systemd "tests/programs/support/service.c does not compile"
	exit 0
}
cp "$BUGNET" "$files/bugnet"
template=bugnet@$(systemd-escape --path "$files/service").service
sed "s|/usr/local/bin/bugnet|$files/bugnet|" "$root/systemd/bugnet@.service" >"$units/bugnet@.service"
# front SERVICE ARGUMENTS: it has the drop-in
front() {
	sed "s|/usr/local/bin/bugnet|$files/bugnet|; s|/usr/bin/server --its-own arguments|$files/service $2|" "$root/systemd/front.conf" >"$units/$1.service.d/bugnet.conf"
}
# service NAME COMMAND [LINE...]
service() {
	printf '[Unit]\nAfter=systemd-journald.service\n[Service]\nExecStart=%s\n' "$2" >"$units/$1.service"
	printf '%s\n' "${@:3}" >>"$units/$1.service"
}
service web /bin/false
front web 'crash 1'
service staying /bin/false
front staying 'stay 60'
service plain "$files/service crash 3"
service filtered "$files/service crash 3" SystemCallFilter=@system-service SystemCallErrorNumber=EPERM MemoryDenyWriteExecute=yes
# What the program needs to begin, and its sleep; all else kills.
service tight "$files/service crash 3" 'SystemCallFilter=@default @basic-io brk mprotect munmap openat newfstatat access arch_prctl getrandom'
for target in sysinit basic shutdown; do
	printf '[Unit]\nDefaultDependencies=no\n' >"$units/$target.target"
done
printf '[Unit]\nDefaultDependencies=no\nRequires=systemd-journald.service\nAfter=systemd-journald.service\n' >"$units/bugnet-test.target"
for unit in systemd-journald.service systemd-journald.socket systemd-journald-dev-log.socket; do
	cp "/lib/systemd/system/$unit" "$units"
done
mkdir "$units/systemd-journald.service.d"
printf '[Service]\nSockets=\nSockets=systemd-journald.socket systemd-journald-dev-log.socket\n' >"$units/systemd-journald.service.d/few.conf"
printf '[Journal]\nStorage=volatile\nAudit=no\nReadKMsg=no\n' >"$files/journald.conf"

cat >"$files/begin" <<END
cp -R "$units/." /etc/systemd/system
cp "$files/journald.conf" /etc/systemd/journald.conf
exec env -i container=bugnet-test SYSTEMD_UNIT_PATH=/etc/systemd/system PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	/lib/systemd/systemd --system --unit=bugnet-test.target --log-target=console --show-status=no
END

# begin COMMAND...: process 1 of the namespaces
begin() {
	(
		echo $BASHPID >"$group/cgroup.procs"
		# shellcheck disable=SC2086
		exec unshare $namespaces "$root/tests/small-root" "$work/root" "$files" -- "$@"
	) </dev/null >"$work/manager.out" 2>&1 &
	unshared=$!
}

begin bash "$files/begin"

# inside COMMAND...: where the service manager is
inside() {
	nsenter -t "$(pgrep -P $unshared)" --all "$@"
}
runs() {
	[ "$(inside systemctl is-active bugnet-test.target)" = active ]
}
wait_until 30 runs || cannot "systemd does not come up here: $(tail -n1 "$work/manager.out")"

# --- tests ------------------------------------------------------------------------------------------------------

property() {
	inside systemctl show -P "$2" "$1"
}

ended() {
	case $(property "$1" ActiveState) in failed | inactive) ;; *) false ;; esac
}

# fetch NAME: a recording in the services' own directory, by its name
fetch() {
	local from
	from=/proc/$(pgrep -P $unshared)/root/var/lib/bugnet
	rm -f "$work/it.bug"
	wait_until 30 eval "ls $from/$1*.bug" && cp "$from"/"$1"*.bug "$work/it.bug"
}

journal() {
	inside journalctl --no-pager -o cat -u "$1"
}

# A service with the drop-in: it crashes, and systemd hears of that as without.
if wanted front; then
	inside systemctl start web.service
	wait_until 60 ended web.service
	journal web.service >"$work/journal"
	if [ "$(property web.service Result),$(property web.service ExecMainStatus)" != signal,11 ]; then
		failed systemd/front "result $(property web.service Result), status $(property web.service ExecMainStatus)" "$work/journal"
	elif ! fetch web; then
		failed systemd/front "no recording" "$work/journal"
	elif ! grep -q 'service runs' "$work/journal" || ! grep -q '^bugnet: saved /var/lib/bugnet/web.*\.bug' "$work/journal"; then
		failed systemd/front "the journal does not tell of it" "$work/journal"
	elif ! "$BUGNET" info "$work/it.bug" | grep '^end .*SIGSEGV' >/dev/null; then
		failed systemd/front "the recording says: $("$BUGNET" info "$work/it.bug" | grep '^end')"
	else
		expect_exact systemd/front "$work/it.bug"
	fi
fi

# One that is stopped ends when systemd tells it, and its recorder with it.
if wanted stop; then
	inside systemctl start staying.service
	wait_until 30 eval 'journal staying.service | grep "service runs"'
	before=$SECONDS
	inside systemctl stop staying.service
	took=$((SECONDS - before))
	journal staying.service >"$work/journal"
	if [ "$(property staying.service ActiveState),$(property staying.service Result)" = inactive,success ] && [ $took -lt 30 ]; then
		ok systemd/stop
	else
		failed systemd/stop "$(property staying.service ActiveState), $(property staying.service Result), $took seconds" "$work/journal"
	fi
fi

# waits COUNT: the template's unit has said so often that it waits for the program
waits() {
	[ "$(journal "$template" | grep -c '^bugnet: waiting for')" -ge "$1" ]
}

# by_template NAME: a service that knows nothing of bugnet, recorded by the template; with SystemCallFilter= too
by_template() {
	local test=systemd/$1 said
	inside bash -c 'rm -f /var/lib/bugnet/*.bug'
	said=$(journal "$template" | grep -c '^bugnet: waiting for')
	inside systemctl start "$template"
	wait_until 30 waits $((said + 1))
	inside systemctl start "$1.service"
	wait_until 60 ended "$1.service"
	fetch '' || true
	inside systemctl stop "$template"
	journal "$template" >"$work/journal"
	if [ "$(property "$1.service" Result),$(property "$1.service" ExecMainStatus)" != signal,11 ]; then
		failed "$test" "result $(property "$1.service" Result), status $(property "$1.service" ExecMainStatus)" "$work/journal"
	elif [ ! -s "$work/it.bug" ]; then
		failed "$test" "no recording" "$work/journal"
	elif ! grep -q '^bugnet: saved /var/lib/bugnet/' "$work/journal"; then
		failed "$test" "the journal does not tell of it" "$work/journal"
	else
		expect_exact "$test" "$work/it.bug"
	fi
}
for test in plain filtered tight; do
	wanted "$test" && by_template "$test"
done
exit 0
