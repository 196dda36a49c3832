# A client over file: and http:, against a loopback server that is itself translated.
translated python3 -u -m http.server --bind 127.0.0.1 --directory /usr/share/common-licenses 0 >log 2>/dev/null &
wait_for 40 grep -q port log
port=$(grep -o 'port [0-9]*' log | cut -d' ' -f2)
translated curl -s "http://127.0.0.1:$port/GPL-3" | md5sum
translated curl -s -Z "http://127.0.0.1:$port/GPL-[2-3]" -o 'file#1' 2>/dev/null && md5sum file2 file3
translated curl -s -o /dev/null -w '%{http_code} %{size_download}\n' "http://127.0.0.1:$port/nothing"
translated curl -s "file:///usr/share/common-licenses/BSD" | md5sum
report translated curl -s http://127.0.0.1:1/
kill $!
wait $! 2>/dev/null
echo "server status $?"
