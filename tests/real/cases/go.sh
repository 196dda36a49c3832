# Go: its own threads, stacks and asynchronous preemption by signals.
jq -n -c '[range(3000)] | map({id: ., name: "item\(.)", list: [., . * 2], deep: {a: {b: .}}})' >data.json
translated gron data.json | md5sum
translated gron data.json | translated gron --ungron | jq -S -c . | cmp - <(jq -S -c . data.json) && echo same
find /usr/share/perl /usr/share/doc 2>/dev/null | sort | head -20000 >names
for query in changelog 'copy right' "'perl !pod" '^/usr/share/doc .gz$'; do
	translated fzf --filter "$query" <names | md5sum
done
report translated fzf --filter nothingmatchesthis <names
translated fzf --version | head -1
GOMAXPROCS=1 translated gron data.json | tail -1
GOGC=1 translated gron data.json | md5sum
report translated gron <<<'{broken' 2>&1
