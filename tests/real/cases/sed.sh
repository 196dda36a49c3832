gpl=/usr/share/common-licenses/GPL-3
translated sed -n '/^ *[0-9][0-9]*\. /{=;p;}' $gpl
translated sed -E ':a; N; $!ba; s/\n([a-z])/ \1/g; s/(the) (\w+)/\2 \1/g' $gpl | md5sum
translated sed '1!G;h;$!d' $gpl | tail -3
cp $gpl copy && translated sed -i.old -e 'y/abc/xyz/' -e '10,20d' copy && cmp copy copy.old | head -1
md5sum <copy
report translated sed 's/(/' $gpl
