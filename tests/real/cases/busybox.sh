# A static program with its own forks of itself.
file -bL "$(command -v busybox)" | grep -o 'statically linked'
gpl=/usr/share/common-licenses/GPL-3
b='translated busybox'
$b sh -c 'i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; echo $i; trap "echo trapped" USR1; kill -USR1 $$; (exit 3); echo $?; seq 5 | tac | while read n; do echo -n "$n "; done; echo'
$b sort $gpl | $b uniq -c | $b sort -rn | $b head -n 3
$b sha256sum $gpl; $b md5sum $gpl; $b cksum $gpl
$b gzip -c $gpl | $b gunzip -c | $b cmp - $gpl && $b bzip2 -c $gpl | $b md5sum
$b awk '{ n += NF } END { print n, sin(1) }' $gpl; $b sed -n '/warranty/Ip' $gpl | $b wc -l; $b grep -c -E 'GNU|License' $gpl
$b tar -c -C /usr/share common-licenses 2>/dev/null | $b tar -t | $b wc -l
$b find /usr/share/common-licenses -type f | $b sort | $b xargs $b cat | $b md5sum
echo '2 200 ^ p' | $b dc; echo 'scale=30; 4*a(1)' | $b bc -l
$b expr 6 '*' 7; $b date -u -d @86400; $b printf '%05d\n' 42; $b factor 1000036000099
$b ls -l /usr/share/common-licenses | $b md5sum; $b od -c $gpl | $b head -n 2; $b xxd $gpl | $b head -n 1
report $b false; report $b nosuchapplet
$b timeout 1 busybox sleep 10; echo "status $?"
