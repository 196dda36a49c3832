set -u
trap 'echo "exit trap, status $?"' EXIT
trap 'echo got USR1' USR1
trap 'echo got INT' INT
trap 'errors=$((${errors-0} + 1))' ERR

kill -USR1 $$
kill -INT $$
(
	trap 'echo "subshell exit"' EXIT
	trap - USR1
	kill -TERM "$BASHPID"
	echo "not reached"
)
echo "subshell status $?"

false
false || true
echo "errors ${errors-0}"

# A signal that comes while bash waits for a child interrupts the wait.
(sleep 0.2; kill -USR1 $$) &
sleeper=$!
sleep 5 &
waited=$!
wait $waited
echo "wait status $(($? > 128))"
kill $waited $sleeper 2>/dev/null
wait $waited 2>/dev/null
echo "killed status $?"

# A storm of signals: every one that bash saw pending ran the trap, and bash survived them all.
storm=0
trap 'storm=$((storm + 1))' USR2
for i in {1..300}; do
	kill -USR2 $$
done
echo "storm $storm"

seq 1 2000 | while read -r n; do echo $((n * n % 97)); done | sort -n | uniq -c | head -5
echo "${PIPESTATUS[@]}"
diff <(seq 1 20) <(seq 1 2 20) | head -3

coproc UPPER { while read -r line; do echo "${line^^}"; done; }
upper=$UPPER_PID # bash unsets the variable when it notices the end of the coprocess
echo "through a coprocess" >&"${UPPER[1]}"
read -r answer <&"${UPPER[0]}"
echo "$answer"
eval "exec ${UPPER[1]}>&-"
wait $upper
echo "coprocess status $?"

set -o pipefail
true | (exit 3) | true
echo "pipefail $?"

fib() { (($1 < 2)) && echo $1 || echo $(($(fib $(($1 - 1))) + $(fib $(($1 - 2))))); }
fib 9

declare -A count
for word in $(yes 'the quick brown fox' | head -300); do
	count[$word]=$((${count[$word]-0} + 1))
done
for word in "${!count[@]}"; do echo "$word ${count[$word]}"; done | sort
exit 7
