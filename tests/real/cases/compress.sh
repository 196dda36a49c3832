# gzip, bzip2, zstd and pigz both ways, one thread and two.
find /usr/share/common-licenses /usr/share/perl/5.36* -maxdepth 1 -type f | sort | xargs cat | head -c 3M >data
for tool in 'gzip -n -9' 'gzip -n -1' 'bzip2 -9' 'zstd -q -3' 'zstd -q -T2 -B512K -9' 'zstd -q -19 --single-thread' 'pigz -n -p 2' 'pigz -n -p 1 -11 -I 1'; do
	case $tool in *-19* | *-11*) head -c 300K data >input ;; *) cp data input ;; esac
	translated $tool -c <input >packed && md5sum <packed
	translated ${tool%% *} -dc <packed | cmp - input && echo "$tool: same"
done
head -c 1000 packed >cut
translated pigz -dc <cut >/dev/null; echo "status $?"
echo garbage | translated zstd -dc; echo "status $?"
