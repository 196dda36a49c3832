proc fib n { expr {$n < 2 ? $n : [fib [expr {$n - 1}]] + [fib [expr {$n - 2}]]} }
puts [fib 18]
for {set i 0} {$i < 20000} {incr i} { dict incr count [expr {$i * 7919 % 101}] }
puts [dict size $count]
puts [expr {2 ** 300 % 1000007}]
set file [open /usr/share/common-licenses/GPL-3]
set text [read $file]
close $file
puts [regexp -all -inline {\m[A-Z]{6,}\M} $text]
puts [llength [lsort -unique [split $text]]]
puts [catch {error "an error"} message]:$message
proc tick {} { incr ::ticks; if {$::ticks < 5} { after 5 tick } else { set ::done 1 } }
set ticks 0
after 5 tick
vwait done
puts $ticks
coroutine next apply {{} { yield; for {set i 0} {1} {incr i} { yield [expr {$i * $i}] } }}
for {set i 0} {$i < 5} {incr i} { puts -nonewline "[next] " }
puts ""
puts [exec sh -c "echo child"]
puts [string length [binary encode base64 $text]] 
exit 8
