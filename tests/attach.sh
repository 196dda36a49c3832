#!/bin/bash
# The attach suite: programs that run already are recorded, and let go again, and do not notice.
#
# PATTERN selects tests by name. ROUNDS (12) says how often the program with threads in all kinds of places is attached to
# and let go of.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PATTERN=${PATTERN:-*}
need_launch || exit 2
new_work_directory

# build NAME: a program that is attached to
build() {
	"$root/tests/build-program" "$root/tests/programs/support/$1.c" "$work/$1" && return
	failed attach "tests/programs/support/$1.c does not compile"
	return 1
}

build attached || exit 0
export XDG_RUNTIME_DIR=$work/run
mkdir -m 700 "$XDG_RUNTIME_DIR"

# begin_program NAME [ARGUMENT...]: it runs as $pid, until `end`
begin_program() {
	rm -f "$work/input" "$work/out"
	mkfifo "$work/input"
	"$work/$1" "${@:2}" <"$work/input" >"$work/out" 2>"$work/err" &
	pid=$!
	exec 9>"$work/input"
	wait_until 30 grep -q ready "$work/out"
}

begin() {
	begin_program attached "$@"
}

end() {
	exec 9>&-
	wait "$pid"
	status=$?
}

# attach OPTION...: until the recorder says that it records; its process is $recorder
attach() {
	rm -f "$work/it.bug" "$work/record.err"
	"$BUGNET" record --pid "$pid" -o "$work/it.bug" "$@" </dev/null >"$work/record.out" 2>"$work/record.err" 9>&- &
	recorder=$!
	wait_until 30 grep -q '^bugnet: recording process' "$work/record.err"
}

# What must be as it was: mappings of ours, descriptors, signals that are caught, blocked and ignored.
traces() {
	grep -c memfd:bugnet "/proc/$pid/maps"
	ls "/proc/$pid/fd"
	grep -E '^Sig(Blk|Ign|Cgt)' "/proc/$pid/status"
}

detach() {
	"$BUGNET" detach "$pid" >"$work/detach.out" 2>"$work/detach.err" && wait "$recorder"
}

# It ends while it is recorded, by itself or by a signal.
for how in exit 6 15; do
	wanted "end-$how" || continue
	if [ "$how" = exit ]; then begin; else begin "$how"; fi
	attach || failed "attach/end-$how" "cannot attach" "$work/record.err"
	sleep 0.3
	end
	wait "$recorder"
	expected=5
	[ "$how" = exit ] || expected=$((128 + how))
	if [ "$status" -ne "$expected" ] || [ "$(paste -sd' ' "$work/out")" != 'ready done' ] || [ -s "$work/err" ]; then
		failed "attach/end-$how" "status $status instead of $expected" "$work/err"
	else
		ok "attach/end-$how"
		expect_exact "attach/end-$how replay" "$work/it.bug"
	fi
done

# Again and again.
if wanted rounds; then
	begin
	traces >"$work/before"
	why=
	for ((round = 1; round <= ${ROUNDS:-12}; round++)); do
		attach || why="cannot attach in round $round: $(tail -n1 "$work/record.err")"
		[ -n "$why" ] || sleep 0.1$((RANDOM % 10))
		[ -n "$why" ] || detach || why="cannot detach in round $round: $(tail -n1 "$work/detach.err")"
		kill -0 "$pid" 2>/dev/null || why="the program ended in round $round"
		[ -z "$why" ] || break
		traces >"$work/after"
		cmp -s "$work/before" "$work/after" || why="something is left in round $round: $(diff "$work/before" "$work/after" | paste -sd' ')"
		[ -z "$why" ] || break
		if [ "$round" -eq 1 ]; then
			(cd "$work" && "$BUGNET" ls) >"$work/ls.out" 2>&1
			if grep -q 'attached .*went on without being recorded .*it.bug' "$work/ls.out"; then
				ok attach/listed
			else
				failed attach/listed "not listed as let go" "$work/ls.out"
			fi
		fi
		if [ $((round % 4)) -eq 1 ]; then
			expect_exact "attach/rounds-$round" "$work/it.bug"
		fi
	done
	end
	if [ -z "$why" ] && [ "$status" -ne 5 ]; then
		why="status $status"
	fi
	if [ -z "$why" ]; then ok attach/rounds; else failed attach/rounds "$why" "$work/err"; fi
fi

# in_call NUMBER [COUNT]: COUNT (4) of its threads wait in this system call, or one has come back from it too early
in_call() {
	[ "$(cat "/proc/$pid/task/"*/syscall | grep -c "^$1 ")" -eq "${2:-4}" ] || grep -q returned "$work/out"
}

# Threads that the kernel goes on with by restart_syscall.
if wanted restarted && build restarted; then
	begin_program restarted
	wait_until 30 in_call '\(35\|230\|7\|202\)'
	kill -STOP "$pid"
	wait_until 30 grep -q '^State:.T' "/proc/$pid/status"
	kill -CONT "$pid"
	wait_until 30 in_call 219 || failed attach/restarted "no restart_syscall" "$work/out"
	attach || failed attach/restarted "cannot attach" "$work/record.err"
	wait_until 30 in_call 219
	detach || failed attach/restarted "cannot detach" "$work/detach.err"
	wait_until 30 in_call 219
	end
	if [ "$status" -ne 5 ] || [ "$(paste -sd' ' "$work/out")" != 'ready done' ]; then
		cat "$work/err" >>"$work/out"
		failed attach/restarted "status $status" "$work/out"
	else
		expect_exact attach/restarted "$work/it.bug"
	fi
fi

# What a detach says is of the program, also when a process that it made ends meanwhile instead of being let go.
if wanted child-ends && build forking; then
	begin_program forking
	attach || failed attach/child-ends "cannot attach" "$work/record.err"
	echo >&9
	wait_until 30 grep -q child "$work/out"
	child=$(sed -n 's/child //p' "$work/out")
	kill -STOP "$child"
	wait_until 30 grep -q '^State:.T' "/proc/$child/status"
	"$BUGNET" detach "$pid" >"$work/detach.out" 2>"$work/detach.err" &
	detacher=$!
	wait_until 30 eval '! grep -q memfd:bugnet "/proc/$pid/maps"' || failed attach/child-ends "it is not let go"
	kill -KILL "$child"
	wait $detacher
	status=$?
	wait "$recorder"
	if [ $status -eq 0 ]; then ok attach/child-ends; else failed attach/child-ends "status $status" "$work/detach.err"; fi
	end
	[ "$status" -eq 5 ] || failed attach/child-ends "the program's status is $status" "$work/err"
fi

# Children that execute programs just when the program is let go.
if wanted execute && build forking; then
	begin_program forking execute
	why=
	for ((round = 1; round <= 5; round++)); do
		attach || why="cannot attach: $(tail -n1 "$work/record.err")"
		detach || why="cannot detach: $(tail -n1 "$work/detach.err")"
		[ -z "$why" ] || break
	done
	end
	[ "$status" -eq 5 ] || why="status $status"
	if [ -z "$why" ]; then ok attach/execute; else failed attach/execute "$why" "$work/err"; fi
fi

# A handler of SIGTRAP, which the calls that are made in the program's name must not cost it.
if wanted trap && build trapping; then
	begin_program trapping
	traces >"$work/before"
	attach || failed attach/trap "cannot attach" "$work/record.err"
	detach || failed attach/trap "cannot detach" "$work/detach.err"
	traces >"$work/after"
	end
	if cmp -s "$work/before" "$work/after" && [ "$status" -eq 5 ]; then
		ok attach/trap
	else
		failed attach/trap "status $status: $(diff "$work/before" "$work/after" | paste -sd' ')" "$work/err"
	fi
fi

# What a program does that was started by the recorder, and is let go, it does natively.
if wanted started; then
	rm -f "$work/input" "$work/it.bug" "$work/out"
	mkfifo "$work/input"
	"$BUGNET" record -o "$work/it.bug" -- "$work/attached" <"$work/input" >"$work/out" 2>"$work/err" &
	pid=$!
	exec 9>"$work/input"
	wait_until 30 grep -q ready "$work/out"
	if ! "$BUGNET" detach "$pid" 2>"$work/detach.err"; then
		failed attach/started "cannot detach" "$work/detach.err"
	elif grep -q memfd:bugnet "/proc/$pid/maps"; then
		failed attach/started "memory of ours is left"
	else
		ok attach/started
	fi
	end
	if [ "$status" -eq 5 ]; then ok attach/started-end; else failed attach/started-end "status $status" "$work/err"; fi
	expect_exact attach/started-replay "$work/it.bug"
fi

# wait_for NAME PROGRAM PREFIX: the next start of PROGRAM is recorded, not who runs it already. PREFIX: who starts both.
wait_for() {
	local name=attach/$1 program=$2 prefix=$3 bugnet=$BUGNET file=$work/it.bug first status
	[ -z "$prefix" ] || bugnet=$work/bugnet file=$work/his/waited.bug
	rm -f "$work/input" "$work/first-input" "$work/out" "$work/first.out" "$work/record.err" "$file"
	mkfifo "$work/input" "$work/first-input"
	$prefix "$work/attached" <"$work/first-input" >"$work/first.out" 2>"$work/first.err" &
	first=$!
	exec 8>"$work/first-input"
	wait_until 30 grep -q ready "$work/first.out"
	$prefix "$bugnet" record --wait-for "$program" -o "$file" </dev/null >"$work/record.out" 2>"$work/record.err" 8>&- &
	recorder=$!
	wait_until 30 grep -q '^bugnet: waiting for' "$work/record.err"
	$prefix "$work/attached" <"$work/input" >"$work/out" 2>"$work/err" 8>&- &
	pid=$!
	exec 9>"$work/input"
	if ! wait_until 30 grep -q "^bugnet: recording process $pid;" "$work/record.err"; then
		failed "$name" "process $pid is not recorded" "$work/record.err"
		kill $recorder
	fi
	wait_until 30 grep -q ready "$work/out"
	end
	wait $recorder
	exec 8>&-
	wait $first
	first=$?
	if [ "$status" -eq 5 ] && [ $first -eq 5 ] && [ -s "$file" ]; then
		expect_exact "$name" "$file"
	else
		cat "$work/err" "$work/first.err" >>"$work/record.err"
		failed "$name" "status $status, of the other one $first" "$work/record.err"
	fi
}

wanted wait-for-path && wait_for wait-for-path "$work/attached" ""
# Found in $PATH, and found nowhere.
wanted wait-for-name && PATH=$work:$PATH wait_for wait-for-name attached ""
wanted wait-for-any && wait_for wait-for-any attached ""

# Processes that end at once are passed over, or recorded if one was quick enough.
if wanted wait-for-brief; then
	cp /bin/true "$work/brief"
	rm -f "$work/it.bug" "$work/record.err"
	"$BUGNET" record --wait-for "$work/brief" -o "$work/it.bug" </dev/null >"$work/record.out" 2>"$work/record.err" &
	recorder=$!
	wait_until 30 grep -q '^bugnet: waiting for' "$work/record.err"
	for ((i = 0; i < 60; i++)); do
		"$work/brief"
		kill -0 $recorder 2>/dev/null || break
	done
	if [ $i -eq 60 ] && ! grep -q '^bugnet: recording' "$work/record.err"; then kill $recorder; fi
	wait $recorder
	status=$?
	case $status in
	0) expect_exact attach/wait-for-brief "$work/it.bug" ;;
	143) ok attach/wait-for-brief ;;
	*) failed attach/wait-for-brief "status $status" "$work/record.err" ;;
	esac
fi

# What systemd says of the units.
if wanted units && command -v systemd-analyze >/dev/null; then
	mkdir -p "$work/units/web.service.d"
	sed "s|/usr/local/bin/bugnet|$BUGNET|" "$root/systemd/bugnet@.service" >"$work/units/bugnet@usr-bin-true.service"
	sed "s|/usr/local/bin/bugnet|$BUGNET|" "$root/systemd/front.conf" >"$work/units/web.service.d/bugnet.conf"
	printf '[Service]\nExecStart=/bin/true\n' >"$work/units/web.service"
	if timeout 60 systemd-analyze verify --man=no "$work/units/bugnet@usr-bin-true.service" "$work/units/web.service" >"$work/units.out" 2>&1 &&
		[ ! -s "$work/units.out" ]; then
		ok attach/units
	else
		failed attach/units "systemd does not understand them" "$work/units.out"
	fi
elif wanted units; then
	skipped attach/units "no systemd-analyze"
fi

# ^C, and the recorder's own end.
for signal in INT TERM HUP; do
	wanted "recorder-$signal" || continue
	begin
	attach
	kill -$signal "$recorder"
	wait "$recorder"
	left=$(grep -c memfd:bugnet "/proc/$pid/maps")
	end
	if [ "$status" -eq 5 ] && [ "$left" -eq 0 ] && [ -s "$work/it.bug" ]; then
		ok "attach/recorder-$signal"
	else
		failed "attach/recorder-$signal" "status $status, $left mappings left" "$work/record.err"
	fi
done
if wanted recorder-KILL; then
	begin
	attach
	kill -KILL "$recorder"
	sleep 0.2
	end
	if [ "$status" -eq 5 ]; then ok attach/recorder-KILL; else failed attach/recorder-KILL "status $status" "$work/err"; fi
fi

# What a killed recorder leaves is taken out by a detach, and by the next one who attaches.
if wanted orphan; then
	begin plain
	traces >"$work/before"
	why=
	attach
	kill -KILL "$recorder"
	wait "$recorder" 2>/dev/null
	"$BUGNET" detach "$pid" 2>"$work/detach.err" || why="cannot detach: $(tail -n1 "$work/detach.err")"
	traces >"$work/after"
	cmp -s "$work/before" "$work/after" || why=${why:-"something is left: $(diff "$work/before" "$work/after" | paste -sd' ')"}
	attach || why=${why:-"cannot attach: $(tail -n1 "$work/record.err")"}
	kill -KILL "$recorder"
	wait "$recorder" 2>/dev/null
	attach || why=${why:-"cannot attach: $(tail -n1 "$work/record.err")"}
	detach || why=${why:-"cannot detach the second: $(tail -n1 "$work/detach.err")"}
	traces >"$work/after"
	cmp -s "$work/before" "$work/after" || why=${why:-"something is left: $(diff "$work/before" "$work/after" | paste -sd' ')"}
	end
	[ "$status" -eq 5 ] || why=${why:-"status $status"}
	if [ -z "$why" ]; then expect_exact attach/orphan "$work/it.bug"; else failed attach/orphan "$why" "$work/err"; fi
fi

# ---- seccomp ----

# restricted NAME FILTER...: attached to and let go again and again, under load; recorded till its end
restricted() {
	local name=attach/filter-$1 round rounds=${ROUNDS:-12} why=
	shift
	begin_program filtered "$@"
	if ! grep -q ready "$work/out"; then
		end
		if [ "$status" -eq 77 ]; then skipped "$name" "no seccomp"; else failed "$name" "status $status" "$work/err"; fi
		return
	fi
	traces >"$work/before"
	for ((round = 1; round <= (rounds + 5) / 6; round++)); do
		attach || why="cannot attach in round $round: $(tail -n1 "$work/record.err")"
		[ -n "$why" ] || sleep 0.1$((RANDOM % 10))
		[ -n "$why" ] || detach || why="cannot detach in round $round: $(tail -n1 "$work/detach.err")"
		[ -n "$why" ] || traces >"$work/after"
		[ -n "$why" ] || cmp -s "$work/before" "$work/after" || why="something is left in round $round: $(diff "$work/before" "$work/after" | paste -sd' ')"
		kill -0 "$pid" 2>/dev/null || why="the program ended in round $round"
		[ -z "$why" ] || break
		[ "$round" -ne 1 ] || expect_exact "$name-$round" "$work/it.bug"
	done
	# what a killed recorder leaves is taken out by the next one, who sees the end
	attach || why=${why:-"cannot attach: $(tail -n1 "$work/record.err")"}
	sleep 0.2
	kill -KILL "$recorder"
	wait "$recorder" 2>/dev/null
	sleep 0.1
	attach || why=${why:-"cannot attach to what is left: $(tail -n1 "$work/record.err")"}
	sleep 0.3
	end
	wait "$recorder"
	case " $* " in
	*' segv '*) [ "$status" -eq 139 ] ;;
	*' abort '*) [ "$status" -eq 134 ] ;;
	*) [ "$status" -eq 5 ] && [ "$(paste -sd' ' "$work/out")" = 'ready done' ] ;;
	esac || why=${why:-"status $status"}
	cat "$work/record.err" >>"$work/err"
	if [ -z "$why" ]; then expect_exact "$name" "$work/it.bug"; else failed "$name" "$why" "$work/err"; fi
}

# One that was started by the recorder and restricted itself since cannot be cleaned up, but goes on.
if wanted restricted-later && build filtered; then
	rm -f "$work/input" "$work/it.bug" "$work/out"
	mkfifo "$work/input"
	"$BUGNET" record -o "$work/it.bug" -- "$work/filtered" tight still segv <"$work/input" >"$work/out" 2>"$work/err" &
	pid=$!
	exec 9>"$work/input"
	wait_until 30 grep -q ready "$work/out"
	"$BUGNET" detach "$pid" 2>"$work/detach.err"
	detached=$?
	end
	if [ $detached -eq 125 ] && grep -q "seccomp.*goes on natively" "$work/detach.err" && [ "$status" -eq 139 ]; then
		expect_exact attach/restricted-later "$work/it.bug"
	else
		failed attach/restricted-later "detach gives $detached, the program $status" "$work/detach.err"
	fi
fi

# Who may put filters to sleep: root, outside of containers.
privileged() {
	[ "$(id -u)" -eq 0 ] && grep -q '^Seccomp:.0' /proc/self/status
}

if wanted filter && build filtered; then
	if privileged; then
		restricted list list
		restricted tight tight
		restricted still tight still
		restricted several several
		restricted several-still several still
		restricted segv tight segv
		restricted abort tight abort
	else
		skipped attach/filter "not root, or restricted by seccomp"
	fi
fi

# A recording is named by what the program was executed as, not by where a link leads.
if wanted named; then
	ln -sf "$(readlink -f "$(command -v sleep)")" "$work/snooze"
	mkdir "$work/named"
	"$work/snooze" 1000 &
	pid=$!
	wait_until 10 grep -qx snooze "/proc/$pid/comm"
	(cd "$work/named" && exec "$BUGNET" record --pid $pid </dev/null >"$work/record.out" 2>"$work/record.err") &
	recorder=$!
	wait_until 30 grep -q '^bugnet: recording process' "$work/record.err"
	detach
	kill $pid
	wait $pid 2>/dev/null
	if [ -s "$work/named/snooze-$pid.bug" ]; then ok attach/named; else failed attach/named "no snooze-$pid.bug" "$work/record.err"; fi
fi

# An ordinary user, with a process of his own; nobody else's runtime directory.
if wanted ordinary && [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	chmod 711 "$work"
	cp "$BUGNET" "$work/bugnet"
	mkdir -m 700 "$work/his"
	chown 65534:65534 "$work/his"
	ours=$XDG_RUNTIME_DIR
	XDG_RUNTIME_DIR=$work/his
	his="setpriv --reuid 65534 --regid 65534 --clear-groups"
	rm -f "$work/input" "$work/out"
	mkfifo "$work/input"
	$his "$work/attached" <"$work/input" >"$work/out" 2>"$work/err" &
	pid=$!
	exec 9>"$work/input"
	wait_until 30 grep -q ready "$work/out"
	$his "$work/bugnet" record --pid "$pid" -o "$work/his/it.bug" </dev/null >"$work/record.out" 2>"$work/record.err" 9>&- &
	recorder=$!
	wait_until 30 grep -q '^bugnet: recording process' "$work/record.err"
	sleep 0.3
	why=
	$his "$work/bugnet" save -o "$work/his/saved.bug" "$pid" >"$work/save.out" 2>&1 || why="cannot save: $(tail -n1 "$work/save.out")"
	$his "$work/bugnet" detach "$pid" 2>"$work/detach.err" || why=${why:-"cannot detach: $(tail -n1 "$work/detach.err")"}
	wait "$recorder"
	end
	[ "$status" -eq 5 ] || why=${why:-"status $status"}
	if [ -z "$why" ]; then ok attach/ordinary; else failed attach/ordinary "$why" "$work/record.err"; fi
	expect_exact attach/ordinary-replay "$work/his/it.bug"
	expect_exact attach/ordinary-saved "$work/his/saved.bug"
	wait_for wait-for-ordinary "$work/attached" "$his"
	XDG_RUNTIME_DIR=$ours
fi

# refused NAME TEXT OPTION...: it is not attached to, for this reason
refused() {
	local name=attach/$1 text=$2
	shift 2
	timeout 20 "$BUGNET" record -o "$work/refused.bug" "$@" </dev/null >"$work/refused.out" 2>"$work/refused.err"
	local status=$?
	if [ $status -eq 125 ] && grep -q "$text" "$work/refused.err" && [ ! -e "$work/refused.bug" ]; then
		ok "$name"
	else
		failed "$name" "status $status" "$work/refused.err"
	fi
}

# refused_by_user PID: an ordinary user may not put filters to sleep, and is told whom to ask
refused_by_user() {
	timeout 20 $BUGNET record -o /tmp/refused-$$.bug --pid "$1" >"$work/refused.out" 2>"$work/refused.err" </dev/null
	if [ $? -eq 125 ] && grep -q 'seccomp.*CAP_SYS_ADMIN.*become root.*bugnet record' "$work/refused.err"; then
		ok attach/refused-filter
	else
		failed attach/refused-filter "not refused as expected" "$work/refused.err"
	fi
}

if wanted refused; then
	sleep 1000 &
	sleeper=$!
	refused refused-nobody 'no such process' --pid 4194300
	refused refused-word 'no number of a process' --pid one
	refused refused-program 'takes no program' --pid $sleeper -- true
	refused refused-cpu 'knows the CPU' --cpu x86-64-v2 --pid $sleeper
	[ ! -e /proc/2/status ] || [ -e /proc/2/exe ] || refused refused-kernel 'it is a thread of the kernel' --pid 2
	kill -STOP $sleeper
	wait_until 10 grep -q '^State:.T' /proc/$sleeper/status
	refused refused-stopped 'it is stopped' --pid $sleeper
	kill -CONT $sleeper
	if build forking; then
		"$work/forking" vfork >"$work/vfork.out" &
		parent=$!
		wait_until 10 grep -q '^State:.D' /proc/$parent/status
		refused refused-vfork "thread $parent waits in vfork" --pid $parent
		kill "$(cat "$work/vfork.out")"
		wait $parent
		status=$?
		[ $status -eq 5 ] || failed attach/refused-vfork "the program's status is $status"
		"$work/forking" zombie >"$work/zombie.out" &
		parent=$!
		wait_until 10 test -s "$work/zombie.out"
		refused refused-zombie "it has ended, and only its parent, process $parent" --pid "$(cat "$work/zombie.out")"
		kill $parent
		wait $parent 2>/dev/null
	fi
	if build filtered; then
		for filter in 'strict:restricted itself' 'signals:rt_sigreturn'; do
			privileged || break
			begin_program filtered "${filter%%:*}"
			refused "refused-${filter%%:*}" "${filter#*:}" --pid "$pid"
			sleep 0.2
			end
			[ "$status" -eq 5 ] || failed "attach/refused-${filter%%:*}" "the program's status is $status" "$work/err"
		done
	fi
	if build filtered && [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
		chmod 711 "$work"
		cp "$BUGNET" "$work/bugnet"
		his="setpriv --reuid 65534 --regid 65534 --clear-groups"
		rm -f "$work/input" "$work/out"
		mkfifo "$work/input"
		$his "$work/filtered" list <"$work/input" >"$work/out" 2>"$work/err" &
		pid=$!
		exec 9>"$work/input"
		wait_until 30 grep -q ready "$work/out"
		BUGNET="$his $work/bugnet" refused_by_user "$pid"
		end
		[ "$status" -eq 5 ] || failed attach/refused-filter "the program's status is $status" "$work/err"
	fi
	if command -v strace >/dev/null; then
		strace -qq -o "$work/trace" -p $sleeper 2>"$work/strace.err" &
		tracer=$!
		wait_until 10 grep -q '^TracerPid:.[1-9]' /proc/$sleeper/status
		refused refused-traced "process $tracer traces it" --pid $sleeper
		kill $tracer
		wait $tracer
	fi
	if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
		chmod 711 "$work"
		cp "$BUGNET" "$work/bugnet"
		(BUGNET="setpriv --reuid 65534 --regid 65534 --clear-groups $work/bugnet" &&
			timeout 20 $BUGNET record -o /tmp/refused-$$.bug --pid $sleeper) >"$work/refused.out" 2>"$work/refused.err" </dev/null
		if [ $? -eq 125 ] && grep -q 'yours' "$work/refused.err"; then
			ok attach/refused-other
		else
			failed attach/refused-other "another user's process is not refused" "$work/refused.err"
		fi
	fi
	begin
	attach
	refused refused-recorded 'bugnet runs it already' --pid "$pid"
	# ... and the first one is still there for everybody.
	"$BUGNET" ps >"$work/ps.out"
	if grep -qw "$pid" "$work/ps.out" && "$BUGNET" save -o "$work/first.bug" "$pid" >"$work/save.out" 2>&1 && [ -s "$work/first.bug" ]; then
		ok attach/refused-first
	else
		cat "$work/save.out" >>"$work/ps.out"
		failed attach/refused-first "the first recorder is not found" "$work/ps.out"
	fi
	refused refused-recorder 'it is bugnet itself' --pid $recorder
	"$BUGNET" replay --server "$work/first.bug" >"$work/server.out" 2>&1 </dev/null &
	server=$!
	wait_until 30 grep -q 'Waiting for gdb' "$work/server.out"
	refused refused-replayed 'it is a program that bugnet replays' --pid "$(pgrep -P $server | head -n1)"
	refused refused-replayer 'it is bugnet itself' --pid $server
	kill $server
	wait $server
	refused refused-thread 'it is a thread of process' --pid "$(ls "/proc/$pid/task" | sort -n | sed -n 2p)"
	detach || failed attach/refused-first "cannot detach" "$work/detach.err"
	end
	if [ "$status" -eq 5 ]; then ok attach/refused-untouched; else failed attach/refused-untouched "status $status" "$work/err"; fi
	"$BUGNET" detach $sleeper >"$work/detach.out" 2>"$work/detach.err"
	if [ $? -eq 125 ] && grep -q 'is not being recorded' "$work/detach.err"; then
		ok attach/detach-nobody
	else
		failed attach/detach-nobody "no such error" "$work/detach.err"
	fi
	kill $sleeper
	wait $sleeper 2>/dev/null
fi

# said NAME STATUS PATTERN COMMAND...: what the command says on standard error, and its status
said() {
	local name=$1 wanted_status=$2 pattern=$3 got
	shift 3
	timeout 60 "$@" >"$work/said.out" 2>"$work/said.err" </dev/null
	got=$?
	if [ $got -eq "$wanted_status" ] && grep -qE -- "$pattern" "$work/said.err"; then
		ok "attach/$name"
	else
		cat "$work/said.out" >>"$work/said.err"
		failed "attach/$name" "status $got, or does not say /$pattern/" "$work/said.err"
	fi
}

# Who is stopped is recorded on when it was to be let go.
if wanted detach-stopped; then
	begin
	attach
	kill -STOP "$pid"
	wait_until 10 grep -q '^State:.T' "/proc/$pid/status"
	said detach-stopped 125 "it is stopped, and recorded on; let it go on with 'kill -CONT $pid'" "$BUGNET" detach "$pid"
	kill -CONT "$pid"
	wait_until 10 grep -q '^State:.[RS]' "/proc/$pid/status"
	detach || failed attach/detach-stopped "cannot detach when it goes on" "$work/detach.err"
	end
	[ "$status" -eq 5 ] || failed attach/detach-stopped "the program's status is $status" "$work/err"
fi

# The file cannot be written: the recorder's own status says so, the program's does not.
if wanted unwritten; then
	begin
	mkdir "$work/gone"
	"$BUGNET" record -o "$work/gone/r.bug" --pid "$pid" >"$work/rec.out" 2>"$work/rec.err" </dev/null &
	recorder=$!
	wait_until 30 grep -q "recording process $pid" "$work/rec.err"
	rm -rf "$work/gone"
	"$BUGNET" detach "$pid" >"$work/detach.out" 2>&1
	wait $recorder
	status=$?
	if [ $status -eq 125 ] && grep -q 'nothing could be saved' "$work/rec.err"; then
		ok attach/unwritten
	else
		failed attach/unwritten "the recorder's status is $status" "$work/rec.err"
	fi
	end
	[ "$status" -eq 5 ] || failed attach/unwritten "the program's status is $status" "$work/err"
fi

# Two users: what one records of the other's processes, and a directory in /tmp that is not one's own.
if wanted other-user && { [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; }; then
	skipped attach/other-user "needs root and setpriv(1)"
elif wanted other-user; then
	his="env -u XDG_RUNTIME_DIR setpriv --reuid 65533 --regid 65533 --clear-groups"
	mkdir -m 777 "$work/others"
	chmod 711 "$work"
	cp "$BUGNET" "$work/bugnet"
	$his sleep 1000 &
	sleeper=$!
	wait_until 10 grep -qx sleep "/proc/$sleeper/comm"
	"$BUGNET" record --save-on never -o "$work/root.bug" --pid $sleeper >"$work/rec.out" 2>"$work/rec.err" </dev/null &
	recorder=$!
	wait_until 30 grep -q "recording process $sleeper" "$work/rec.err"
	for command in save detach; do
		said "other-user-$command" 125 "process $sleeper is recorded by process $recorder of user root" $his "$work/bugnet" $command $sleeper
		said "other-user-$command-foreign" 125 "process $recorder is of user root, .* ask as that user, or as root" $his "$work/bugnet" $command $recorder
	done
	said other-user-ps 125 "process $sleeper is recorded by process $recorder of user root" $his "$work/bugnet" ps
	"$BUGNET" detach $sleeper
	wait $recorder
	# Somebody has made the directory that his sockets would be in, and listens there.
	if mkdir -m 777 /tmp/bugnet-65533 2>/dev/null; then
		python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.bind("/tmp/bugnet-65533/1.sock"); s.listen()
import os; os.chmod("/tmp/bugnet-65533/1.sock", 0o777); open(sys.argv[1], "w").close()
s.accept(); open(sys.argv[1] + ".asked", "w").close()' "$work/listens" &
		liar=$!
		wait_until 10 test -e "$work/listens"
		rm "$work/rec.err" # what the last one said
		(cd "$work/others" && exec $his "$work/bugnet" record --save-on never -o "$work/others/r.bug" --pid $sleeper) >"$work/rec.out" 2>"$work/rec.err" </dev/null &
		recorder=$!
		wait_until 30 grep -q "recording process $sleeper" "$work/rec.err"
		$his "$work/bugnet" ps >"$work/ps.out" 2>&1
		$his "$work/bugnet" save -o "$work/others/s.bug" $sleeper >"$work/save.out" 2>&1
		made=$(find /tmp -maxdepth 1 -name 'bugnet-65533-*' -printf '%m %U\n')
		if ! grep -qw $sleeper "$work/ps.out" || [ ! -s "$work/others/s.bug" ]; then
			cat "$work/save.out" "$work/rec.err" >>"$work/ps.out"
			failed attach/other-user-directory "what is recorded is not found" "$work/ps.out"
		elif [ -e "$work/listens.asked" ]; then
			failed attach/other-user-directory "a directory of another user is trusted"
		elif [ "$made" != "700 65533" ]; then
			failed attach/other-user-directory "the directory is '$made'"
		else
			ok attach/other-user-directory
		fi
		$his "$work/bugnet" detach $sleeper >"$work/detach.out" 2>&1 || failed attach/other-user-directory-detach "cannot" "$work/detach.out"
		wait $recorder
		kill $liar
		wait $liar 2>/dev/null
		rm -rf /tmp/bugnet-65533 /tmp/bugnet-65533-??????
	else
		skipped attach/other-user-directory "there is /tmp/bugnet-65533 already"
	fi
	kill $sleeper
	wait $sleeper 2>/dev/null
fi
exit 0
