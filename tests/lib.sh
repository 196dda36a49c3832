# shellcheck shell=bash
# What the test suites share. Sourced by tests/run and the suites that are scripts of their own.
#
# Every suite prints one line per test: `ok NAME`, `FAIL NAME: why` or `skip NAME: why`. Lines that explain a failure
# follow it, indented. tests/run counts these lines; nothing else.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=${BUILD:-$root/build}
BUGNET=${BUGNET:-$BUILD/bugnet}
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
case $BUGNET in /*) ;; *) BUGNET=$PWD/$BUGNET ;; esac
TIMEOUT=${TIMEOUT:-60}
export BUILD BUGNET TIMEOUT
launch=$BUILD/tests/support/launch

# wanted NAME: is it among the tests that PATTERN selects?
wanted() {
	# shellcheck disable=SC2053
	[[ $1 == ${PATTERN:-*} ]]
}

# More than one line must reach the output in one piece: the tests of a suite run in parallel.
report() {
	printf '%s\n' "$1"
}

ok() {
	report "ok $1"
}

# failed NAME WHY [FILE]: FILE holds more about it; its first lines are shown.
failed() {
	local text="FAIL $1: $2"
	if [ $# -gt 2 ] && [ -s "$3" ]; then
		text+=$'\n'$(head -n 20 "$3" | cut -c1-200 | tr -d '\000' | sed 's/^/    /')
	fi
	report "$text"
}

skipped() {
	report "skip $1: $2"
}

# The launcher, built from its source when that is newer.
need_launch() {
	local source=$root/tests/programs/support/launch.c
	if [ ! -x "$launch" ] || [ "$source" -nt "$launch" ]; then
		"$root/tests/build-program" "$source" "$launch.$$" && mv -f "$launch.$$" "$launch"
	fi
}

# A directory for one test, removed when the shell ends.
new_work_directory() {
	work=$(mktemp -d "${TMPDIR:-/tmp}/bugnet-test.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	trap 'exit 130' INT TERM
}

# directive SOURCE NAME: the values of the lines `/* NAME: value */` among the first ten of a test program
directive() {
	sed -n "1,10s|^/\* $2: *\(.*[^ ]\) *\*/\$|\1|p" "$1"
}

has_directive() {
	sed -n 1,10p "$1" | grep -q "^/\* $2: "
}

# wait_until SECONDS COMMAND...
wait_until() {
	local deadline=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $deadline ] || return 1
		sleep 0.05
	done
}

# capture NAME COMMAND...: runs COMMAND in $work/cwd (made empty first); leaves $work/NAME.out, .err and .status
capture() {
	local name=$1
	shift
	rm -rf "$work/cwd"
	mkdir "$work/cwd"
	chmod 777 "$work/cwd"
	(cd "$work/cwd" && "$launch" -t "$TIMEOUT" -s "$work/$name.status" -- "$@" >"$work/$name.out" 2>"$work/$name.err")
	[ -e "$work/$name.status" ] || echo "launch failed" >"$work/$name.status"
}

# compare_runs TEST WHAT: $work/native.* against $work/bugnet.*; WHAT: some of status, stdout, stderr.
# Prints the verdict of TEST.
compare_runs() {
	local test=$1 what=$2 difference=$work/difference why=
	: >"$difference"
	case " $what " in
	*' status '*)
		if ! cmp -s "$work/native.status" "$work/bugnet.status"; then
			why="natively '$(head -n1 "$work/native.status")', under bugnet '$(paste -sd';' "$work/bugnet.status")'"
		fi
		;;
	esac
	case " $what " in
	*' stdout '*)
		if ! cmp -s "$work/native.out" "$work/bugnet.out"; then
			why=${why:+$why, }"stdout differs"
			diff -a --label native --label bugnet -u0 "$work/native.out" "$work/bugnet.out" | tail -n +3 | head -n 12 >>"$difference"
		fi
		;;
	esac
	case " $what " in
	*' stderr '*)
		if ! cmp -s "$work/native.err" "$work/bugnet.err"; then
			why=${why:+$why, }"stderr differs"
			diff -a --label native --label bugnet -u0 "$work/native.err" "$work/bugnet.err" | tail -n +3 | head -n 12 >>"$difference"
		fi
		;;
	esac
	if [ -z "$why" ]; then
		ok "$test"
	else
		failed "$test" "$why" "$difference"
	fi
}

# compare_command TEST WHAT OPTIONS COMMAND...: COMMAND natively and under `bugnet run OPTIONS --`, compared
compare_command() {
	local test=$1 what=$2 options=$3
	shift 3
	capture native "$@"
	# shellcheck disable=SC2086
	capture bugnet "$BUGNET" run $options -- "$@"
	compare_runs "$test" "$what"
}

# take_saved_line FILE RECORDING: removes the line that `bugnet record` adds at the end, and only that. False if it
# is not there.
take_saved_line() {
	take_saved "$1" "$2" '\z'
}

# take_saved_lines FILE RECORDING: the same with --children, where there is a line for every process, at any place
take_saved_lines() {
	take_saved "$1" "${2%.bug}" '' '(?:-[^\n:]*)?\.bug'
}

# take_saved FILE NAME PLACE [REST]: where in the file, and what follows the name, as regular expressions
take_saved() {
	NAME=$2 PLACE=$3 REST=${4:-} perl -0777 -pi -e '
		my $size = qr/[0-9.]+ (?:bytes|[KMGT]B)/;
		my $count = qr/[0-9.]+(?: (?:million|billion|trillion))?/;
		s/bugnet: saved (\Q$ENV{NAME}\E$ENV{REST}): $count instructions?, \d+ threads?, $size; open it with \x27bugnet replay \1\x27\n$ENV{PLACE}//g
			or $missing = 1;
		END { $? = $missing }' "$1"
}

# expect_exact TEST RECORDING [OPTION...]: RECORDING must replay exact, all of it
expect_exact() {
	local test=$1 recording=$2
	shift 2
	capture replay "$BUGNET" replay --check "$@" "$recording"
	if [ "$(paste -sd';' "$work/replay.status")" != 'exit 0' ]; then
		failed "$test" "$(paste -sd';' "$work/replay.status")" "$work/replay.err"
	elif [ "$(tail -n1 "$work/replay.out")" != exact ] || [ -s "$work/replay.err" ] || grep -q '^skipped' "$work/replay.out"; then
		cat "$work/replay.out" >>"$work/replay.err"
		failed "$test" "status 0, but not exact" "$work/replay.err"
	else
		ok "$test"
	fi
}

# compile_bug SOURCE OPTION...: a program of tests/bugs
compile_bug() {
	local compiler=cc source=$1
	shift
	case $source in *.cc) compiler=c++ ;; esac
	$compiler -O1 -g -w -pthread -fno-stack-protector -U_FORTIFY_SOURCE "$source" "$@"
}

# record_bug EXPECT RECORDING: $work/bug, as the directive of its source asks; leaves $work/bugnet.*
record_bug() {
	local pid
	export XDG_RUNTIME_DIR=$work/run
	mkdir -m 700 "$work/run"
	case $1 in
	signal*) capture bugnet "$BUGNET" record -o "$2" -- "$work/bug" ;;
	saved) capture bugnet "$BUGNET" record --save-on never -o "$2" -- "$work/bug" ;;
	output*) capture bugnet "$BUGNET" record --save-on never --save-on-output "${1#output }" -o "$2" -- "$work/bug" ;;
	asked*)
		"$BUGNET" record --save-on never -o "$2" -- "$work/bug" >"$work/bugnet.out" 2>"$work/bugnet.err" </dev/null &
		pid=$!
		# it writes so many lines first
		for _ in {1..600}; do
			"$BUGNET" ps | grep -q "^ *$pid " && [ "$(wc -l <"$work/bugnet.out")" -ge "${1#asked }" ] && break
			sleep 0.05
		done
		"$BUGNET" save "$pid" >>"$work/bugnet.out" 2>>"$work/bugnet.err"
		kill -KILL "$pid"
		wait "$pid" 2>/dev/null
		echo "asked" >"$work/bugnet.status"
		;;
	esac
	for _ in {1..100}; do
		[ -e "$2" ] && return
		sleep 0.05
	done
	false
}

# supervisors_of PID: processes named bugnet among the descendants of PID. PID is a launcher, which is the subreaper of
# all it started, so these are this test's own and nobody else's.
supervisors_of() {
	local pid
	for pid in $(pgrep -P "$1"); do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" = bugnet ] && echo "$pid"
		supervisors_of "$pid"
	done
}

# processor_time: sets `used` to the processor time of all processes that this shell has waited for, in ms. Not in a
# subshell, which has waited for none.
processor_time() {
	times >"$TIMES.$$"
	used=$(sed -n '2s/\([0-9]*\)m\([0-9]*\)[.,]\([0-9]*\)s/\1 \2 \3/gp' "$TIMES.$$" |
		awk '{ print ($1 + $4) * 60000 + ($2 + $5) * 1000 + $3 + $6 }')
	rm -f "$TIMES.$$"
}

# timed NAME COMMAND...: how long it took, and its processor time without supervisors', is added to the file TIMES
timed() {
	local name=$1 began=${EPOCHREALTIME/[.,]/} used before
	shift
	if [ -z "${TIMES:-}" ]; then
		"$@"
		return
	fi
	processor_time
	before=$used
	"$@"
	processor_time
	printf '%9.3f %9.3f %s\n' "$(((${EPOCHREALTIME/[.,]/} - began) / 1000))e-3" "$((used - before))e-3" "$name" >>"$TIMES"
}
