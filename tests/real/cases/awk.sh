# mawk and gawk over the same program: arrays, regexps, printf, floats, pipes, system().
for awk in mawk gawk; do
	translated $awk -f "$programs/words.awk" /usr/share/common-licenses/GPL-3 /usr/share/common-licenses/Apache-2.0
	echo "status $?"
done
translated gawk 'BEGIN { "date -u -d @0 +%Y" | getline y; print y; print strftime("%F", 86400, 1); print and(12, 10), gensub(/(a+)b/, "<\\1>", "g", "aab ab b") }'
translated gawk 'BEGIN { cmd = "sort -r"; print "a" |& cmd; print "b" |& cmd; close(cmd, "to"); while ((cmd |& getline l) > 0) print l; close(cmd) }'
translated gawk -M 'BEGIN { print 2^200 }' 2>&1 | head -1
