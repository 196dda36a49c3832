# The archive is the same however many threads compress it; -T2 starts them.
data=/usr/share/perl
tar_flags=(--sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=gnu)
translated tar "${tar_flags[@]}" -cf all.tar -C $data . && md5sum <all.tar
head -c 6M all.tar >part.tar
translated xz -T2 -1 --block-size=1MiB -k part.tar && md5sum <part.tar.xz
translated xz -T2 -dc part.tar.xz | cmp - part.tar && echo same
translated xz -l part.tar.xz | tail -1 | tr -s ' ' | cut -d' ' -f2-4
translated xz -t part.tar.xz; head -c 100000 part.tar.xz >cut.xz; report translated xz -t cut.xz
translated --children tar "${tar_flags[@]}" -cJf some.tar.xz -C /usr/share/common-licenses .
md5sum <some.tar.xz
mkdir out && translated tar -xJf some.tar.xz -C out && find out -type f | sort | xargs cat | md5sum
translated tar -tvf all.tar | md5sum
