# as, ld, objdump, readelf, nm, strip, objcopy, ar, c++filt on real files
cat >two.c <<'END'
int shared_value = 42;
int twice(int x) { return x * 2 + shared_value; }
END
gcc -O2 -g -fPIC -c two.c && gcc -O2 -c -x c - -o main.o <<<'int twice(int); int main(void) { return twice(3) - 48; }'
translated ld -shared two.o -o libtwo.so && translated ld -r two.o main.o -o both.o
translated ar rcsD libtwo.a two.o && translated nm libtwo.a && translated ranlib -D libtwo.a && md5sum <libtwo.a
translated --children gcc main.o libtwo.a -o program && report translated ./program
translated objdump -d /usr/bin/env | md5sum
translated objdump -dS two.o | tail -5
translated readelf -aW /usr/bin/ls | md5sum
translated readelf --debug-dump=info two.o | md5sum
cp program stripped && translated strip stripped && translated objcopy -O binary -j .text program text
md5sum <stripped && md5sum <text
translated size both.o && translated strings -n 8 /usr/bin/env | head -3
echo _ZNSt6vectorIiSaIiEE9push_backERKi | translated c++filt
translated addr2line -e program main | head -1
report translated ld nosuch.o 2>&1 | grep -E "cannot find|^status"
