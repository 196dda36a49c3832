# Rust: ripgrep and fd, which search with a pool of threads.
cd /usr/share/perl || exit
translated rg -j2 -c 'sub \w+' . | sort | md5sum
translated rg -j2 --no-heading -n '^use (strict|warnings)' . | sort | md5sum
translated rg -j1 --sort path -o '\bmy \$(\w{9,})' -r '$1' . | sort | uniq -c | sort -rn | head -5
translated rg -U --multiline-dotall -c 'package.*?;\n\nuse' . | sort | head -3
translated rg --json wantarray . --sort path | grep -v elapsed | md5sum
report translated rg -q nothingtofindhere .
report translated rg '(' . 2>&1
translated fdfind -j2 -e pm . | sort | md5sum
translated fdfind -e pl -x wc -c {} 2>/dev/null | sort | md5sum
