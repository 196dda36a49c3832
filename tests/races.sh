#!/bin/bash
# The races suite: each program of tests/races has a race, which `bugnet races` finds, and a twin in which it is mended,
# of which nothing is said.
#
# PATTERN selects programs by name, JOBS says how many run at once.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PATTERN=${PATTERN:-*}
need_launch || exit 2

if [ "${1:-}" != --one ]; then
	for source in "$root"/tests/races/*.c "$root"/tests/races/*.cc; do
		name=$(basename "${source%.*}")
		# shellcheck disable=SC2053
		[[ $name == $PATTERN ]] && printf '%s\n' "$name"
	done | xargs -r -P "${JOBS:-2}" -n 1 "${BASH_SOURCE[0]}" --one
	exit "${PIPESTATUS[1]}"
fi
new_work_directory
name=$2
source=$(echo "$root/tests/races/$name".c*)
expected=$(sed -n 's/^ \* race: //p' "$source")
ordered=$(sed -n 's/^ \* ordered: //p' "$source")
called=$(sed -n 's/^ \* call: //p' "$source")
freed=$(sed -n 's/^ \* freed: //p' "$source")
stack=$(sed -n 's/^ \* stack: //p' "$source")
allocated=$(sed -n 's/^ \* allocated: \(.*\)()/\1/p' "$source")

# find_races PROGRAM: records it; what was found is in races.json
find_races() {
	capture record "$BUGNET" record -o "$work/$1.bug" -- "$BUILD/tests/races/$1"
	if ! take_saved_line "$work/record.err" "$work/$1.bug"; then
		failed "races/$1" "nothing was saved" "$work/record.err"
		return 1
	fi
	capture races "$BUGNET" races --json "$work/$1.bug"
	cp "$work/races.out" "$work/races.json"
}

# expect PROGRAM STATUS PYTHON: the status, and what is true of `races`, with `expected` known
expect() {
	local status
	status=$(paste -sd';' "$work/races.status")
	if [ "$status" != "exit $2" ]; then
		cat "$work/races.err" "$work/races.json" >"$work/why"
		failed "races/$1" "'$status', not 'exit $2'" "$work/why"
	elif ! python3 -c "
import json, sys
expected = sys.argv[2].split()
races = json.load(open(sys.argv[1]))['races']
sys.exit(not ($3))" "$work/races.json" "$expected"; then
		failed "races/$1" "not what it should be" "$work/races.json"
	else
		ok "races/$1"
	fi
}

# Either the variable by its name, or both functions.
if find_races "$name"; then
	expect "$name" 1 "any(('$freed' and {'frees it' == race[which]['does'] and race[which]['callers'][0]['function'] + '()' or race[which]['function'] + '()'
		for which in ('first', 'second')} == set('$freed'.split())) or
	('$called' and any(race[which].get('call') == '$called'.split()[0] for which in ('first', 'second')) and
		{next((caller['function'] + '()' for caller in race[which]['callers'] if caller['line'] > 0 and '/tests/' in '/' + caller['source']), '')
			if 'call' in race[which] else race[which]['function'] + '()' for which in ('first', 'second')} == set('$called'.split()[1:])) or
	not '$called' and race['what'].split(',')[0].split('+')[0] == expected[0] or
	not '$called' and {race[which]['function'] + '()' for which in ('first', 'second')} == set(expected) for race in races) and
	all(race['bytes'] > 0 and race['first']['thread'] != race['second']['thread'] and (race['first']['line'] > 0 or race['first']['does'] == 'frees it' or 'call' in race['first']) for race in races) and
	all(any(caller['function'] in ('start_thread', '__libc_start_call_main') for caller in race[which]['callers'])
		for race in races for which in ('first', 'second')) and
	(not '$stack' or all([race[which].get('inlined')] + [caller['function'] for caller in race[which]['callers']][:len('$stack'.split('; ')) - 1] == '$stack'.split('; ')
		and race[which]['line'] > 0 and all((caller['line'] > 0) == (caller['function'] != 'without_lines') for caller in race[which]['callers'][:len('$stack'.split('; ')) - 1])
		for race in races for which in ('first', 'second'))) and
	('$ordered' != 'no' or not any(race['ordered'] for race in races)) and
	(not '$allocated' or any('allocation' in race and race['allocation']['callers'][0]['function'] == '$allocated' and
		race['allocation']['start'] <= race['address'] for race in races))"
fi
if find_races "$name-fixed"; then
	expect "$name-fixed" 0 "races == []"
fi
