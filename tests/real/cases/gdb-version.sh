report translated gdb -nx --version
translated gdb -nx -q -batch -ex 'print 6*7' -ex 'python print(sum(range(100)))' -ex 'disassemble PyList_Size' "$(command -v python3)" 2>&1 | tail -12
