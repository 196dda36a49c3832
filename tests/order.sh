#!/bin/bash
# The order suite: programs of threads, recorded: they replay exactly, all at once, and `bugnet order` finds and verifies an
# order of all threads in which no load is left unexplained. And a crash that needs a race is the same every time.
#
# PATTERN selects tests by name, JOBS says how many run at once, REPLAYS (5) how often the crash is replayed; with ALL set
# thousands of threads are ordered, too, and thousands at a time recorded.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PATTERN=${PATTERN:-*}
need_launch || exit 2

if [ "${1:-}" != --one ]; then
	for source in "$root"/tests/threads/*.c; do
		cases=$(sed -n 's/.*cases: \([a-z -]*[a-z]\).*/\1/p' "$source")
		for case in ${cases:--}; do
			name=$(basename "$source" .c)
			# shellcheck disable=SC2053
			[[ $name == $PATTERN || $name.$case == $PATTERN ]] && printf '%s %s\n' "$name" "$case"
		done
	done | xargs -r -P "${JOBS:-2}" -L 1 "${BASH_SOURCE[0]}" --one
	exit "${PIPESTATUS[1]}"
fi
new_work_directory
name=$2 label=order/$2
set -- "$3"
if [ "$1" = - ]; then
	set --
else
	label+=.$1
fi
recording=$work/recording.bug

# Thousands at a time take as long as all other tests here.
[ "$label" != order/crowd.many ] || [ -n "${ALL:-}" ] || exit 0
# A hard limit on address space, which has room for the shadows of a few threads only, and nobody may raise.
within=()
if [ "$label" = order/crowd.limited ]; then
	within=(prlimit "--as=$((200 << 30)):$((200 << 30))")
	[ "$(id -u)" -ne 0 ] || within=(setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource -- "${within[@]}")
fi

capture record ${within[@]+"${within[@]}"} "$BUGNET" record -o "$recording" -- "$BUILD/tests/threads/$name" "$@"
if ! take_saved_line "$work/record.err" "$recording"; then
	failed "$label" "nothing was saved" "$work/record.err"
	exit 0
fi

if [ "$name" = crash ]; then
	if ! grep -q 'SIGSEGV\|signal 11\|kill' "$work/record.status"; then
		failed "$label" "did not crash: $(paste -sd';' "$work/record.status")"
		exit 0
	fi
	for ((i = 0; i < ${REPLAYS:-5}; i++)); do
		capture replay "$BUGNET" replay --check "$recording"
		sed '/^seconds\|^speed/d' "$work/replay.out" >"$work/replay.$i"
		if [ "$(tail -n1 "$work/replay.$i")" != exact ] || ! cmp -s "$work/replay.0" "$work/replay.$i"; then
			failed "$label" "replay $i is another one" "$work/replay.err"
			exit 0
		fi
	done
	ok "$label"
	exit 0
fi

if [ "$(paste -sd';' "$work/record.status")" != 'exit 0' ]; then
	failed "$label" "$(paste -sd';' "$work/record.status")" "$work/record.out"
	exit 0
fi
expect_exact "$label replay" "$recording"
# crowd THREADS: all were recorded, unless there was no room: then the recorder and the recording say so
crowd() {
	local warning='bugnet: warning: [0-9]* threads of process [0-9]* ran unrecorded, as there was no room for their shadow: .*'
	cat "$work/record.out" "$work/record.err" >"$work/why"
	if ! grep -qx "$1 made, $1 passed" "$work/record.out"; then
		failed "$label" "not what it should be" "$work/why"
		return 1
	fi
	capture info "$BUGNET" info "$recording"
	if [ "$label" = order/crowd.limited ]; then
		grep -qx "$warning" "$work/record.err" && grep -q '^threads: [0-9]*; [0-9]* ran unrecorded' "$work/info.out"
	else
		! grep -q warning "$work/record.err" && grep -qx "threads: $(($1 + 1))" "$work/info.out"
	fi || { failed "$label" "what was recorded is not told as it should be" "$work/why" && return 1; }
}
case $label in
order/crowd.hundreds)
	crowd 200 || exit 0
	# All of them live where the main thread lets them go on.
	capture gdb "$BUGNET" replay --batch "$recording" -- -nx -ex 'break transfer' -ex reverse-continue -ex 'info threads' \
		-ex 'thread 150' -ex backtrace
	if [ "$(grep -c 'Thread .*position' "$work/gdb.out")" -eq 201 ] && grep -q ' work (argument=' "$work/gdb.out"; then
		ok "$label gdb"
	else
		failed "$label gdb" "not what it should be" "$work/gdb.out"
	fi
	;;
order/crowd.thousand) crowd 1000 && ok "$label" ;;
order/crowd.many) crowd 3000 && ok "$label" ;;
order/crowd.limited) crowd 100 && ok "$label" ;;
esac
[ "$name" != crowd ] || [ "$label" = order/crowd.hundreds ] || exit 0
# Ordering 5000 threads takes as long as all other tests here.
[ "$label" != order/many.thousands ] || [ -n "${ALL:-}" ] || exit 0
# Threads that are killed with their process run on for a moment when their logs have ended, and others may see what
# they did then: one value of each of the four, which nobody can order.
unknown=0
[ "$label" != order/life.exit ] || unknown=4
capture order "$BUGNET" order --json "$recording"
if [ "$(paste -sd';' "$work/order.status")" != 'exit 0' ]; then
	failed "$label" "$(paste -sd';' "$work/order.status")" "$work/order.err"
elif ! python3 -c '
import json, sys
order = json.load(open(sys.argv[1]))
positions = {}
for run in order["order"]:
	assert run["first"] >= positions.get(run["thread"], 0), "a thread goes back"
	assert run["first"] <= run["last"]
	positions[run["thread"]] = run["last"]
assert order["verified"] and len(positions) == order["threads"] > 1
assert order["loads"]["other"] > 0 and order["loads"]["unordered"] <= int(sys.argv[2]), order["loads"]
' "$work/order.out" "$unknown" 2>"$work/why"; then
	failed "$label" "not what it should be" "$work/why"
else
	ok "$label"
fi
