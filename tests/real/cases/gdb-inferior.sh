# gdb translated, with a native inferior under its ptrace: breakpoints, watchpoints, signals, threads, a finished run.
gcc -g -O0 "$programs/inferior.c" -o inferior -pthread
cat >commands <<'END'
set pagination off
set confirm off
set print thread-events off
set debuginfod enabled off
break work
run
backtrace 2
print *box
watch box->total
continue
continue
delete
handle SIGUSR1 stop print
continue
signal 0
info threads
END
translated gdb -nx -q -batch -x commands -ex 'print $_exitcode' ./inferior 2>&1 | sed -E 's/0x[0-9a-f]+/ADDRESS/g; s/(Thread|LWP|process) [A-Z0-9]+/\1 N/g; s/LWP [0-9]+/LWP N/g' | grep -v -i -E 'debuginfod|libthread_db|Using host'
