#!/bin/bash
# The errors suite: bad input gets a clear error and the right status, and the command line behaves.
#
#	125   bugnet itself failed before the program started, or was called wrongly
#	126   the program was found and cannot be executed
#	127   the program was not found
#
# A message names the thing, the reason and a next step. PATTERN selects tests by name, JOBS says
# how many groups run at once.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PATTERN=${PATTERN:-*}
need_launch || exit 2
if [ "${1:-}" != --group ]; then
	printf '%s\n' files limits command_line recordings supervisor | PATTERN=$PATTERN xargs -P "${JOBS:-2}" -n 1 "${BASH_SOURCE[0]}" --group
	exit
fi
new_work_directory
files=$work/files
mkdir "$files"

# What a message that tells what to do next contains.
next_step=';|try |use |give |check |install|chmod|run |see |set |raise|need|did you mean|--help'

# expect NAME STATUS REGEX... -- COMMAND...: COMMAND must end with `exit STATUS` (STATUS may list several: 126,127),
# print nothing to stdout, and stderr must match each REGEX (case does not matter) and say a next step
expect() {
	local name=errors/$1 statuses=$2 regexes=() regex status
	shift 2
	while [ "$1" != -- ]; do
		regexes+=("$1")
		shift
	done
	shift
	wanted "${name#errors/}" || return
	capture run "$@"
	status=$(head -n1 "$work/run.status")
	case ",$statuses," in
	*",${status#exit },"*) ;;
	*)
		failed "$name" "status is '$status', not $statuses" "$work/run.err"
		return
		;;
	esac
	if [ "$(wc -l <"$work/run.status")" -ne 1 ]; then
		failed "$name" "$(sed -n '2,$p' "$work/run.status" | paste -sd' ')" "$work/run.err"
		return
	fi
	if [ -s "$work/run.out" ]; then
		failed "$name" "prints to stdout" "$work/run.out"
		return
	fi
	if ! head -n1 "$work/run.err" | grep -qiE '^(bugnet|usage: bugnet)'; then
		failed "$name" "the message does not start with 'bugnet'" "$work/run.err"
		return
	fi
	for regex in "${regexes[@]}" "$next_step"; do
		if ! grep -qiE -- "$regex" "$work/run.err"; then
			failed "$name" "the message does not say /$regex/" "$work/run.err"
			return
		fi
	done
	ok "$name"
}

# expect_output NAME STATUS STDOUT-REGEX STDERR-REGEX COMMAND...: an empty regex: nothing may be printed there
expect_output() {
	local name=errors/$1 wanted_status=$2 out=$3 err=$4 status
	shift 4
	wanted "${name#errors/}" || return
	capture run "$@"
	status=$(paste -sd';' "$work/run.status")
	if [ "$status" != "exit $wanted_status" ]; then
		failed "$name" "status is '$status', not 'exit $wanted_status'" "$work/run.err"
	elif [ -n "$out" ] && ! grep -qziE -- "$out" "$work/run.out"; then
		failed "$name" "stdout does not match /$out/" "$work/run.out"
	elif [ -z "$out" ] && [ -s "$work/run.out" ]; then
		failed "$name" "prints to stdout" "$work/run.out"
	elif [ -n "$err" ] && ! grep -qziE -- "$err" "$work/run.err"; then
		failed "$name" "stderr does not match /$err/" "$work/run.err"
	elif [ -z "$err" ] && [ -s "$work/run.err" ]; then
		failed "$name" "prints to stderr" "$work/run.err"
	else
		ok "$name"
	fi
}

# --- files that cannot be run -----------------------------------------------------------------------------------

# le BYTES NUMBER: the number in little-endian bytes
le() {
	local i number=$2
	for ((i = 0; i < $1; i++)); do
		# shellcheck disable=SC2059
		printf "\\x$(printf %02x $((number & 255)))"
		number=$((number >> 8))
	done
}

# patch FILE OFFSET BYTES NUMBER
patch() {
	le "$3" "$4" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# elf_header CLASS MACHINE TYPE PHNUM: an ELF header (64 or 52 bytes)
elf_header() {
	local class=$1 machine=$2 type=$3 phnum=$4
	printf '\x7fELF'
	le 1 "$class"
	printf '\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00'
	le 2 "$type"
	le 2 "$machine"
	le 4 1
	if [ "$class" = 2 ]; then
		le 8 $((0x400078))
		le 8 64
		le 8 0
		le 4 0
		le 2 64
		le 2 56
	else
		le 4 $((0x8048054))
		le 4 52
		le 4 0
		le 4 0
		le 2 52
		le 2 32
	fi
	le 2 "$phnum"
	le 2 0
	le 2 0
	le 2 0
}

# program_header TYPE FLAGS OFFSET VADDR FILESZ MEMSZ
program_header() {
	le 4 "$1"
	le 4 "$2"
	le 8 "$3"
	le 8 "$4"
	le 8 "$4"
	le 8 "$5"
	le 8 "$6"
	le 8 4096
}

# A whole program by hand: exit(33). 64 + 56 bytes of headers, 12 of code at 0x400078.
good_elf() {
	elf_header 2 62 2 1
	program_header 1 5 0 $((0x400000)) 132 132
	printf '\xbf\x21\x00\x00\x00\xb8\x3c\x00\x00\x00\x0f\x05'
}

make_files() {
	good_elf >"$files/good"
	echo data >"$files/not-executable"
	echo 'this is neither ELF nor a script' >"$files/garbage"
	: >"$files/empty"
	printf '\x7fELF' >"$files/four-bytes"
	{
		elf_header 1 3 2 1
		le 4 1
		head -c 300 /dev/zero
	} >"$files/elf32"
	{
		elf_header 1 62 2 1
		head -c 300 /dev/zero
	} >"$files/x32"
	{
		elf_header 2 183 2 1
		program_header 1 5 0 $((0x400000)) 400 400
		head -c 300 /dev/zero
	} >"$files/aarch64"
	{
		elf_header 2 243 2 1
		program_header 1 5 0 $((0x400000)) 400 400
		head -c 300 /dev/zero
	} >"$files/riscv"
	good_elf | head -c 40 >"$files/truncated-header"
	good_elf | head -c 80 >"$files/truncated-phdrs"
	cp /bin/true "$files/truncated-segments"
	truncate -s 5000 "$files/truncated-segments"
	for name in phoff phentsize phnum-zero relocatable core-file memsz huge overlap-kernel; do
		cp "$files/good" "$files/bad-$name"
	done
	patch "$files/bad-phoff" 32 8 $((1 << 40))
	patch "$files/bad-phentsize" 54 2 17
	patch "$files/bad-phnum-zero" 56 2 0
	patch "$files/bad-relocatable" 16 2 1
	patch "$files/bad-core-file" 16 2 4
	patch "$files/bad-memsz" $((64 + 40)) 8 10
	patch "$files/bad-huge" $((64 + 40)) 8 $((1 << 62))
	patch "$files/bad-overlap-kernel" $((64 + 16)) 8 $((-1 << 47))
	{
		elf_header 2 62 2 2
		program_header 3 4 176 $((0x4000b0)) 25 25
		program_header 1 5 0 $((0x400000)) 201 201
		printf '/nonexistent/interpreter\0'
	} >"$files/no-interpreter"
	{
		elf_header 2 62 2 2
		program_header 3 4 176 $((0x4000b0)) 6 6
		program_header 1 5 0 $((0x400000)) 182 182
		printf '/lib/x' # no zero at the end
	} >"$files/bad-interpreter-string"
	{
		elf_header 2 62 2 2
		program_header 3 4 176 $((0x4000b0)) 11 11
		program_header 1 5 0 $((0x400000)) 187 187
		printf '/etc/passwd'
		printf '\0'
	} >"$files/interpreter-not-elf"
	patch "$files/interpreter-not-elf" $((64 + 32)) 8 12
	printf '#!/nonexistent/shell\necho no\n' >"$files/script-no-interpreter"
	printf 'echo a script without its first line\n' >"$files/script-no-shebang"
	printf '#!\n' >"$files/script-empty-shebang"
	printf '#!%s\n' "$files/loop-b" >"$files/loop-a"
	printf '#!%s\n' "$files/loop-a" >"$files/loop-b"
	ln -s dangling-target "$files/dangling"
	ln -s symlink-loop "$files/symlink-loop"
	mkdir "$files/directory"
	find "$files" -type f -exec chmod +x {} +
	chmod -x "$files/not-executable"
	chmod 755 "$files/directory"
}

test_files() {
	make_files
	run=("$BUGNET" run --)
	expect_output good-elf 33 '' '' "${run[@]}" "$files/good"
	expect not-found 127 "$files/nothing" 'not found|no such file' -- "${run[@]}" "$files/nothing"
	expect not-found-in-path 127 'no-such-program-anywhere' 'not found|no such file' -- "${run[@]}" no-such-program-anywhere
	expect not-a-directory 126,127 "$files/good/x" 'not a directory|not found|no such file' -- "${run[@]}" "$files/good/x"
	expect dangling-link 127 "$files/dangling" 'not found|no such file|dangling' -- "${run[@]}" "$files/dangling"
	expect symlink-loop 126,127 "$files/symlink-loop" 'symbolic links|loop' -- "${run[@]}" "$files/symlink-loop"
	expect not-executable 126 "$files/not-executable" 'permission|not executable' 'chmod' -- "${run[@]}" "$files/not-executable"
	expect directory 126 "$files/directory" 'directory' -- "${run[@]}" "$files/directory"
	expect garbage 126 "$files/garbage" 'not an ELF|neither|format|script' -- "${run[@]}" "$files/garbage"
	expect empty-file 126 "$files/empty" 'empty|not an ELF|neither' -- "${run[@]}" "$files/empty"
	expect four-bytes 126 "$files/four-bytes" 'truncated|malformed|ELF' -- "${run[@]}" "$files/four-bytes"
	expect elf-32-bit 126 "$files/elf32" '32-bit' -- "${run[@]}" "$files/elf32"
	expect elf-x32 126 "$files/x32" '32' -- "${run[@]}" "$files/x32"
	expect other-machine-aarch64 126 "$files/aarch64" 'aarch64|arm|machine' 'x86-64|x86_64|qemu' -- "${run[@]}" "$files/aarch64"
	expect other-machine-riscv 126 "$files/riscv" 'risc-?v|machine' 'x86-64|x86_64|qemu' -- "${run[@]}" "$files/riscv"
	expect truncated-header 126 "$files/truncated-header" 'truncated|malformed' -- "${run[@]}" "$files/truncated-header"
	expect truncated-phdrs 126 "$files/truncated-phdrs" 'truncated|malformed' -- "${run[@]}" "$files/truncated-phdrs"
	expect truncated-segments 126 "$files/truncated-segments" 'truncated|malformed' -- "${run[@]}" "$files/truncated-segments"
	for name in phoff phentsize phnum-zero memsz huge overlap-kernel; do
		expect "malformed-$name" 126 "$files/bad-$name" 'malformed|truncated|header|segment' -- "${run[@]}" "$files/bad-$name"
	done
	expect malformed-interpreter 126,127 "$files/bad-interpreter-string" 'malformed|interpreter' -- "${run[@]}" "$files/bad-interpreter-string"
	expect relocatable 126 "$files/bad-relocatable" 'relocatable|object|not an executable|type|link' -- "${run[@]}" "$files/bad-relocatable"
	expect core-file 126 "$files/bad-core-file" 'core' -- "${run[@]}" "$files/bad-core-file"
	expect missing-interpreter 127 "$files/no-interpreter" '/nonexistent/interpreter' 'interpreter|loader' -- "${run[@]}" "$files/no-interpreter"
	expect interpreter-not-elf 126 "$files/interpreter-not-elf" '/etc/passwd' -- "${run[@]}" "$files/interpreter-not-elf"
	expect script-missing-interpreter 127 "$files/script-no-interpreter" '/nonexistent/shell' -- "${run[@]}" "$files/script-no-interpreter"
	expect script-without-shebang 126 "$files/script-no-shebang" '#!|format|neither|not an ELF' 'sh' -- "${run[@]}" "$files/script-no-shebang"
	expect script-empty-shebang 126 "$files/script-empty-shebang" '#!|interpreter|format' -- "${run[@]}" "$files/script-empty-shebang"
	expect script-loop 126 "$files/loop-a" -- "${run[@]}" "$files/loop-a"
	expect empty-name 127,125 "''|\"\"|empty" -- "${run[@]}" ""
	# A name without a slash that is not in PATH but here: said so.
	(
		cd "$files" || exit
		PATH=/usr/bin:/bin expect not-in-path-but-here 127 'good' '\./good|PATH' -- \
			sh -c 'cd "$1" && exec "$2" run -- good' sh "$files" "$BUGNET"
	)
}

# --- limits -----------------------------------------------------------------------------------------------------

# either NAME REGEX COMMAND...: COMMAND works as /bin/echo hello does, or fails with 125 and a message
either() {
	local name=errors/$1 regex=$2 status
	shift 2
	wanted "${name#errors/}" || return
	capture run "$@"
	status=$(paste -sd';' "$work/run.status")
	case $status in
	'exit 0')
		if [ "$(cat "$work/run.out")" = hello ] && [ ! -s "$work/run.err" ]; then
			ok "$name"
		else
			failed "$name" "status 0 but not the right output" "$work/run.err"
		fi
		;;
	'exit 125')
		if grep -q '^bugnet' "$work/run.err" && grep -qiE -- "$regex" "$work/run.err"; then
			ok "$name"
		else
			failed "$name" "status 125 without a clear message" "$work/run.err"
		fi
		;;
	*) failed "$name" "status is '$status'" "$work/run.err" ;;
	esac
}

limited() {
	printf 'ulimit %s || exit 99; shift 0; exec "$@"' "$1"
}

test_limits() {
	expect address-space-limit 125 'address space|RLIMIT_AS|ulimit -v' -- \
		bash -c "$(limited '-v 60000')" bash "$BUGNET" run -- /bin/true
	either address-space-500mb 'address space|RLIMIT_AS|ulimit -v' \
		bash -c "$(limited '-v 500000')" bash "$BUGNET" run -- /bin/echo hello
	either file-size-limit 'file size|RLIMIT_FSIZE|ulimit -f|too large' \
		bash -c "$(limited '-f 10')" bash "$BUGNET" run -- /bin/echo hello
	either descriptor-limit 'descriptor|open files|RLIMIT_NOFILE|ulimit -n' \
		bash -c "$(limited '-n 4')" bash "$BUGNET" run -- /bin/echo hello
	either data-limit 'data|memory|RLIMIT_DATA|ulimit -d' \
		bash -c "$(limited '-d 2000')" bash "$BUGNET" run -- /bin/echo hello
	either stack-limit 'stack' \
		bash -c "$(limited '-s 256')" bash "$BUGNET" run -- /bin/echo hello
	either stack-unlimited 'stack' \
		bash -c "$(limited '-s unlimited')" bash "$BUGNET" run -- /bin/echo hello
	either memory-lock-zero 'lock' \
		bash -c "$(limited '-l 0')" bash "$BUGNET" run -- /bin/echo hello
	either environment-empty 'environment' \
		env -i "$BUGNET" run -- /bin/echo hello
	either working-directory-gone 'directory' \
		bash -c 'mkdir gone && cd gone && rmdir ../gone && exec "$@"' bash "$BUGNET" run -- /bin/echo hello
	either no-tmp-writable 'tmp' \
		env TMPDIR=/nonexistent XDG_RUNTIME_DIR=/nonexistent HOME=/nonexistent "$BUGNET" run -- /bin/echo hello
}

# --- the command line -------------------------------------------------------------------------------------------

subcommands="run record replay debug info events pack doctor"

test_command_line() {
	local sub
	expect no-arguments 125 'usage|subcommand|command' -- "$BUGNET"
	expect unknown-subcommand 125 'rnu' 'did you mean.*run' -- "$BUGNET" rnu -- /bin/true
	expect unknown-subcommand-doctor 125 'docter' 'did you mean.*doctor' -- "$BUGNET" docter
	expect unknown-subcommand-far 125 'xyzzy' -- "$BUGNET" xyzzy
	expect unknown-option 125 '--stat([^s]|$)' 'did you mean.*--stats' -- "$BUGNET" run --stat -- /bin/true
	expect unknown-option-children 125 '--childern' 'did you mean.*--children' -- "$BUGNET" run --childern -- /bin/true
	expect unknown-option-far 125 '--xyzzy' -- "$BUGNET" run --xyzzy -- /bin/true
	expect unknown-option-short 125 '-Z' -- "$BUGNET" run -Z -- /bin/true
	expect unknown-global-option 125 '--versoin' 'did you mean.*--version' -- "$BUGNET" --versoin
	expect option-with-value 125 '--stats' -- "$BUGNET" run --stats=yes -- /bin/true
	expect run-nothing 125 'program|usage' -- "$BUGNET" run
	expect run-nothing-after-dashes 125 'program|usage' -- "$BUGNET" run --stats --
	expect doctor-arguments 125 'surplus' -- "$BUGNET" doctor surplus
	expect_output help 0 'run.*doctor' '' "$BUGNET" --help
	expect_output help-short 0 'run' '' "$BUGNET" -h
	expect_output version 0 '^bugnet [0-9]+\.[0-9]+' '' "$BUGNET" --version
	for sub in $subcommands; do
		expect_output "help-$sub" 0 "bugnet $sub" '' "$BUGNET" "$sub" --help
		expect_output "help-short-$sub" 0 "bugnet $sub" '' "$BUGNET" "$sub" -h
		expect_output "version-$sub" 0 '^bugnet [0-9]+\.[0-9]+' '' "$BUGNET" "$sub" --version
	done
	expect_output help-first-option 0 'bugnet run' '' "$BUGNET" run --stats --help
	# What comes after the program is the program's.
	expect_output options-after-program 0 '^--stats --help -Z' '' "$BUGNET" run -- /bin/echo --stats --help -Z
	expect_output program-found-in-path 0 '^hello' '' "$BUGNET" run -- echo hello
	expect_output program-without-dashes 0 '^hello --stats' '' "$BUGNET" run echo hello --stats
	expect_output status-passed-on 7 '' '' "$BUGNET" run -- sh -c 'exit 7'
	expect_output status-125-passed-on 125 '' '' "$BUGNET" run -- sh -c 'exit 125'
	expect_output stats 3 '^out' 'err.*block.*link.*cache|err.*block.*cache.*link' "$BUGNET" run --stats -- sh -c 'echo out; echo err >&2; exit 3'
	expect_output stats-requests 0 '' 'request' "$BUGNET" run --stats -- /bin/true
	expect_output stats-traces 0 '' 'trace|region' "$BUGNET" run --stats -- /bin/true
	expect_output stats-time 0 '' 'time|ms|seconds| s' "$BUGNET" run --stats -- /bin/true
	expect_output doctor 0 'FSGSBASE' '' "$BUGNET" doctor
	expect_output doctor-ptrace 0 '[Pp]trace' '' "$BUGNET" doctor
	expect_output doctor-kernel 0 '[Kk]ernel' '' "$BUGNET" doctor
	expect_output doctor-gdb 0 'gdb' '' "$BUGNET" doctor
	expect_output doctor-limits 0 'limit' '' "$BUGNET" doctor
	next_step='write' expect help-to-full-disk 125,1 'space|output' -- sh -c '"$1" --help >/dev/full' sh "$BUGNET"
}

# --- recordings -------------------------------------------------------------------------------------------------

# recording KIND: the path of a recording that tests/recordings/make.c makes of $work/program
recording() {
	"$BUILD/tests/make-recording" "$1" "$work/$1.bug" "$work/program" || failed "errors/recordings" "cannot make '$1'"
	echo "$work/$1.bug"
}

# unchanged NAME FILE SUM: is the file as it was, and nothing new beside it?
unchanged() {
	local name=errors/$1 left
	wanted "${name#errors/}" || return
	left=$(find "${2%/*}" -name '*.partial-*')
	if [ "$(sha256sum <"$2")" != "$3" ]; then
		failed "$name" "the recording was changed"
	elif [ -n "$left" ]; then
		failed "$name" "left behind: $left"
	else
		ok "$name"
	fi
}

test_reading() {
	local sub=$1 what
	mkfifo "$work/fifo"
	echo 'not a recording, though long enough for a header of one, if that were all' >"$work/text"
	: >"$work/empty-file"
	expect "$sub-nothing" 125 'no recording' 'usage' -- "$BUGNET" "$sub"
	expect "$sub-two" 125 'too many' -- "$BUGNET" "$sub" "$whole" "$whole"
	expect "$sub-empty-name" 125 'name is empty' -- "$BUGNET" "$sub" ''
	expect "$sub-not-found" 125 "$work/nothing" 'no such file' -- "$BUGNET" "$sub" "$work/nothing"
	for what in text empty-file; do
		expect "$sub-$what" 125 "$what" 'not a bugnet recording' 'bugnet record' -- "$BUGNET" "$sub" "$work/$what"
	done
	for what in "$work" "$work/fifo" /dev/null; do
		expect "$sub-no-file-${what##*/}" 125 'not a regular file' -- "$BUGNET" "$sub" "$what"
	done
	expect "$sub-newer" 125 'newer' 'need' -- "$BUGNET" "$sub" "$(recording newer)"
	expect "$sub-features" 125 'newer' 'need' -- "$BUGNET" "$sub" "$(recording features)"
	expect "$sub-unknown-option" 125 '--xyzzy' -- "$BUGNET" "$sub" --xyzzy "$whole"
	rm -f "$work/fifo"
}

test_info() {
	expect_output info 0 'program .*/program.*exited with status 3.*instructions +1500.*mmap' '' "$BUGNET" info "$whole"
	expect_output info-loads 0 'loads +not counted' 'warning: .*loads are not counted: .*code cache' "$BUGNET" info --loads "$whole"
	expect_output info-option-behind 0 '"bits_per_instruction": [0-9.]+' '' "$BUGNET" info "$whole" --json
	expect_output info-killed 0 'killed by SIGSEGV .*SEGV_MAPERR.*pc 0x401010: ' '' "$BUGNET" info "$(recording killed)"
	expect_output info-json 0 '"end": \{.*"kind": "exit".*"instructions": 1550.*"threads": \[' '' "$BUGNET" info --json "$threads"
	expect_output info-cut 0 'instructions +1500' 'warning: .*cut off' "$BUGNET" info "$(recording cut)"
	expect_output info-no-index 0 'instructions +1500' 'warning: .*cut off' "$BUGNET" info "$(recording no-index)"
	expect_output info-damaged 0 'exited with status 3' 'warning: .*0 to 1000 are lost.*checksum' "$BUGNET" info "$(recording damaged)"
	expect_output info-malformed 0 'instructions +1500' 'warning: .*no such kind' "$BUGNET" info "$(recording malformed)"
	expect_output info-nothing-inside 0 'threads: 0' 'warning' "$BUGNET" info "$(recording empty)"
	expect_output info-no-facts 0 'instructions +1500' 'warning' "$BUGNET" info "$(recording no-meta)"
	expect_output info-json-damaged 0 '"whole": false' 'warning' "$BUGNET" info --json "$work/damaged.bug"
	# what is in a recording must not command the terminal
	expect_output info-escapes 0 "arguments +program 'one two' .'.x1b\[31m'" '' "$BUGNET" info "$whole"
	if wanted info-no-control-characters; then
		if "$BUGNET" info "$whole" | LC_ALL=C grep -q '[^[:print:]]'; then
			failed errors/info-no-control-characters "there are some"
		else
			ok errors/info-no-control-characters
		fi
	fi
	if wanted info-json-is-json; then
		if "$BUGNET" info --json "$threads" | python3 -c '
import json, sys
info = json.load(sys.stdin)
assert info["arguments"] == ["program", "one two", "\x1b[31m"]
assert len(info["threads"]) == 2 and len(info["keyframes"]) == 3 and info["system_calls"]["mmap"] == 1
assert info["bytes"] > 0 and info["bits_per_instruction"] > 0'; then
			ok errors/info-json-is-json
		else
			failed errors/info-json-is-json "see above"
		fi
	fi
}

test_events() {
	local enoent='openat\(0, NULL, O_RDONLY\) +=  *-1 ENOENT \(No such file or directory\)' events=("$BUGNET" events --no-replay)
	expect_output events 0 " 100 $enoent.* 200 mmap\(NULL, 0, PROT_NONE, 0, 0, 0\) += 0x7f0012340000.*--- SIGALRM .si_signo=SIGALRM, si_code=SI_KERNEL. ---.* 1500 \+\+\+ exited with 3 \+\+\+" '' "${events[@]}" "$whole"
	expect_output events-killed 0 '--- SIGSEGV .si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=NULL. ---.*killed by SIGSEGV' '' "${events[@]}" "$work/killed.bug"
	expect_output events-threads 0 "\[0\] .*$enoent.*\[1\] .*futex\(NULL, FUTEX_WAIT, 0, NULL\) += -1 EAGAIN" '' "${events[@]}" "$threads"
	expect_output events-range 0 '^ +200 mmap\(.*\) += 0x7f0012340000. +300 write\(0, NULL, 0\) += 17.$' '' "${events[@]}" --from 200 --to 1000 "$whole"
	expect_output events-thread-range 0 '^\[1\] +50 \+\+\+ exited with 0 \+\+\+.$' '' "${events[@]}" "$threads" --thread 1 --from 11
	expect_output events-nothing-there 0 '' '' "${events[@]}" --from 5000 "$whole"
	expect_output events-cut 0 "$enoent" 'warning: .*cut off' "${events[@]}" "$work/cut.bug"
	expect_output events-malformed 0 'rt_sigreturn' 'warning: .*from position 1130 on: no such kind' "${events[@]}" "$work/malformed.bug"
	# what cannot be replayed is listed all the same
	expect_output events-no-replay-possible 0 "$enoent" 'warning: .*where the code cache was; .*addresses' "$BUGNET" events "$whole"
	expect events-no-position 125 "'abc' is no number" -- "$BUGNET" events --from abc "$whole"
	expect events-no-value 125 '--to' 'needs a value' -- "$BUGNET" events "$whole" --to
	expect events-backwards 125 'before' -- "$BUGNET" events --from 9 --to 3 "$whole"
	expect events-thread-no-number 125 "'-1' is no number" -- "$BUGNET" events --thread=-1 "$whole"
	expect events-no-thread 125 'no thread 7' -- "$BUGNET" events --thread 7 "$whole"
	expect events-no-call 125 "'opnat'" "did you mean 'openat'" -- "$BUGNET" events -e opnat "$whole"
	expect events-no-class 125 "'%fiel'" "did you mean '%file'" -- "$BUGNET" events -e read,%fiel "$whole"
	expect events-empty-calls 125 "no system call ''" -- "$BUGNET" events -e '' "$whole"
	expect events-comma 125 "no system call ''" -- "$BUGNET" events -e read, "$whole"
	next_step='write' expect events-to-full-disk 125 'space|output' -- sh -c '"$1" events --no-replay "$2" >/dev/full' sh "$BUGNET" "$whole"
}

# What `bugnet replay` says before it replays anything; tests/replay.sh has the rest.
test_replay() {
	local what
	expect replay-nothing-inside 125 'nothing in it' 'bugnet info' -- "$BUGNET" replay "$(recording empty)"
	for what in x -1 '' 0x10 '1 ' 99999999999999999999; do
		expect "replay-from-$what" 125 "'$what' is no number" 'bugnet info' -- "$BUGNET" replay "--from=$what" "$whole"
	done
	expect replay-backwards 125 'before' -- "$BUGNET" replay --from 9 --to 3 "$whole"
	expect replay-thread-too-large 125 '4294967295' 'no number that can be' -- "$BUGNET" replay --thread 4294967295 "$whole"
	for what in 0 65 x ''; do
		expect "replay-jobs-$what" 125 '--jobs' 'from 1 to 64' -- "$BUGNET" replay "--jobs=$what" "$whole"
	done
	for what in sysroot binary; do
		expect "replay-$what-empty" 125 "'--$what' needs a value" -- "$BUGNET" replay "--$what=" "$whole"
	done
	if [ "$(id -u)" = 0 ]; then
		cp "$BUGNET" "$work/bugnet-for-all"
		chmod 755 "$work" "$work/bugnet-for-all"
		cp "$whole" "$work/unreadable.bug"
		chmod 600 "$work/unreadable.bug"
		for what in replay info; do
			expect "$what-unreadable" 125 'unreadable.bug: permission' 'ask its owner' -- \
				setpriv --reuid 65534 --regid 65534 --clear-groups -- "$work/bugnet-for-all" "$what" "$work/unreadable.bug"
		done
	fi
	expect replay-newline 125 'a.x0ab.bug: no such file' -- "$BUGNET" replay $'a\nb.bug'
}

test_pack() {
	local sum
	sum=$(sha256sum <"$whole")
	expect pack-to-existing 125 'already' -- "$BUGNET" pack "$whole" -o "$threads"
	expect pack-to-nowhere 125 '/nonexistent/x' 'no such file' -- "$BUGNET" pack "$whole" -o /nonexistent/x
	expect pack-empty-value 125 '--output' 'needs a value' -- "$BUGNET" pack "$whole" -o ''
	expect pack-no-value 125 '--output' 'needs a value' -- "$BUGNET" pack "$whole" -o
	expect_output pack-to-another 0 'added .*/program: .*1 file added' '' "$BUGNET" pack "$whole" -o "$work/packed.bug"
	unchanged pack-leaves-the-other "$whole" "$sum"
	expect_output pack-packed 0 '/program.*, packed' '' "$BUGNET" info "$work/packed.bug"
	expect_output pack-cut 0 '1 file added' 'warning: .*cut off' "$BUGNET" pack "$(recording cut)" -o "$work/cut-packed.bug"
	expect_output pack-cut-is-whole 0 'exited with 3' '' "$BUGNET" events --no-replay "$work/cut-packed.bug"
	expect_output pack-no-checksum 0 '1 file added' '' "$BUGNET" pack "$(recording no-checksum)" -o "$work/by-build-id.bug"
	cp -p "$work/program" "$work/program.kept"
	printf x | dd of="$work/program" bs=1 seek=5000 conv=notrunc status=none
	expect pack-changed 125 "$work/program" 'build id [0-9a-f]{8,}.*[0-9a-f]{8,} and another content' -- "$BUGNET" pack "$whole"
	unchanged pack-changed-leaves-it "$whole" "$sum"
	cp "$(type -P sh)" "$work/program"
	expect pack-replaced 125 'build id [0-9a-f]{8,}, but the file here has [0-9a-f]{8,};' -- "$BUGNET" pack "$whole"
	rm "$work/program"
	expect pack-missing 125 "$work/program" 'no such file' -- "$BUGNET" pack "$whole"
	unchanged pack-missing-leaves-it "$whole" "$sum"
	mv "$work/program.kept" "$work/program"
	expect_output pack 0 'added .*/program: .*1 file added' '' "$BUGNET" pack "$whole"
	expect_output pack-twice 0 'already' '' "$BUGNET" pack "$whole"
	rm "$work/program"
	expect_output pack-without-the-file 0 'exited with status 3' '' "$BUGNET" info "$whole"
}

# What is wrong with the place for a recording is said before the program runs.
test_record() {
	local program=(sh -c 'echo it ran >&2')
	mkdir "$work/there"
	: >"$work/there/old.bug"
	ln -s nowhere "$work/there/dangling"
	expect record-nothing 125 'program' 'usage' -- "$BUGNET" record -o "$work/x.bug"
	expect record-not-found 127 'no-such-program-anywhere' -- "$BUGNET" record no-such-program-anywhere
	expect record-existing 125 'old.bug' 'already' -- "$BUGNET" record -o "$work/there/old.bug" "${program[@]}"
	expect record-dangling 125 'dangling' 'already' -- "$BUGNET" record -o "$work/there/dangling" "${program[@]}"
	expect record-directory 125 'directory' -- "$BUGNET" record -o "$work/there" "${program[@]}"
	expect record-slash 125 'no file' -- "$BUGNET" record -o "$work/there/" "${program[@]}"
	expect record-empty-name 125 'no file' -- "$BUGNET" record -o '' "${program[@]}"
	expect record-device 125 '/dev/null' 'not a regular file' -- "$BUGNET" record -o /dev/null "${program[@]}"
	expect record-no-directory 125 '/nonexistent' 'no such file' -- "$BUGNET" record -o /nonexistent/x.bug "${program[@]}"
	expect record-below-a-file 125 'not a directory' -- "$BUGNET" record -o "$work/there/old.bug/x.bug" "${program[@]}"
	expect record-unwritable 125 '/proc' 'cannot write' -- "$BUGNET" record -o /proc/x.bug "${program[@]}"
	expect record-long-name 125 'too long' -- "$BUGNET" record -o "$(printf 'x%.0s' {1..300}).bug" "${program[@]}"
	expect record-directory-gone 125 'directory is gone' -- \
		bash -c 'mkdir gone && cd gone && rmdir ../gone && exec "$@"' bash "$BUGNET" record "${program[@]}"
	for what in 5q -1 0 '' 3x 10m; do
		expect "record-interval-$what" 125 '--interval' -- "$BUGNET" record "--interval=$what" "${program[@]}"
	done
	for what in -1 1001 x 3x ''; do
		expect "record-bound-$what" 125 '--bound' -- "$BUGNET" record "--bound=$what" "${program[@]}"
	done
	for what in 1 3 2048 x -2 ''; do
		expect "record-dictionary-$what" 125 '--dictionary' -- "$BUGNET" record "--dictionary=$what" "${program[@]}"
	done
	expect trim-no-output 125 '-o' -- "$BUGNET" trim "$whole"
	expect trim-existing 125 'already' -- "$BUGNET" trim -o "$whole" "$whole"
	expect trim-nothing-there 125 'nothing was recorded there' -- "$BUGNET" trim -o "$work/t.bug" --from 99999999999 "$whole"
	expect save-nothing 125 'usage' -- "$BUGNET" save
	expect save-word 125 "'word'" 'bugnet ps' -- "$BUGNET" save word
	expect save-nobody 125 'not being recorded' -- "$BUGNET" save 1
	expect rm-nothing 125 'usage' -- "$BUGNET" rm
	expect record-name-path 125 '--name' -- "$BUGNET" record --name a/b "${program[@]}"
	expect record-name-output 125 '--name' '--output' -- "$BUGNET" record --name a -o b.bug "${program[@]}"
	expect record-save-on-syscall 125 "'nothing:2'" -- "$BUGNET" record --save-on-syscall write:2,nothing:2 "${program[@]}"
	expect record-save-on-output 125 '--save-on-output' 'regular expression' -- "$BUGNET" record --save-on-output '(' "${program[@]}"
	expect record-ring-small 125 '--ring' '1M' -- "$BUGNET" record --ring 1000 "${program[@]}"
	expect record-wait-for-nothing 125 '--wait-for' 'no/such' -- "$BUGNET" record --wait-for no/such/program
	expect record-wait-for-empty 125 '--wait-for' 'give' -- "$BUGNET" record --wait-for ''
	expect record-wait-for-program 125 '--wait-for' "'true'" -- "$BUGNET" record --wait-for sleep true
	expect record-wait-for-pid 125 '--wait-for' '--pid' -- "$BUGNET" record --wait-for sleep --pid 1
	expect record-memory-small 125 '--memory' '32M' -- "$BUGNET" record --memory 1M "${program[@]}"
	expect record-memory-all 125 '--memory' 'ring' -- "$BUGNET" record --memory 64M --all "${program[@]}"
	expect record-memory-ring 125 '--memory' 'half' -- "$BUGNET" record --memory 64M --ring 40M "${program[@]}"
	expect record-memory-bound 125 '--memory' '--bound' -- "$BUGNET" record --memory 64M --bound 2 "${program[@]}"
	expect record-memory-children 125 '--memory' '--children' -- "$BUGNET" record --memory 64M --children "${program[@]}"
	expect record-slowdown-one 125 '--max-slowdown' 'slower' 'more than 1' -- "$BUGNET" record --max-slowdown 1 "${program[@]}"
	expect record-slowdown-word 125 '--max-slowdown' 'such as' -- "$BUGNET" record --max-slowdown 3x "${program[@]}"
	expect record-ring-all 125 '--ring' '--all' 'exclude' -- "$BUGNET" record --ring 2M --all "${program[@]}"
	expect record-ring-huge 125 '--ring' 'memory' -- "$BUGNET" record --ring 99999999G "${program[@]}"
	expect record-ring-word 125 '--ring' -- "$BUGNET" record --ring many "${program[@]}"
	expect record-save-on 125 "'sometimes'" 'exit=N' -- "$BUGNET" record --save-on signal,sometimes "${program[@]}"
	expect record-save-on-all 125 '--save-on' -- "$BUGNET" record --all --save-on signal "${program[@]}"
	expect record-cpu 125 'x86-64-v9' 'x86-64-v3' -- "$BUGNET" record --cpu x86-64-v9 "${program[@]}"
	expect record-cache 125 'cache' -- "$BUGNET" record --cache 1 "${program[@]}"
}

# record_survives NAME STATUS FILE REGEX COMMAND...: COMMAND ends so, prints what the program does, and FILE, if it is
# not -, comes to be and has what REGEX says
record_survives() {
	local name=errors/$1 status=$2 file=$3 regex=$4 i
	shift 4
	wanted "${name#errors/}" || return
	capture run "$@"
	for ((i = 0; i < 100; i++)); do
		[ "$file" = - ] || [ -e "$file" ] && break
		sleep 0.05
	done
	if [ "$(paste -sd';' "$work/run.status")" != "$status" ]; then
		failed "$name" "status is '$(paste -sd';' "$work/run.status")', not '$status'" "$work/run.err"
	elif ! cmp -s "$work/run.out" "$work/expected"; then
		failed "$name" "stdout is not the program's" "$work/run.err"
	elif [ "$file" = - ]; then
		ok "$name"
	elif ! "$BUGNET" info "$file" 2>/dev/null | grep -qE -- "$regex"; then
		failed "$name" "the recording does not say /$regex/" "$work/run.err"
	else
		ok "$name"
	fi
}

# The program goes on, or has ended, and what can be saved is saved.
test_survival() {
	local disk='mount -t tmpfs -o size=$2 tmpfs "$1" && cd "$1" && shift 2 && "$@"; status=$?; cp ./*.bug .. 2>/dev/null; exit $status'
	local private=(unshare -m)
	[ "$(id -u)" = 0 ] || private=(unshare -r -m)
	mkdir "$work/disk"
	gzip -nc "$BUGNET" >"$work/expected"
	if "${private[@]}" mount -t tmpfs tmpfs "$work/disk" 2>/dev/null; then
		record_survives record-disk-full 'exit 0' "$work/full.bug" 'instructions +[1-9]' \
			"${private[@]}" sh -c "$disk" sh "$work/disk" 500k "$BUGNET" record -o full.bug --interval 5M -- gzip -nc "$BUGNET"
		record_survives record-all-disk-full 'exit 0' "$work/all.bug" 'instructions +[1-9]' \
			"${private[@]}" sh -c "$disk" sh "$work/disk" 300k "$BUGNET" record --all -o all.bug --interval 20M -- gzip -nc "$BUGNET"
		record_survives record-disk-full-at-once 'exit 0' - '' \
			"${private[@]}" sh -c "$disk" sh "$work/disk" 4k "$BUGNET" record -o none.bug -- gzip -nc "$BUGNET"
		record_survives record-disk-without-files 'exit 0' - '' \
			"${private[@]}" sh -c "$disk" sh "$work/disk" 4k,nr_inodes=1 "$BUGNET" record -o none.bug -- gzip -nc "$BUGNET"
	else
		skipped errors/record-disk-full "no file system can be mounted here"
	fi
	echo before >"$work/expected"
	record_survives record-killed 'signal 9' "$work/killed.bug" 'end +killed by SIGKILL' \
		"$BUGNET" record -o "$work/killed.bug" -- sh -c 'echo before; kill -9 $$; echo after'
	record_survives record-crash 'signal 11' "$work/crash.bug" 'killed by SIGSEGV .*SI_USER' \
		"$BUGNET" record -o "$work/crash.bug" -- sh -c 'echo before; kill -11 $$; echo after'
	record_survives record-exit 'exit 7' "$work/exit.bug" 'exited with status 7' \
		"$BUGNET" record -o "$work/exit.bug" -- sh -c 'echo before; exit 7'
}

test_recordings() {
	local whole threads sub what
	cp "$(type -P cat)" "$work/program"
	whole=$(recording whole)
	threads=$(recording threads)
	test_record
	test_survival
	for sub in info events pack replay; do
		test_reading "$sub"
	done
	test_replay
	test_info
	test_events
	test_pack
}

# --- the supervisor ---------------------------------------------------------------------------------------------

# The program's supervisor, once there is one and the program has said `started`.
wait_for_supervisor() {
	local i
	for ((i = 0; i < 500; i++)); do
		if grep -q started "$work/bugnet.out" 2>/dev/null; then
			supervisor=$(supervisors_of "$1" | head -n 1)
			[ -n "$supervisor" ] && return 0
		fi
		kill -0 "$1" 2>/dev/null || return 1
		sleep 0.02
	done
	return 1
}

# with_supervisor NAME ACTION: runs the phases program, does ACTION when it is under way, compares with native
supervised=(run)
with_supervisor() {
	local name=errors/$1 action=$2 launcher supervisor=
	wanted "${name#errors/}" || return
	rm -f "$work/bugnet".*
	: >"$work/bugnet.out"
	"$launch" -t 60 -s "$work/bugnet.status" -- "$BUGNET" "${supervised[@]}" -- "$work/phases" >"$work/bugnet.out" 2>"$work/bugnet.err" &
	launcher=$!
	if ! wait_for_supervisor "$launcher"; then
		failed "$name" "no process named bugnet while the program runs" "$work/bugnet.err"
		wait "$launcher"
		return
	fi
	$action "$supervisor"
	wait "$launcher"
	# bugnet may say that it goes on natively
	compare_runs "$name" "stdout status"
}

kill_now() { kill -KILL "$1"; }
kill_later() {
	sleep "$delay"
	kill -KILL "$1" 2>/dev/null
}
terminate() { kill -TERM "$1"; }
stop_and_continue() {
	kill -STOP "$1"
	sleep 0.5
	kill -CONT "$1"
}
stop_and_kill() {
	kill -STOP "$1"
	sleep 0.3
	kill -KILL "$1"
}

# A program that is killed before it has begun takes its supervisor along.
program_killed_early() {
	local name=errors/program-killed-early delay marker program left=
	wanted "${name#errors/}" || return
	marker=$work/marker
	ln -s "$(type -P sleep)" "$marker"
	for delay in 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9; do
		"$BUGNET" run "$marker" 9 >/dev/null 2>&1 &
		program=$!
		sleep "0.00$delay"
		kill "$program"
		wait "$program" 2>/dev/null
	done
	for delay in $(seq 50); do
		left=
		for program in /proc/[0-9]*; do
			[[ $(tr '\0' ' ' 2>/dev/null <"$program/cmdline") != *"$marker 9"* ]] || left+=" ${program#/proc/}"
		done 2>/dev/null
		[ -n "$left" ] || break
		sleep 0.1
	done
	if [ -z "$left" ]; then
		ok "$name"
	else
		failed "$name" "still there:$left"
	fi
}

test_supervisor() {
	program_killed_early
	"$root/tests/build-program" "$root/tests/programs/support/phases.c" "$work/phases" || {
		failed errors/supervisor "tests/programs/support/phases.c does not compile"
		return
	}
	"$launch" -t 60 -s "$work/native.status" -- "$work/phases" >"$work/native.out" 2>"$work/native.err"
	with_supervisor supervisor-killed kill_now
	for delay in 0.05 0.1 0.2 0.4 0.8; do
		with_supervisor "supervisor-killed-after-$delay" kill_later
	done
	with_supervisor supervisor-terminated terminate
	with_supervisor supervisor-stopped stop_and_continue
	with_supervisor supervisor-stopped-and-killed stop_and_kill

	# What was written of a recording before stays, under its temporary name.
	supervised=(record --all --interval 1M -o "$work/killed.bug")
	delay=0.3
	with_supervisor record-supervisor-killed kill_later
	if wanted record-supervisor-killed; then
		expect_output record-supervisor-killed-partial 0 'instructions +[1-9]' 'warning: .*cut off' "$BUGNET" info "$work"/killed.bug.partial-*
	fi
	supervised=(record --interval 1M -o "$work/stopped.bug")
	with_supervisor record-supervisor-stopped stop_and_continue
	supervised=(run)

	# Nothing stays behind when the program ends, however it ends (launch reports what does).
	local how
	for how in 'exit 0' 'kill -9 $$' 'kill -11 $$' 'exec true'; do
		wanted "nothing-left-behind" || continue
		capture run "$BUGNET" run -- sh -c "$how"
		if grep -q 'left behind' "$work/run.status"; then
			failed errors/nothing-left-behind "sh -c '$how': $(grep 'left behind' "$work/run.status" | paste -sd' ')"
		else
			ok "errors/nothing-left-behind ($how)"
		fi
	done
}

"test_$2"
exit 0
