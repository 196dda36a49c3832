#!/bin/bash
# The users suite: a selection of the test programs in other surroundings than a root shell: as an ordinary user, in
# user and pid namespaces, with and without ASLR, with small limits, without standard files, without some system
# calls, on a terminal with job control. Natively and under bugnet, in the same surroundings: the same result.
#
# Creates no user and leaves nothing behind. PATTERN selects tests by name, JOBS says how many groups run at once.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PATTERN=${PATTERN:-*}
need_launch || exit 2
groups="ordinary_user user_namespace pid_namespace layouts privileges limits memory_limits closed_files missing_calls permissions
	terminals shells"
if [ "${1:-}" != --group ]; then
	# shellcheck disable=SC2086
	printf '%s\n' $groups | PATTERN=$PATTERN xargs -P "${JOBS:-2}" -n 1 "${BASH_SOURCE[0]}" --group
	exit
fi
new_work_directory
chmod 755 "$work"

nobody=65534
selection="build-pie build-static build-static-pie build-no-pie thread-basic thread-fork process-fork-tree process-exec
	process-descriptors signal-fault-registers signal-child signal-death code-on-stack code-dlopen memory-map
	identity-arguments identity-process identity-brk seccomp-filter"
short_selection="build-pie build-static build-no-pie thread-basic process-fork-tree signal-child code-dlopen
	identity-arguments identity-process"

support() {
	"$root/tests/build-program" "$root/tests/programs/support/$1.c" "$work/$1" && chmod 755 "$work/$1"
}

# compare_in SURROUNDINGS NAME WHAT OPTIONS BINARY [ARG...]: the words of the array `wrap` come before the command
compare_in() {
	local test=users/$1/$2 what=$3 options=$4
	shift 4
	wanted "${test#users/}" || return
	if [ ! -x "$1" ]; then
		failed "$test" "not built: no $1"
		return
	fi
	capture native "${wrap[@]}" "$@"
	if [ "$(cat "$work/native.status")" = 'exit 77' ]; then
		skipped "$test" "$(tail -n1 "$work/native.err")"
		return
	fi
	# shellcheck disable=SC2086
	capture bugnet "${wrap[@]}" "$bugnet" run $options -- "$@"
	compare_runs "$test" "$what"
}

# each_program SURROUNDINGS LIST: all programs of LIST, with the options and cases their sources ask for
each_program() {
	local surroundings=$1 name source options case cases
	for name in $2; do
		source=$root/tests/programs/$name.c
		cases=$(directive "$source" cases)
		options=
		if directive "$source" run | grep -q -- --children; then
			options=--children
		fi
		for case in ${cases:--}; do
			if [ "$case" = - ]; then
				compare_in "$surroundings" "$name" 'stdout stderr status' "$options" "$programs/$name"
			else
				compare_in "$surroundings" "$name.$case" 'stdout stderr status' "$options" "$programs/$name" "$case"
			fi
		done
	done
}

# possible COMMAND...: whether these surroundings can be had here
possible() {
	"$@" true >/dev/null 2>&1
}

# --- where everybody can read ------------------------------------------------------------------------------------

programs=$BUILD/tests/programs
bugnet=$BUGNET
as_nobody=()
if [ "$(id -u)" = 0 ]; then
	as_nobody=(setpriv --reuid "$nobody" --regid "$nobody" --clear-groups --)
	if ! "${as_nobody[@]}" sh -c "test -x '$BUGNET' -a -r '$BUGNET' -a -x '$programs'"; then
		mkdir -p "$work/build/tests"
		find "$(dirname "$BUGNET")" -maxdepth 1 -type f -exec cp {} "$work/build/" \;
		mkdir "$work/build/tests/programs"
		for name in $selection death thread-sync build-lazy signal-proc-status signal-inherit; do
			cp "$programs/$name" "$programs/$name".*.so "$work/build/tests/programs/" 2>/dev/null
		done
		bugnet=$work/build/$(basename "$BUGNET")
		programs=$work/build/tests/programs
		chmod -R a+rX "$work/build"
	fi
fi

# --- users and namespaces -----------------------------------------------------------------------------------------

group_ordinary_user() {
	wrap=("${as_nobody[@]}")
	each_program ordinary-user "$selection"
}

group_user_namespace() {
	if possible "${as_nobody[@]}" unshare -U -r; then
		wrap=("${as_nobody[@]}" unshare -U -r)
		each_program user-namespace "$selection"
	else
		skipped users/user-namespace "unprivileged user namespaces are not allowed here"
	fi
}

group_pid_namespace() {
	if possible "${as_nobody[@]}" unshare -U -r -p -f --mount-proc; then
		# -f: unshare waits for its child and passes its status on
		# sh: pid 1 is somebody else. As pid 1 the program would inherit the supervisor (docs/transparency.md)
		wrap=("${as_nobody[@]}" unshare -U -r -p -f --kill-child --mount-proc sh -c '"$@"; exit $?' sh)
		each_program pid-namespace "$short_selection"
	else
		skipped users/pid-namespace "not allowed here"
	fi
}

group_layouts() {
	wrap=("${as_nobody[@]}" setarch -R)
	each_program no-aslr "$selection"
	wrap=(setarch -R)
	each_program no-aslr-same-user "build-pie build-static identity-arguments"
	wrap=("${as_nobody[@]}" setarch -L)
	each_program legacy-layout "$short_selection"
	wrap=("${as_nobody[@]}" setarch -X)
	each_program read-implies-exec "build-pie build-no-pie code-on-stack thread-basic"
	# ASLR on: five runs, five layouts
	wrap=("${as_nobody[@]}")
	for round in 1 2 3 4 5; do
		compare_in "aslr-$round" build-no-pie 'stdout stderr status' '' "$programs/build-no-pie"
		compare_in "aslr-$round" identity-arguments 'stdout stderr status' '' "$programs/identity-arguments"
		compare_in "aslr-$round" build-static-pie 'stdout stderr status' '' "$programs/build-static-pie"
	done
}

group_privileges() {
	wrap=(setpriv --no-new-privs)
	each_program no-new-privileges "$short_selection"
	if [ "$(id -u)" = 0 ]; then
		# root as containers have it: no capabilities left
		wrap=(setpriv --bounding-set -all --inh-caps -all)
		each_program no-capabilities "$short_selection"
		wrap=(setpriv --reuid "$nobody" --regid "$nobody" --clear-groups --pdeathsig keep --no-new-privs)
		each_program ordinary-user-no-new-privileges "build-pie thread-basic process-fork-tree"
	fi
}

# --- limits, closed files ------------------------------------------------------------------------------------------

# works_or_says NAME REGEX COMMAND...: `bugnet run` works like the native run, or ends with 125 and a message
works_or_says() {
	local test=users/$1 regex=$2
	shift 2
	wanted "${test#users/}" || return
	capture native "${wrap[@]}" "$@"
	if [ "$(cat "$work/native.status")" != 'exit 0' ]; then
		skipped "$test" "natively: $(paste -sd';' "$work/native.status")"
		return
	fi
	capture bugnet "${wrap[@]}" "$bugnet" run -- "$@"
	if [ "$(cat "$work/bugnet.status")" = 'exit 125' ]; then
		if grep -q '^bugnet' "$work/bugnet.err" && grep -qiE -- "$regex" "$work/bugnet.err"; then
			ok "$test"
		else
			failed "$test" "status 125 without a message that says /$regex/" "$work/bugnet.err"
		fi
		return
	fi
	compare_runs "$test" 'stdout status'
}

# recorded_in NAME COMMAND...: recorded it does as natively, and replays
recorded_in() {
	local test=users/$1
	shift
	wanted "${test#users/}" || return
	rm -rf "$work/open"
	mkdir -m 777 "$work/open"
	capture native "${wrap[@]}" "$@"
	capture bugnet "${wrap[@]}" "$bugnet" record -o "$work/open/it.bug" -- "$@"
	take_saved_line "$work/bugnet.err" "$work/open/it.bug"
	compare_runs "$test" 'stdout stderr status'
	expect_exact "$test-replay" "$work/open/it.bug"
}

# refused_in NAME SAYS: recording /bin/true is refused so
refused_in() {
	local test=users/$1
	wanted "${test#users/}" || return
	capture bugnet "${wrap[@]}" "$bugnet" record -o /tmp/bugnet-refused.bug -- /bin/true
	if [ "$(cat "$work/bugnet.status")" = 'exit 125' ] && grep -qE -- "$2" "$work/bugnet.err"; then
		ok "$test"
	else
		failed "$test" "$(paste -sd';' "$work/bugnet.status"), does not say /$2/" "$work/bugnet.err"
	fi
}

# Hard limits, which only root can raise: shadows count.
group_memory_limits() {
	local size program
	for size in 64 8 2; do
		wrap=("${as_nobody[@]}" prlimit --as=$((size << 30)))
		for program in build-pie build-no-pie build-static thread-basic; do
			# Each thread takes some of it.
			[ "$size" -eq 2 ] && [ $program = thread-basic ] || recorded_in "space-of-$size-gb/$program" "$programs/$program"
		done
	done
	wrap=("${as_nobody[@]}" prlimit --data=$((8 << 30)))
	recorded_in data-of-8-gb/thread-basic "$programs/thread-basic"
	wrap=("${as_nobody[@]}" prlimit --data=$((1 << 30)))
	recorded_in data-of-1-gb/build-pie "$programs/build-pie"
	wrap=("${as_nobody[@]}" prlimit --fsize=$((100 << 20)))
	recorded_in files-of-100-mb/thread-basic "$programs/thread-basic"
	wrap=("${as_nobody[@]}" prlimit --as=$((300 << 20)))
	refused_in too-little-space "leaves [0-9]+ MB, and recording needs [0-9]+ MB .*raise it by [0-9]+ MB or more with 'ulimit -v'"
	wrap=("${as_nobody[@]}" prlimit --data=$((100 << 20)))
	refused_in too-little-data "leaves [0-9]+ MB, and recording needs [0-9]+ MB .*raise it by [0-9]+ MB or more with 'ulimit -d'"
	wrap=("${as_nobody[@]}" prlimit --fsize=$((10 << 20)))
	refused_in too-small-files "files is 10 MB, and the code cache.* needs [0-9]+ MB; raise it with 'ulimit -f [0-9]+'"
}

group_limits() {
	if [ "$(id -u)" = 0 ]; then
		# RLIMIT_NPROC counts all processes of a user: one of its own, that no other test uses
		as_other=(setpriv --reuid 64321 --regid 64321 --clear-groups --)
		wrap=("${as_other[@]}" prlimit --nproc=20 --nofile=10)
		compare_in small-limits build-pie 'stdout stderr status' '' "$programs/build-pie"
		compare_in small-limits thread-basic 'stdout stderr status' '' "$programs/thread-basic"
		wrap=("${as_other[@]}" prlimit --nproc=1)
		works_or_says one-process 'process|RLIMIT_NPROC|ulimit -u' "$programs/build-pie"
	fi
	wrap=("${as_nobody[@]}" prlimit --nofile=5)
	works_or_says five-descriptors 'descriptor|open files|RLIMIT_NOFILE|ulimit -n' "$programs/build-pie"
	wrap=(prlimit --stack=1048576)
	compare_in small-stack thread-basic 'stdout stderr status' '' "$programs/thread-basic"
	wrap=(prlimit --stack=unlimited)
	compare_in unlimited-stack build-pie 'stdout stderr status' '' "$programs/build-pie"
	compare_in unlimited-stack identity-process 'stdout stderr status' '' "$programs/identity-process"
}

# shellcheck disable=SC2016
closed() {
	wrap=(bash -c "exec \"\$@\" $1" bash)
}
group_closed_files() {
	closed '<&-'
	compare_in stdin-closed identity-process 'stdout stderr status' '' "$programs/identity-process"
	compare_in stdin-closed build-pie 'stdout stderr status' '' "$programs/build-pie"
	closed '>&-'
	compare_in stdout-closed identity-process 'stdout stderr status' '' "$programs/identity-process"
	closed '2>&-'
	compare_in stderr-closed identity-process 'stdout stderr status' '' "$programs/identity-process"
	closed '<&- >&- 2>&-'
	compare_in all-closed death.exit-3 'stdout stderr status' '' "$programs/death" exit-3
	closed '5</dev/null 9>/dev/null'
	compare_in more-descriptors identity-process 'stdout stderr status' '' "$programs/identity-process"
	wrap=(bash -c 'trap "" HUP INT USR1; exec "$@"' bash)
	compare_in ignored-signals identity-process 'stdout stderr status' '' "$programs/identity-process"
	if possible env --block-signal=USR1; then
		wrap=(env '--block-signal=USR1,TERM,RTMIN' '--ignore-signal=HUP,PIPE')
		compare_in blocked-signals identity-process 'stdout stderr status' '' "$programs/identity-process"
		compare_in blocked-signals signal-proc-status 'stdout stderr status' '' "$programs/signal-proc-status"
		compare_in blocked-signals signal-inherit 'stdout stderr status' --children "$programs/signal-inherit"
	fi
	wrap=(nice -n 5)
	compare_in nice identity-process 'stdout stderr status' '' "$programs/identity-process"
	wrap=(env -i)
	compare_in empty-environment identity-arguments 'stdout stderr status' '' "$programs/identity-arguments"
	wrap=(env LD_BIND_NOW=1)
	compare_in bind-now build-lazy 'stdout stderr status' '' "$programs/build-lazy"
	wrap=(bash -c 'umask 077; exec "$@"' bash)
	compare_in umask identity-process 'stdout stderr status' '' "$programs/identity-process"
	wrap=(taskset -c 0)
	if possible taskset -c 0; then
		compare_in one-cpu thread-sync 'stdout stderr status' '' "$programs/thread-sync"
		compare_in one-cpu identity-process 'stdout stderr status' '' "$programs/identity-process"
	fi
}

# --- kernels that lack something ------------------------------------------------------------------------------------

group_missing_calls() {
	if support without; then
		# number  name  what a message would mention
		while read -r number name regex; do
			for errno in 1 38; do
				wrap=("$work/without" "$errno" "$number")
				works_or_says "without-$name-errno-$errno" "$regex" "$programs/thread-basic"
			done
		done <<-'END'
			101 ptrace trac
			319 memfd_create memfd|code cache
			310,311 process_vm process_vm|ptrace|memory
			434 pidfd_open pidfd
			435 clone3 clone3
			334 rseq rseq
			436 close_range close_range
			332 statx statx
			324 membarrier membarrier
			317 seccomp seccomp
			318 getrandom getrandom
			157 prctl prctl
		END
	else
		failed users/without "tests/programs/support/without.c does not compile"
	fi
}

# --- setuid, unreadable ---------------------------------------------------------------------------------------------

group_permissions() {
	if [ "$(id -u)" = 0 ] && wanted setuid; then
		cp "$(type -P id)" "$work/setuid-id"
		chmod 4755 "$work/setuid-id"
		wrap=("${as_nobody[@]}")
		capture native "${wrap[@]}" "$work/setuid-id" -u
		if [ "$(cat "$work/native.out")" != 0 ]; then
			skipped users/setuid "setuid does not work on this file system"
		else
			# native, with a note
			capture bugnet "${wrap[@]}" "$bugnet" run -- "$work/setuid-id" -u
			if ! grep -qi 'set-\?uid\|set-user' "$work/bugnet.err"; then
				failed users/setuid "no note about it" "$work/bugnet.err"
			else
				compare_runs users/setuid 'stdout status'
			fi
		fi
	fi
	if [ "$(id -u)" = 0 ] && wanted unreadable; then
		cp "$(type -P echo)" "$work/unreadable"
		chmod 711 "$work/unreadable"
		wrap=("${as_nobody[@]}")
		capture native "${wrap[@]}" "$work/unreadable" hello
		capture bugnet "${wrap[@]}" "$bugnet" run -- "$work/unreadable" hello
		if [ "$(cat "$work/bugnet.status")" = 'exit 126' ] && grep -q "^bugnet.*$work/unreadable" "$work/bugnet.err"; then
			ok users/unreadable
		else
			compare_runs users/unreadable 'stdout status'
		fi
	fi
}

# --- terminals -------------------------------------------------------------------------------------------------------

# recorded_terminal NAME KEYS ARGUMENT: recorded on a terminal it behaves as natively ($work/native.*), and replays
recorded_terminal() {
	local file=$work/terminal.bug i
	rm -f "$file"
	capture bugnet "$work/terminal-job" "$2" "$BUGNET" record -o "$file" -- "$work/terminal-program" "$3"
	# what bugnet says when the program has ended may come too late for the terminal
	perl -0777 -pi -e 's/bugnet: saved .*?\n//' "$work/bugnet.out"
	compare_runs "$1" 'stdout status'
	for ((i = 0; i < 100; i++)); do
		[ -e "$file" ] && break
		sleep 0.05
	done
	expect_exact "$1 replay" "$file"
}

group_terminals() {
	if support terminal-program && "$root/tests/build-program" "$root/tests/programs/support/terminal-job.c" "$work/terminal-job"; then
		# name  keys  program's argument
		while read -r name keys argument; do
			wanted "terminal-$name" || continue
			capture native "$work/terminal-job" "$keys" "$work/terminal-program" "$argument"
			capture bugnet "$work/terminal-job" "$keys" "$BUGNET" run -- "$work/terminal-program" "$argument"
			compare_runs "users/terminal-$name" 'stdout stderr status'
			recorded_terminal "users/terminal-$name-recorded" "$keys" "$argument"
		done <<-'END'
			lines lld lines
			interrupt-handled clcd lines
			interrupt c compute
			quit q compute
			suspend-computing zzc compute
			suspend-reading zlzd lines
			window-size wwd lines
		END
	else
		failed users/terminal "the terminal programs do not compile"
	fi
}

# shellcheck disable=SC2016
job_script='exec 2>/dev/null # process ids
set -m
go=$(mktemp -u)
sh -c "until [ -e $go ]; do sleep 0.05; done" & first=$!
sleep 100 & second=$!
kill -STOP %2
until jobs | grep -q Stopped; do sleep 0.05; done
jobs | sed -E "s/^(.[0-9].[-+ ] *[A-Za-z]+).*/\\1/"
kill %2; kill -CONT %2
: >$go
wait $first; echo first $?
wait $second; echo second $?
rm $go
trap "echo trapped" USR1
kill -USR1 $$
(exit 5); echo $?
sh -c "kill -9 \$\$"; echo $?
true | false | true; echo ${PIPESTATUS[@]}'
group_shells() {
	wrap=()
	for options in '' --children; do
		compare_in "bash-jobs${options}" script 'stdout status' "$options" "$(command -v bash)" --norc -c "$job_script"
	done
	if command -v script >/dev/null; then
		for options in '' --children; do
			test=users/pty-script$options
			wanted "${test#users/}" || continue
			printf '%s\n' "$job_script" 'tty >/dev/null && echo on a terminal' 'stty size' >"$work/jobs.sh"
			capture native script -qec "bash --norc $work/jobs.sh" /dev/null
			capture bugnet script -qec "$bugnet run $options -- bash --norc $work/jobs.sh" /dev/null
			compare_runs "$test" 'stdout status'
		done
	else
		skipped users/pty-script "no script(1) here"
	fi
}

"group_$2"
exit 0
