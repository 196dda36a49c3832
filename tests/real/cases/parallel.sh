# Compressors with two threads each, on little data: in blocks as small as they allow, so that both have work.
find /usr/share/common-licenses -type f | sort | xargs cat | head -c 300K >data
for tool in 'pigz -n -p 2 -b 32' 'xz -T2 -0 --block-size=64KiB' 'zstd -q -T2 -B32K' 'pbzip2 -q -p2 -b1'; do
	translated $tool -c <data >packed && md5sum <packed
	translated ${tool%% *} -dc <packed | cmp - data && echo "$tool: same"
done
translated xz -T2 -dc <(xz -T2 -0 --block-size=64KiB -c data) | cmp - data && echo same
head -c 20000 packed >cut
translated pbzip2 -p2 -dc <cut >/dev/null 2>&1 && echo 'not noticed' || echo 'broken'
