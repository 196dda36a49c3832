# An emulator that is itself a translator with its own signal handlers and code buffer.
# timeout: 120
report translated qemu-x86_64 /bin/true
report translated qemu-x86_64 /bin/false
translated qemu-x86_64 "$(command -v busybox)" sha256sum /usr/share/common-licenses/GPL-3
ulimit -c 0
gcc -O1 "$programs/portable.c" -o program -pthread -lm && report translated qemu-x86_64 ./program
