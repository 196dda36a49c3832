# A TLS server and client, both translated, over loopback.
port=$(free_port)
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -subj /CN=localhost -days 2 2>/dev/null
translated openssl s_server -quiet -accept "127.0.0.1:$port" -cert cert.pem -key key.pem -WWW -naccept 3 >log 2>&1 &
server=$!
listening() { grep -q -i ":$(printf %04x "$port") 00000000:0000 0A" /proc/net/tcp; }
wait_for 40 listening
cp /usr/share/common-licenses/GPL-3 page
for i in 1 2; do
	translated curl -s --cacert cert.pem --resolve "localhost:$port:127.0.0.1" "https://localhost:$port/page" | md5sum
done
printf 'GET /page HTTP/1.0\r\n\r\n' | translated openssl s_client -quiet -ign_eof -connect "127.0.0.1:$port" -CAfile cert.pem 2>/dev/null | md5sum
wait $server
echo "status $?"
