#!/bin/bash
# The gdb suite: recordings debugged in gdb, forwards and backwards, by the sessions in tests/gdb; the same places reached in
# different ways by tests/gdb/walk; programs in C, C++, Rust and Go, with threads, and that make code; programs of tests/bugs, from the
# crash to the root cause; what is refused; and packets that no gdb sends.
#
# PATTERN selects tests by name, JOBS says how many run at once.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PATTERN=${PATTERN:-*}
need_launch || exit 2
export SESSIONS=$root/tests/gdb

tests="list/visits list/cause list/commands list/moves list/conditions list/calls list/steps list/walk list-optimised/visits list-optimised/steps list-optimised/walk \
list-static/visits list-static/cause list-static/calls list-static/steps list-stripped/steps list-stripped/walk containers/containers \
containers/steps containers/walk keyframes/walk keyframes/window keyframes/steps keyframes/conditions keyframes/earlier crowd/earlier workers/workers workers/walk ending/ending publish/publish unknown/unknown kernel/kernel strings/strings loops/loops wide/wide beside/beside alike/alike called/called called-static/called history/history libraries/libraries libraries/loads containers/loads jit/jit jit/steps jit/walk rust/steps rust/walk go/steps go/walk bug/arithmetic-overflow bug/bounds-variable bug/dangling-reuse bug/deadlock bug/double-free bug/global-name bug/heap-off-by-one bug/null-function bug/null-option bug/recursion bug/resize bug/stack-read bug/stack-strcpy bug/thread-check bug/thread-count bug/thread-free bug/thread-publish bug/uninitialised bug/vtable bug/wrong-line bug/wrong-sum errors latest executed damaged killed packets interrupt \
present/visits present/steps present/threads present/calls present/crash present/loop present/watch present/libraries present/detach present/terminal present/pid present/server present/errors"

if [ "${1:-}" != --one ]; then
	for test in $tests; do
		# shellcheck disable=SC2053
		[[ $test == $PATTERN || gdb/$test == $PATTERN ]] && echo "$test"
	done | xargs -r -P "${JOBS:-2}" -L 1 "${BASH_SOURCE[0]}" --one
	exit "${PIPESTATUS[1]}"
fi
new_work_directory
label=gdb/$2
program=${2%/*} session=${2#*/}
recording=$work/recording.bug

# record OPTION... -- COMMAND...: into $recording
record() {
	capture record "$BUGNET" record -o "$recording" "$@"
	take_saved_line "$work/record.err" "$recording" && return
	failed "$label" "nothing was saved" "$work/record.err"
	exit 0
}

# verdict: the session in $work/session.* must have passed
verdict() {
	if grep -qx passed "$work/session.out" && [ "$(cat "$work/session.status")" = 'exit 0' ]; then
		ok "$label"
	else
		tail -n 5 "$work/session.out" >>"$work/session.err"
		failed "$label" "$(paste -sd';' "$work/session.status")" "$work/session.err"
	fi
}

# debug SESSION OPTION...: of $recording
debug() {
	local session=$1
	shift
	capture session "$BUGNET" replay --batch "$@" "$recording" -- -nx -x "$SESSIONS/$session.py"
}

# The program under gdb itself, the recording forwards, and the recording backwards.
compare_visits() {
	WAY=live VISITS=$work/live capture session gdb -q -batch -nx -x "$SESSIONS/visits.py" "$BUILD/tests/gdb/$program"
	for way in forwards backwards; do
		grep -qx passed "$work/session.out" || break
		WAY=$way VISITS=$work/$way debug visits
		if [ -e "$work/$way" ] && ! cmp -s "$work/live" "$work/$way"; then
			diff "$work/live" "$work/$way" | head -n 6 >"$work/why"
			failed "$label" "live and $way differ" "$work/why"
			return
		fi
	done
	verdict
}

walk() {
	capture session "$BUILD/tests/gdb/walk" "$recording" "${1:-25}" "${SEED:-7}"
	if [ "$(cat "$work/session.out")" = same ]; then
		ok "$label"
	else
		failed "$label" "$(paste -sd';' "$work/session.status")" "$work/session.out"
	fi
}

# refused NAME TEXT COMMAND OPTION...: bugnet COMMAND OPTION... must fail with the text
refused() {
	local name=$1 text=$2
	shift 2
	capture refused "$BUGNET" "$@"
	if [ "$(cat "$work/refused.status")" = 'exit 125' ] && grep -q -- "$text" "$work/refused.err"; then
		ok "$label/$name"
	else
		failed "$label/$name" "$(paste -sd';' "$work/refused.status")" "$work/refused.err"
	fi
}

errors() {
	record -- "$BUILD/tests/gdb/list"
	refused at-nowhere "'nowhere' is no position" replay --batch --at nowhere "$recording"
	refused at-beyond 'not in the recording' replay --batch --at 999999999999 "$recording"
	refused at-percentage "'101%' is no position" replay --batch --at 101% "$recording"
	refused with-check "'--at' is for gdb" replay --check --at 5 "$recording"
	refused server-port "'--server'" replay --server 70000 "$recording"
	refused server-no-port "no-such-file" replay --server no-such-file
	cp "$BUILD/tests/gdb/list" "$work/gone"
	rm "$recording"
	record -- "$work/gone"
	rm "$work/gone"
	refused missing-binary "recorded with $work/gone" replay --batch "$recording"
	BUGNET_GDB=/nowhere/gdb capture refused "$BUGNET" replay --binary "$BUILD/tests/gdb/list" "$recording"
	if [ "$(cat "$work/refused.status")" = 'exit 127' ] && grep -q 'gdb was not found' "$work/refused.err"; then
		ok "$label/no-gdb"
	else
		failed "$label/no-gdb" "$(paste -sd';' "$work/refused.status")" "$work/refused.err"
	fi
}

# No file is named: the latest one, with and without arguments of gdb.
latest() {
	record -- "$BUILD/tests/gdb/list"
	for arguments in '-- -nx -ex when' '--at 50% -- -nx -ex when' '--at 0s -- -nx -ex when'; do
		# shellcheck disable=SC2086
		capture session sh -c 'cd "$0" && exec "$@"' "$work" "$BUGNET" replay --batch $arguments
		if ! grep -q '^thread 0 position' "$work/session.out" || ! grep -q 'the latest recording is recording.bug' "$work/session.err"; then
			failed "$label" "$arguments: $(paste -sd';' "$work/session.status")" "$work/session.err"
			return
		fi
	done
	ok "$label"
}

# What a program executed at the end of its recording is told by its name.
executed() {
	record --save-on always -- sh -c 'exec /bin/true'
	capture session "$BUGNET" replay --batch "$recording" -- -nx -ex events -ex 'seek start' -ex continue
	if [ "$(cat "$work"/session.{out,err} | grep -c 'The program executed /bin/true here.')" = 2 ] && grep -q '=> .* executed another program' "$work/session.out"; then
		ok "$label"
	else
		failed "$label" "$(paste -sd';' "$work/session.status")" "$work/session.out"
	fi
}

# damaged_end NAME COUNT: $recording, of whose last COUNT stretches something is not as it was saved, ends where the first of these begins,
# says once what is lost, and does not say how the program ended.
damaged_end() {
	local first last
	read -r first last < <(python3 "$SESSIONS/damage.py" "$recording" "$work/$1.bug" "$2")
	capture session "$BUGNET" replay --batch "$work/$1.bug" -- -nx -ex events -ex 'seek start' -ex 'handle SIGUSR1 nostop noprint' -ex continue -ex when
	if [ "$(grep -c 'warning' "$work/session.err")" != 1 ] || ! grep -q "warning: .*: thread 0, positions $first to $last are lost: .*checksum" "$work/session.err"; then
		failed "$label/$1" "does not say once that $first to $last are lost" "$work/session.err"
	elif [ "$(cat "$work"/session.{out,err} | grep -c 'The recording is damaged here')" != 2 ] || ! grep -q "Position $first\.$" "$work/session.out" ||
		! grep -q "^thread 0 position $first of 0 to $first " "$work/session.out"; then
		failed "$label/$1" "does not end at $first" "$work/session.out"
	elif grep -E 'The program|exited|killed by|executed' "$work"/session.{out,err} >"$work/why"; then
		failed "$label/$1" "tells an end that is lost" "$work/why"
	else
		ok "$label/$1"
	fi
}

damaged() {
	record --save-on always --interval 2000 -- "$BUILD/tests/gdb/list"
	damaged_end last 1
	damaged_end last-three 3
	rm "$recording"
	record --save-on always --interval 2000 -- sh -c 'exec /bin/true'
	damaged_end before-execution 1
}

# A replay that is killed leaves nothing behind: no directory, and no process (capture looks for those).
killed() {
	record -- "$BUILD/tests/gdb/list"
	mkdir "$work/runtime"
	XDG_RUNTIME_DIR=$work/runtime capture session "$BUGNET" replay "$recording" -- -nx -ex 'python import os, signal; os.kill(os.getppid(), signal.SIGKILL)' -ex quit
	for ((i = 0; i < 600; i++)); do
		[ -z "$(ls "$work/runtime")" ] && break
		sleep 0.1
	done
	if [ -n "$(ls "$work/runtime")" ]; then
		failed "$label" "left behind: $(ls "$work/runtime")" "$work/session.err"
	elif [ "$(head -n1 "$work/session.status")" = 'signal 9' ]; then
		ok "$label"
		killed_debug
	else
		failed "$label" "$(paste -sd';' "$work/session.status")" "$work/session.err"
	fi
}

# A gdb that waits for commands ends with the one who has started it.
killed_debug() {
	mkfifo "$work/commands"
	exec 8<>"$work/commands"
	GDB_PID=$work/gdb.pid "$BUGNET" debug -- "$BUILD/tests/gdb/list" <&8 >"$work/session.out" 2>"$work/session.err" &
	echo 'python import os, signal; open(os.environ["GDB_PID"], "w").write(str(os.getpid())); os.kill(os.getppid(), signal.SIGTERM)' >&8
	wait $!
	for ((i = 0; i < 400; i++)); do
		[ -s "$work/gdb.pid" ] && ! kill -0 "$(cat "$work/gdb.pid")" 2>"$work/why" && break
		sleep 0.1
	done
	exec 8>&-
	if [ "$i" -lt 400 ]; then
		ok "$label/debug"
	else
		[ ! -s "$work/gdb.pid" ] || kill "$(cat "$work/gdb.pid")"
		failed "$label/debug" "gdb is still there" "$work/session.err"
	fi
}

# The program while it runs: debugged, and natively, with the same to say.
present() {
	local mode=$1
	case $mode in
	steps | detach) mode=visits ;;
	esac
	export OUTPUT=$work/bugnet.output
	capture session "$BUGNET" debug --batch -x "$SESSIONS/present_$1.py" -- "$BUILD/tests/gdb/present" "$mode" "$OUTPUT"
	if [ "$1" = detach ]; then
		for _ in $(seq 300); do
			[ "$(wc -l <"$OUTPUT")" -ge 6 ] && break
			sleep 0.1
		done
	fi
	[ "$1" = loop ] || capture native "$BUILD/tests/gdb/present" "$mode" "$work/native.output"
	if [ "$1" != steps ] && [ "$1" != loop ] && ! cmp -s "$work/native.output" "$OUTPUT"; then
		diff "$work/native.output" "$OUTPUT" | head -n 6 >>"$work/session.err"
		failed "$label" "natively it has something else to say" "$work/session.err"
		return
	fi
	verdict
}

# One that was running already: what it has to say comes when it was let go.
present_pid() {
	local pid
	"$BUILD/tests/gdb/present" loop "$work/output" &
	pid=$!
	until grep -qs looping "$work/output"; do sleep 0.05; done
	capture session "$BUGNET" debug --batch -x "$SESSIONS/present_pid.py" --pid "$pid"
	until ! grep -q bugnet "/proc/$pid/maps"; do sleep 0.05; done
	kill -USR1 "$pid"
	wait "$pid"
	if grep -qx 'over by 1' "$work/output"; then verdict; else failed "$label" "it did not go on" "$work/session.err"; fi
}

# Any gdb that connects.
present_server() {
	local port server
	export OUTPUT=$work/output
	"$BUGNET" debug --server -- "$BUILD/tests/gdb/present" visits "$OUTPUT" >"$work/server.out" 2>&1 &
	server=$!
	until grep -qs 'Waiting for gdb' "$work/server.out" || ! kill -0 "$server"; do sleep 0.05; done
	port=$(sed -n "s/.*localhost:\\([0-9]*\\).*/\\1/p" "$work/server.out")
	capture session gdb -q -batch -nx -ex 'set sysroot /' -ex "target remote localhost:$port" -ex 'break visit' -ex continue -ex continue \
		-ex reverse-continue -ex 'echo number' -ex 'output number' -ex 'delete' -ex continue -ex continue "$BUILD/tests/gdb/present"
	wait "$server"
	if grep -q 'number0' "$work/session.out" && grep -q 'exited with code 040' "$work/session.out"; then
		ok "$label"
	else
		failed "$label" "$(paste -sd';' "$work/session.status")" "$work/session.out"
	fi
}

# More than a program that runs can be stopped at: that is said, and not one is left out in silence.
many_breakpoints() {
	printf 'for i in range(%d): gdb.Breakpoint(f"*main+{i}", internal=True)\n' 4097 >"$work/many.py"
	sed -i '1i import gdb' "$work/many.py"
	printf 'try:\n\tgdb.execute("continue")\nexcept gdb.error as error: print(error)\n' >>"$work/many.py"
	capture many "$BUGNET" debug --batch -x "$work/many.py" -- "$BUILD/tests/gdb/present" visits "$work/output"
	if grep -q 'Cannot insert breakpoint' "$work/many.out" "$work/many.err"; then
		ok "$label/many-breakpoints"
	else
		failed "$label/many-breakpoints" "$(paste -sd';' "$work/many.status")" "$work/many.out"
	fi
}

present_errors() {
	refused no-program 'no program given' debug
	refused pid-and-program 'takes no program' debug --pid 1 -- /bin/true
	refused no-pid 'is no number of a process' debug --pid x
	refused small-ring 'give 1M or more' debug --ring 4K -- /bin/true
	many_breakpoints
	refused server-and-batch 'with .--server. there is none' debug --batch --server 0 -- /bin/true
	capture refused "$BUGNET" debug --batch -- "$work/nowhere"
	if [ "$(cat "$work/refused.status")" = 'exit 127' ]; then
		ok "$label/no-such-program"
	else
		failed "$label/no-such-program" "$(paste -sd';' "$work/refused.status")" "$work/refused.err"
	fi
}

# What the program loads next was there already, where a recording begins: callers, as far as they are told, and a variable.
window() {
	local whole=$recording position
	record --interval 2000 -- "$BUILD/tests/gdb/list"
	for position in $("$BUGNET" info --json "$whole" | python3 -c 'import json, sys; print(*[k["position"] for k in json.load(sys.stdin)["keyframes"]][-4:])'); do
		export POSITION=$position
		debug window
		grep '^told' "$work/session.out" >>"$work/whole.told"
		"$BUGNET" trim --from "$position" --to $((position + 2000)) -o "$work/window$position.bug" "$whole" >"$work/trim.out" 2>&1
		recording=$work/window$position.bug debug window
		grep '^told' "$work/session.out" >>"$work/window.told"
	done
	python3 "$SESSIONS/window_compare.py" "$work/whole.told" "$work/window.told" >"$work/why" 2>&1 && ok "$label" && return
	failed "$label" "a window tells something else, or nothing" "$work/why"
}

run_session() {
	case $2 in
	errors) errors ;;
	keyframes/window) window ;;
	executed) executed ;;
	damaged) damaged ;;
	killed) killed ;;
	latest) latest ;;
	present/terminal)
		capture session python3 "$SESSIONS/terminal.py" "$BUGNET" "$BUILD/tests/gdb/present" "$work/output"
		verdict
		;;
	present/pid) present_pid ;;
	present/server) present_server ;;
	present/errors) present_errors ;;
	present/libraries)
		capture session "$BUGNET" debug --batch -x "$SESSIONS/present_libraries.py" -- "$BUILD/tests/gdb/libraries"
		verdict
		;;
	present/*) present "$session" ;;
	packets | interrupt)
		record -- "$BUILD/tests/gdb/list"
		capture session python3 "$SESSIONS/$2.py" "$BUGNET" "$recording"
		verdict
		;;
	*/loads)
		record -- "$BUILD/tests/gdb/$program"
		capture session python3 "$SESSIONS/loads.py" "$BUGNET" "$recording" "$([ "$program" = libraries ] && echo 9 || echo 1)"
		verdict
		;;
	ending/*)
		record --interval 1000000 -- "$BUILD/tests/gdb/$program"
		debug "$session" && verdict
		;;
	keyframes/earlier)
		record --interval 2000 -- "$BUILD/tests/gdb/list"
		debug earlier && verdict
		;;
	crowd/*)
		record --save-on always --interval 500 -- "$BUILD/tests/gdb/present" threads "$work/output"
		debug "$session" && verdict
		;;
	keyframes/*)
		record --interval 20000 -- "$BUILD/tests/gdb/list"
		if [ "$session" = walk ]; then walk; else debug "$session" && verdict; fi
		;;
	bug/*)
		source=$(echo "$root/tests/bugs/$session".c*)
		if ! compile_bug "$source" -o "$work/bug" || ! compile_bug "$source" -E -o "$work/bug.i"; then
			failed "$label" "does not compile"
		elif ! record_bug "$(directive "$source" expect)" "$recording"; then
			failed "$label" "nothing was saved" "$work/bugnet.err"
		else
			BUG=$session PREPROCESSED=$work/bug.i debug bug
			verdict
		fi
		;;
	rust/* | go/*)
		# Programs of Debian, as they are packaged.
		echo '{"one": [1, 2, {"two": "needle"}]}' >"$work/input"
		case $program in
		rust) command=(rg --threads 1 -c needle "$work/input") ;;
		go) command=(gron "$work/input") ;;
		esac
		if ! [ -x "$(command -v "${command[0]}")" ]; then
			skipped "$label" "no ${command[0]}"
			exit 0
		fi
		record --save-on always -- "${command[@]}"
		if [ "$session" = walk ]; then walk 8; else COUNT=4 debug "$session" && verdict; fi
		;;
	wide/*)
		record --cpu native -- "$BUILD/tests/gdb/$program"
		if [ "$(cat "$work/record.status")" = 'exit 77' ]; then
			skipped "$label" "$(cat "$work/record.out")"
			exit 0
		fi
		debug "$session"
		verdict
		;;
	unknown/*) # all that is on a page is known where whole pages are logged
		record --compare -- "$BUILD/tests/gdb/$program"
		SOURCE=$SESSIONS/$program.c debug "$session"
		verdict
		;;
	kernel/*)
		record -- "$BUILD/tests/gdb/$program"
		MAPS=$work/record.out PROGRAM=$BUILD/tests/gdb/$program debug "$session"
		verdict
		;;
	*/visits)
		record -- "$BUILD/tests/gdb/$program"
		compare_visits
		;;
	*/walk)
		record -- "$BUILD/tests/gdb/$program"
		walk
		;;
	*)
		record -- "$BUILD/tests/gdb/$program"
		SOURCE=$SESSIONS/$program.c debug "$session"
		verdict
		;;
	esac
}

timed "$label" run_session "$@"
