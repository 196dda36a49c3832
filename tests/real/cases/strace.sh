# A tracer translated, what it traces native.
translated strace -f -o trace -e trace=write,exit_group sh -c 'echo one; (echo two; exit 3); echo three' && grep -v SIGCHLD trace | sed -E 's/^[0-9]+ +//'
translated strace -c -o count true; grep -c execve count
report translated strace -o /dev/null sh -c 'exit 6'
