set -m
state()
{
	sed -E 's/.*\) (.).*/\1/' "/proc/$1/stat"
}
until_state()
{
	for i in {1..200}; do
		[[ $(state "$1") == "$2" ]] && return
		sleep 0.02
	done
	echo "never reached state $2"
}

sleep 30 &
first=$!
[[ $(ps -o pgid= -p $first) -eq $first ]] && echo "a group of its own"
kill -STOP $first
until_state $first T
jobs %1 | tr -s ' '
kill -CONT %1
until_state $first S
jobs -r | tr -s ' '
kill -TERM %1
wait $first
echo "terminated $?"

(trap '' TERM; touch deaf; sleep 0.2; exit 5) &
until [[ -e deaf ]]; do sleep 0.02; done
kill -TERM $!
wait $!
echo "ignored it, then $?"

bash -c 'kill -SEGV $$' &
wait $!
echo "segv $?"
bash -c 'kill -KILL $$' &
wait $!
echo "kill $?"

# One process of a pipeline stops itself; the group is continued as a whole.
(kill -STOP $BASHPID; echo resumed) | cat &
pipeline=$(jobs -p %%)
until_state $pipeline T
kill -CONT -- -$pipeline
wait
echo "pipeline $?"

for i in {1..40}; do
	(exit $i) &
	wait $! || echo -n "$? "
done
echo
for i in {1..20}; do
	sleep 0.05 &
done
wait
jobs >/dev/null
disown -a
wait -n
echo "nothing to wait for: $?"
