# Traces compiled while the program runs, machine code thrown away and made again, C calls and callbacks through ffi.
# timeout: 120
report translated luajit "$programs/mix.lua"
report translated luajit "$programs/hot.lua"
report translated luajit -joff "$programs/mix.lua"
report translated luajit -Ohotloop=2 -Omaxmcode=64 "$programs/mix.lua"
