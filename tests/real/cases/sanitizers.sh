# AddressSanitizer, with its memory all over the address space, LeakSanitizer, which stops its own process with ptrace, and
# UndefinedBehaviorSanitizer. What they say is compared without numbers of processes and addresses.
ulimit -c 0
gcc -O1 -g -fsanitize=address,undefined "$programs/faulty.c" -o program -pthread 2>/dev/null || fail "gcc"
export ASAN_OPTIONS=symbolize=0
for what in nothing use-after-free heap-overflow stack-overflow global-overflow leak undefined; do
	echo "$what"
	# Where the kernel puts things by chance, a third of the layouts has no room for the shadows of all threads beside
	# AddressSanitizer's terabytes (docs/architecture.md, Open), and the recorder says so.
	report setarch -R translated ./program $what 2>said
	sed -nE 's/^==[0-9]+==(ERROR: [A-Za-z]+: [a-z -]+).*/\1/p; s/.*(runtime error: .*)/\1/; s/0x[0-9a-f]+/ADDRESS/; /^runtime error/p' said
	grep -a '^bugnet' said >&2
done
true
