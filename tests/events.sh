#!/bin/bash
# The events suite: `bugnet events` lists what strace lists, with the same arguments, and does what its options say.
#
# PATTERN selects tests by name.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PATTERN=${PATTERN:-*}
need_launch || exit 2
new_work_directory

# record NAME COMMAND...: $work/NAME.bug
record() {
	local name=$1
	shift
	rm -f "$work/$name.bug"
	capture record "$BUGNET" record -o "$work/$name.bug" -- "$@"
	[ -s "$work/$name.bug" ] || failed "events/$name" "cannot be recorded" "$work/record.err"
}

# like_strace NAME COMMAND...: the same calls, arguments and results
like_strace() {
	local name=events/strace-$1 status
	wanted "strace-$1" || return
	if ! strace -o /dev/null true 2>/dev/null; then
		skipped "$name" "strace cannot trace here"
		return
	fi
	record "$1" "${@:2}"
	capture native strace -o "$work/strace" "${@:2}"
	capture events "$BUGNET" events --thread 0 "$work/$1.bug"
	if [ "$(cat "$work/events.status")" != 'exit 0' ] || [ -s "$work/events.err" ]; then
		failed "$name" "$(paste -sd';' "$work/events.status")" "$work/events.err"
	elif "$root/tests/events/compare" "$work/strace" "$work/events.out" >"$work/difference"; then
		ok "$name"
	else
		failed "$name" "not as strace has it" "$work/difference"
	fi
}

# matches REGEX FILE: an empty regex: the file must be empty
matches() {
	if [ -n "$1" ]; then
		grep -qzE -- "$1" "$2"
	else
		[ ! -s "$2" ]
	fi
}

# shows NAME OUT-REGEX ERR-REGEX OPTION...: lists $work/calls.bug
shows() {
	local name=events/$1 out=$2 err=$3
	wanted "$1" || return
	shift 3
	capture events "$BUGNET" events "$@" "$work/calls.bug"
	if [ "$(cat "$work/events.status")" != 'exit 0' ]; then
		failed "$name" "$(paste -sd';' "$work/events.status")" "$work/events.err"
	elif ! matches "$out" "$work/events.out"; then
		failed "$name" "does not list /$out/" "$work/events.out"
	elif ! matches "$err" "$work/events.err"; then
		failed "$name" "does not say /$err/" "$work/events.err"
	else
		ok "$name"
	fi
}

"$root/tests/build-program" "$root/tests/programs/support/calls.c" "$work/calls" 2>"$work/build.err" || {
	failed events "tests/programs/support/calls.c does not compile" "$work/build.err"
	exit 0
}
like_strace calls "$work/calls"
like_strace ls ls -la /etc
like_strace cat cat /etc/passwd
like_strace sort sort /etc/passwd
like_strace find find /etc -name '*.conf' -type f
like_strace sh sh -c 'cd /; umask 077; trap "echo got" USR1; kill -USR1 $$; exit 3'
like_strace sed sed -n 2p /etc/passwd /nonexistent/file
like_strace python3 /usr/bin/python3 -S -c 'import os; print(os.path.exists("/nonexistent"))'

[ -s "$work/calls.bug" ] || record calls "$work/calls"
shows filter '^\[0\] +[0-9]+ access\("/etc/ld.so.preload", R_OK\) +=.*access\("/etc", R_OK\|X_OK\) += 0' '' -e access
shows filter-inverted 'openat.*renamed' '' -e '!access,close'
shows filter-class 'openat\(AT_FDCWD, "/etc/ld.so.cache"' '' -e %file
shows filter-strace 'umask\(022\)' '' -e trace=umask
shows thread '^\[1\] +[0-9]+ set_robust_list\(.*\[1\] +[0-9]+ exit\(0\) += \?.\[1\] +[0-9]+ \+\+\+ exited with 0 \+\+\+.$' '' --thread 1
shows no-replay 'openat\(AT_FDCWD, 0x[0-9a-f]+, O_RDONLY\|O_CLOEXEC\) = 3' '' --no-replay
shows files-missing 'openat\(AT_FDCWD, 0x[0-9a-f]+, O_RDONLY\|O_CLOEXEC\) = 3' 'warning: .*No such file.* addresses are shown' --sysroot "$work/nothing"
shows signal '\-\-\- SIGUSR1 \{si_signo=SIGUSR1, si_code=SI_TKILL, si_pid=[0-9]+, si_uid=[0-9]+\} \-\-\-' ''
shows killed '\+\+\+ killed by SIGABRT \+\+\+' ''

# A program that becomes another one: its last call never came back.
if wanted exec; then
	record exec env - /nonexistent/program-with-a-name-that-is-too-long-to-be-shown-whole 1 2
	record becomes env - true
	"$BUGNET" events "$work/exec.bug" >"$work/exec.out" 2>&1
	"$BUGNET" events "$work/becomes.bug" >"$work/becomes.out" 2>&1
	if ! grep -qF 'execve("/nonexistent/program-with-a-name-that-is-too-long-to-be-shown-whole", ["/nonexistent/program-with-a-name"..., "1", "2"], ' "$work/exec.out"; then
		failed events/exec "no execve" "$work/exec.out"
	elif ! tail -n1 "$work/becomes.out" | grep -q '+++ executed another program +++'; then
		failed events/exec "does not tell of the end" <(tail "$work/becomes.out")
	else
		ok events/exec
	fi
fi

# A stretch of it is what the whole has there.
if wanted range; then
	"$BUGNET" events --thread 0 "$work/calls.bug" >"$work/all" 2>&1
	from=$(sed -n 30p "$work/all" | awk '{print $2}') to=$(sed -n 40p "$work/all" | awk '{print $2}')
	"$BUGNET" events --thread 0 --from "$from" --to "$to" "$work/calls.bug" >"$work/part" 2>&1
	if sed -n 30,40p "$work/all" | cmp -s - "$work/part"; then
		ok events/range
	else
		diff <(sed -n 30,40p "$work/all") "$work/part" >"$work/difference"
		failed events/range "another listing" "$work/difference"
	fi
fi
if wanted json; then
	"$BUGNET" events --json "$work/calls.bug" >"$work/json" 2>&1
	if python3 - "$work/json" <<-'END'; then
		import json, sys
		listing = json.load(open(sys.argv[1]))
		events = listing["events"]
		assert listing["replayed"]
		access = next(event for event in events if event.get("name") == "access")
		assert access["arguments"] == ['"/etc/ld.so.preload"', "R_OK"] and access["kind"] == "call", access
		assert access["result"] == -2 and access["result_text"] == "-1 ENOENT (No such file or directory)", access
		signal = next(event for event in events if event["kind"] == "signal")
		assert signal["name"] == "SIGUSR1" and signal["code"] == "SI_TKILL", signal
		assert {event["thread"] for event in events} == {0, 1}
		assert any(event["kind"] == "end" and event["text"] == "killed by SIGABRT" for event in events)
	END
		ok events/json
	else
		failed events/json "see above"
	fi
fi
exit 0
