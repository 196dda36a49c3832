# A tree of files: made, copied, linked, listed, searched and removed.
t=translated
$t mkdir -p tree/{a,b,c}/{1,2,3}
for f in tree/*/*; do $t touch -d '2020-02-02 02:02:02' "$f/x" "$f/y"; echo "$f" >"$f/z"; done
$t touch -d '2021-01-01' tree/*/*/z
$t ln -s ../a/1/z tree/b/link; $t ln tree/a/1/z tree/c/hard; $t chmod 640 tree/a/1/z; $t mkfifo tree/fifo
$t touch -h -d '2021-01-01' tree/b/link
$t touch -d '2021-01-01' tree tree/* tree/*/*/
$t ls -lRn --time-style=long-iso tree | sed '/^total/d' | $t awk '{ $2 = ""; print }'
$t find tree -type f -newermt 2020-06-01 -printf '%p %s %m %n\n' | $t sort
$t find tree -name z -exec cat {} + | $t md5sum
$t find tree -type f -print0 | $t sort -z | $t xargs -0 -n 4 -P 2 wc -c | $t awk '{ s += $1 } END { print s }'
$t cp -a tree copy && $t diff -r tree/a copy/a && echo same
$t stat -c '%n %F %a %h' copy/b/link copy/fifo copy/c/hard
$t readlink -f copy/b/link | $t sed "s,$PWD,,"
$t mv copy/a copy/moved && $t ls copy
$t du -a --apparent-size copy/moved/1 | $t sort
$t rm -r copy && report $t ls copy
$t find /usr/share/zoneinfo -name 'E*' -type f 2>/dev/null | $t sort | $t md5sum
$t ls -lR /usr/share/perl | $t sha1sum
