# Sourced by bash before every case (BASH_ENV). See run for how a case is judged.
#
#   translated [--children] PROG ARGS   run PROG natively or under bugnet, as the run demands (a command on the path)
#   $programs                           the folder with the sources that cases feed to the programs

unset BASH_ENV

fail()
{
	echo "check failed: $*" >&2
	exit 1
}

skip()
{
	echo "$*"
	exit 77
}

# expect WHAT GOT WANTED
expect()
{
	[[ $2 == "$3" ]] || fail "$1 is '$2', not '$3'"
}

# free_port: prints a TCP port of the loopback address that nobody listens on.
free_port()
{
	/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# wait_for SECONDS COMMAND...: until COMMAND succeeds
wait_for()
{
	local deadline=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		((SECONDS < deadline)) || fail "waited in vain for: $*"
		sleep 0.05
	done
}

# gone PID: no process has it any more
gone()
{
	! kill -0 "$1" 2>/dev/null
}

# report COMMAND...: runs it and prints its exit status. What bash itself says about a death by signal names a pid and
# is dropped.
report()
{
	{ "$@" 2>&3 3>&-; } 3>&2 2>/dev/null
	echo "status $?"
}
