# One self-checking C program linked in every way: PIE and not, static, static-pie, musl, with and without optimisation.
ulimit -c 0
for how in 'gcc -O2' 'gcc -O2 -no-pie' 'gcc -O2 -static' 'gcc -O2 -static-pie -fPIE' 'gcc -O0 -fcf-protection=full' 'gcc -O3 -mavx2 -mfma -mbmi2' 'gcc -Os -Wl,-z,now' 'musl-gcc -O2' 'musl-gcc -O2 -static'; do
	$how "$programs/portable.c" -o program -pthread -lm || fail "$how"
	echo "$how"
	report translated ./program one 'two words'
done
gcc -O1 -g -fsanitize=undefined "$programs/portable.c" -o program -pthread -lm && report translated ./program
gcc -nostdlib -static -x c -o bare - <<<'void _start(void) { __asm__("mov $60,%eax; mov $42,%edi; syscall"); }'
report translated ./bare
