#!/bin/bash
# The replay suite: a recording replays with nothing of the world that it was made in but the program's own files,
# says so when it cannot, and `exact` means something: a recording that was tampered with is not.
#
# PATTERN selects tests by name, JOBS says how many groups run at once.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PATTERN=${PATTERN:-*}
need_launch || exit 2
if [ "${1:-}" != --group ]; then
	printf '%s\n' world output files processor endings cut flipped tampered | PATTERN=$PATTERN xargs -P "${JOBS:-2}" -n 1 "${BASH_SOURCE[0]}" --group
	exit
fi
new_work_directory
chmod 755 "$work"
word=0x1122334455667788

# The program with all kinds of input, and the file that it reads, in a folder of their own.
make_program() {
	mkdir -p "$work/there"
	"$root/tests/build-program" "$root/tests/programs/support/replayed.c" "$work/there/replayed" || {
		failed replay "tests/programs/support/replayed.c does not compile"
		exit 0
	}
	printf '\x88\x77\x66\x55\x44\x33\x22\x11the rest of it, up to sixty-four bytes, all of them read' >"$work/there/input"
}

# record NAME [OPTION...] -- ARGUMENT...: makes $work/NAME.bug and keeps what the program wrote in NAME.out, NAME.err
record() {
	local name=$1 options=()
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	"$launch" -t "$TIMEOUT" -s "$work/$name.status" -- sh -c 'cd "$1" && shift && exec "$@"' sh "$work/there" \
		"$BUGNET" record "${options[@]}" -o "$work/$name.bug" -- ./replayed "$@" >"$work/$name.out" 2>"$work/$name.err"
	take_saved_line "$work/$name.err" "$work/$name.bug" || failed "replay/recording-$name" "nothing was saved" "$work/$name.err"
}

# exact NAME RECORDING COMMAND...: COMMAND, which is what comes before FILE, must say exact and nothing on stderr
exact() {
	local name=replay/$1 recording=$2
	shift 2
	wanted "${name#replay/}" || return
	capture run "$@" "$recording"
	if [ "$(paste -sd';' "$work/run.status")" != 'exit 0' ]; then
		failed "$name" "$(paste -sd';' "$work/run.status")" "$work/run.err"
	elif [ "$(tail -n1 "$work/run.out")" != exact ] || [ -s "$work/run.err" ]; then
		failed "$name" "status 0, but not just 'exact'" "$work/run.err"
	else
		ok "$name"
	fi
}

# refused NAME STATUS REGEX... -- COMMAND...: COMMAND ends with STATUS and stderr has each REGEX
refused() {
	local name=replay/$1 status=$2 regexes=() regex
	shift 2
	while [ "$1" != -- ]; do
		regexes+=("$1")
		shift
	done
	shift
	wanted "${name#replay/}" || return
	capture run "$@"
	if [ "$(paste -sd';' "$work/run.status")" != "exit $status" ]; then
		failed "$name" "'$(paste -sd';' "$work/run.status")', not 'exit $status'" "$work/run.err"
		return
	fi
	if grep -q '^exact' "$work/run.out"; then
		failed "$name" "says exact" "$work/run.err"
		return
	fi
	for regex in "${regexes[@]}"; do
		if ! grep -qE -- "$regex" "$work/run.err"; then
			failed "$name" "does not say /$regex/" "$work/run.err"
			return
		fi
	done
	ok "$name"
}

check=("$BUGNET" replay --check)

# --- another world ----------------------------------------------------------------------------------------------

group_world() {
	make_program
	record world -- an argument
	exact as-it-was "$work/world.bug" "${check[@]}"
	mkdir "$work/elsewhere"
	mv "$work/there/input" "$work/elsewhere/"
	exact input-deleted "$work/world.bug" "${check[@]}"
	mkdir "$work/there/input"
	exact input-is-a-folder "$work/world.bug" "${check[@]}"
	exact other-folder "$work/world.bug" sh -c 'cd / && exec "$@"' sh "${check[@]}"
	exact folder-gone "$work/world.bug" sh -c 'mkdir gone && cd gone && rmdir ../gone && exec "$@"' sh "${check[@]}"
	exact no-environment "$work/world.bug" env -i "${check[@]}"
	exact other-environment "$work/world.bug" env HOME=/nonexistent TZ=Asia/Tokyo LC_ALL=C LD_BIND_NOW=1 MALLOC_PERTURB_=9 "${check[@]}"
	exact large-environment "$work/world.bug" env "FILLER=$(head -c 100000 /dev/zero | tr '\0' x)" "${check[@]}"
	exact no-aslr "$work/world.bug" setarch -R "${check[@]}"
	exact large-stack "$work/world.bug" prlimit --stack=unlimited "${check[@]}"
	exact no-standard-input "$work/world.bug" bash -c 'exec "$@" <&-' bash "${check[@]}"
	if unshare -n true 2>/dev/null; then
		exact no-network "$work/world.bug" unshare -n "${check[@]}"
	elif unshare -r -n true 2>/dev/null; then
		exact no-network "$work/world.bug" unshare -r -n "${check[@]}"
	else
		skipped replay/no-network "no network namespaces here"
	fi
	if unshare -r -T --boottime 86400 --monotonic 86400 true 2>/dev/null; then
		exact other-clock "$work/world.bug" unshare -r -T --boottime 86400 --monotonic 86400 "${check[@]}"
	else
		skipped replay/other-clock "no time namespaces here"
	fi
	# The replayer itself believes that it is another day.
	if gcc -shared -fPIC -o "$work/another-day.so" -x c - <<-'END'; then
		#define _GNU_SOURCE
		#include <sys/syscall.h>
		#include <sys/time.h>
		#include <time.h>
		#include <unistd.h>
		#define DAYS (4000 * 86400)
		int clock_gettime(clockid_t clock, struct timespec *now)
		{
			int result = (int)syscall(SYS_clock_gettime, clock, now);
			now->tv_sec += DAYS;
			return result;
		}
		int gettimeofday(struct timeval *restrict now, void *restrict zone)
		{
			int result = (int)syscall(SYS_gettimeofday, now, zone);
			now->tv_sec += DAYS;
			return result;
		}
		time_t time(time_t *now)
		{
			time_t result = syscall(SYS_time, 0) + DAYS;
			if (now)
				*now = result;
			return result;
		}
	END
		exact another-day "$work/world.bug" env LD_PRELOAD="$work/another-day.so" "${check[@]}"
		if wanted another-day-output; then
			capture run env LD_PRELOAD="$work/another-day.so" "$BUGNET" replay --output "$work/world.bug"
			if [ -s "$work/run.out" ] && cmp -s "$work/run.out" "$work/world.out"; then
				ok replay/another-day-output
			else
				failed replay/another-day-output "not what it printed when it was recorded" "$work/run.out"
			fi
		fi
	else
		failed replay/another-day "does not compile"
	fi
	if wanted stats; then
		capture run "${check[@]}" --stats "$work/world.bug"
		if [ "$(tail -n1 "$work/run.out")" = exact ] && [ "$(grep -cE '^[a-z ]+  [0-9]+$' "$work/run.err")" = 6 ] &&
			grep -qE '^events applied +[1-9]' "$work/run.err" && grep -qE '^requests for code +[1-9]' "$work/run.err"; then
			ok replay/stats
		else
			failed replay/stats "not what --stats is for" "$work/run.err"
		fi
	fi
	if [ "$(id -u)" = 0 ]; then
		# a recording is its owner's alone; so this is another user's copy, of tool and recording
		cp "$BUGNET" "$work/bugnet-for-all"
		cp "$work/world.bug" "$work/of-nobody.bug"
		chown 65534 "$work/of-nobody.bug"
		exact other-user "$work/of-nobody.bug" setpriv --reuid 65534 --regid 65534 --clear-groups -- "$work/bugnet-for-all" replay --check
		refused others-cannot-read 125 'world.bug: .*[Pp]ermission' -- \
			setpriv --reuid 65534 --regid 65534 --clear-groups -- "$work/bugnet-for-all" replay --check "$work/world.bug"
	else
		skipped replay/other-user "only root can be somebody else"
	fi
}

# --- what the program wrote ---------------------------------------------------------------------------------------

# same_output NAME RECORDED-NAME [OPTION...]: `replay --output` writes what the program wrote, where it wrote it
same_output() {
	local name=replay/$1 recorded=$2
	shift 2
	wanted "${name#replay/}" || return
	capture run env -i TZ=Asia/Tokyo "$BUGNET" replay --output "$@" "$work/$recorded.bug"
	if [ "$(paste -sd';' "$work/run.status")" != 'exit 0' ]; then
		failed "$name" "$(paste -sd';' "$work/run.status")" "$work/run.err"
	elif ! cmp -s "$work/run.out" "$work/$recorded.out"; then
		diff -a "$work/$recorded.out" "$work/run.out" >"$work/difference"
		failed "$name" "stdout differs" "$work/difference"
	elif ! cmp -s "$work/run.err" "$work/$recorded.err"; then
		diff -a "$work/$recorded.err" "$work/run.err" >"$work/difference"
		failed "$name" "stderr differs" "$work/difference"
	else
		ok "$name"
	fi
}

# stops_at NAME THREAD POSITION OPTION...: --to shows the state at just this position
stops_at() {
	local name=replay/$1 thread=$2 position=$3
	shift 3
	wanted "${name#replay/}" || return
	capture run "$BUGNET" replay "$@" --thread "$thread" --to "$position" "$work/loop.bug"
	if [ "$(paste -sd';' "$work/run.status")" != 'exit 0' ]; then
		failed "$name" "$(paste -sd';' "$work/run.status")" "$work/run.err"
	elif ! grep -qE "^thread $thread at 0x[0-9a-f]+" "$work/run.out" || ! grep -qE "position $position +pc 0x" "$work/run.out"; then
		failed "$name" "does not show the state there" "$work/run.out"
	else
		ok "$name"
	fi
}

group_output() {
	local name last keyframe
	make_program
	record output -- one 'two three'
	record loop --interval 1M -- loop
	record crash -- crash
	for name in output loop crash; do
		same_output "output-$name" "$name"
	done
	if wanted output-time; then
		# the time that it printed is that of the recording
		capture run "$BUGNET" replay --output "$work/output.bug"
		if [ "$(grep '^time' "$work/run.out")" = "$(grep '^time' "$work/output.out")" ]; then
			ok replay/output-time
		else
			failed replay/output-time "another time" "$work/run.out"
		fi
	fi
	if wanted output-and-check; then
		capture run "$BUGNET" replay --output --check "$work/output.bug"
		if cmp -s "$work/run.out" "$work/output.out" && [ "$(tail -n1 "$work/run.err")" = exact ]; then
			ok replay/output-and-check
		else
			failed replay/output-and-check "not the output on stdout and the report on stderr" "$work/run.err"
		fi
	fi
	stops_at to-first 0 1
	stops_at to-middle 0 123456
	stops_at to-late 0 20000000
	stops_at to-other-thread 1 5000
	read -r keyframe last < <("$BUGNET" info --json "$work/loop.bug" | python3 -c '
import json, sys
info = json.load(sys.stdin)
frames = [frame["position"] for frame in info["keyframes"] if frame["thread"] == 0]
print(frames[-1], [thread["last_position"] if "last_position" in thread else thread["instructions"] for thread in info["threads"]][0])')
	stops_at to-end 0 "$last"
	stops_at from-keyframe 0 "$((keyframe + 10))" --from "$keyframe"
	if wanted from-to-equal; then
		"$BUGNET" replay --thread 0 --to "$((keyframe + 10))" "$work/loop.bug" >"$work/from-start" 2>&1
		"$BUGNET" replay --thread 0 --from "$keyframe" --to "$((keyframe + 10))" "$work/loop.bug" >"$work/from-keyframe" 2>&1
		if [ -s "$work/from-start" ] && cmp -s "$work/from-start" "$work/from-keyframe"; then
			ok replay/from-to-equal
		else
			diff "$work/from-start" "$work/from-keyframe" >"$work/difference"
			failed replay/from-to-equal "the state depends on where replay began" "$work/difference"
		fi
	fi
	if wanted interval; then
		# 40 million instructions with a keyframe every million
		local count
		count=$("$BUGNET" info --json "$work/loop.bug" | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["keyframes"]))')
		if [ "$count" -ge 20 ]; then
			ok replay/interval
		else
			failed replay/interval "$count keyframes in more than 40 million instructions, with --interval 1M"
		fi
	fi
	exact from "$work/loop.bug" "${check[@]}" --from 1000000
	exact from-to "$work/loop.bug" "${check[@]}" --from 1000000 --to 30000000
	exact to "$work/loop.bug" "${check[@]}" --to 100000
	refused from-no-number 125 "'x' is no number" -- "$BUGNET" replay --from x "$work/loop.bug"
	refused no-thread 125 'thread' -- "$BUGNET" replay --thread 77 "$work/loop.bug"
}

# --- the program's files -------------------------------------------------------------------------------------------

group_files() {
	local program=$work/there/replayed id='build-id [0-9a-f]{8,}'
	make_program
	record files -- files
	cp -p "$program" "$work/kept"
	cp "$work/files.bug" "$work/packed.bug"
	"$BUGNET" pack "$work/packed.bug" >/dev/null || failed replay/pack "cannot be packed"

	printf x | dd of="$program" bs=1 seek=100 conv=notrunc status=none
	refused changed-program 125 "$program, $id, but the file here, $id, has another content" '--sysroot' '--binary' 'bugnet pack' -- \
		"${check[@]}" "$work/files.bug"
	cp "$(type -P cat)" "$program"
	refused replaced-program 125 "$program, $id, but the file here has $id;" '--sysroot' '--binary' 'bugnet pack' -- \
		"${check[@]}" "$work/files.bug"
	exact binary "$work/files.bug" "${check[@]}" --binary "$work/kept"
	rm "$program"
	refused missing-program 125 "$program, $id, but .*No such file" '--sysroot' '--binary' 'bugnet pack' -- "${check[@]}" "$work/files.bug"
	exact binary-missing "$work/files.bug" "${check[@]}" --binary "$work/kept"
	refused binary-wrong 125 "$program, $id, but the file here has $id;" -- "${check[@]}" --binary "$(type -P cat)" "$work/files.bug"
	refused binary-folder 125 "$program, $id, but $work is not a regular file;" -- "${check[@]}" --binary "$work" "$work/files.bug"
	refused binary-nowhere 125 '/nonexistent/x.*No such file' -- "${check[@]}" --binary /nonexistent/x "$work/files.bug"
	exact packed "$work/packed.bug" "${check[@]}"

	# all files under another root
	local file
	while IFS= read -r file; do
		mkdir -p "$work/root/${file%/*}"
		if [ "$file" = "$program" ]; then
			cp "$work/kept" "$work/root$file"
		else
			cp -L "$file" "$work/root$file"
		fi
	done < <("$BUGNET" info --json "$work/files.bug" | python3 -c '
import json, sys
for file in json.load(sys.stdin)["files"]:
	print(file["path"])')
	exact sysroot "$work/files.bug" "${check[@]}" --sysroot "$work/root"
	exact sysroot-and-binary "$work/files.bug" "${check[@]}" --sysroot "$work/root" --binary "$work/kept"
	printf x | dd of="$(find "$work/root" -name 'libc.so.6')" bs=1 seek=200 conv=notrunc status=none
	refused changed-library 125 "/libc.so.6, $id, but the file here, $id, has another content" '--sysroot' 'bugnet pack' -- \
		"${check[@]}" --sysroot "$work/root" "$work/files.bug"
	rm -r "$work/root"
	mkdir "$work/root"
	refused sysroot-empty 125 "$work/root/.*No such file" -- "${check[@]}" --sysroot "$work/root" "$work/files.bug"
	exact packed-needs-no-sysroot "$work/packed.bug" "${check[@]}" --sysroot "$work/root"
	refused file-missing 125 'No such file' -- "${check[@]}" "$work/nothing.bug"
	refused file-is-none 125 'not a' -- "${check[@]}" "$work/kept"
}

# --- another processor --------------------------------------------------------------------------------------------

# A recording says what processor it needs and which one made it; here it says something else than it was.
group_processor() {
	local tamper=$BUILD/tests/tamper-recording
	make_program
	record processor -- processor
	record native --cpu native -- processor
	exact native "$work/native.bug" "${check[@]}"
	"$tamper" "$work/processor.bug" "$work/above.bug" cpu-level x86-64-v4
	refused level-unknown 125 'level x86-64-v4, and this bugnet knows x86-64-v2 and x86-64-v3;' -- "${check[@]}" "$work/above.bug"
	"$tamper" "$work/native.bug" "$work/lacks.bug" cpu-flags 'fpu sse2 fma4 xop amx_tile'
	refused native-lacks 125 'level native \(on .*\), and this one lacks (fma4|xop|amx_tile); .*--cpu .*this machine has x86-64-v[123]' -- \
		"${check[@]}" "$work/lacks.bug"
	"$tamper" "$work/native.bug" "$work/has.bug" cpu-flags 'fpu sse2 hypervisor'
	exact native-has "$work/has.bug" "${check[@]}"

	# Another model gives other results for some instructions only: there is a warning where there are any.
	"$tamper" "$work/processor.bug" "$work/model.bug" cpu 'Another Processor'
	exact other-model "$work/model.bug" "${check[@]}"
	gcc -O1 -o "$work/approximate" -x c - <<-'END' || failed replay/other-model-warning "does not compile"
		#include <xmmintrin.h>
		int main(int argc, char **argv) { return (void)argv, _mm_cvtss_si32(_mm_rsqrt_ss(_mm_set_ss((float)argc))); }
	END
	"$BUGNET" record -o "$work/approximate.bug" -- "$work/approximate" >/dev/null 2>&1
	exact approximate "$work/approximate.bug" "${check[@]}"
	"$tamper" "$work/approximate.bug" "$work/approximate-other.bug" cpu 'Another Processor'
	if wanted other-model-warning; then
		capture run "${check[@]}" "$work/approximate-other.bug"
		if [ "$(tail -n1 "$work/run.out")" = exact ] && grep -q 'warning: .*not the processor.*rsqrtps' "$work/run.err"; then
			ok replay/other-model-warning
		else
			failed replay/other-model-warning "no warning" "$work/run.err"
		fi
	fi
}

# --- how it ended ---------------------------------------------------------------------------------------------------

group_endings() {
	local supervisor launcher partial i
	make_program
	record killed -- killed
	exact program-killed "$work/killed.bug" "${check[@]}"
	same_output program-killed-output killed
	if wanted program-killed-info; then
		if "$BUGNET" info "$work/killed.bug" | grep -qE '^end +killed by SIGKILL$'; then
			ok replay/program-killed-info
		else
			failed replay/program-killed-info "$("$BUGNET" info "$work/killed.bug" | grep '^end')"
		fi
	fi
	record crash -- crash
	exact program-crashed "$work/crash.bug" "${check[@]}"

	# The supervisor is killed while the program computes: what it wrote before is there, under its temporary name.
	wanted supervisor-killed || return
	"$root/tests/build-program" "$root/tests/programs/support/phases.c" "$work/phases" || return
	: >"$work/phases.out"
	"$launch" -t 60 -s "$work/phases.status" -- "$BUGNET" record --all --interval 200K -o "$work/phases.bug" -- "$work/phases" >"$work/phases.out" 2>"$work/phases.err" &
	launcher=$!
	for ((i = 0; i < 500; i++)); do
		grep -q started "$work/phases.out" && break
		sleep 0.02
	done
	sleep 0.3
	supervisor=$(supervisors_of "$launcher" | head -n 1)
	[ -n "$supervisor" ] && kill -KILL "$supervisor"
	wait "$launcher"
	partial=$(find "$work" -name 'phases.bug.partial-*')
	if [ -z "$supervisor" ] || [ -z "$partial" ]; then
		failed replay/supervisor-killed "no supervisor, or nothing left of the recording" "$work/phases.err"
		return
	fi
	partly supervisor-killed "$partial" 1
}

# partly NAME FILE MINIMUM: a recording that is not whole: replays to where it is whole, says exact for that and that it
# is cut off, and has at least MINIMUM instructions
partly() {
	local name=replay/$1 file=$2 minimum=$3 instructions
	wanted "${name#replay/}" || return
	capture run "${check[@]}" "$file"
	instructions=$(sed -n 's/^instructions *//p' "$work/run.out")
	if [ "$(paste -sd';' "$work/run.status")" != 'exit 0' ] || [ "$(tail -n1 "$work/run.out")" != exact ]; then
		failed "$name" "not exact: $(paste -sd';' "$work/run.status")" "$work/run.err"
	elif ! grep -qi 'warning: .*cut off' "$work/run.err"; then
		failed "$name" "does not say that it is cut off"
	elif [ "$instructions" -lt "$minimum" ]; then
		failed "$name" "$instructions instructions, not $minimum"
	else
		ok "$name"
	fi
}

# --- damage ----------------------------------------------------------------------------------------------------------

# sane NAME FILE: an error with a message, or exact; no crash, no divergence, no hang
sane() {
	local status
	TIMEOUT=20 capture run "${check[@]}" "$2"
	status=$(paste -sd';' "$work/run.status")
	case $status in
	'exit 125') grep -q '^bugnet' "$work/run.err" && return ;;
	'exit 0') [ "$(tail -n1 "$work/run.out")" = exact ] && return ;;
	esac
	failed "replay/$1" "$status" "$work/run.err"
	return 1
}

group_cut() {
	local size length bad=0
	make_program
	record whole --interval 100K -- loop
	wanted cut || return
	size=$(stat -c %s "$work/whole.bug")
	# the last bytes are the index, which nothing needs
	cp "$work/whole.bug" "$work/cut.bug"
	truncate -s $((size - 10)) "$work/cut.bug"
	partly cut-in-index "$work/cut.bug" 40000000
	for length in 0 1 15 16 40 63 64 65 100 127 128 200 1000 $(seq 2000 $((size / 24 + 1)) "$size") $((size - 1)); do
		cp "$work/whole.bug" "$work/cut.bug"
		truncate -s "$length" "$work/cut.bug"
		sane "cut-at-$length-of-$size" "$work/cut.bug" || bad=1
	done
	[ "$bad" -ne 0 ] || ok replay/cut
	# A stretch in its middle: the stretches before it replay.
	truncate -s $((size * 3 / 4)) "$work/cut.bug"
	partly cut-in-the-middle "$work/cut.bug" 1
}

group_flipped() {
	local i file copy size offset bit bad=0
	make_program
	wanted flipped || return
	gcc -O1 -nostdlib -static -fno-stack-protector -fcf-protection=none -o "$work/counted" "$root/tests/count/counted.c" || return
	"$BUGNET" record -o "$work/small.bug" -- "$work/counted" >/dev/null 2>&1
	record whole -- flipped
	RANDOM=4711
	for ((i = 0; i < 100; i++)); do
		file=$work/small.bug
		((i % 4)) || file=$work/whole.bug
		size=$(stat -c %s "$file")
		copy=$work/flipped.bug
		offset=$(((RANDOM << 15 | RANDOM) % size))
		bit=$((RANDOM % 8))
		python3 - "$file" "$copy" "$offset" "$bit" <<-'END'
			import sys
			data = bytearray(open(sys.argv[1], "rb").read())
			data[int(sys.argv[3])] ^= 1 << int(sys.argv[4])
			open(sys.argv[2], "wb").write(data)
		END
		sane "flipped-bit-$bit-at-$offset-of-$(basename "$file")" "$copy" || bad=1
	done
	[ "$bad" -ne 0 ] || ok replay/flipped
}

# --- exact can fail ----------------------------------------------------------------------------------------------------

group_tampered() {
	make_program
	record call -- tampered
	record crash -- crash
	"$BUILD/tests/tamper-recording" "$work/call.bug" "$work/call-tampered.bug" "$word" || failed replay/tampered "cannot tamper"
	"$BUILD/tests/tamper-recording" "$work/crash.bug" "$work/crash-tampered.bug" "$word" || failed replay/tampered "cannot tamper"
	# The log has the registers at system calls and at the end.
	refused tampered-before-a-call 1 'thread 0 diverges at position [0-9]+, pc 0x[0-9a-f]+ \(/.*\+0x[0-9a-f]+\): ' \
		'at system call getppid rdi differs: recorded 0x1122334455667788, replayed 0x1122334455667789' \
		'^recorded:' '^replayed:' 'rdi 1122334455667788' 'rdi 1122334455667789' \
		'^the log before it:' '^  position [0-9]+  getppid = ' -- \
		"${check[@]}" "$work/call-tampered.bug"
	refused tampered-before-the-end 1 'thread 0 diverges at position [0-9]+, pc 0x[0-9a-f]+ \(.*/replayed\+0x[0-9a-f]+\): ' \
		'rbx differs: recorded 0x1122334455667788, replayed 0x1122334455667789' '^recorded:' '^replayed:' 'rbx 1122334455667788' 'rbx 1122334455667789' \
		'^the log before it:' '^  position [0-9]+  end at pc 0x' -- \
		"${check[@]}" "$work/crash-tampered.bug"
	# Threads are replayed at once; of several differences it is always the same one that is told.
	record threads --interval 200K -- threads
	"$BUILD/tests/tamper-recording" "$work/threads.bug" "$work/threads-tampered.bug" "$word" || failed replay/tampered "cannot tamper"
	for jobs in 1 2 5; do
		exact "at-once-$jobs" "$work/threads.bug" "${check[@]}" --jobs "$jobs"
		refused "tampered-at-once-$jobs" 1 'thread 2 diverges at position [0-9]+' 'r.. 1122334455667789' -- \
			"${check[@]}" --jobs "$jobs" "$work/threads-tampered.bug"
		wanted "tampered-at-once-$jobs" || continue
		sed '/^seconds\|^speed\|^keyframes/d' "$work/run.out" | cat - "$work/run.err" >"$work/at-once-$jobs"
		if [ -e "$work/at-once-1" ] && ! cmp -s "$work/at-once-1" "$work/at-once-$jobs"; then
			diff "$work/at-once-1" "$work/at-once-$jobs" >"$work/difference"
			failed "replay/tampered-at-once-$jobs" "not the difference that one job finds" "$work/difference"
		fi
	done
	refused no-jobs 125 "'--jobs': 0 is not possible; give a number from 1 to 64" -- "${check[@]}" --jobs 0 "$work/threads.bug"
	# up to before the change all is well
	exact tampered-before-it "$work/call-tampered.bug" "${check[@]}" --to 10000
}

"group_$2"
exit 0
