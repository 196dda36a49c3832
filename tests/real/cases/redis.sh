# The server translated, its clients native: pipelined load, Lua, a snapshot by fork, threads for input and output.
# timeout: 120
port=$(free_port)
translated --children redis-server --port "$port" --bind 127.0.0.1 --dir "$PWD" --save '' --io-threads 2 --io-threads-do-reads yes --enable-debug-command yes >log 2>&1 &
server=$!
ask() { redis-cli -h 127.0.0.1 -p "$port" "$@"; }
wait_for 40 ask ping

redis-benchmark -h 127.0.0.1 -p "$port" -q -n 6000 -c 20 -P 4 -r 500 -t ping,set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset --csv |
	tail -n +2 | cut -d, -f1
ask flushall
for i in {1..300}; do echo "SET key:$i $((i * 7919))"; echo "ZADD scores $((i * 31 % 97)) member:$i"; echo "PFADD seen $((i % 50))"; done | ask | sort | uniq -c
ask debug digest
ask eval 'local t = 0; for i = 1, 1000 do t = t + tonumber(redis.call("GET", "key:" .. (i % 300 + 1))) end; return t' 0
ask zrangebyscore scores 90 96 limit 0 5
ask --raw dump key:7 | md5sum
ask bgsave
wait_for 40 sh -c "redis-cli -h 127.0.0.1 -p $port info persistence | grep -q 'rdb_bgsave_in_progress:0'"
redis-check-rdb dump.rdb | grep -o -E 'RDB looks OK|keys read'
ask bgrewriteaof >/dev/null
timeout 60 redis-cli -h 127.0.0.1 -p "$port" subscribe channel >heard &
listener=$!
heard() { [[ $(ask publish channel message) == 1 ]]; }
wait_for 40 heard
wait_for 20 grep -q message heard
kill $listener
wait $listener
ask client list | wc -l
ask shutdown nosave
wait $server
echo "status $?"
