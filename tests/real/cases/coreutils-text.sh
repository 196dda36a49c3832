# Filters over pipes, every stage translated.
t=translated
$t seq 1 60000 | $t awk '{ print $1 * 7919 % 65521, $1 }' >numbers
$t sort -n numbers | $t tail -3
$t sort --parallel=2 -S 1M -k2,2r numbers | $t sha256sum
$t cut -d' ' -f1 numbers | $t tr 0-9 a-j | $t sort | $t uniq -c | $t sort -rn | $t head -4
$t sha256sum numbers; $t sha512sum numbers; $t md5sum numbers; $t b2sum numbers; $t cksum numbers
$t paste numbers <($t tac numbers) | $t fold -w 11 | $t nl | $t tail -2
$t split -l 7000 numbers part. && $t cat part.* | $t cmp - numbers && $t wc part.* | $t tail -2
$t comm -12 <($t sort part.aa) <($t sort numbers) | $t wc -l
$t join <($t seq 1 9 | $t sort) <($t seq 5 20 | $t sort)
$t base64 numbers | $t base64 -d | $t md5sum
$t od -A x -t x1z numbers | $t head -2
$t numfmt --to=iec 1024 1048576 123456789; $t factor 1234567890123456789 97
$t shuf --random-source=numbers -i 1-1000 | $t md5sum
$t tee copy1 copy2 <numbers | $t wc -c; $t cmp copy1 copy2; $t dd if=numbers bs=1k count=10 status=none | $t md5sum
$t expr 5 + 7 '*' 3; $t printf '%08.3f|%-6s|%x\n' 3.14159 ab 255; $t date -u -d @1700000000
$t timeout 0.2 sleep 5; echo "timeout $?"
$t env -u HOME sh -c 'echo ${HOME-none}'; $t basename /a/b.c .c; $t dirname /a/b.c; $t realpath /usr/bin/../lib/..
