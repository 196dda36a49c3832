# The class verifier, interpreter and both compilers; safepoints, implicit null checks and stack banging use SIGSEGV.
# timeout: 180
javac -d . "$programs/Mix.java" || skip "no javac"
report translated java -Xshare:auto -Xmx256m Mix
report translated java -Xint -Xmx256m -cp . Mix quick
report translated java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx64m Mix quick
report translated java Mix throw 2>&1
