# Traps, subshells, pipes, process substitution, coprocesses: all inside one translated bash and its forks.
translated bash "$programs/traps.sh"
echo "status $?"
