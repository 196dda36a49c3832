# Addresses are the kernel's: random from run to run, and without randomisation those of a native run.
stack='import re; print(re.search(r"(\w+)-\w+ .*\[stack\]", open("/proc/self/maps").read())[1])'
expect 'number of stack addresses' "$(for i in 1 2 3; do translated python3 -c "$stack"; done | sort -u | wc -l)" 3
setarch -R true 2>/dev/null || exit 0
setarch -R translated cat /proc/self/maps | grep -E '/cat$' | cut -d' ' -f1,2,3
setarch -R translated cat /proc/self/maps | grep -F '[heap]' | cut -d- -f1
setarch -R translated cat /proc/self/maps | grep -F '[stack]' | cut -d' ' -f1 | cut -d- -f2
setarch -R translated busybox cat /proc/self/maps | grep busybox | cut -d' ' -f1,2
