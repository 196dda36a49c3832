#!/bin/bash
# The children suite: `bugnet record --children`. Every process has a recording, which is named after it and replays
# exactly. PATTERN selects tests by name. That programs behave as they do natively is shown by the suites record and real.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PATTERN=${PATTERN:-*}
need_launch || exit 2
new_work_directory

# record COMMAND...: into $work/r.bug and its children's
record() {
	rm -f "$work"/r*.bug
	capture record "$BUGNET" record --children -o "$work/r.bug" -- "$@"
}

# names: what was recorded, without pids
names() {
	(cd "$work" && ls r*.bug) | sed 's/-[0-9]*\(-[0-9]*\)\?\.bug$/.bug/' | sort | paste -sd' '
}

# expect TEST GOT WANTED
expect() {
	if [ "$2" = "$3" ]; then ok "$1"; else failed "$1" "'$2' instead of '$3'"; fi
}

all_exact() {
	local recording
	for recording in "$work"/r*.bug; do
		expect_exact "$1 $(basename "$recording" | sed 's/-[0-9]*\(-[0-9]*\)\?\.bug$//')" "$recording"
	done
}

# fact RECORDING NAME: a number of `bugnet info`
fact() {
	"$BUGNET" info --json "$1" | sed -n "s/^ *\"$2\": \([0-9]*\),\$/\1/p"
}

test_names() {
	record sh -c '(echo sub; exit 3); echo $?; seq 3; exec cat /dev/null'
	expect children/names "$(names)" 'r-cat.bug r-dash.bug r-seq.bug r.bug'
	expect children/names-status "$(cat "$work/record.status")" 'exit 0'
	expect children/names-output "$(paste -sd' ' "$work/record.out")" 'sub 3 1 2 3'
	all_exact children/names
	"$BUGNET" replay --output "$work"/r-seq-*.bug >"$work/again" 2>/dev/null
	expect children/names-replayed "$(paste -sd' ' "$work/again")" '1 2 3'
}

# A fork begins in the middle of its parent, an executed program at its start.
test_forked() {
	local forked
	record sh -c '(echo sub); exec cat /dev/null'
	forked=$(fact "$work"/r-dash-*.bug forked_from)
	expect children/forked-from "$forked" "$(fact "$work/r.bug" pid)"
	expect children/forked-executed "$(fact "$work"/r-cat-*.bug forked_from)" ''
	expect children/forked-same-pid "$(fact "$work"/r-cat-*.bug pid)" "$(fact "$work/r.bug" pid)"
	expect children/forked-events "$("$BUGNET" events -e write "$work"/r-dash-*.bug | grep -c 'sub')" 1
}

test_taken() {
	record sh -c 'exec sh -c "exec sh -c true"'
	expect children/taken "$(cd "$work" && ls r*.bug | sed 's/-[0-9]\{3,\}//' | paste -sd' ')" 'r-dash-2.bug r-dash.bug r.bug'
	all_exact children/taken
}

test_without() {
	rm -f "$work"/r*.bug
	capture record "$BUGNET" record -o "$work/r.bug" -- sh -c '(echo sub); seq 3; exec cat /dev/null'
	expect children/without "$(names)" r.bug
	# The recording is there before the program that takes the process's place runs.
	rm -f "$work"/r*.bug
	capture record "$BUGNET" record -o "$work/r.bug" -- sh -c "exec ls '$work/r.bug'"
	expect children/without-saved "$(cat "$work/record.out")" "$work/r.bug"
	all_exact children/without
}

# A process that is killed, one that outlives its parent, and one that nobody can write a file for.
test_ends() {
	record sh -c 'sh -c "kill -9 \$\$"; echo $?; (sleep 0.3; echo late) & exit 5'
	expect children/ends-status "$(cat "$work/record.status")" 'exit 5'
	expect children/ends-output "$(paste -sd' ' "$work/record.out")" '137 late'
	all_exact children/ends
	rm -rf "$work"/r*.bug "$work/gone"
	mkdir "$work/gone"
	capture record "$BUGNET" record --children -o "$work/gone/r.bug" -- sh -c "rm -r '$work/gone'; seq 3; exit 4"
	expect children/gone-status "$(cat "$work/record.status")" 'exit 4'
	expect children/gone-output "$(paste -sd' ' "$work/record.out")" '1 2 3'
	expect children/gone-message "$(grep -c 'goes on without being recorded: cannot write' "$work/record.err")" 1
}

# Threads before and after a fork, in both processes.
test_threads() {
	record "$BUILD/tests/threads/fork"
	expect children/threads-status "$(cat "$work/record.status")" 'exit 0'
	all_exact children/threads
	capture order "$BUGNET" order "$work"/r-fork-*.bug
	expect children/threads-order "$(cat "$work/order.status")" 'exit 0'
}

# A code cache is full while somebody is on the way through execve: nobody has to go on natively for that.
test_full() {
	capture run "$BUGNET" run --children --cache 256K --stats -- "$BUILD/tests/programs/code-full-exec" 8
	expect children/full-status "$(cat "$work/run.status")" 'exit 0'
	expect children/full-begun-anew "$(awk '/cache begun anew/ && $NF > 0 {print "often"; exit}' "$work/run.err")" often
	expect children/full-released "$(awk '/threads released/ {print $NF}' "$work/run.err")" 0
}

for test in names forked taken without ends threads full; do
	# shellcheck disable=SC2053
	[[ $test == $PATTERN ]] && "test_$test"
done
exit 0
