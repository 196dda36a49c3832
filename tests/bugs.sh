#!/bin/bash
# The bugs suite: programs with a bug, tests/bugs/*.c. Each is recorded with the default ring; the recording replays exactly
# and to the faulting instruction, and the root cause lies in the window. The fixed twin has nothing to say.
#
# Environment: PATTERN selects by name, JOBS (2), BUG_DISTANCE (1: times as much work between cause and symptom).
# --table prints, for each, the instructions from root cause to symptom, those in the window, and the file's size; for
# bench/bugs.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PATTERN=${PATTERN:-*}

# cause_of FILE: position of the last ROOT_CAUSE() in any thread, and of the symptom: "CAUSE SYMPTOM FIRST THREAD". Positions of
# different threads do not compare: then the way is from the cause to the end of its own thread, and the whole way of the other.
places() {
	"$BUGNET" info --json "$1" >"$work/info.json" && "$BUGNET" events --no-replay --json "$1" >"$work/events.json" &&
		python3 - "$work/info.json" "$work/events.json" <<'PYTHON'
import json, sys
info = json.load(open(sys.argv[1]))
events = json.load(open(sys.argv[2]))
events = events["events"] if isinstance(events, dict) else events
threads = {thread["id"]: thread for thread in info["threads"]}
causes = [event for event in events if event.get("name") == "getpriority" and str(event["arguments"][0]) in ("25205", "0x6275")]
if not causes:
    sys.exit("the root cause is not in the window")
end = info["end"]
if end["kind"] == "unknown":
    saved = info["saved"]
    end = {"thread": saved.get("thread", 0), "position": saved.get("position", threads[0]["last_position"]), "pc": "-"}
cause = causes[-1]
thread = threads[cause["thread"]]
if not thread["first_position"] <= cause["position"] <= thread["last_position"]:
    sys.exit("the root cause is not in the window of its thread")
same = cause["thread"] == end["thread"]
way = (end["position"] if same else thread["last_position"]) - cause["position"]
print(way, info["instructions"], info["bytes"], end["thread"], end["position"], end.get("pc", "-"))
PYTHON
}

one() {
	local source=$1 name expect native found way window bytes thread position pc
	name=bugs/$(basename "${source%.*}")
	new_work_directory
	expect=$(directive "$source" expect)
	if ! compile_bug "$source" -o "$work/bug" || ! compile_bug "$source" -DFIXED -o "$work/fixed"; then
		failed "$name" "does not compile"
		return
	fi
	capture fixed "$work/fixed"
	if [ "$(cat "$work/fixed.status")" != 'exit 0' ]; then
		failed "$name" "the fixed twin: $(paste -sd';' "$work/fixed.status")" "$work/fixed.err"
		return
	fi
	case $expect in
	signal*)
		capture native "$work/bug"
		native=$(head -n1 "$work/native.status")
		if [ "$native" != "$expect" ]; then
			failed "$name" "natively '$native', not '$expect'" "$work/native.err"
			return
		fi
		;;
	esac
	if ! record_bug "$expect" "$work/r.bug"; then
		failed "$name" "nothing was saved; $(paste -sd';' "$work/bugnet.status")" "$work/bugnet.err"
		return
	fi
	if [[ $expect == signal* ]] && ! cmp -s "$work/native.status" "$work/bugnet.status"; then
		failed "$name" "recorded '$(paste -sd';' "$work/bugnet.status")'" "$work/bugnet.err"
		return
	fi
	if ! found=$(places "$work/r.bug" 2>"$work/why"); then
		failed "$name" "$(tail -n1 "$work/why")" "$work/bugnet.err"
		return
	fi
	read -r way window bytes thread position pc <<<"$found"
	if [ -n "${table:-}" ]; then
		printf '%s %s %s %s\n' "${name#bugs/}" "$way" "$window" "$bytes"
		return
	fi
	if [ "$pc" != - ] && ! "$BUGNET" replay --thread "$thread" --to "$position" "$work/r.bug" 2>&1 | tee "$work/why" | grep "pc $(printf "%#x" "$pc") " >/dev/null; then
		failed "$name" "replayed to position $position of thread $thread the pc is not $pc" "$work/why"
		return
	fi
	expect_exact "$name" "$work/r.bug"
}

if [ "${1:-}" = --one ]; then
	table=${3:-}
	need_launch || exit 2
	one "$2"
	exit 0
fi
need_launch || exit 2
for source in "$root"/tests/bugs/*.c "$root"/tests/bugs/*.cc; do
	name=$(basename "${source%.*}")
	# shellcheck disable=SC2053
	[[ $name == $PATTERN ]] && printf '%s\0' "$source"
done | xargs -0 -r -P "${JOBS:-2}" -I{} "$0" --one {} "${1:-}"
exit 0
