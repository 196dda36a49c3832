#!/bin/bash
# The keyframes suite: --interval holds for threads that never come to the recorder by themselves, nobody but the
# recording notices, and replay can begin at any keyframe.
#
# How many keyframes there are is asserted loosely where the time decides: on a busy machine a thread is looked at later. PATTERN selects
# tests by name; JOBS so many at once.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PATTERN=${PATTERN:-*}
need_launch || exit 2
new_work_directory
"$root/tests/build-program" "$root/tests/programs/support/looping.c" "$work/looping" || {
	failed keyframes "tests/programs/support/looping.c does not compile"
	exit 0
}

# record OPTIONS ARGUMENT...: makes $work/loop.bug; false if the program or the recorder did something else
record() {
	local options=$1
	shift
	rm -f "$work/loop.bug"
	# shellcheck disable=SC2086
	capture bugnet "$BUGNET" record $options -o "$work/loop.bug" -- "$work/looping" "$@"
	take_saved_line "$work/bugnet.err" "$work/loop.bug" && [ ! -s "$work/bugnet.err" ] &&
		[ "$(paste -sd';' "$work/bugnet.status")" = 'exit 0' ]
}

# keyframes_of THREAD: how many it has
keyframes_of() {
	"$BUGNET" info --json "$work/loop.bug" | python3 -c 'import json, sys
for thread in json.load(sys.stdin)["threads"]:
	if thread["id"] == int(sys.argv[1]):
		print(thread["keyframes"])' "$1"
}

# counted NAME OPTIONS LIMITS ARGUMENT...: LIMITS has MIN-MAX keyframes for each thread; and the recording replays
counted() {
	local name=keyframes/$1 options=$2 limits=$3 limit thread=0 count
	shift 3
	wanted "${name#keyframes/}" || return
	if ! record "$options" "$@"; then
		failed "$name" "not recorded as it should be; $(paste -sd';' "$work/bugnet.status")" "$work/bugnet.err"
		return
	fi
	for limit in $limits; do
		count=$(keyframes_of $thread)
		if [ "${count:-0}" -lt "${limit%-*}" ] || [ "${count:-0}" -gt "${limit#*-}" ]; then
			failed "$name" "thread $thread has ${count:-no} keyframes, not $limit"
			return
		fi
		thread=$((thread + 1))
	done
	expect_exact "$name" "$work/loop.bug"
}

# times_rise NAME: the first thread's keyframes in $work/loop.bug have times of now, one after the other
times_rise() {
	wanted "$1" || return
	"$BUGNET" info --json "$work/loop.bug" >"$work/times.json"
	if python3 - "$work/times.json" >"$work/why" 2>&1 <<'END'
import json, sys, time
recording = json.load(open(sys.argv[1]))
times = [keyframe["time_ns"] for keyframe in recording["keyframes"]]
assert len(times) >= 5 and times[0] > 0, times
assert all(a < b for a, b in zip(times, times[1:])), times
END
	then
		ok "keyframes/$1-times"
	else
		failed "keyframes/$1-times" "times do not rise" "$work/why"
	fi
}

# spaced NAME INTERVAL ARGUMENT...: no stretch of any thread is longer than twice the interval, however busy the machine
# is: threads come by themselves
spaced() {
	local name=keyframes/$1 interval=$2
	shift 2
	wanted "${name#keyframes/}" || return
	if ! record "--all --interval $interval" "$@"; then
		failed "$name" "not recorded as it should be; $(paste -sd';' "$work/bugnet.status")" "$work/bugnet.err"
		return
	fi
	"$BUGNET" info --json "$work/loop.bug" >"$work/spaced.json"
	if python3 - "$work/spaced.json" "$interval" >"$work/why" 2>&1 <<'END'
import json, sys
recording, interval = json.load(open(sys.argv[1])), int(sys.argv[2])
for thread in recording["threads"]:
	places = [frame["position"] for frame in recording["keyframes"] if frame["thread"] == thread["id"]]
	places.append(thread["last_position"])
	lengths = [b - a for a, b in zip(places, places[1:])]
	assert len(lengths) >= 20, (thread, len(lengths))
	assert max(lengths) <= 2 * interval, (thread, max(lengths), lengths.index(max(lengths)))
END
	then
		expect_exact "$name" "$work/loop.bug"
	else
		failed "$name" "keyframes are too far apart" "$work/why"
	fi
}

spaced spaced-loop 100000 one 2
spaced spaced-threads 100000 threads 2
spaced spaced-calls 100000 calls 1

# 300: 2.4 billion instructions, half a second of a processor and more
counted loop-instructions '--interval 100M' 5-25 one 300
counted loop-short-interval '--interval 10K' 2000-20000 one 10
counted loop-time '--interval 20ms' 4-1000000 one 300
counted loop-no-interval '--interval 100G' 1-1 one 300
counted threads '--interval 100M' '5-25 5-25 5-25' threads 300
counted blocked '--interval 20ms' '4-1000000 1-3' blocked 300

# A thread that begins, or comes back, tells it: nobody looks at it before.
if wanted watched; then
	rm -f "$work/loop.bug"
	capture bugnet "$BUGNET" record --stats --interval 20ms -o "$work/loop.bug" -- "$work/looping" blocked 10
	count=$(sed -n 's/^bugnet: threads watched anew  *//p' "$work/bugnet.err")
	if [ "${count:-0}" -ge 2 ]; then
		ok keyframes/watched
	else
		failed keyframes/watched "two threads told it ${count:-no} times" "$work/bugnet.err"
	fi
fi

# What may not be stopped is recorded all the same.
counted undumpable '--interval 10M' 1-1000000 undumpable 100
# What must make no system call of ours: its shadow is emptied, and the time is told, from outside.
counted seccomp '--interval 10M' 5-1000 seccomp 60
times_rise seccomp
counted seccomp-bound '--interval 10M --bound 2' 5-1000 seccomp 60

# Keyframes that lean on others. The start of a program loads something new all the time.
if wanted bound || wanted bound-from-any; then
	"$BUGNET" record --interval 5000 --bound 3 -o "$work/short.bug" -- "$work/looping" threads 1 >"$work/short.out" 2>&1
	"$BUGNET" info --json "$work/short.bug" >"$work/short.json"
fi
if wanted bound; then
	if ! grep -q '"leans_on": 3' "$work/short.json" || grep -q '"leans_on": 4' "$work/short.json"; then
		failed keyframes/bound "keyframes do not lean on up to three others" "$work/short.out"
	else
		expect_exact keyframes/bound "$work/short.bug"
	fi
fi

# state_at OPTION...: the registers of the first thread at a position; not flags, which a stop may overwrite where the
# program reads them no more
state_at() {
	"$BUGNET" replay --thread 0 "$@" "$work/short.bug" 2>&1 | sed 's/ *eflags .*//'
	return "${PIPESTATUS[0]}"
}

# Replay begins at any of them, and comes to the same as from the start.
if wanted bound-from-any; then
	why=
	positions=$(python3 -c 'import json, sys
print(*[frame["position"] for frame in json.load(sys.stdin)["keyframes"] if frame["thread"] == 0][:32:2])' <"$work/short.json")
	for position in $positions; do
		to=$((position + 2500))
		state_at --to $to >"$work/from-start" || why="status $? from the start to $to"
		state_at --from "$position" --to $to >"$work/from-there" || why="status $? from $position to $to"
		cmp -s "$work/from-start" "$work/from-there" || why=${why:-"from $position on it is not the same"}
		[ -z "$why" ] || break
	done
	if [ -z "$why" ] && [ "$(echo "$positions" | wc -w)" -ge 8 ]; then
		ok keyframes/bound-from-any
	else
		failed keyframes/bound-from-any "${why:-only $(echo "$positions" | wc -w) keyframes}" "$work/from-there"
	fi
fi

# begin OPTIONS ARGUMENT...: the program runs, as $pid
begin() {
	local options=$1
	shift
	rm -f "$work/loop.bug"
	# shellcheck disable=SC2086
	"$BUGNET" record $options -o "$work/loop.bug" -- "$work/looping" "$@" >"$work/begun.out" 2>"$work/begun.err" &
	pid=$!
	sleep 0.3
}

# ended NAME: it has come to its end as if nothing had happened, and replays
ended() {
	local status
	wait "$pid"
	status=$?
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ -e "$work/loop.bug" ] && break
		sleep 0.2
	done
	if [ $status -ne 0 ] || [ "$(cat "$work/begun.out")" != looped ]; then
		failed "$1" "status $status" "$work/begun.err"
	else
		expect_exact "$1" "$work/loop.bug"
	fi
}

# A process that is stopped by a signal stays so.
if wanted stopped; then
	begin '--interval 1ms' one 400
	kill -STOP $pid
	sleep 0.2
	states=$(for _ in 1 2 3 4 5 6 7 8 9 10; do
		sed 's/.*) //; s/ .*//' "/proc/$pid/stat"
		sleep 0.03
	done | sort | uniq | paste -sd' ')
	kill -CONT $pid
	if [ "$states" != T ]; then
		wait $pid
		failed keyframes/stopped "states of the stopped process: $states"
	else
		ended keyframes/stopped
	fi
fi

# While a debugger has it, keyframes are made where the thread comes by.
if wanted traced && command -v strace >/dev/null; then
	begin '--interval 1ms' one 400
	timeout 0.4 strace -qq -o "$work/trace" -p $pid 2>"$work/strace.err"
	ended keyframes/traced
elif wanted traced; then
	skipped keyframes/traced "no strace"
fi

# What is not known yet is taken with the lines beside it where a program goes through memory, so that replay stops a few times for a
# page instead of once for each line; and line by line where it does not, so that nothing is logged that is not read.
# lines_read NAME MOST-LOGGED MOST-STOPS: of 16384 lines that are read in this way, or half as many, and what comes before them
lines_read() {
	local name=keyframes/lines-$1 logged stops
	wanted "lines-$1" || return
	if [ ! -x "$work/line-reader" ] &&
		! "$root/tests/build-program" "$root/tests/programs/support/line-reader.c" "$work/line-reader"; then
		failed "$name" "tests/programs/support/line-reader.c does not compile"
		return
	fi
	rm -f "$work/lines.bug"
	capture bugnet "$BUGNET" record --compare -o "$work/lines.bug" -- "$work/line-reader" "$1"
	logged=$("$BUGNET" info --json "$work/lines.bug" | sed -n 's/^ *"logged_loads": \([0-9]*\),$/\1/p')
	capture replay "$BUGNET" replay --check --stats "$work/lines.bug"
	stops=$(cat "$work/replay.out" "$work/replay.err" | sed -n 's/^blocks executed singly *\([0-9]*\)$/\1/p')
	if [ "$(paste -sd';' "$work/bugnet.status")" != 'exit 0' ] || ! grep -q '^exact$' "$work/replay.out"; then
		failed "$name" "not recorded and replayed as it should be" "$work/bugnet.err"
	elif [ "${logged:-999999}" -gt "$2" ] || [ "${stops:-999999}" -gt "$3" ]; then
		failed "$name" "${logged:-?} lines logged, at most $2 are needed; ${stops:-?} blocks singly, of at most $3"
	else
		ok "$name"
	fi
}
lines_read through 19000 10000
lines_read back 19000 10000
lines_read apart 12000 20000

# A program of one thread has whole pages logged to its end, wherever the kernel has put its memory.
# whole_pages NAME COMMAND...: COMMAND is what comes before bugnet
whole_pages() {
	local name=keyframes/$1
	wanted "$1" || return
	shift
	rm -f "$work/whole.bug"
	capture bugnet "$@" "$BUGNET" record --stats -o "$work/whole.bug" -- perl -e '$h{$_} = $_ for 1 .. 20000; print scalar keys %h'
	if [ "$(cat "$work/bugnet.out")" != 20000 ] || grep -q 'loads compared' "$work/bugnet.err"; then
		failed "$name" "not to its end" "$work/bugnet.err"
	else
		expect_exact "$name" "$work/whole.bug"
	fi
}
whole_pages pages-anywhere
whole_pages pages-in-place setarch -R

# Thousands of keyframes, in programs of all kinds. `make soak` does this with all of them.
# with_keyframes OPTIONS NAME...
with_keyframes() {
	local options=$1 name
	shift
	for name; do
		! wanted "$name" || printf '%s\0' "$root/tests/programs/$name.c"
	done | RECORD_OPTIONS=$options TIMEOUT=240 xargs -0 -r -P "${JOBS:-2}" -n 1 "$root/tests/run" --one record |
		sed -E 's/^(ok|FAIL|skip) record/\1 keyframes/'
}
with_keyframes '--interval 1000' code-on-stack code-rewrite context-swap memory-map record-sigreturn signal-threads
with_keyframes '--interval 1000 --bound 2' misc-live-state signal-frame signal-longjmp thread-cancel thread-sync
