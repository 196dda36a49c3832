# The server with four threads, under a bounded load of connections at the same time; ended by a signal.
# timeout: 120
port=$(free_port)
user=()
[[ $EUID == 0 ]] && user=(-u nobody)
translated memcached "${user[@]}" -l 127.0.0.1 -p "$port" -U 0 -t 4 -m 64 &
server=$!
answers() { exec 3<>"/dev/tcp/127.0.0.1/$port" && exec 3>&-; }
wait_for 40 answers
/usr/bin/python3 "$programs/memcache.py" "$port" 8 150
kill -TERM $server
wait $server
echo "status $?"
