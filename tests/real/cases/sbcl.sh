# A native-code Lisp with its own memory layout, a signal-driven garbage collector and a compiler at run time.
# timeout: 120
report translated sbcl --noinform --no-sysinit --no-userinit --disable-debugger --load "$programs/mix.lisp"
