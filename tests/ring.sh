#!/bin/bash
# The ring suite: what is kept is bounded, replays exactly, and is saved when it should be.
#
# Environment: SOAK_SECONDS (120): how long a program is saved at random moments, checked and looked at. PATTERN
# selects tests by name.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PATTERN=${PATTERN:-*}
SOAK_SECONDS=${SOAK_SECONDS:-120}
need_launch || exit 2
new_work_directory
flight=$work/flight
"$root/tests/build-program" "$root/tests/programs/support/flight.c" "$flight" || {
	failed ring "tests/programs/support/flight.c does not compile"
	exit 0
}
# Nobody else's recordings and supervisors.
export XDG_RUNTIME_DIR=$work/run XDG_DATA_HOME=$work/data
mkdir -m 700 "$work/run" "$work/data"

# json FILE EXPRESSION: of what `bugnet info` tells, as j
json() {
	"$BUGNET" info --json "$1" | python3 -c 'import json, sys
j = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$2"
}

# exact FILE: does it replay, all of it?
exact() {
	[ "$("$BUGNET" replay --check "$1" 2>"$work/exact.err" | tee "$work/exact.out" | tail -n1)" = exact ] && [ ! -s "$work/exact.err" ] &&
		! grep -q '^skipped' "$work/exact.out"
}

# begin OPTIONS ARGUMENT...: flight runs as $pid, its recording being $work/r.bug
begin() {
	local options=$1
	shift
	rm -f "$work"/r*.bug
	# shellcheck disable=SC2086
	"$BUGNET" record $options -o "$work/r.bug" -- "$flight" "$@" >"$work/out" 2>"$work/err" </dev/null &
	pid=$!
	for _ in {1..100}; do
		"$BUGNET" ps | grep -q "^ *$pid " && break
		sleep 0.05
	done
}

# supervisor_of PID: the process that has the recording's name in its arguments and is not PID
supervisor_of() {
	local process
	for process in $(pgrep -x bugnet); do
		[ "$process" != "$1" ] && tr '\0' '\n' 2>/dev/null <"/proc/$process/cmdline" | grep -xF "$work/r.bug" >/dev/null && echo "$process" && return
	done
}

# socket_of PID: by which its supervisor is asked
socket_of() {
	echo "$XDG_RUNTIME_DIR/bugnet/$(supervisor_of "$1").sock"
}

# memory_of PID: resident memory in KB of its supervisor
memory_of() {
	awk '/^VmRSS/ { print $2 }' "/proc/$(supervisor_of "$1")/status" 2>/dev/null
}

# wait_for FILE: until it is there
wait_for() {
	for _ in {1..100}; do
		[ -e "$1" ] && return
		sleep 0.05
	done
	false
}

# --- what is kept -----------------------------------------------------------------------------------------------

# A ring of 1 MB of a program that logs several times that: bounded, the last part, exact; who slept is there.
small() {
	local name=ring/small why=
	capture bugnet "$BUGNET" record --ring 1M --interval 5M -o "$work/small.bug" -- "$flight" turns 100 2
	if [ "$(cat "$work/bugnet.status")" != 'exit 0' ]; then
		failed $name "$(paste -sd';' "$work/bugnet.status")" "$work/bugnet.err"
		return
	fi
	[ "$(json "$work/small.bug" 'j["dropped_instructions"] > 10**7')" = True ] || why="little was dropped"
	[ "$(stat -c %s "$work/small.bug")" -le 1400000 ] || why="$(stat -c %s "$work/small.bug") bytes"
	# one has slept since its start
	[ "$(json "$work/small.bug" '[t["first_position"] for t in j["threads"] if "end" not in t]')" = '[0]' ] || why="the sleeper is not there"
	if [ -n "$why" ]; then
		failed $name "$why"
	else
		expect_exact $name "$work/small.bug"
	fi
}

# What a program uses at a time is more than the usual share of the ring: it has a larger one, and intervals as long as
# they should be, instead of a keyframe whenever all of it was logged again.
set-of-work() {
	local name=ring/set-of-work longest
	capture bugnet "$BUGNET" record --ring 4M --interval 20M -o "$work/set.bug" -- "$flight" set 1500 600
	longest=$(json "$work/set.bug" 'max(b - a for a, b in zip([k["position"] for k in j["keyframes"]], [k["position"] for k in j["keyframes"]][1:] + [j["threads"][0]["last_position"]]))')
	if [ "$(cat "$work/bugnet.status")" != 'exit 0' ] || grep -q 'too small' "$work/bugnet.err"; then
		failed $name "$(paste -sd';' "$work/bugnet.status")" "$work/bugnet.err"
	elif [ "${longest:-0}" -lt 10000000 ]; then
		failed $name "the longest stretch has ${longest:-no} instructions"
	elif [ "$(stat -c %s "$work/set.bug")" -gt 4400000 ]; then
		failed $name "$(stat -c %s "$work/set.bug") bytes"
	else
		expect_exact $name "$work/set.bug"
	fi
}

# What bounds the program bounds neither its recorder nor replay: its stack, and its code cache.
bounds() {
	local name=ring/bounds
	capture bugnet prlimit --stack=65536 "$BUGNET" record --cache 256K -o "$work/bounds.bug" -- sh -c 'ulimit -s; exit 5'
	if [ "$(cat "$work/bugnet.status" "$work/bugnet.out" | paste -sd' ')" != "exit 5 64" ]; then
		failed $name "$(cat "$work/bugnet.status" "$work/bugnet.out" | paste -sd' ')" "$work/bugnet.err"
	elif ! prlimit --stack=65536 "$BUGNET" replay --check "$work/bounds.bug" >"$work/exact.out" 2>&1; then
		failed $name "does not replay" "$work/exact.out"
	else
		ok $name
	fi
}

# Stretches that lean on others go with them.
leaning() {
	capture bugnet "$BUGNET" record --ring 1M --interval 1M --bound 5 -o "$work/leaning.bug" -- "$flight" turns 100 2
	if [ "$(json "$work/leaning.bug" 'j["dropped_instructions"] > 10**6 and max(k["leans_on"] for k in j["keyframes"]) == 5')" != True ]; then
		failed ring/leaning "nothing was dropped, or nothing leans on anything" "$work/bugnet.err"
	else
		expect_exact ring/leaning "$work/leaning.bug"
	fi
}

# Code that is replaced is forgotten, also when a thread has slept since before that.
code() {
	capture bugnet "$BUGNET" record --ring 1M --interval 50 -o "$work/code.bug" -- "$flight" jit 8000
	if [ "$(json "$work/code.bug" 'j["dropped_instructions"] > 0')" != True ]; then
		failed ring/code "nothing was dropped" "$work/bugnet.err"
	elif [ $(($(od -An -tu8 -j24 -N8 "$work/code.bug") & 1)) != 1 ]; then
		failed ring/code "all code is there: required feature 0 is not in the header"
	else
		expect_exact ring/code "$work/code.bug"
	fi
}

# at_new_places TEST COUNT: code at ever new addresses, COUNT times, unmapped again: what is kept of it does not grow, nor does
# the recorder, and what is saved meanwhile replays.
at_new_places() {
	local name=ring/$1 first=0 most=0 pieces=0 saves=0 why= now memory
	begin '--ring 1M --interval 20K --cache 1M' "$@"
	while kill -0 "$pid" 2>/dev/null; do
		now=$(told "$pid" code_pieces)
		memory=$(memory_of "$pid")
		[ "${now:-0}" -gt $pieces ] && pieces=$now
		# from when on the ring is full
		[ "$first" -eq 0 ] && [ "$(told "$pid" dropped_instructions)" != 0 ] && first=${memory:-0}
		[ "${memory:-0}" -gt $most ] && most=$memory
		if [ "$first" -gt 0 ] && [ $saves -lt 3 ] && "$BUGNET" save -o "$work/meanwhile$saves.bug" "$pid" >"$work/save.out" 2>&1; then
			saves=$((saves + 1))
		fi
		sleep 0.2
	done
	wait "$pid"
	for ((now = 0; now < saves; now++)); do
		exact "$work/meanwhile$now.bug" || why="save $now does not replay: $(tail -n1 "$work/exact.out") $(tail -n1 "$work/exact.err")"
	done
	if [ "$(tail -n1 "$work/out")" != done ] || [ "$first" -eq 0 ]; then
		failed "$name" "the program did not come to its end, or nothing was dropped" "$work/err"
	elif [ -n "$why" ]; then
		failed "$name" "$why"
	elif [ $saves -eq 0 ]; then
		failed "$name" "nothing was saved: $(tail -n1 "$work/save.out")"
	elif [ $pieces -gt 12000 ]; then
		failed "$name" "$pieces pieces of code are kept"
	elif [ $most -gt $((first + 8192)) ]; then
		failed "$name" "the supervisor grew from $first to $most KB"
	else
		expect_exact "$name" "$work/r.bug"
	fi
}

fresh() {
	at_new_places fresh 16000
}

reload() {
	at_new_places reload 600
}

# --- deaths -----------------------------------------------------------------------------------------------------

# death NAME SOURCE-CASE EXPECT COMMAND...: natively and recorded the same status; saved, with what info says of it
death() {
	local name=ring/death-$1 says=$2 file
	shift 2
	wanted "${name#ring/}" || return
	capture native "${parent[@]}" "$@"
	rm -f "$work"/d*.bug
	capture bugnet "${parent[@]}" "$BUGNET" record --save-on signal -o "$work/d.bug" -- "$@"
	if ! cmp -s "$work/native.status" "$work/bugnet.status"; then
		failed "$name" "natively '$(paste -sd';' "$work/native.status")', recorded '$(paste -sd';' "$work/bugnet.status")'" "$work/bugnet.err"
		return
	fi
	"$BUGNET" info "$work/d.bug" >"$work/info" 2>&1
	if ! grep -qE -- "$says" "$work/info"; then
		failed "$name" "info does not say /$says/" "$work/info"
	else
		expect_exact "$name" "$work/d.bug"
	fi
}

deaths() {
	local program=$work/dying how parent=()
	if ! gcc -O1 -g -pthread -D_FORTIFY_SOURCE=2 -w -o "$program" "$root/tests/programs/support/dying.c" ||
		! g++ -g -o "$work/throwing" "$root/tests/programs/support/throwing.cc"; then
		failed ring/deaths "tests/programs/support/dying.c does not compile"
		return
	fi
	death null 'killed by SIGSEGV .*si_addr=(NULL|0)' "$program" null
	death wild 'killed by SIGSEGV .*si_addr=0x123450' "$program" wild
	death jump 'pc 0x10:' "$program" jump
	death divide 'killed by SIGFPE' "$program" divide
	death illegal 'killed by SIGILL' "$program" illegal
	death bus 'killed by SIGBUS' "$program" bus
	death abort 'killed by SIGABRT' "$program" abort
	death assertion 'killed by SIGABRT' "$program" assertion
	death fortify 'killed by SIGABRT' "$program" fortify
	death double-free 'killed by SIGABRT' "$program" double-free
	death recursion 'killed by SIGSEGV' "$program" recursion
	death recursion-alternate 'killed by SIGABRT' "$program" recursion-alternate
	death handler 'killed by SIGSEGV' "$program" handler
	death handler-again 'killed by SIGSEGV .*si_addr=0x8' "$program" handler-again
	death thread 'killed by SIGSEGV' "$program" thread
	# The signal of the fault is blocked: what the kernel tells nobody is in the recording all the same.
	death blocked-null 'killed by SIGSEGV .*si_addr=(NULL|0)' "$program" blocked null
	death blocked-wild 'killed by SIGSEGV .*si_addr=0x123450' "$program" blocked wild
	death blocked-jump 'pc 0x10:' "$program" blocked jump
	death blocked-divide 'killed by SIGFPE .*si_code=FPE_INTDIV' "$program" blocked divide
	death blocked-illegal 'killed by SIGILL .*si_code=ILL_ILLOPN' "$program" blocked illegal
	death blocked-trap 'killed by SIGTRAP .*si_code=SI_KERNEL' "$program" blocked trap
	death blocked-bus 'killed by SIGBUS .*si_code=BUS_ADRERR' "$program" blocked bus
	death blocked-recursion 'killed by SIGSEGV .*si_code=SEGV_' "$program" blocked recursion
	death blocked-thread 'killed by SIGSEGV .*si_addr=0x10' "$program" blocked thread
	death exception 'killed by SIGABRT' "$work/throwing"
	for how in TERM HUP INT QUIT USR1 PIPE ALRM XCPU SYS; do
		death "own-$how" "killed by SIG$how" "$program" raise "$how"
	done
	death kill 'killed by SIGKILL$' "$program" raise KILL
	if wanted death-kill && [ "$(json "$work/d.bug" '(j["end"]["kind"], j["end"]["signal"])') $("$BUGNET" events "$work/d.bug" | tail -n1 | cut -d+ -f4-)" != "('signal', 'SIGKILL')  killed by SIGKILL +++" ]; then
		failed ring/death-kill-told "$(json "$work/d.bug" 'j["end"]') $("$BUGNET" events "$work/d.bug" | tail -n1)"
	fi
	# Who killed it is there to be seen until its parent has been told, and from Linux 6.15 on also afterwards.
	parent=(python3 -c 'import subprocess, sys, time
child = subprocess.Popen(sys.argv[1:]); time.sleep(1); sys.exit(-child.wait())')
	death filtered-unwaited 'killed by SIGSYS by its seccomp filter' "$program" filtered
	parent=()
	if [ "$(printf '6.15\n%s\n' "$(uname -r)" | sort -V | head -n1)" = 6.15 ]; then death filtered 'killed by SIGSYS by its seccomp filter' "$program" filtered; fi
	death term-spinning 'killed by SIGTERM .*SI_USER' "$program" killed-spinning
	death term-waiting 'killed by SIGTERM .*SI_USER' "$program" killed-waiting
	if wanted death-sanitizer && gcc -g -fsanitize=address -w -o "$work/sanitized" "$root/tests/programs/support/dying.c" -pthread 2>/dev/null; then
		export ASAN_OPTIONS=abort_on_error=1:detect_leaks=0
		death sanitizer 'killed by SIGABRT' "$work/sanitized" heap
		unset ASAN_OPTIONS
	fi
}

# policy NAME POLICY WANTED(yes|no) COMMAND...
policy() {
	local name=ring/save-on-$1 on=$2 saved=$3 got=no
	shift 3
	wanted "${name#ring/}" || return
	rm -f "$work/p.bug"
	capture bugnet "$BUGNET" record --save-on "$on" -o "$work/p.bug" -- "$@"
	"$BUGNET" info "$work/p.bug" >"$work/info" 2>&1 && got=yes
	if [ $got != "$saved" ]; then
		failed "$name" "saved: $got" "$work/bugnet.err"
	elif [ $got = no ] && grep -q bugnet "$work/bugnet.err"; then
		failed "$name" "says something, but did nothing" "$work/bugnet.err"
	else
		ok "$name"
	fi
}

policies() {
	policy always always yes true
	policy never never no sh -c 'kill -SEGV $$'
	policy signal-exit signal no sh -c 'exit 1'
	policy signal-killed signal yes sh -c 'kill -KILL $$'
	policy error-0 error no true
	policy error-1 error yes false
	policy name SIGUSR1 yes sh -c 'kill -USR1 $$'
	policy other-name SIGUSR1 no sh -c 'kill -SEGV $$'
	policy number 10 yes sh -c 'kill -USR1 $$'
	policy real-time SIGRTMIN+1 yes bash -c 'kill -RTMIN+1 $$'
	policy exit exit=7,SIGBUS yes sh -c 'exit 7'
	policy other-exit exit=7,SIGBUS no sh -c 'exit 8'
}

# Several ends, each by an option of its own, in a file whose name a shell would take apart: the command that is told opens it.
several() {
	local name=ring/several command
	rm -f "$work/it's"*.bug
	capture bugnet "$BUGNET" record --save-on exit=3 --save-on SIGUSR1 -o "$work/it's \$1.bug" -- sh -c 'exit 3'
	command=$(sed -n 's/.*open it with //p' "$work/bugnet.err")
	if [ "$(PATH=$(dirname "$BUGNET"):$PATH eval "${command:-false} --check" 2>&1 | tail -n1)" != exact ]; then
		failed $name "this does not open it: $command" "$work/bugnet.err"
	elif ! "$BUGNET" events --from 0.1M --to 1G "$work/it's \$1.bug" >"$work/several" 2>&1; then
		failed $name "positions with units" "$work/several"
	elif ! gcc -std=c89 -pedantic-errors -Wall -Werror -fsyntax-only -x c "$root/include/bugnet/bugnet.h" 2>"$work/several"; then
		failed $name "bugnet.h is not for C89" "$work/several"
	else
		ok $name
	fi
}

# make_group: a control group for memory, as $group, with the limit of $1 bytes; $kills: the file that counts who was killed in it.
# False, with the reason in $why: it cannot be had.
make_group() {
	local version parent
	for version in v1 v2; do
		if [ $version = v1 ]; then
			parent=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts)
		else
			parent=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
			grep -qw memory "${parent:-/nowhere}/cgroup.subtree_control" 2>/dev/null || parent=
		fi
		[ -n "$parent" ] || continue
		group=$parent/bugnet-test-$$
		mkdir "$group" 2>/dev/null || continue
		if [ $version = v1 ]; then
			kills=$group/memory.oom_control
			echo "$1" >"$group/memory.limit_in_bytes" && return
		else
			kills=$group/memory.events
			echo "$1" >"$group/memory.max" && return
		fi 2>/dev/null
		rmdir "$group"
	done
	why="no control group for memory can be made here"
	false
}

killed_in_group() {
	awk '$1 == "oom_kill" { print $2 }' "$kills"
}

# The kernel kills it because there is no memory left for it and its recorder together, as in a service.
oom() {
	local why group kills status native
	make_group $((96 << 20)) || {
		skipped ring/oom "$why"
		return
	}
	# shellcheck disable=SC2016  # by the shell in there
	local enter='echo $$ >"$0/cgroup.procs" && exec "$@"'
	sh -c "$enter" "$group" "$flight" grow >"$work/out" 2>"$work/err" </dev/null
	native=$?
	rm -f "$work"/r*.bug
	sh -c "$enter" "$group" "$BUGNET" record --ring 8M --save-on signal -o "$work/r.bug" -- "$flight" grow >"$work/out" 2>"$work/err" </dev/null
	status=$?
	wait_for "$work/r.bug"
	if [ $native -ne 137 ] || [ "$(killed_in_group)" -lt 2 ]; then
		failed ring/oom "natively status $native; killed in the group: $(killed_in_group)"
	elif [ $status -ne $native ] || [ "$(killed_in_group)" -ne 2 ]; then
		failed ring/oom "status $status instead of $native; killed in the group: $(killed_in_group)" "$work/err"
	elif ! "$BUGNET" info "$work/r.bug" | grep '^end .*killed' >/dev/null; then
		failed ring/oom "the recording says: $("$BUGNET" info "$work/r.bug" | grep '^end')" "$work/err"
	elif ! grep -q 'was killed as its control group had no memory left' "$work/err" ||
		[[ "$(json "$work/r.bug" 'j["saved"]["reason"]')" != *'control group had no memory left' ]]; then
		failed ring/oom "why it was killed is not told: $(json "$work/r.bug" 'j["saved"]["reason"]')" "$work/err"
	else
		expect_exact ring/oom "$work/r.bug"
	fi
	# Whoever else kills in such a group is not taken for the kernel.
	rm -f "$work"/r*.bug
	sh -c "$enter" "$group" "$BUGNET" record --ring 8M -o "$work/r.bug" -- "$flight" locked >"$work/out" 2>"$work/err" </dev/null &
	pid=$!
	wait_until 30 eval '[ -n "$(told "$pid" instructions)" ]'
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	wait_for "$work/r.bug"
	if [ "$(json "$work/r.bug" 'j["saved"]["reason"]')" = 'killed by SIGKILL' ]; then
		ok ring/oom-killed
	else
		failed ring/oom-killed "told as: $(json "$work/r.bug" 'j["saved"]["reason"]')" "$work/err"
	fi
	wait_until 10 rmdir "$group"
}

# --- saving while it goes on ------------------------------------------------------------------------------------

# Two threads that wait for each other, saved from outside: both stand at their lock. `bugnet ps` knows how far they are before
# anything of them is in the ring.
locked() {
	local executed=none before= window
	begin '' locked
	while [ "$executed" != "$before" ]; do
		before=$executed
		sleep 0.3
		executed=$(told "$pid" instructions)
	done
	window=$(told "$pid" window_ns)
	"$BUGNET" save --why 'it hangs' "$pid" >"$work/save.out" 2>&1
	local status=$?
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	if [ $status -ne 0 ] || [ "$(json "$work/r.bug" 'j["saved"]["kind"], j["saved"]["reason"], len(j["threads"])')" != "('request', 'it hangs', 2)" ]; then
		failed ring/locked "status $status" "$work/save.out"
	elif [ "$(json "$work/r.bug" 'j["instructions"]')" != "$executed" ] || [ "$window" = 0 ]; then
		failed ring/locked "ps says $executed instructions, $window ns, the file has $(json "$work/r.bug" 'j["instructions"]')"
	else
		expect_exact ring/locked "$work/r.bug"
	fi
}

# The program's own wish; and nothing at all when it is not recorded.
wish() {
	capture native "$flight" check 1000
	rm -f "$work"/r*.bug
	capture bugnet "$BUGNET" record --save-on never -o "$work/r.bug" -- "$flight" check 1000
	wait_for "$work/r.bug"
	if [ "$(paste -sd' ' "$work/native.out")" != 'saved 0 done' ] || [ "$(paste -sd' ' "$work/bugnet.out")" != 'saved 1 done' ]; then
		failed ring/wish "natively '$(paste -sd' ' "$work/native.out")', recorded '$(paste -sd' ' "$work/bugnet.out")'" "$work/bugnet.err"
	elif [ "$(json "$work/r.bug" 'j["saved"]["kind"], j["saved"]["reason"], j["saved"]["position"] == j["threads"][0]["last_position"]')" != "('program', 'the sum is wrong', True)" ]; then
		failed ring/wish "the recording says: $(json "$work/r.bug" 'j["saved"]')" "$work/bugnet.err"
	else
		expect_exact ring/wish "$work/r.bug"
	fi
}

# by_call NAME OPTIONS REASON ARGUMENT...
by_call() {
	local name=ring/$1 options=$2 reason=$3
	shift 3
	rm -f "$work"/r*.bug
	# shellcheck disable=SC2086
	capture bugnet "$BUGNET" record --save-on never $options -o "$work/r.bug" -- "$flight" "$@"
	if ! wait_for "$work/r.bug" || [ "$(json "$work/r.bug" 'j["saved"]["reason"]')" != "$reason" ]; then
		failed "$name" "the recording says: $(json "$work/r.bug" 'j["saved"]')" "$work/bugnet.err"
	elif [ -e "$work/r-2.bug" ]; then
		failed "$name" "saved twice within a second"
	else
		expect_exact "$name" "$work/r.bug"
	fi
}

# --- lists ------------------------------------------------------------------------------------------------------

lists() {
	local name=ring/lists why=
	mkdir -p "$work/here"
	(
		cd "$work/here" || exit
		"$BUGNET" record --name crash -- sh -c 'kill -ABRT $$'
		"$BUGNET" record --name crash -- sh -c 'exit 3'
		sleep 0.02
		"$BUGNET" record -o here.bug -- true
		# Called like recordings, and newer.
		: >empty.bug
		head -c 100 here.bug >short.bug
		tr 'B' 'b' <here.bug >other.bug
		mkfifo pipe.bug
		mkdir directory.bug
	) >"$work/lists.out" 2>&1
	(
		cd "$work/here" || exit
		timeout 20 "$BUGNET" ls >"$work/ls" || echo "ls failed"
		timeout 20 "$BUGNET" ls --json | python3 -m json.tool >"$work/ls.json" || echo "ls --json failed"
		"$BUGNET" info 2>"$work/latest" | grep '/true$' >/dev/null || echo "the latest is not the latest"
		grep -q 'here.bug' "$work/latest" || echo "it is not said which is the latest"
		"$BUGNET" info crash | grep 'killed by SIGABRT' >/dev/null || echo "a name is not found"
		"$BUGNET" rm crash-2 here.bug || echo "rm failed"
		"$BUGNET" rm /etc/passwd 2>/dev/null && echo "rm removed something else"
		[ -e here.bug ] || [ -e "$XDG_DATA_HOME/bugnet/crash-2.bug" ] && echo "rm removed nothing"
		[ -e "$XDG_DATA_HOME/bugnet/crash.bug" ] || echo "rm removed too much"
		[ "$(stat -c %a "$XDG_DATA_HOME/bugnet")" = 700 ] || echo "others can look into the directory"
	) >"$work/why"
	# What was cut off is listed, too.
	[ "$(wc -l <"$work/ls")" = 5 ] && grep -q "^$(date +%Y)-.*cut off .*short.bug" "$work/ls" && grep -q 'SIGABRT .*crash.bug' "$work/ls" && grep -q 'exit 3 .*crash-2.bug' "$work/ls" || why="ls is wrong"
	if [ -n "$why" ] || [ -s "$work/why" ]; then
		cat "$work/ls" "$work/lists.out" >>"$work/why"
		failed $name "${why:-$(head -n1 "$work/why")}" "$work/why"
	else
		ok $name
	fi
}

# state FILE THREAD POSITION: the registers there; not flags, which a stop may overwrite where nobody reads them
state() {
	"$BUGNET" replay --thread "$2" --to "$3" "$1" 2>&1 | sed 's/ *eflags .*//'
}

# trimmed NAME OPTIONS [--thread]: a part of a recording replays by itself, to the same states
trimmed() {
	local name=ring/$1 options=$2 thread=$3 busy first last from to why=
	rm -f "$work/whole.bug" "$work/part.bug"
	# shellcheck disable=SC2086
	capture bugnet "$BUGNET" record --all $options -o "$work/whole.bug" -- "$flight" turns 20 2
	read -r busy first last <<<"$(json "$work/whole.bug" '[(t["id"], t["first_position"], t["last_position"]) for t in [max(j["threads"], key=lambda t: t["instructions"])]][0]' | tr -d '(),')"
	from=$((first + (last - first) / 3))
	to=$((first + (last - first) / 2 + 12345))
	# shellcheck disable=SC2086
	if ! "$BUGNET" trim --from $from --to $to ${thread:+$thread $busy} -o "$work/part.bug" "$work/whole.bug" >"$work/trim.out" 2>&1; then
		failed "$name" "trim failed" "$work/trim.out"
		return
	fi
	[ "$(stat -c %s "$work/part.bug")" -lt "$(stat -c %s "$work/whole.bug")" ] || why="it is not smaller"
	[ "$(json "$work/part.bug" '[t["last_position"] for t in j["threads"] if t["id"] == '"$busy"']')" = "[$to]" ] || why="it does not end at $to"
	[ "$(json "$work/part.bug" '[t["first_position"] > 0 for t in j["threads"] if t["id"] == '"$busy"']')" = '[True]' ] || why="it begins at the start"
	[ "$(state "$work/part.bug" "$busy" $((to - 1)))" = "$(state "$work/whole.bug" "$busy" $((to - 1)))" ] || why="another state at $((to - 1))"
	[ "$(state "$work/part.bug" "$busy" $from)" = "$(state "$work/whole.bug" "$busy" $from)" ] || why="another state at $from"
	if [ -n "$why" ]; then
		failed "$name" "$why" "$work/trim.out"
	else
		expect_exact "$name" "$work/part.bug"
	fi
}

# Who ends a service tells all its processes: the recorder stays until it has saved.
terminated() {
	local supervisor
	begin '--save-on signal' busy 30 1
	sleep 0.3
	supervisor=$(supervisor_of $pid)
	kill -TERM "$supervisor" $pid
	wait $pid
	if ! wait_for "$work/r.bug" || ! "$BUGNET" info "$work/r.bug" | grep 'killed by SIGTERM' >/dev/null; then
		failed ring/terminated "nothing was saved by supervisor ${supervisor:-that is not there}" "$work/err"
	else
		expect_exact ring/terminated "$work/r.bug"
	fi
}

# A socket that only its owner can use, and that goes with the program.
control() {
	local mode socket
	begin '' busy 4 1
	socket=$(socket_of $pid)
	mode=$(stat -c %a "$socket")
	"$BUGNET" ps >"$work/ps"
	wait $pid
	for _ in {1..40}; do
		[ -e "$socket" ] || break
		sleep 0.05
	done
	if [ "$mode" != 600 ] || ! grep -qE "^ +$pid .*flight\$" "$work/ps"; then
		failed ring/control "mode $mode" "$work/ps"
	elif [ -e "$socket" ]; then
		failed ring/control "the socket is still there"
	elif "$BUGNET" save $pid 2>"$work/save.err" || ! grep -q "process $pid is not being recorded" "$work/save.err"; then
		failed ring/control "a process that is gone can be saved" "$work/save.err"
	else
		ok ring/control
	fi
}

# Who comes and says nothing, or says it late, keeps nobody from being answered.
# A recorder that is stopped is named, and nobody waits for it without end; the others are there as ever.
silent() {
	local other stopped command
	"$BUGNET" record --save-on never -o "$work/other.bug" -- "$flight" busy 60 1 >"$work/other.out" 2>&1 </dev/null &
	other=$!
	wait_until 30 sh -c "'$BUGNET' ps | grep -q '^ *$other '"
	begin '--save-on never' busy 60 1
	stopped=$(supervisor_of $pid)
	kill -STOP "$stopped"
	: >"$work/why"
	for command in ps 'ps --json' "save $pid" "detach $pid" ls info "record --pid $stopped"; do
		# shellcheck disable=SC2086
		(cd "$work/data" && timeout 30 "$BUGNET" $command) >"$work/silent.out" 2>"$work/silent.err" </dev/null
		[ $? -ne 124 ] || echo "'bugnet $command' waits" >>"$work/why"
		case $command in
		record*) grep -q 'it is bugnet itself' "$work/silent.err" || echo "'bugnet $command': $(cat "$work/silent.err")" >>"$work/why" ;;
		*) grep -q "recorder $stopped does not answer; continue it with 'kill -CONT $stopped'" "$work/silent.err" || echo "'bugnet $command': $(cat "$work/silent.err")" >>"$work/why" ;;
		esac
		case $command in
		ps*) grep -qw "$other" "$work/silent.out" || echo "'bugnet $command' does not list the other" >>"$work/why" ;;
		esac
	done
	timeout 30 "$BUGNET" save -o "$work/other-saved.bug" $other >"$work/silent.out" 2>&1 || echo "the other cannot be saved" >>"$work/why"
	kill -CONT "$stopped"
	timeout 30 "$BUGNET" ps | grep -qw $pid || echo "it does not answer when it goes on" >>"$work/why"
	if [ -s "$work/why" ]; then failed ring/silent "$(head -n1 "$work/why")" "$work/why"; else ok ring/silent; fi
	kill -KILL $pid $other
	wait $pid $other 2>/dev/null
}

callers() {
	begin '--save-on never' busy 60 1
	if timeout 40 python3 - "$(socket_of $pid)" $pid >"$work/callers" 2>&1 <<'END'
import socket, sys, time
def call():
	caller = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
	caller.connect(sys.argv[1])
	caller.settimeout(10)
	return caller
def asks(caller):
	caller.send(b"state")
	answer = caller.recv(16384).decode()
	assert answer.startswith(f"ok\n{sys.argv[2]} "), answer
late = call()
time.sleep(1)
asks(call())
asks(late)
silent = [call() for _ in range(40)]
asks(call())
asks(silent[-1])
silent[-2].close()
asks(call())
END
	then
		ok ring/callers
	else
		failed ring/callers "not everybody is answered" "$work/callers"
	fi
	kill -KILL $pid
	wait $pid 2>/dev/null
}

# --- what recording may cost -----------------------------------------------------------------------------------

# told PID FIELD: of what `bugnet ps` tells of the process
told() {
	"$BUGNET" ps --json | python3 -c 'import json, sys
print(*(p[sys.argv[2]] for p in json.load(sys.stdin)["recorded"] if p["pid"] == int(sys.argv[1])))' "$1" "$2"
}

# More is stored to than there may be shadow: keyframes come because of that, and it is said that they do.
memory() {
	local why=
	begin '--memory 64M' store 160 40
	for _ in {1..600}; do
		grep -q -- '--memory 64.0 MB is too little' "$work/err" && break
		sleep 0.05
	done
	[ "$(told "$pid" memory)" -gt 0 ] || why="ps does not tell how much it is"
	kill -TERM "$pid"
	wait "$pid"
	grep -q -- '--memory 64.0 MB is too little' "$work/err" || why="nothing is said"
	[ "$(json "$work/r.bug" 'j["ring"]')" = $((16 << 20)) ] || why="a ring of $(json "$work/r.bug" 'j["ring"]')"
	# Nothing else would make more than one: stores are not logged, and it is not far.
	[ "$(json "$work/r.bug" 'len(j["keyframes"]) > 1 + j["instructions"] // 250000000')" = True ] || why="$(json "$work/r.bug" 'len(j["keyframes"])') keyframes"
	if [ -n "$why" ]; then
		failed ring/memory "$why" "$work/err"
	else
		expect_exact ring/memory "$work/r.bug"
	fi
}

# Nothing is that fast: keyframes come further apart, and then the program is let go, and goes on.
slowdown() {
	local lengthened=0 first=0
	begin '--max-slowdown 1.001 --interval 50M' busy 60 1
	for _ in {1..1200}; do
		interval=$(told "$pid" interval)
		[ "$first" = 0 ] && first=${interval:-0}
		[ "${interval:-0}" -gt $lengthened ] && lengthened=$interval
		grep -q 'letting it go' "$work/err" && break
		sleep 0.05
	done
	if ! wait_for "$work/r.bug"; then
		failed ring/slowdown "nothing was saved; intervals of $first, then $lengthened" "$work/err"
	elif [ "$first" -ge $lengthened ] || [ $lengthened -ne 1600000000 ]; then
		failed ring/slowdown "intervals of $first became $lengthened" "$work/err"
	elif ! kill -0 "$pid" || grep -q memfd:bugnet "/proc/$pid/maps"; then
		failed ring/slowdown "it does not go on natively" "$work/err"
	else
		# Long enough to be told how far it is.
		on_terminal replay --check --jobs 1 "$work/r.bug"
		if ! grep -q '^bugnet replay: checking, [0-9]*%, .* instructions, ' "$work/terminal"; then
			failed ring/slowdown "it is not told how far checking is" "$work/terminal"
		elif ! grep -qx exact "$work/terminal"; then
			failed ring/slowdown "not exact" "$work/terminal"
		else
			ok ring/slowdown
		fi
	fi
	kill "$pid"
	wait "$pid" 2>/dev/null
}

# --- how far it is ----------------------------------------------------------------------------------------------

# on_terminal ARGUMENT...: bugnet, with a terminal, which has what it shows, line by line, in $work/terminal
on_terminal() {
	printf '%q ' "$BUGNET" "$@" >"$work/command"
	TERM=dumb timeout -k 5 "$TIMEOUT" script -qefc "$(cat "$work/command")" /dev/null </dev/null 2>&1 | tr '\r' '\n' | sed 's/\x1b\[K//' >"$work/terminal"
}

# A line on a terminal, nothing anywhere else.
progress() {
	local line='^bugnet: [0-9.]* m*s: [0-9.a-z ]*/s.*; [0-9.]* m*s in [0-9.]* [A-Z]*B of 64.0 MB$'
	rm -f "$work/p.bug"
	on_terminal record --progress -o "$work/p.bug" -- "$flight" busy 4 1
	capture bugnet "$BUGNET" record --progress --save-on never -o "$work/q.bug" -- "$flight" busy 3 1
	if ! grep -q "$line" "$work/terminal"; then
		failed ring/progress "there is no such line" "$work/terminal"
	elif [ -s "$work/bugnet.err" ]; then
		failed ring/progress "something is written without a terminal" "$work/bugnet.err"
	else
		expect_exact ring/progress "$work/p.bug"
	fi
}

# A save that takes long, because nobody does it.
save-progress() {
	local supervisor saver shown=no
	begin '--save-on never' busy 30 1
	supervisor=$(supervisor_of "$pid")
	kill -STOP "$supervisor"
	(
		sleep 2.5
		kill -CONT "$supervisor"
	) &
	saver=$!
	on_terminal save -o "$work/s.bug" "$pid"
	wait $saver
	grep -q '^bugnet save: ' "$work/terminal" && shown=yes
	kill "$pid"
	wait "$pid" 2>/dev/null
	if ! grep -q '^saved .*s.bug: ' "$work/terminal" || [ ! -s "$work/s.bug" ]; then
		failed ring/save-progress "nothing was saved" "$work/terminal"
	elif [ $shown = no ]; then
		failed ring/save-progress "nothing is shown" "$work/terminal"
	else
		ok ring/save-progress
	fi
}

# --- soak -------------------------------------------------------------------------------------------------------

# Saved at random moments, each file replayed; the supervisor's memory does not grow.
soak() {
	local saves=0 first=0 most=0 memory why= end
	RANDOM=${SOAK_SEED:-7}
	begin '--ring 2M --interval 20M --save-on never' busy "$SOAK_SECONDS" 2
	end=$((SECONDS + SOAK_SECONDS - 2))
	while [ $SECONDS -lt $end ] && [ -z "$why" ]; do
		sleep "0.$((RANDOM % 9))$((RANDOM % 9))"
		rm -f "$work/soak.bug"
		"$BUGNET" save -o "$work/soak.bug" $pid >"$work/save.out" 2>&1 || {
			kill -0 $pid 2>/dev/null && why="save failed: $(tail -n1 "$work/save.out")"
			break
		}
		exact "$work/soak.bug" || {
			why="save $saves does not replay: $(tail -n1 "$work/exact.out") $(tail -n1 "$work/exact.err")"
			cp "$work/soak.bug" "${TMPDIR:-/tmp}/bugnet-soak-failed.bug"
		}
		saves=$((saves + 1))
		memory=$(memory_of $pid)
		[ $saves -eq 3 ] && first=${memory:-0}
		[ "${memory:-0}" -gt $most ] && most=$memory
	done
	wait $pid
	if [ -n "$why" ]; then
		failed ring/soak "$why" "$work/err"
	elif [ $saves -lt 4 ] || [ "$first" -eq 0 ]; then
		failed ring/soak "only $saves saves; memory of the supervisor: $first KB" "$work/err"
	elif [ $most -gt $((first + 32768)) ]; then
		failed ring/soak "the supervisor grew from $first to $most KB in $saves saves"
	elif [ "$(tail -n1 "$work/out")" != done ]; then
		failed ring/soak "the program did not come to its end" "$work/err"
	else
		ok "ring/soak ($saves saves; supervisor $first to $most KB)"
	fi
}

# What others read of a process is there behind keyframes, too.
arguments() {
	local pid seen
	rm -f "$work/arguments.bug"
	MARK=here "$BUGNET" record --interval 1M -o "$work/arguments.bug" -- bash -c 'echo; while read -t 0.01 -r; do :; done; for ((i = 0; i < 20000; i++)); do :; done; kill -STOP $$' seen \
		>"$work/out" 2>"$work/err" </dev/null &
	pid=$!
	for _ in {1..200}; do
		[[ $(cut -d' ' -f3 "/proc/$pid/stat") == T ]] && break
		sleep 0.05
	done
	seen="$(tr '\0' '\n' <"/proc/$pid/cmdline" | tail -n1) $(tr '\0' '\n' <"/proc/$pid/environ" | grep '^MARK=')"
	kill -CONT "$pid"
	wait "$pid"
	if [ "$seen" != 'seen MARK=here' ]; then
		failed ring/arguments "of the program's arguments and environment '$seen' could be read"
	elif ! exact "$work/arguments.bug"; then
		failed ring/arguments "$(cat "$work/exact.err")"
	else
		ok ring/arguments
	fi
}

if [ "${1:-}" = --alone ]; then
	"$2"
	exit 0
fi
# These wait most of the time, so the others run beside them.
wanted soak && "$0" --alone soak &
wanted slowdown && "$0" --alone slowdown &
wanted fresh && "$0" --alone fresh &
wanted reload && "$0" --alone reload &
wanted progress && "$0" --alone progress &
for test in small bounds set-of-work leaning code memory save-progress arguments; do
	wanted $test && $test
done
deaths
policies
for test in several oom locked wish lists control callers silent terminated; do
	wanted $test && $test
done
wanted trim && trimmed trim '--interval 2M' ''
wanted trim-thread && trimmed trim-thread '--interval 2M' --thread
wanted trim-leaning && trimmed trim-leaning '--interval 500K --bound 4' --thread
wanted save-on-syscall && by_call save-on-syscall '--save-on-syscall write:2' 'system call write' say one two
wanted save-on-output && by_call save-on-output '--save-on-output ^number.[0-9]+$' "wrote 'number 12'" say one 'number x' 'number 12' three
wanted save-on-line && by_call save-on-line '--save-on-syscall write:7 --save-on-output ^number.[0-9]+.found$' "wrote 'number 12 found'" spell number ' 1' '2 fo' und ' it'
wait
exit 0
